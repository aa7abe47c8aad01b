//! **Deadlock**: application processes wait for each other's locks in a circle.
//!
//! Holds when, at the end of the window, a process waits for an object whose holder waits for an
//! object … whose holder is the first. Each process waits for one object at a time, so following
//! the holders finds every circle in one walk.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, ObjectId};

use crate::finding::{Finding, Kind};
use crate::profile::Profile;

pub(super) fn detect(profile: &Profile) -> Vec<Finding> {
    // Who waits for what, and who holds that.
    let mut next: BTreeMap<ApId, (ObjectId, ApId)> = BTreeMap::new();
    for (&id, object) in &profile.objects {
        if let Some((holder, _)) = object.holder {
            for waiting in &object.waiting {
                next.insert(waiting.ap, (id, holder));
            }
        }
    }
    let mut reported: BTreeSet<ApId> = BTreeSet::new();
    let mut findings = Vec::new();
    for &start in next.keys() {
        let Some(circle) = circle_from(start, &next) else {
            continue;
        };
        if circle.iter().any(|(ap, _)| reported.contains(ap)) {
            continue;
        }
        reported.extend(circle.iter().map(|(ap, _)| *ap));
        findings.push(describe(profile, &circle));
    }
    findings
}

/// The circle that `start` is part of, if there is one.
fn circle_from(
    start: ApId,
    next: &BTreeMap<ApId, (ObjectId, ApId)>,
) -> Option<Vec<(ApId, ObjectId)>> {
    let mut circle = Vec::new();
    let mut at = start;
    while circle.len() <= next.len() {
        let &(object, holder) = next.get(&at)?;
        circle.push((at, object));
        if holder == start {
            return Some(circle);
        }
        at = holder;
    }
    None
}

fn describe(profile: &Profile, circle: &[(ApId, ObjectId)]) -> Finding {
    let name = |id: &ObjectId| format!("{}[{}]", profile.catalog.name_of(id.var), id.index);
    let objects: Vec<String> = circle.iter().map(|(_, id)| name(id)).collect();
    let since = circle
        .iter()
        .filter_map(|(ap, id)| {
            let waiting = &profile.objects.get(id)?.waiting;
            waiting.iter().find(|w| w.ap == *ap).map(|w| w.since)
        })
        .max();
    let mut finding = Finding::new(Kind::Deadlock, profile.window).with("objects", objects.clone());
    if let Some(since) = since {
        finding.from_ns = since.0;
    }
    finding.variable = circle
        .first()
        .map(|(_, id)| profile.catalog.name_of(id.var));
    finding.object = circle.first().map(|(_, id)| id.index);
    finding.aps = profile.ap_names(circle.iter().map(|(ap, _)| ap));
    finding.groups = profile.group_names(circle.iter().map(|(ap, _)| ap));
    finding.severity = circle.len() as f64 / profile.active().max(circle.len()) as f64;
    finding.advice = format!(
        "{} wait for each other's locks on {}: acquire them in one order everywhere",
        finding.aps.join(", "),
        objects.join(", "),
    );
    finding
}
