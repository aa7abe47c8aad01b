//! **Polling**: a process reads an object again and again, and does nothing else, until it has changed.
//!
//! A wait: at least four reads of an object by one process, each right after the one before
//! ([`crate::profile::Sequences`]), of which the last is the first of a new version and most are not. Holds when the processes
//! that read an object so waited at least `polling_waits` times, at least as often as they read it so often and did not wait,
//! with at least `least_accesses` reads, for at least `time_lost` of their time.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, ObjectId};

use crate::detectors::candidate::{self, Candidate};
use crate::finding::Kind;
use crate::profile::{Polls, Profile};
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut by_object: BTreeMap<ObjectId, Vec<(ApId, Polls)>> = BTreeMap::new();
    for (&(object, ap), &polls) in &profile.sequences.polls {
        if polls.ended > 0 {
            by_object.entry(object).or_default().push((ap, polls));
        }
    }
    let all = by_object.into_iter();
    all.filter_map(|(object, polls)| about(profile, t, object, &polls))
        .collect()
}

fn about(
    profile: &Profile,
    t: &Thresholds,
    object: ObjectId,
    polls: &[(ApId, Polls)],
) -> Option<Candidate> {
    let sum = |of: fn(&Polls) -> u64| polls.iter().map(|(_, p)| of(p)).sum::<u64>();
    let (waits, others, reads) = (sum(|p| p.ended), sum(|p| p.others), sum(|p| p.reads));
    let time = profile.scaled(sum(|p| p.time.0) as f64);
    let aps: BTreeSet<ApId> = polls.iter().map(|(ap, _)| *ap).collect();
    let often = waits >= t.polling_waits && waits >= others && reads >= t.least_accesses;
    if !often || profile.fraction_of(aps.len(), time) < t.time_lost {
        return None;
    }
    let mut finding = candidate::about(profile, Kind::Polling, object)
        .with("polling_waits", waits)
        .with("reads", reads)
        .with("reads_per_wait", reads as f64 / waits.max(1) as f64)
        .with("polling_ns", time);
    finding.aps = profile.ap_names(&aps);
    finding.groups = profile.group_names(&aps);
    finding.severity = profile.fraction(time);
    finding.advice = format!(
        "{} read {} {:.0} times until it has changed, and do nothing else meanwhile: wait at a barrier, or acquire a lock that the \
         process that changes it holds until then (of a lock of kind spin or mcs: declare it with kind queue)",
        finding.aps.join(" and "),
        finding.target(),
        reads as f64 / waits.max(1) as f64,
    );
    let floor = t.time_lost * aps.len() as f64 / profile.active().max(1) as f64;
    let mut candidate = Candidate::new(finding, [object], reads, floor);
    candidate.aps = aps;
    Some(candidate)
}
