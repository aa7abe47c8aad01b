//! **Ping-pong**: few application processes take an object from each other again and again.
//!
//! Holds when at least `ping_pong_hand_overs` changes of the holder were seen among at most
//! `ping_pong_processes` processes, at least `ping_pong_returns` of them back to the holder before
//! last (A, B, A), and the hand-overs (from asking for the section to having it, where another process had it
//! before; and releasing it) cost at least `time_lost` of those processes' time. Sections that do other work for more
//! than `ping_pong_work` of the time they are held are no ping-pong: others wait for that work, which is a bottleneck's
//! matter; nor is it where one process alone writes: the object carries what one produces and others consume.

use crate::detectors::candidate::{self, Candidate};
use crate::finding::Kind;
use crate::profile::{ObjectProfile, Profile};
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (&id, object) in &profile.objects {
        let seen = &object.hand_overs;
        let returns = seen.returns as f64 / seen.count.max(1) as f64;
        if seen.count < t.ping_pong_hand_overs
            || seen.holders.len() > t.ping_pong_processes
            || returns < t.ping_pong_returns
        {
            continue;
        }
        let (hold, work) = object.mean_section();
        if work > t.ping_pong_work * hold || flows_one_way(object) {
            continue;
        }
        let cost = profile.scaled(cost(object));
        let their_time = profile.window.length().0 as f64 * seen.holders.len() as f64;
        if cost / their_time.max(1.0) < t.time_lost {
            continue;
        }
        let mut finding = candidate::about(profile, Kind::PingPong, id)
            .with("hand_overs", seen.count)
            .with("returns", returns)
            .with("hand_over_ns", cost)
            .with("mean_hold_ns", hold)
            .with("mean_work_ns", work)
            .with("mean_hand_over_ns", cost / seen.count.max(1) as f64);
        finding.aps = profile.ap_names(&seen.holders);
        finding.groups = profile.group_names(&seen.holders);
        finding.severity = profile.fraction(cost);
        finding.predicted_gain = Some(finding.severity);
        finding.advice = format!(
            "{} take {} from each other: give each its own object and combine the results at a barrier, \
             or do several updates in one section",
            finding.aps.join(" and "),
            finding.target(),
        );
        let floor = profile.fraction(t.time_lost * their_time);
        let mut candidate = Candidate::new(finding, [id], seen.count, floor);
        candidate.aps = seen.holders.clone();
        found.push(candidate);
    }
    found
}

/// One process writes, the others read: what it produces, they consume, and an object each would be of no use to them.
fn flows_one_way(object: &ObjectProfile) -> bool {
    let writers = object.by_ap.values().filter(|u| u.counts.writes > 0);
    writers.count() == 1
}

/// Nanoseconds: acquires that took the object over, and as many of the releases.
fn cost(object: &ObjectProfile) -> f64 {
    let releases: u64 = object.by_ap.values().map(|u| u.counts.releases).sum();
    let release: u64 = object.by_ap.values().map(|u| u.releasing.0).sum();
    let mean_release = release as f64 / releases.max(1) as f64;
    object.hand_overs.taking.0 as f64 + mean_release * object.hand_overs.count as f64
}
