//! **Read-only locking**: processes acquire an object only to read it.
//!
//! A section is read-only if its process does nothing in it but read the object ([`crate::profile::ReadOnly`]). Of a variable count the
//! processes nearly all of whose sections of an object (`READERS`) are so. Holds when these sections are at least
//! `least_accesses`, and their acquires and releases take at least `time_lost` of the time of those processes: a read outside a
//! section sees the last released content as a whole, and needs no lock.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, ObjectId, VarId};

use crate::cure::Cure;
use crate::detectors::candidate::Candidate;
use crate::finding::{Finding, Kind};
use crate::profile::{Profile, ReadOnly};
use crate::thresholds::Thresholds;

/// The fraction of a process's sections of an object that are read-only, at least: what it does otherwise may be a decision on
/// what it has read.
const READERS: f64 = 0.95;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut by_variable: BTreeMap<VarId, Vec<(ObjectId, ApId, ReadOnly)>> = BTreeMap::new();
    for (&(object, ap), &seen) in &profile.read_only {
        if seen.sections as f64 >= READERS * (seen.sections + seen.others) as f64 {
            let of_variable = by_variable.entry(object.var).or_default();
            of_variable.push((object, ap, seen));
        }
    }
    let all = by_variable.into_iter();
    all.filter_map(|(variable, seen)| about(profile, t, variable, &seen))
        .collect()
}

fn about(
    profile: &Profile,
    t: &Thresholds,
    variable: VarId,
    seen: &[(ObjectId, ApId, ReadOnly)],
) -> Option<Candidate> {
    let sections: u64 = seen.iter().map(|(_, _, s)| s.sections).sum();
    let time = profile.scaled(seen.iter().map(|(_, _, s)| s.time.0).sum::<u64>() as f64);
    let aps: BTreeSet<ApId> = seen.iter().map(|(_, ap, _)| *ap).collect();
    if sections < t.least_accesses || profile.fraction_of(aps.len(), time) < t.time_lost {
        return None;
    }
    let objects: BTreeSet<ObjectId> = seen.iter().map(|(object, _, _)| *object).collect();
    let used = || objects.iter().filter_map(|o| profile.objects.get(o)?.used);
    let mut finding = Finding::new(Kind::ReadOnlyLocking, profile.window)
        .with("read_only_sections", sections)
        .with("locking_ns", time)
        .with("mean_locking_ns", time / sections.max(1) as f64);
    finding.variable = Some(profile.catalog.name_of(variable));
    finding.object = match objects.len() {
        1 => objects.first().map(|object| object.index),
        _ => None,
    };
    if let (Some(from), Some(to)) = (used().map(|u| u.0).min(), used().map(|u| u.1).max()) {
        (finding.from_ns, finding.to_ns) = (from.0, to.0);
    }
    finding.aps = profile.ap_names(&aps);
    finding.groups = profile.group_names(&aps);
    finding.severity = profile.fraction(time);
    finding.advice = format!(
        "{} acquire {} only to read it: read without acquiring; a read sees the last released content of an object, never a \
         mixture of two",
        finding.aps.join(" and "),
        finding.target(),
    );
    finding.cure = Some(Cure::Unlocked(
        seen.iter().map(|(object, ap, _)| (*object, *ap)).collect(),
    ));
    let floor = t.time_lost * aps.len() as f64 / profile.active().max(1) as f64;
    let mut candidate = Candidate::new(finding, objects, sections, floor);
    candidate.aps = aps;
    Some(candidate)
}
