//! **Deadlock**: application processes wait for each other's locks in a circle.
//!
//! Holds when, at the end of the window, a process waits for an object whose holder waits for an
//! object … whose holder is the first. A process waits for one object at a time, so following
//! the holders finds every circle in one walk. On a running program a window that reaches back to the
//! first acquire of the circle shows it as soon as the waiting notices are recorded. Holds, too, for a circle
//! that was there until one of its acquires failed at its deadline.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, Nanos, ObjectId};

use crate::detectors::candidate::Candidate;
use crate::finding::{Finding, Kind};
use crate::profile::{Profile, Wait};

pub(super) fn detect(profile: &Profile) -> Vec<Candidate> {
    // Who waits for what, and who holds that.
    let mut next: BTreeMap<ApId, (Wait, ApId)> = BTreeMap::new();
    for (&object, used) in &profile.objects {
        // Of several that seem to hold it the last one does: releases of the others were not recorded.
        let Some((&holder, _)) = used.held.iter().max_by_key(|(_, since)| **since) else {
            continue;
        };
        for waiting in &used.waiting {
            let (ap, since) = (waiting.ap, waiting.since);
            next.insert(ap, (Wait { ap, since, object }, holder));
        }
    }
    let standing = circles(&next);
    let standing = standing
        .iter()
        .map(|circle| describe(profile, circle, None));
    let broken = profile.broken.iter();
    standing
        .chain(broken.map(|b| describe(profile, &b.circle, Some(b.at))))
        .collect()
}

/// Every circle, once.
fn circles(next: &BTreeMap<ApId, (Wait, ApId)>) -> Vec<Vec<Wait>> {
    // Walk number in which a process was met: met again in the same walk, it is on a circle.
    let mut met: BTreeMap<ApId, usize> = BTreeMap::new();
    let mut circles = Vec::new();
    for (walk, &start) in next.keys().enumerate() {
        let mut at = start;
        while let (None, Some(&(_, holder))) = (met.get(&at), next.get(&at)) {
            met.insert(at, walk);
            at = holder;
        }
        if met.get(&at) != Some(&walk) || !next.contains_key(&at) {
            continue;
        }
        let (first, mut circle) = (at, Vec::new());
        while let Some(&(wait, holder)) = next.get(&at) {
            circle.push(wait);
            at = holder;
            if at == first {
                break;
            }
        }
        circles.push(circle);
    }
    circles
}

/// A circle that stands, or was broken at `until`.
fn describe(profile: &Profile, circle: &[Wait], until: Option<Nanos>) -> Candidate {
    let name = |id: &ObjectId| format!("{}[{}]", profile.catalog.name_of(id.var), id.index);
    let objects: BTreeSet<ObjectId> = circle.iter().map(|w| w.object).collect();
    let names: Vec<String> = circle.iter().map(|w| name(&w.object)).collect();
    let aps: BTreeSet<ApId> = circle.iter().map(|w| w.ap).collect();
    let waits: Vec<String> = circle
        .iter()
        .map(|w| {
            let ap = profile.catalog.topology.ap_name(w.ap);
            format!("{ap} waits for {}", name(&w.object))
        })
        .collect();
    let mut finding = Finding::new(Kind::Deadlock, profile.window).with("circle", waits);
    let since = circle.iter().map(|w| w.since).max().unwrap_or_default();
    finding.from_ns = since.0;
    finding.variable = circle
        .first()
        .map(|w| profile.catalog.name_of(w.object.var));
    finding.object = circle.first().map(|w| w.object.index);
    finding.aps = profile.ap_names(&aps);
    finding.groups = profile.group_names(&aps);
    // While it stands they do nothing: for good, or until it was broken.
    let share = aps.len() as f64 / profile.active().max(aps.len()) as f64;
    finding.severity = match until {
        None => share,
        Some(until) => {
            finding.to_ns = until.0;
            finding
                .evidence
                .insert("broken_by_deadline".into(), true.into());
            let stood = (until - since).0 as f64;
            share * (stood / profile.window.length().0.max(1) as f64).min(1.0)
        }
    };
    finding.advice = format!(
        "{} wait for each other's locks on {}: acquire them in one order everywhere",
        finding.aps.join(", "),
        names.join(", "),
    );
    let mut candidate = Candidate::new(finding, objects, circle.len() as u64, 0.0);
    candidate.aps = aps;
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::VarId;

    #[test]
    fn circles_are_found_once_and_tails_are_none() {
        let wait = |ap: u32, holder: u32| {
            let wait = Wait {
                ap: ApId(ap),
                since: Nanos(1),
                object: ObjectId::new(VarId(ap), 0),
            };
            (ApId(ap), (wait, ApId(holder)))
        };
        // 0 → 1 → 2 → 1: a tail into a circle; 4 → 5 → 4; 7 → 8, who waits for nobody.
        let next = [
            wait(0, 1),
            wait(1, 2),
            wait(2, 1),
            wait(4, 5),
            wait(5, 4),
            wait(7, 8),
        ];
        let found: Vec<Vec<u32>> = circles(&next.into_iter().collect())
            .iter()
            .map(|c| c.iter().map(|w| w.ap.0).collect())
            .collect();
        assert_eq!(found, [vec![1, 2], vec![4, 5]]);
        assert!(circles(&[wait(0, 1)].into_iter().collect()).is_empty());
    }
}
