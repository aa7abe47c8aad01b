//! Which run is faster, by how much and why.

use std::collections::BTreeSet;

use dosmos_proto::Nanos;
use serde::Serialize;

use super::matched::Matched;
use super::phased::{PhasedRun, Sums, Table};
use super::reason::{Reason, reasons};
use super::rows::Row;

/// A difference below this fraction is none.
const SAME: f64 = 0.05;
/// Runs without barriers did the same work if their numbers of accesses differ by at most this.
const SAME_WORK: f64 = 0.1;
/// Less of the accesses to variables of both runs than this: they are not of one program.
const RELATED: f64 = 0.5;
/// Phases from which their variation is told.
const VARIATION: usize = 4;

/// The answer in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The second run is faster.
    Faster,
    /// The second run is slower.
    Slower,
    /// Neither.
    Same,
    /// The runs cannot be compared.
    Unknown,
}

/// What was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The time of the phases that both runs have.
    Phases,
    /// The time of the whole runs, which have no barriers.
    Run,
    /// The time of the accesses that the first run made, at what each costs in either run: the runs have no barriers and did
    /// not do the same work.
    Accesses,
}

/// Which run is faster, by how much and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conclusion {
    /// In one word.
    pub change: Change,
    /// What was compared.
    pub basis: Basis,
    /// Phases that both runs have.
    pub phases: u64,
    /// What was compared, of the first run, nanoseconds.
    pub first_ns: u64,
    /// Of the second run.
    pub second_ns: u64,
    /// By how much the second is longer, as a fraction of the first; negative: shorter. None if nothing was compared.
    pub difference: Option<f64>,
    /// What the difference may be by chance: two standard errors, from how much the phases differ. None: too few phases.
    pub uncertainty: Option<f64>,
    /// Where the time differs, the largest first.
    pub because: Vec<Reason>,
    /// All of it as a sentence.
    pub verdict: String,
}

/// Why the two may not be runs of one program.
pub(super) fn warnings(a: &PhasedRun, b: &PhasedRun) -> Vec<String> {
    let mut warnings = Vec::new();
    let shared = shared(a, b);
    if shared < RELATED {
        warnings.push(format!(
            "these seem to be different programs: only {:.0} % of the accesses are to variables that both runs have",
            100.0 * shared
        ));
    }
    let (in_a, in_b) = (a.processes(), b.processes());
    if in_a != in_b {
        warnings.push(format!(
            "the runs have different numbers of application processes: {in_a} and {in_b}"
        ));
    }
    warnings
}

/// The fraction of the accesses that are to variables of both runs, in the run where it is less.
fn shared(a: &PhasedRun, b: &PhasedRun) -> f64 {
    let used = |run: &PhasedRun| run.named(&run.total().table);
    let (in_a, in_b) = (used(a), used(b));
    let names = |table: &Table| -> BTreeSet<String> {
        table.keys().map(|(name, _)| name.clone()).collect()
    };
    let share = |table: &Table, others: &BTreeSet<String>| {
        let all: u64 = table.values().map(|s| s.count).sum();
        let both = table.iter().filter(|((name, _), _)| others.contains(name));
        let both: u64 = both.map(|(_, s)| s.count).sum();
        match all {
            0 => 1.0,
            all => both as f64 / all as f64,
        }
    };
    share(&in_a, &names(&in_b)).min(share(&in_b, &names(&in_a)))
}

pub(super) fn conclude(a: &PhasedRun, b: &PhasedRun, matched: &Matched) -> Conclusion {
    let basis = basis(a, b, matched);
    let (first_ns, second_ns) = match basis {
        Basis::Accesses => at_the_cost_of_each(&matched.rows),
        Basis::Phases | Basis::Run => (matched.first.length(), matched.second.length()),
    };
    let mut conclusion = Conclusion {
        change: Change::Unknown,
        basis,
        phases: matched.phases,
        first_ns,
        second_ns,
        difference: None,
        uncertainty: None,
        because: Vec::new(),
        verdict: String::new(),
    };
    if shared(a, b) < RELATED {
        conclusion.verdict = "not comparable: the runs use different variables".to_owned();
        return conclusion;
    }
    if first_ns == 0 || second_ns == 0 {
        conclusion.verdict =
            "not comparable: no phase, from one barrier to the next, is in both runs".to_owned();
        return conclusion;
    }
    let difference = second_ns as f64 / first_ns as f64 - 1.0;
    conclusion.difference = Some(difference);
    if basis == Basis::Phases {
        conclusion.uncertainty = uncertainty(&matched.first.steps, &matched.second.steps);
    }
    let by_chance = conclusion.uncertainty.unwrap_or(0.0);
    conclusion.change = match difference {
        d if d.abs() < SAME || d.abs() <= by_chance => Change::Same,
        d if d < 0.0 => Change::Faster,
        _ => Change::Slower,
    };
    if conclusion.change != Change::Same {
        let processes = (a.processes() as u64, b.processes() as u64);
        let all = (first_ns * processes.0, second_ns * processes.1);
        let (outside, lost) = match basis {
            Basis::Accesses => (None, second_ns as f64 - first_ns as f64),
            Basis::Phases | Basis::Run => (
                Some(outside(&matched.rows, all)),
                all.1 as f64 - all.0 as f64,
            ),
        };
        conclusion.because = reasons(&matched.rows, outside, lost);
    }
    conclusion.verdict = verdict(&conclusion);
    conclusion
}

fn basis(a: &PhasedRun, b: &PhasedRun, matched: &Matched) -> Basis {
    if a.barriers() > 0 || b.barriers() > 0 {
        return Basis::Phases;
    }
    let count = |of: fn(&Row) -> Option<&Sums>| -> f64 {
        let counts = matched.rows.iter().filter_map(of).map(|s| s.count as f64);
        counts.sum()
    };
    let (in_a, in_b) = (count(|r| r.first.as_ref()), count(|r| r.second.as_ref()));
    match (in_a - in_b).abs() <= SAME_WORK * in_a.max(in_b) {
        true => Basis::Run,
        false => Basis::Accesses,
    }
}

/// The time of the first run's accesses: as it was, and if each took what it takes in the second run.
fn at_the_cost_of_each(rows: &[Row]) -> (u64, u64) {
    let both = rows
        .iter()
        .filter_map(|r| Some((r.first.as_ref()?, r.second.as_ref()?)));
    let times = both.map(|(a, b)| (a.times.total.0 as f64, a.count as f64 * b.each()));
    let sums = times.fold((0.0, 0.0), |s, t| (s.0 + t.0, s.1 + t.1));
    (sums.0 as u64, sums.1 as u64)
}

/// The process time outside accesses in either run, of `all` of it.
fn outside(rows: &[Row], all: (u64, u64)) -> (u64, u64) {
    let times = rows.iter().map(Row::time_ns);
    let in_accesses = times.fold((0, 0), |s, t| (s.0 + t.0, s.1 + t.1));
    (
        all.0.saturating_sub(in_accesses.0),
        all.1.saturating_sub(in_accesses.1),
    )
}

/// Two standard errors of the relative difference of the sums, from the differences phase by phase.
fn uncertainty(first: &[u64], second: &[u64]) -> Option<f64> {
    let n = first.len();
    let total: f64 = first.iter().map(|&t| t as f64).sum();
    if n < VARIATION || total <= 0.0 {
        return None;
    }
    let differences = first.iter().zip(second).map(|(&a, &b)| b as f64 - a as f64);
    let mean = differences.clone().sum::<f64>() / n as f64;
    let squares: f64 = differences.map(|d| (d - mean).powi(2)).sum();
    let deviation = (squares / (n - 1) as f64).sqrt();
    Some(2.0 * deviation * (n as f64).sqrt() / total)
}

fn verdict(c: &Conclusion) -> String {
    let difference = c.difference.unwrap_or(0.0);
    let what = match (c.basis, c.phases) {
        (Basis::Phases, 0) => "up to the end".to_owned(),
        (Basis::Phases, 1) => "for the one phase of both".to_owned(),
        (Basis::Phases, n) => format!("for the {n} phases of both"),
        (Basis::Run, _) => "for the whole run".to_owned(),
        (Basis::Accesses, _) => {
            "for the accesses of the first run at the cost of each (the runs have no barriers \
             and did not do the same work)"
                .to_owned()
        }
    };
    let (before, after) = (Nanos(c.first_ns), Nanos(c.second_ns));
    let chance = match c.uncertainty {
        Some(u) => format!(", ± {:.0} % from phase to phase", 100.0 * u),
        None => String::new(),
    };
    let percent = 100.0 * difference;
    let mut text = match c.change {
        Change::Same => {
            format!("no difference: {before} and {after} {what} ({percent:+.1} %{chance})")
        }
        Change::Faster => {
            format!("the second run is faster: {before} → {after} {what} ({percent:+.0} %{chance})")
        }
        Change::Slower => {
            format!("the second run is slower: {before} → {after} {what} ({percent:+.0} %{chance})")
        }
        Change::Unknown => return c.verdict.clone(),
    };
    if let Some(first) = c.because.first() {
        text += &format!("; mostly by {}", first.text);
    }
    text
}
