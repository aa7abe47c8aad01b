//! **Ping-pong**: few application processes take an object from each other again and again.
//!
//! Holds when at least `ping_pong_hand_overs` changes of the holder were seen among at most
//! `ping_pong_processes` processes, at least `ping_pong_returns` of them back to the holder before
//! last (A, B, A), and taking and passing it on costs at least `time_lost` of those processes' time.

use crate::finding::{Finding, Kind};
use crate::profile::Profile;
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (&id, object) in &profile.objects {
        let seen = &object.hand_overs;
        let returns = seen.returns as f64 / seen.count.max(1) as f64;
        if seen.count < t.ping_pong_hand_overs
            || seen.holders.len() > t.ping_pong_processes
            || returns < t.ping_pong_returns
        {
            continue;
        }
        let involved = object
            .by_ap
            .iter()
            .filter(|(ap, _)| seen.holders.contains(ap));
        let cost = involved
            .map(|(_, used)| used.transfer.0 as f64)
            .sum::<f64>();
        let their_time = profile.window.length().0 as f64 * seen.holders.len() as f64;
        if cost / their_time.max(1.0) < t.time_lost {
            continue;
        }
        let mut finding = super::about(profile, Kind::PingPong, id)
            .with("hand_overs", seen.count)
            .with("returns", returns)
            .with("hand_over_ns", cost);
        finding.aps = profile.ap_names(&seen.holders);
        finding.groups = profile.group_names(&seen.holders);
        finding.severity = profile.fraction(cost);
        finding.advice = format!(
            "{} take {} from each other: give each its own object and combine the results at a barrier, \
             or do several updates in one section",
            finding.aps.join(" and "),
            finding.subject(),
        );
        findings.push(finding);
    }
    findings
}
