//! **Slow process**: processes are without a processor far longer than those that meet them at barriers, or begin long after
//! them, and the others wait for them.
//!
//! Of the phases of some processes that compute ([`OnProcessor`]), holds when some of them, together, were without a processor
//! between calls on average `slow_times` as long as the others (in all: what chance does to everybody is about even), and the
//! time that all lost by it is at least `time_lost` of the time of these processes. That time is Σ (max − own) over the
//! phases of the time without a processor, and no more than what work does not explain: Σ (max − own) of the time between
//! calls, less the same of the time on a processor. So more work than others have is an imbalance, and no slow process.
//!
//! They are *late* if they begin on average `slow_times` as long after the first one as the others (those that begin in the
//! second half of this time are compared with those of the first half), and what the others waited before their first barrier
//! opened, at most as long as they were there alone, is at least `time_lost` of the time of all.
//!
//! The same machine runs out of processors for all alike: then nobody stands out. A program that is hardly ever on a
//! processor sleeps by its own will, which is its work.
//!
//! Withheld where a process did not say where its time went.

use std::collections::BTreeSet;

use dosmos_proto::{ApId, GroupId, Nanos};
use dosmos_trace::query::TimeRange;

use crate::cure::Cure;
use crate::detectors::candidate::Candidate;
use crate::finding::{Finding, Kind};
use crate::profile::{OnProcessor, Phases, Profile};
use crate::thresholds::Thresholds;

/// Of a part of the run only what happens at least so often in it: once is chance, unless it costs enough in the whole run.
const RECURS: f64 = 4.0;

/// Of a part of the run.
pub(super) fn detect_in_part(part: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let recurs = |c: &Candidate| {
        let mut told = part.barriers.values().filter_map(|p| p.processor.as_ref());
        told.any(|own| {
            let sum = |of: &dyn Fn(&ApId) -> Option<u64>| c.aps.iter().filter_map(of).sum::<u64>();
            let longest = sum(&|ap| own.longest.get(ap).map(|t| t.0));
            let all = sum(&|ap| own.by_ap.get(ap).map(|(_, off)| off.0));
            all as f64 >= RECURS * longest as f64
        })
    };
    let found = detect(part, t).into_iter();
    found.filter(recurs).collect()
}

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let groups = profile.barriers.iter();
    let mut found: Vec<Candidate> = groups
        .filter_map(|(group, phases)| at_barriers(profile, t, *group, phases))
        .collect();
    found.extend(late(profile, t));
    // The barriers of all show it too where those of a group do.
    found.sort_by(|a, b| b.finding.severity.total_cmp(&a.finding.severity));
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in found {
        if kept.iter().all(|k| k.aps.is_disjoint(&candidate.aps)) {
            kept.push(candidate);
        }
    }
    kept
}

fn at_barriers(
    profile: &Profile,
    t: &Thresholds,
    group: Option<GroupId>,
    phases: &Phases,
) -> Option<Candidate> {
    let partly = phases.partly.as_ref();
    let own = phases.processor.as_ref().or(partly.map(|(own, _)| own));
    let own = own.filter(|own| own.computes())?;
    let (slow, others) = apart(own, t)?;
    let unexplained = own.between.lost - own.each.lost;
    let lost = own.without.lost.min(unexplained).max(0.0);
    if profile.fraction_of(own.by_ap.len(), lost) < t.time_lost {
        return None;
    }
    let finding = describe(profile, (group, phases), own, (&slow, &others), lost);
    let floor = t.time_lost * own.by_ap.len() as f64 / profile.active().max(1) as f64;
    let records = phases.count * own.by_ap.len() as u64;
    let mut candidate = Candidate::new(finding, [], records, floor);
    candidate.aps = slow;
    candidate.lacking = partly.map(|(_, silent)| {
        let silent = profile.ap_names(silent).join(" and ");
        format!("{silent} did not say where the time went, and may be as long without a processor")
    });
    Some(candidate)
}

/// Those that stand out, and the others.
fn apart(own: &OnProcessor, t: &Thresholds) -> Option<(BTreeSet<ApId>, BTreeSet<ApId>)> {
    let longest = own.by_ap.values().map(|(_, off)| *off).max()?;
    let (slow, others): (Vec<_>, Vec<_>) = own
        .by_ap
        .iter()
        .partition(|(_, (_, off))| 2 * off.0 > longest.0);
    let mean = |some: &[(&ApId, &(Nanos, Nanos))]| {
        let sum: u64 = some.iter().map(|(_, (_, off))| off.0).sum();
        sum as f64 / some.len().max(1) as f64
    };
    let stand_out = !others.is_empty() && mean(&slow) >= t.slow_times * mean(&others);
    let names = |some: Vec<(&ApId, _)>| some.into_iter().map(|(ap, _)| *ap).collect();
    stand_out.then(|| (names(slow), names(others)))
}

fn describe(
    profile: &Profile,
    (group, phases): (Option<GroupId>, &Phases),
    own: &OnProcessor,
    (slow, others): (&BTreeSet<ApId>, &BTreeSet<ApId>),
    lost: f64,
) -> Finding {
    let range = phases
        .span
        .map_or(profile.window, |(from, to)| TimeRange { from, to });
    let passers = group.map_or("all processes".to_owned(), |g| {
        profile.catalog.topology.group_name(g)
    });
    let name = |ap: ApId| profile.catalog.topology.ap_name(ap);
    let times = |of: fn(&(Nanos, Nanos)) -> u64| {
        let all = own.by_ap.iter();
        let all: serde_json::Map<_, _> = all.map(|(&ap, t)| (name(ap), of(t).into())).collect();
        all
    };
    let mean = |some: &BTreeSet<ApId>| {
        let off = some
            .iter()
            .filter_map(|ap| own.by_ap.get(ap))
            .map(|t| t.1.0);
        off.sum::<u64>() as f64 / some.len().max(1) as f64
    };
    let mut finding = Finding::new(Kind::SlowProcess, range)
        .with("barriers_of", passers)
        .with("without_processor_ns", times(|t| t.1.0))
        .with("processor_ns", times(|t| t.0.0))
        .with("mean_of_others_ns", mean(others));
    finding.aps = profile.ap_names(slow);
    finding.groups = profile.group_names(slow);
    finding.severity = profile.fraction(lost);
    let saved = lost / own.by_ap.len().max(1) as f64;
    let length = profile.window.length().0.max(1) as f64;
    finding.predicted_gain = Some((saved / length).min(1.0));
    finding.cure = Some(Cure::Unhindered {
        slow: slow.clone(),
        others: others.clone(),
    });
    let who = finding.aps.join(" and ");
    let (is, its, it) = match slow.len() {
        1 => ("is", "its", "it"),
        _ => ("are", "their", "they"),
    };
    finding.advice = format!(
        "{who} {is} without a processor for {:.0} % of the time between calls, the others for {:.0} %, with as much work, and the \
         others wait at barriers: look what else runs on {its} host or processors (`bind`), whether {it} {is} stopped or \
         swapped out, or {it} sleep{} or wait{} for devices",
        100.0 * share(own, slow),
        100.0 * share(own, others),
        if slow.len() == 1 { "s" } else { "" },
        if slow.len() == 1 { "s" } else { "" },
    );
    finding
}

/// Of the time between calls, that without a processor.
fn share(own: &OnProcessor, aps: &BTreeSet<ApId>) -> f64 {
    let times = aps.iter().filter_map(|ap| own.by_ap.get(ap));
    let (on, off) = times.fold((0, 0), |sum, t| (sum.0 + t.0.0, sum.1 + t.1.0));
    off as f64 / ((on + off) as f64).max(1.0)
}

/// Those that begin long after the others, if these waited for them.
fn late(profile: &Profile, t: &Thresholds) -> Option<Candidate> {
    let began = &profile.beginnings.0;
    let first = began.values().map(|(start, _)| *start).min()?;
    let after = |ap: &ApId| began.get(ap).map_or(0, |(start, _)| (*start - first).0);
    let longest = began.keys().map(after).max()?;
    let (late, others): (Vec<ApId>, Vec<ApId>) =
        began.keys().partition(|ap| 2 * after(ap) > longest);
    let mean = |aps: &[ApId]| aps.iter().map(after).sum::<u64>() as f64 / aps.len().max(1) as f64;
    let by = mean(&late);
    if late.is_empty() || by < t.slow_times * mean(&others).max(1.0) {
        return None;
    }
    let alone = |ap: &ApId| by - after(ap) as f64;
    let waited = |ap: &ApId| began.get(ap).map_or(0.0, |(_, waited)| waited.0 as f64);
    let lost: f64 = others.iter().map(|ap| waited(ap).min(alone(ap))).sum();
    if profile.fraction_of(began.len(), lost) < t.time_lost {
        return None;
    }
    let range = TimeRange {
        from: first,
        to: first + Nanos(longest),
    };
    let mut finding = Finding::new(Kind::SlowProcess, range)
        .with("began_after_ns", by)
        .with("waited_ns", lost);
    let aps: BTreeSet<ApId> = late.into_iter().collect();
    finding.aps = profile.ap_names(&aps);
    finding.groups = profile.group_names(&aps);
    finding.severity = profile.fraction(lost);
    let saved = lost / others.len().max(1) as f64;
    let length = profile.window.length().0.max(1) as f64;
    finding.predicted_gain = Some((saved / length).min(1.0));
    finding.advice = format!(
        "{} began {} after the others, which waited for {}: start all at the same time, or look what it did before it connected",
        finding.aps.join(" and "),
        Nanos(by as u64),
        if aps.len() == 1 { "it" } else { "them" },
    );
    let floor = t.time_lost * began.len() as f64 / profile.active().max(1) as f64;
    let silent: Vec<ApId> = profile
        .aps
        .keys()
        .filter(|ap| !began.contains_key(ap))
        .copied()
        .collect();
    let mut candidate = Candidate::new(finding, [], began.len() as u64, floor);
    candidate.aps = aps;
    if !silent.is_empty() {
        let silent = profile.ap_names(&silent).join(" and ");
        candidate.lacking = Some(format!(
            "{silent} did not say when it passed its first barrier"
        ));
    }
    Some(candidate)
}
