//! **Imbalance**: within barrier phases some processes work while the others wait.
//!
//! Busy time of a process in a phase: from the opening of the barrier before until its arrival. Holds
//! when Σ(max − mean) / Σ max over the phases is at least `imbalance`, and the time lost
//! (Σ (max − busy)) at least `time_lost` of total process time.

use dosmos_trace::query::TimeRange;

use crate::finding::{Finding, Kind};
use crate::profile::Profile;
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (&id, phases) in &profile.barriers {
        let share = (phases.max_busy - phases.mean_busy) / phases.max_busy.max(1.0);
        let lost = profile.fraction(phases.lost);
        if share < t.imbalance || lost < t.time_lost {
            continue;
        }
        let range = phases
            .span
            .map_or(profile.window, |(from, to)| TimeRange { from, to });
        let busy: serde_json::Map<_, _> = phases
            .busy
            .iter()
            .map(|(&ap, time)| (profile.catalog.topology.ap_name(ap), time.0.into()))
            .collect();
        let slowest = phases
            .busy
            .iter()
            .max_by_key(|(_, time)| **time)
            .map(|(ap, _)| ap);
        let mut finding = Finding::new(Kind::Imbalance, range)
            .with("phases", phases.count)
            .with("imbalance", share)
            .with("busy_ns", busy);
        finding.aps = profile.ap_names(phases.busy.keys());
        finding.groups = profile.group_names(phases.busy.keys());
        finding.severity = lost;
        // With the work spread evenly a phase takes the mean instead of the longest time.
        let saved = phases.max_busy - phases.mean_busy;
        finding.predicted_gain = Some((saved / profile.window.length().0.max(1) as f64).min(1.0));
        finding.advice = format!(
            "between openings of {} the busiest process ({}) works {:.0} % longer than the mean: give it less work",
            profile.catalog.name_of(id),
            profile.ap_names(slowest).join(""),
            100.0 * saved / phases.mean_busy.max(1.0),
        );
        findings.push(finding);
    }
    findings
}
