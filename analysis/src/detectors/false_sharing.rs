//! **False sharing**: application processes write disjoint elements of one object, and so take from
//! each other what they do not share.
//!
//! Holds when at least two processes wrote the object, no two of them the same element, the writer
//! changed at least `ping_pong_hand_overs` times, and its accesses cost at least `time_lost` of the
//! writers' time. Whole-object writes overlap, so they never count.

use crate::finding::{Finding, Kind};
use crate::profile::{ApUse, Profile};
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (&id, object) in &profile.objects {
        let writers: Vec<_> = object
            .by_ap
            .iter()
            .filter(|(_, u)| u.counts.writes > 0)
            .collect();
        if writers.len() < 2 || object.writer_changes < t.ping_pong_hand_overs {
            continue;
        }
        let uses: Vec<&ApUse> = writers.iter().map(|w| w.1).collect();
        if !disjoint(&uses) {
            continue;
        }
        let cost: f64 = uses.iter().map(|u| u.time.0 as f64).sum();
        let their_time = profile.window.length().0 as f64 * writers.len() as f64;
        if cost / their_time.max(1.0) < t.time_lost {
            continue;
        }
        let ranges: Vec<String> = writers
            .iter()
            .map(|(ap, used)| {
                let name = profile.catalog.topology.ap_name(**ap);
                format!("{name}: {:?}", used.written.as_slice())
            })
            .collect();
        let mut finding = super::about(profile, Kind::FalseSharing, id)
            .with("writer_changes", object.writer_changes)
            .with("access_ns", cost)
            .with("elements_written", ranges);
        finding.aps = profile.ap_names(writers.iter().map(|w| w.0));
        finding.groups = profile.group_names(writers.iter().map(|w| w.0));
        finding.severity = profile.fraction(cost);
        finding.advice = format!(
            "{} write different elements of {}: split the variable so that each has objects of its own",
            finding.aps.join(" and "),
            finding.subject(),
        );
        findings.push(finding);
    }
    findings
}

/// Whether every process's written elements are known and no two processes wrote the same.
fn disjoint(uses: &[&ApUse]) -> bool {
    uses.iter().all(|u| !u.written.is_empty())
        && uses.iter().enumerate().all(|(i, a)| {
            uses[i + 1..]
                .iter()
                .all(|b| !a.written.intersects(&b.written))
        })
}
