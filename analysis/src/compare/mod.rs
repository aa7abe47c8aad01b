//! Two runs of a program, side by side: aligned on barriers, not on wall clock.
//!
//! A *phase* of a process is what it does from one barrier to the next, that barrier included. All count the
//! barriers of all processes, if there are any, otherwise those of groups that they pass. Every process counts for itself,
//! so clocks do not matter. Variables are the same if their names are.
//!
//! * `phased`: a run by phases.
//! * `matched`: the phases that both runs have, and how long they took.
//! * `conclude`: which run is faster, by how much and why.
//!
//! Size: at most [`MOST`] phases are told apart; beyond that neighbours are joined, in both runs alike.

mod conclude;
mod matched;
mod phased;
mod reason;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use dosmos_trace::query::TimeRange;
use serde::Serialize;

use crate::analyse::Analysis;
use crate::efficiency::Efficiency;
use crate::finding::{Finding, Kind};

pub use conclude::{Basis, Change, Conclusion};
use matched::Matched;
pub use phased::{MOST, PhasedRun, Sums};
use phased::{Phase, Table};
pub use reason::Reason;
pub use rows::Row;
use rows::rows;

/// One run of two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// From the first start to the last end, nanoseconds.
    pub length_ns: u64,
    /// Phases.
    pub phases: u64,
    /// Application processes that did anything.
    pub processes: usize,
    /// Accesses, barriers among them.
    pub accesses: u64,
    /// Fraction of the accesses recorded, 0 to 1.
    pub complete: f64,
    /// Efficiency over the matched phases; none if the processes did not say where their time went.
    pub efficiency: Option<Efficiency>,
}

/// One phase in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseRow {
    /// Its number, from 0; with a stride, that of the first of those joined.
    pub phase: u64,
    /// Its length in the first run, nanoseconds; none: not in that run.
    pub first_ns: Option<u64>,
    /// Its length in the second run.
    pub second_ns: Option<u64>,
    /// What differs: variables and operations whose number of accesses, origins or times are not equal.
    pub rows: Vec<Row>,
}

/// A finding of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// What is wrong.
    pub kind: Kind,
    /// With what.
    pub target: String,
    /// Severity in the first run.
    pub first: f64,
    /// Severity in the second run.
    pub second: f64,
}

/// Findings of two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FindingsDiff {
    /// Of the second run only.
    pub new: Vec<Finding>,
    /// Of the first run only.
    pub gone: Vec<Finding>,
    /// Of both.
    pub kept: Vec<Kept>,
}

/// Two runs side by side. Serializes as the schema of `dosmos diff --format json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The first run.
    pub first: RunSummary,
    /// The second run.
    pub second: RunSummary,
    /// Which run is faster, by how much and why.
    pub conclusion: Conclusion,
    /// Why the two may not be runs of one program.
    pub warnings: Vec<String>,
    /// Phases joined into one.
    pub stride: u64,
    /// Over the phases that both runs have; what took most time first.
    pub matched: Vec<Row>,
    /// Over the whole runs.
    pub totals: Vec<Row>,
    /// Phase by phase.
    pub phases: Vec<PhaseRow>,
    /// What is wrong.
    pub findings: FindingsDiff,
}

/// Compares two runs, each with its analysis.
pub fn compare(first: (PhasedRun, &Analysis), second: (PhasedRun, &Analysis)) -> Comparison {
    let ((mut a, of_a), (mut b, of_b)) = (first, second);
    let stride = a.stride.max(b.stride);
    a.coarsen(stride);
    b.coarsen(stride);
    let numbers: BTreeSet<u64> = a.phases.keys().chain(b.phases.keys()).copied().collect();
    let phases = numbers.iter().map(|number| {
        let (one, two) = (a.phases.get(number), b.phases.get(number));
        let table = |run: &PhasedRun, phase: Option<&Phase>| {
            phase.map_or(Table::new(), |p| run.named(&p.table))
        };
        let mut rows = rows(&table(&a, one), &table(&b, two));
        rows.retain(|row| row.first != row.second);
        PhaseRow {
            phase: number * stride,
            first_ns: one.map(Phase::length),
            second_ns: two.map(Phase::length),
            rows,
        }
    });
    let phases = phases.collect();
    let matched = Matched::of(&a, &b);
    let warnings = conclude::warnings(&a, &b);
    let conclusion = conclude::conclude(&a, &b, &matched);
    Comparison {
        first: summary(&a, of_a, matched.first.part),
        second: summary(&b, of_b, matched.second.part),
        conclusion,
        warnings,
        stride,
        matched: matched.rows,
        totals: rows(&a.named(&a.total().table), &b.named(&b.total().table)),
        phases,
        findings: findings(&of_a.findings, &of_b.findings),
    }
}

fn summary(run: &PhasedRun, analysis: &Analysis, part: Option<TimeRange>) -> RunSummary {
    let total = run.total();
    RunSummary {
        length_ns: total.length(),
        phases: run.barriers(),
        processes: run.processes(),
        accesses: total.table.values().map(|s| s.count).sum(),
        complete: analysis.complete,
        efficiency: run.efficiency(part),
    }
}

fn findings(first: &[Finding], second: &[Finding]) -> FindingsDiff {
    let same = |a: &Finding, b: &Finding| a.kind == b.kind && a.target() == b.target();
    let mut diff = FindingsDiff::default();
    for finding in second {
        match first.iter().find(|f| same(f, finding)) {
            Some(before) => diff.kept.push(Kept {
                kind: finding.kind,
                target: finding.target(),
                first: before.severity,
                second: finding.severity,
            }),
            None => diff.new.push(finding.clone()),
        }
    }
    let gone = first.iter().filter(|f| !second.iter().any(|s| same(f, s)));
    diff.gone = gone.cloned().collect();
    diff
}
