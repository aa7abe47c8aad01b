//! **False sharing**: application processes write disjoint elements of one object, and so take from
//! each other what they do not share.
//!
//! Holds when at least two processes wrote the object, no two of them the same element, at most
//! `false_sharing_reads` of their reads touched elements that another one wrote, the writer
//! changed at least `ping_pong_hand_overs` times, and the accesses cost at least `time_lost` of the
//! writers' time more than they would with objects of their own (local, nobody to wait for). Accesses to whole
//! objects overlap, so they never count.

use std::collections::BTreeSet;

use dosmos_proto::ApId;
use dosmos_trace::record::Origin;

use crate::detectors::candidate::{self, Candidate};
use crate::finding::Kind;
use crate::profile::{ApUse, ObjectProfile, Profile};
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (&id, object) in &profile.objects {
        if object.writer_changes < t.ping_pong_hand_overs {
            continue;
        }
        let Some(writers) = independent_writers(object, t) else {
            continue;
        };
        let cost: f64 = profile.scaled(writers.iter().map(|(_, used)| excess(profile, used)).sum());
        let their_time = profile.window.length().0 as f64 * writers.len() as f64;
        if cost / their_time.max(1.0) < t.time_lost {
            continue;
        }
        let ranges: Vec<String> = writers
            .iter()
            .map(|(ap, used)| {
                let name = profile.catalog.topology.ap_name(*ap);
                format!("{name}: {}", used.written)
            })
            .collect();
        let aps: BTreeSet<ApId> = writers.iter().map(|w| w.0).collect();
        let mut finding = candidate::about(profile, Kind::FalseSharing, id)
            .with("writer_changes", object.writer_changes)
            .with("cost_ns", cost)
            .with("elements_written", ranges);
        finding.aps = profile.ap_names(&aps);
        finding.groups = profile.group_names(&aps);
        finding.severity = profile.fraction(cost);
        finding.predicted_gain = Some(finding.severity);
        finding.advice = format!(
            "{} write different elements of {}: split the variable so that each has objects of its own",
            finding.aps.join(" and "),
            finding.target(),
        );
        let records = writers.iter().map(|(_, used)| used.counts.total()).sum();
        let floor = profile.fraction(t.time_lost * their_time);
        let mut candidate = Candidate::new(finding, [id], records, floor);
        candidate.aps = aps;
        found.push(candidate);
    }
    found
}

/// The writers, if there are several and they have nothing to do with each other.
fn independent_writers<'a>(
    object: &'a ObjectProfile,
    t: &Thresholds,
) -> Option<Vec<(ApId, &'a ApUse)>> {
    let all = object.by_ap.iter().filter(|(_, u)| u.counts.writes > 0);
    let writers: Vec<(ApId, &ApUse)> = all.map(|(ap, used)| (*ap, used)).collect();
    let reads: u64 = object.by_ap.values().map(|u| u.counts.reads).sum();
    let foreign: u64 = object.by_ap.values().map(|u| u.foreign_reads).sum();
    let apart = writers.len() >= 2
        && writers.iter().all(|(_, used)| !used.written.is_empty())
        && foreign as f64 <= t.false_sharing_reads * reads as f64
        && writers.iter().enumerate().all(|(i, (_, a))| {
            let mut others = writers[i + 1..].iter();
            others.all(|(_, b)| !a.written.intersects(&b.written))
        });
    apart.then_some(writers)
}

/// What these accesses cost beyond local ones, nanoseconds.
fn excess(profile: &Profile, used: &ApUse) -> f64 {
    let local = profile.costs.of(&used.served(), Origin::Local);
    (used.time.0 as f64 - local).max(0.0)
}
