//! **Imbalance**: within barrier phases some processes work while the others wait.
//!
//! Busy time of a process in a phase: from the opening of the barrier before until its arrival, without
//! waiting (for locks, for copies, at other barriers). Of at least `imbalance_phases` phases, holds when
//!
//! * (max − mean) / max of the processes' busy times, all phases together, is at least `imbalance`: the same
//!   processes work longer; or Σ (max − mean) / Σ max over the phases is at least `imbalance_in_turns`: each
//!   time others do. Less than that is what chance does to equal work; and
//! * the time lost, Σ (max − busy), is at least `time_lost` of the time of those processes.
//!
//! What processes lose by accesses that go far is not work: the same must hold of the time outside accesses. Nor is it
//! work when the machine runs others: of a program that computes, it must hold of the time on a processor, which the
//! processes measure themselves, and the time lost is the smaller of both.
//!
//! Withheld where passages of barriers that must have happened are not recorded, for one process more than for another.

use dosmos_proto::GroupId;
use dosmos_trace::query::TimeRange;

use crate::detectors::candidate::Candidate;
use crate::finding::{Finding, Kind};
use crate::profile::{OnProcessor, Phases, Profile, Spread};
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (&group, phases) in &profile.barriers {
        let total_busy = Spread::over(phases.by_ap.values().map(|t| t.0));
        let total_computing = Spread::over(phases.by_ap.values().map(|t| t.1));
        let holds = |total: &Spread, each: &Spread| {
            let uneven =
                total.imbalance() >= t.imbalance || each.imbalance() >= t.imbalance_in_turns;
            uneven && profile.fraction_of(phases.by_ap.len(), each.lost) >= t.time_lost
        };
        if phases.count < t.imbalance_phases
            || !holds(&total_busy, &phases.busy)
            || !holds(&total_computing, &phases.computing)
            || computing(phases).is_some_and(|own| !holds(&own.total(), &own.each))
        {
            continue;
        }
        let finding = describe(profile, group, phases);
        let aps = phases
            .by_ap
            .keys()
            .copied()
            .collect::<std::collections::BTreeSet<_>>();
        let records = phases.count * aps.len() as u64;
        let floor = t.time_lost * aps.len() as f64 / profile.active().max(1) as f64;
        let mut candidate = Candidate::new(finding, [], records, floor);
        candidate.ratio = Some((phases.busy.imbalance(), t.imbalance));
        candidate
            .finding
            .evidence
            .insert("imbalance_in_all".into(), total_busy.imbalance().into());
        candidate.lacking = unrecorded(profile, phases);
        candidate.aps = aps;
        found.push(candidate);
    }
    // A group's imbalance shows in the barriers of all too: the worst stands for all it comprises.
    found.sort_by(|a, b| b.finding.severity.total_cmp(&a.finding.severity));
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in found {
        if kept.iter().all(|k| k.aps.is_disjoint(&candidate.aps)) {
            kept.push(candidate);
        }
    }
    kept
}

/// The passages of barriers that processes made and that were not recorded, if it is not the same number for all: what
/// a process waited there looks like work. The numbers of a barrier's openings tell it, whatever else is known.
fn unrecorded(profile: &Profile, phases: &Phases) -> Option<String> {
    let skipped = |ap| phases.skipped.get(ap).copied().unwrap_or(0);
    let aps = || phases.by_ap.keys();
    let least = aps().map(skipped).min()?;
    let worst = aps().max_by_key(|ap| skipped(ap))?;
    let more = skipped(worst) - least;
    (more > 0).then(|| {
        let name = profile.catalog.topology.ap_name(*worst);
        format!("{name} passed {more} barriers more than were recorded of it")
    })
}

/// Time on processors, where that is what the program needs.
fn computing(phases: &Phases) -> Option<&OnProcessor> {
    phases.processor.as_ref().filter(|own| own.computes())
}

fn describe(profile: &Profile, group: Option<GroupId>, phases: &Phases) -> Finding {
    let range = phases
        .span
        .map_or(profile.window, |(from, to)| TimeRange { from, to });
    let passers = group.map_or("all processes".to_owned(), |g| {
        profile.catalog.topology.group_name(g)
    });
    let name = |ap| profile.catalog.topology.ap_name(ap);
    let busy: serde_json::Map<_, _> = phases
        .by_ap
        .iter()
        .map(|(&ap, time)| (name(ap), time.0.0.into()))
        .collect();
    let slowest = phases.by_ap.iter().max_by_key(|(_, time)| **time);
    let mut finding = Finding::new(Kind::Imbalance, range)
        .with("barriers_of", passers.clone())
        .with("phases", phases.count)
        .with("imbalance_by_phase", phases.busy.imbalance())
        .with("busy_ns", busy);
    finding.aps = profile.ap_names(phases.by_ap.keys());
    finding.groups = profile.group_names(phases.by_ap.keys());
    let own = computing(phases);
    if let Some(own) = own {
        let times = own.by_ap.iter();
        let times: serde_json::Map<_, _> = times
            .map(|(&ap, time)| (name(ap), time.0.0.into()))
            .collect();
        finding = finding.with("processor_ns", times);
    }
    let lost = own.map_or(phases.busy.lost, |own| own.each.lost.min(phases.busy.lost));
    finding.severity = profile.fraction(lost);
    // With the work spread evenly a phase takes the mean instead of the longest time.
    let saved = phases.busy.max - phases.busy.mean;
    let saved = own.map_or(saved, |own| saved.min(own.each.max - own.each.mean));
    finding.predicted_gain = Some((saved / profile.window.length().0.max(1) as f64).min(1.0));
    finding.advice = format!(
        "between barriers of {passers} the busiest process works {:.0} % longer than the mean{}: give it less work",
        100.0 * saved / phases.busy.mean.max(1.0),
        slowest.map_or(String::new(), |(&ap, _)| format!(
            " ({} most in all)",
            name(ap)
        )),
    );
    finding
}
