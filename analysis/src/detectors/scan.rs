//! Parts of the run: what holds in one of them, and is diluted by the rest in the whole.
//!
//! The detectors whose finding is about what happens at a time (a queue, objects that go to and fro, uneven work, barriers) look at
//! equal stretches of the run, at each two of these together, at each four, and so on. Of the stretches in which the same holds
//! the worst is told: in which most was lost in little time (severity in the run × severity there). Not told is what
//!
//! * holds in the whole run (then only where it is worst, if it is much worse there), or of whose objects something like it
//!   holds there;
//! * costs less than `negligible_loss` of the whole run's time of the processes concerned;
//! * rests on fewer than `ping_pong_hand_overs` records, or (imbalance) on fewer than twice `imbalance_phases` phases: what
//!   happens few times is chance.
//!
//! Where objects and processes are placed is the same all the time: what a part of the run would prefer says nothing.

use crate::detectors::candidate::Candidate;
use crate::detectors::{
    barrier_overhead, bottleneck, false_sharing, imbalance, ping_pong, slow_process,
};
use crate::finding::Kind;
use crate::profile::{Profile, joined};
use crate::thresholds::Thresholds;

/// Evidence of a part of the run.
const SEVERITY: &str = "severity_in_part";
const BEGINS: &str = "part_begins_after_ns";
const LENGTH: &str = "part_length_ns";

/// How much worse it must be in a part of the run than in the whole for that part to be named.
const WORSE: f64 = 1.5;

/// Adds what holds in parts of the run only to `whole`, what holds in all of it, and says of that where it is worst.
pub(super) fn add(profile: &Profile, t: &Thresholds, whole: &mut Vec<Candidate>) {
    let mut worst: Vec<Candidate> = Vec::new();
    for candidate in in_windows(profile, t) {
        let is_told = |c: &Candidate| {
            let same = c.finding.kind == candidate.finding.kind;
            (same || !c.in_part && happens(c)) && concern_the_same(c, &candidate)
        };
        match whole.iter_mut().find(|c| is_told(c)) {
            Some(known) => name_the_worst(known, &candidate),
            None if worst.iter().any(is_told) => {}
            None => worst.push(candidate),
        }
    }
    whole.extend(worst);
}

/// What holds in parts of the run, in terms of the whole run; the worst first.
fn in_windows(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let strict = Thresholds {
        imbalance_phases: 2 * t.imbalance_phases,
        ..t.clone()
    };
    let mut windows = profile.windows.clone();
    let mut found = Vec::new();
    while windows.len() > 1 {
        for window in &windows {
            let here = in_window(profile, window, &strict).into_iter();
            let here = here.filter(|c| c.records >= t.ping_pong_hand_overs);
            found.extend(here.filter_map(|c| of_the_run(profile, window, t, c)));
        }
        windows = joined(windows);
    }
    // Much of what is lost, in little time.
    let weight = |c: &Candidate| c.finding.severity * severity_there(c);
    found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    found
}

/// The severity in the part of the run that a finding is about.
fn severity_there(part: &Candidate) -> f64 {
    let said = part.finding.evidence.get(SEVERITY);
    said.and_then(serde_json::Value::as_f64).unwrap_or_default()
}

/// Says of a finding about the whole run in which part it is much worse, if it is the first part to be named.
fn name_the_worst(whole: &mut Candidate, part: &Candidate) {
    let here = severity_there(part);
    let of_the_same = whole.finding.kind == part.finding.kind;
    let evidence = &mut whole.finding.evidence;
    if of_the_same && !evidence.contains_key(SEVERITY) && here >= WORSE * whole.finding.severity {
        for key in [SEVERITY, BEGINS, LENGTH] {
            let value = part.finding.evidence.get(key).cloned();
            evidence.extend(value.map(|value| (key.to_owned(), value)));
        }
    }
}

fn in_window(profile: &Profile, window: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut found = bottleneck::detect(window, t);
    found.extend(ping_pong::detect(window, t));
    found.extend(false_sharing::detect(window, t));
    found.extend(barrier_overhead::detect(window, t));
    // Where the processes say what they computed, nothing is concluded from a part of which they do not.
    let told = window.barriers.iter().all(|(group, here)| {
        let all = profile.barriers.get(group);
        here.processor.is_some() || all.is_none_or(|all| all.processor.is_none())
    });
    if told {
        found.extend(imbalance::detect(window, t));
        found.extend(slow_process::detect_in_part(window, t));
    }
    found
}

/// The same in terms of the whole run; none if it does not matter there.
fn of_the_run(
    profile: &Profile,
    window: &Profile,
    t: &Thresholds,
    mut candidate: Candidate,
) -> Option<Candidate> {
    let finding = &mut candidate.finding;
    let here = finding.severity;
    let lost = here * window.process_time();
    let share = window.process_time() / profile.process_time();
    if profile.fraction_of(candidate.aps.len(), lost) < t.negligible_loss {
        return None;
    }
    let (length, all) = (window.window.length().0, profile.window.length().0);
    let part = length as f64 / all.max(1) as f64;
    finding.severity = profile.fraction(lost);
    finding.predicted_gain = finding.predicted_gain.map(|gain| gain * part);
    (finding.from_ns, finding.to_ns) = (window.window.from.0, window.window.to.0);
    let after = window.window.from - profile.window.from;
    let evidence = [
        (SEVERITY, here.into()),
        (BEGINS, after.0.into()),
        (LENGTH, length.into()),
    ];
    let evidence = evidence.map(|(key, value): (&str, serde_json::Value)| (key.to_owned(), value));
    finding.evidence.extend(evidence);
    finding.advice = format!("in a part of the run: {}", finding.advice);
    candidate.floor *= share;
    candidate.in_part = true;
    Some(candidate)
}

/// Whether a finding is about what happens at a time, and so may hold in a part of the run.
fn happens(candidate: &Candidate) -> bool {
    use Kind::*;
    let kind = candidate.finding.kind;
    matches!(kind, Bottleneck | PingPong | FalseSharing | Deadlock)
}

fn concern_the_same(a: &Candidate, b: &Candidate) -> bool {
    match (a.objects.is_empty(), b.objects.is_empty()) {
        (true, true) => !a.aps.is_disjoint(&b.aps),
        _ => !a.objects.is_disjoint(&b.objects),
    }
}
