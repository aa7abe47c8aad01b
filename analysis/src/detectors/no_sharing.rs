//! **No sharing**: a variable is declared shared, but one application process alone uses it.
//!
//! Holds when at least `least_accesses` accesses to the variable were seen, all by one process,
//! while others were active, and they cost at least `negligible_loss` of total process time, the time included that others
//! wait at barriers for that process; or at least `their_loss` of that process's time.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_trace::meta::OpCounts;

use crate::detectors::candidate::{self, Candidate};
use crate::finding::{Finding, Kind};
use crate::profile::Profile;
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    if profile.active() < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (variable, objects) in profile.by_variable() {
        let mut counts = OpCounts::default();
        let mut users = BTreeSet::new();
        let mut time = 0.0;
        for (_, object) in &objects {
            counts.add(&object.counts());
            users.extend(object.by_ap.keys().copied());
            users.extend(object.waiting.iter().map(|w| w.ap));
            time += object.time().0 as f64;
        }
        if users.len() != 1 || counts.total() < t.least_accesses {
            continue;
        }
        let by_ap: BTreeMap<_, _> = users.iter().map(|&ap| (ap, time)).collect();
        let lost = profile.fraction(profile.scaled(profile.lost_by_all(&by_ap)));
        let floor = candidate::least_severity(profile, t, 1);
        if lost < floor {
            continue;
        }
        let mut finding = Finding::new(Kind::NoSharing, profile.window)
            .with("accesses", counts.total())
            .with("access_ns", profile.scaled(time));
        finding.variable = Some(profile.catalog.name_of(variable));
        finding.aps = profile.ap_names(&users);
        finding.groups = profile.group_names(&users);
        finding.severity = lost;
        finding.predicted_gain = Some(lost);
        finding.advice = format!(
            "only {} uses {}: make it a variable of that process's own",
            finding.aps.join(""),
            finding.target(),
        );
        let objects = objects.iter().map(|(id, _)| *id);
        let mut candidate = Candidate::new(finding, objects, counts.total(), floor);
        candidate.aps = users;
        found.push(candidate);
    }
    found
}
