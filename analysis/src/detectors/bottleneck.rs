//! **Bottleneck**: more application processes want an object exclusively than it can serve.
//!
//! Holds when the mean number waiting for it (Σ wait / window: Little's law) is at least
//! `bottleneck_waiting`, and the time lost waiting is at least `time_lost` of total process time.

use crate::detectors::candidate::{self, Candidate};
use crate::finding::Kind;
use crate::profile::Profile;
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let window = (profile.window.length().0 as f64).max(1.0);
    let mut found = Vec::new();
    for (&id, object) in &profile.objects {
        let wait = profile.scaled(object.wait(profile.window.to).0 as f64);
        let (waiting, lost) = (wait / window, profile.fraction(wait));
        if waiting < t.bottleneck_waiting || lost < t.time_lost {
            continue;
        }
        let counts = object.counts();
        let waiters = object.waiters();
        let held = object.hold.0 as f64 / object.sections.max(1) as f64;
        let mut finding = candidate::about(profile, Kind::Bottleneck, id)
            .with("mean_waiting", waiting)
            .with("wait_ns", wait)
            .with("mean_hold_ns", held)
            .with("acquires", counts.acquires);
        finding.aps = profile.ap_names(&waiters);
        finding.groups = profile.group_names(&waiters);
        finding.severity = lost;
        finding.predicted_gain = Some(lost);
        finding.advice = format!(
            "on average {waiting:.1} processes wait for {}: split it so that they use different objects, \
             or do less between acquire and release (held {:.1} µs on average)",
            finding.target(),
            held / 1e3,
        );
        let mut candidate = Candidate::new(finding, [id], counts.acquires, t.time_lost);
        candidate.aps = waiters;
        found.push(candidate);
    }
    found
}
