//! **Barrier overhead**: processes pass barriers so often that passing them, not waiting for slower processes, costs a large
//! part of their time.
//!
//! The overhead of an opening is the shortest time that any of the processes spent in it: the last to arrive waits for nobody.
//! Measured on one clock, and the same for all. Holds when at least `barrier_openings` were seen, and their overhead is at least
//! `barrier_overhead` of the time of the processes that pass.
//!
//! Memory processes tell that time, so what messages to and from the processes take is not in it, nor waking them where there are
//! fewer processors than processes. From a quarter of it on it is suspected: a replay, which knows these, decides.

use std::collections::BTreeSet;

use dosmos_proto::{ApId, GroupId};
use dosmos_trace::query::TimeRange;

use crate::cure::Cure;
use crate::detectors::candidate::Candidate;
use crate::finding::{Finding, Kind};
use crate::profile::{Phases, Profile};
use crate::thresholds::Thresholds;

/// Of the threshold: from here on a replay is asked.
const SUSPECTED: f64 = 0.25;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    from(profile, t, t.barrier_overhead)
}

/// What a replay has to confirm.
pub(super) fn suspect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let suspected = from(profile, t, SUSPECTED * t.barrier_overhead);
    let certain = detect(profile, t);
    let apart = |s: &Candidate| certain.iter().all(|c| c.aps.is_disjoint(&s.aps));
    suspected.into_iter().filter(apart).collect()
}

fn from(profile: &Profile, t: &Thresholds, least: f64) -> Vec<Candidate> {
    let all = profile.barriers.iter();
    let mut found: Vec<Candidate> = all
        .filter_map(|(&group, phases)| about(profile, (t, least), group, phases))
        .collect();
    // Barriers of a group and of all: the worst stands for both.
    found.sort_by(|a, b| b.finding.severity.total_cmp(&a.finding.severity));
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in found {
        if kept.iter().all(|k| k.aps.is_disjoint(&candidate.aps)) {
            kept.push(candidate);
        }
    }
    kept
}

fn about(
    profile: &Profile,
    (t, least): (&Thresholds, f64),
    group: Option<GroupId>,
    phases: &Phases,
) -> Option<Candidate> {
    let aps: BTreeSet<ApId> = phases.by_ap.keys().copied().collect();
    let lost = profile.scaled(phases.overhead.0 as f64 * aps.len() as f64);
    if phases.count < t.barrier_openings || profile.fraction_of(aps.len(), lost) < least {
        return None;
    }
    let passers = group.map_or("all processes".to_owned(), |g| {
        profile.catalog.topology.group_name(g)
    });
    let each = 1.0 / phases.count.max(1) as f64;
    let (overhead, between) = (phases.overhead.0 as f64 * each, phases.busy.mean * each);
    let range = phases
        .span
        .map_or(profile.window, |(from, to)| TimeRange { from, to });
    let mut finding = Finding::new(Kind::BarrierOverhead, range)
        .with("barriers_of", passers.clone())
        .with("phases", phases.count)
        .with("mean_overhead_ns", overhead)
        .with("mean_between_ns", between);
    finding.aps = profile.ap_names(&aps);
    finding.groups = profile.group_names(&aps);
    finding.severity = profile.fraction(lost);
    finding.predicted_gain = Some(finding.severity);
    let of_group = profile.catalog.barriers.iter().filter(|b| b.group == group);
    finding.cure = Some(Cure::FreeBarriers(of_group.map(|b| b.id).collect()));
    finding.advice = format!(
        "a barrier of {passers} takes {:.1} µs even for the last to arrive, after {:.1} µs of work: do more between barriers \
         (exchange what several steps need at once), or let those processes wait for each other that need it: a barrier of the group",
        overhead / 1e3,
        between / 1e3,
    );
    let floor = least * aps.len() as f64 / profile.active().max(1) as f64;
    let mut candidate = Candidate::new(finding, [], phases.count * aps.len() as u64, floor);
    candidate.aps = aps;
    Some(candidate)
}
