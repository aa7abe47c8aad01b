//! **Bottleneck**: more application processes want an object exclusively than it can serve.
//!
//! Holds when the mean number waiting for it (Σ wait / window: Little's law) is at least
//! `bottleneck_waiting`, and the time lost waiting is at least `time_lost` of total process time.

use crate::finding::{Finding, Kind};
use crate::profile::Profile;
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Finding> {
    let window = (profile.window.length().0 as f64).max(1.0);
    let mut findings = Vec::new();
    for (&id, object) in &profile.objects {
        let wait = object.wait(profile.window.to).0 as f64;
        let (waiting, lost) = (wait / window, profile.fraction(wait));
        if waiting < t.bottleneck_waiting || lost < t.time_lost {
            continue;
        }
        let counts = object.counts();
        let users: Vec<_> = object.by_ap.keys().collect();
        let mut finding = super::about(profile, Kind::Bottleneck, id)
            .with("mean_waiting", waiting)
            .with("wait_ns", wait)
            .with("hold_ns", object.hold.0)
            .with("acquires", counts.acquires);
        finding.aps = profile.ap_names(users.iter().copied());
        finding.groups = profile.group_names(users.iter().copied());
        finding.severity = lost;
        finding.advice = format!(
            "on average {waiting:.1} processes wait for {}: split it so that they use different objects, \
             or do less between acquire and release (held {:.1} µs on average)",
            finding.subject(),
            object.hold.0 as f64 / counts.acquires.max(1) as f64 / 1e3,
        );
        findings.push(finding);
    }
    findings
}
