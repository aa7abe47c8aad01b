//! **Fine-grained access**: a process reads or writes many small neighbours one after the other, each with a message and its
//! round trip, where one call could transfer all of them.
//!
//! A sequence: accesses of one process to elements of an object that lie one after the other, or (reads) to objects of a
//! variable in one direction, each right after the one before ([`crate::profile::Sequences`]): after the time that the longer of
//! them took or, where processes told where their time went, that the way of a reply and of the next request takes. Holds when a variable's
//! sequences have at least `least_accesses` accesses, on average at least `batch_length` each, and one access in place of each
//! sequence would have saved at least `time_lost` of the time of the processes that do it.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, VarId};

use crate::cure::Cure;
use crate::detectors::candidate::Candidate;
use crate::finding::{Finding, Kind};
use crate::profile::{Profile, Runs};
use crate::thresholds::Thresholds;

/// What bulk transfer costs of each small one: bytes, and looking up.
const STAYS: f64 = 0.1;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut by_variable: BTreeMap<(VarId, bool), Vec<(ApId, Runs)>> = BTreeMap::new();
    for (&(variable, writes, ap), near) in &profile.sequences.runs {
        let of = by_variable.entry((variable, writes)).or_default();
        of.push((ap, near.of_hop(profile.hops.get(&ap).copied())));
    }
    let all = by_variable.into_iter();
    all.filter_map(|((variable, writes), runs)| about(profile, t, variable, writes, &runs))
        .collect()
}

fn about(
    profile: &Profile,
    t: &Thresholds,
    variable: VarId,
    writes: bool,
    runs: &[(ApId, Runs)],
) -> Option<Candidate> {
    let sum = |of: fn(&Runs) -> u64| runs.iter().map(|(_, r)| of(r)).sum::<u64>();
    let (count, accesses) = (sum(|r| r.count), sum(|r| r.accesses));
    let length = accesses as f64 / count.max(1) as f64;
    if accesses < t.least_accesses || length < t.batch_length {
        return None;
    }
    let saved = |r: &Runs| r.excess.0 as f64 - STAYS * r.time.0 as f64;
    let by_ap: BTreeMap<ApId, f64> = runs.iter().map(|(ap, r)| (*ap, saved(r))).collect();
    let own = profile.scaled(by_ap.values().sum());
    let aps: BTreeSet<ApId> = by_ap.keys().copied().collect();
    if profile.fraction_of(aps.len(), own) < t.time_lost {
        return None;
    }
    let lost = profile.fraction(profile.scaled(profile.lost_by_all(&by_ap)));
    let name = profile.catalog.name_of(variable);
    let mut finding = Finding::new(Kind::FineGrained, profile.window)
        .with("sequences", count)
        .with("mean_sequence", length)
        .with("access_ns", sum(|r| r.time.0))
        .with("mean_access_ns", sum(|r| r.time.0) as f64 / accesses as f64);
    finding.aps = profile.ap_names(&aps);
    finding.groups = profile.group_names(&aps);
    finding.severity = lost;
    finding.predicted_gain = Some(lost);
    finding.cure = Some(Cure::Together(variable, writes));
    finding.advice = match writes {
        true => format!(
            "{name} is written {length:.0} neighbouring elements one after the other: write them as one range, or in a \
             section, or add them with one accumulate"
        ),
        false => format!(
            "{name} is read {length:.0} neighbours one after the other, each with its own round trip: read them as one range, \
             objects with read_all, or ask for them with prefetch before they are needed"
        ),
    };
    finding.variable = Some(name);
    let objects = profile.objects.keys().filter(|id| id.var == variable);
    let floor = t.time_lost * aps.len() as f64 / profile.active().max(1) as f64;
    let mut candidate = Candidate::new(finding, objects.copied(), accesses, floor);
    candidate.ratio = Some((1.0 - 1.0 / length, 1.0 - 1.0 / t.batch_length.max(1.0)));
    candidate.aps = aps;
    Some(candidate)
}
