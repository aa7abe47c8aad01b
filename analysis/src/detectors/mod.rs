//! The detectors: each a pure function from a profile to findings, with its definition.

mod bottleneck;
mod deadlock;
mod false_sharing;
mod group;
mod imbalance;
mod no_sharing;
mod owner;
mod ping_pong;
mod policy;

use dosmos_proto::ObjectId;

use crate::finding::{Finding, Kind};
use crate::groups::GroupMatrix;
use crate::profile::Profile;
use crate::thresholds::Thresholds;

/// Runs every detector; sorted by severity, highest first.
///
/// Findings rest on what was recorded: each carries the completeness of its data, and is withheld if
/// that is below `thresholds.completeness`.
pub fn detect(profile: &Profile, thresholds: &Thresholds) -> Vec<Finding> {
    let completeness = profile.completeness();
    if completeness < thresholds.completeness {
        return Vec::new();
    }
    let mut findings = Vec::new();
    findings.extend(bottleneck::detect(profile, thresholds));
    findings.extend(ping_pong::detect(profile, thresholds));
    findings.extend(no_sharing::detect(profile, thresholds));
    findings.extend(policy::detect(profile, thresholds));
    findings.extend(false_sharing::detect(profile, thresholds));
    findings.extend(group::detect(profile, thresholds));
    findings.extend(owner::detect(profile, thresholds));
    findings.extend(imbalance::detect(profile, thresholds));
    findings.extend(deadlock::detect(profile));
    for finding in &mut findings {
        finding.completeness = completeness;
    }
    findings.sort_by(|a, b| b.severity.total_cmp(&a.severity));
    findings
}

/// A finding about one object, over the time it was used.
fn about(profile: &Profile, kind: Kind, object: ObjectId) -> Finding {
    let mut finding = Finding::new(kind, profile.window);
    finding.variable = Some(profile.catalog.name_of(object.var));
    finding.object = Some(object.index);
    if let Some((from, to)) = profile.objects.get(&object).and_then(|o| o.used) {
        finding.from_ns = from.0;
        finding.to_ns = to.0;
    }
    finding
}

/// Who uses what and where it stands, today and in the best assignment.
pub fn group_matrix(profile: &Profile, thresholds: &Thresholds) -> GroupMatrix {
    group::matrix(profile, thresholds)
}
