//! **Bottleneck**: more application processes want an object exclusively than it can serve.
//!
//! Holds when the mean number waiting for it (Σ wait / window: Little's law) is at least `bottleneck_waiting`, or the mean
//! number while anybody waits is at least `bottleneck_queue`; and the time lost waiting is at least `time_lost` of the time of
//! those who wait. The second is for what is wanted in bursts: two that meet by chance are no queue.

use crate::detectors::candidate::{self, Candidate};
use crate::finding::Kind;
use crate::profile::Profile;
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let window = (profile.window.length().0 as f64).max(1.0);
    let mut found = Vec::new();
    for (&id, object) in &profile.objects {
        let wait = profile.scaled(object.wait(profile.window.to).0 as f64);
        let waiting = wait / window;
        let granted: u64 = object.by_ap.values().map(|u| u.wait.0).sum();
        let queue = granted as f64 / object.contended.0.max(1) as f64;
        if waiting < t.bottleneck_waiting && queue < t.bottleneck_queue {
            continue;
        }
        let waiters = object.waiters(profile.window.to);
        if profile.fraction_of(waiters.len(), wait) < t.time_lost {
            continue;
        }
        let lost = profile.fraction(wait);
        let in_bursts = waiting < t.bottleneck_waiting;
        let counts = object.counts();
        let held = object.hold.0 as f64 / object.sections.max(1) as f64;
        let mut finding = candidate::about(profile, Kind::Bottleneck, id)
            .with("mean_waiting", waiting)
            .with("mean_queue", queue)
            .with("wait_ns", wait)
            .with("mean_hold_ns", held)
            .with("acquires", counts.acquires);
        finding.aps = profile.ap_names(&waiters);
        finding.groups = profile.group_names(&waiters);
        finding.severity = lost;
        finding.predicted_gain = Some(lost);
        finding.advice = format!(
            "on average {:.1} processes wait for {}{}: split it so that they use different objects, \
             or do less between acquire and release (held {:.1} µs on average)",
            if in_bursts { queue } else { waiting },
            finding.target(),
            if in_bursts { ", when any do" } else { "" },
            held / 1e3,
        );
        let floor = t.time_lost * waiters.len() as f64 / profile.active().max(1) as f64;
        let mut candidate = Candidate::new(finding, [id], counts.acquires, floor);
        candidate.aps = waiters;
        found.push(candidate);
    }
    found
}
