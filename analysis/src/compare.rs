//! Two runs of a program, side by side: aligned on barriers, not on wall clock.
//!
//! A *phase* of a process is what it does from one barrier to the next, that barrier included. All count the
//! barriers of all processes, if there are any, otherwise those of groups that they pass. Every process counts for itself,
//! so clocks do not matter. Variables are the same if their names are.
//!
//! Size: at most [`MOST`] phases are told apart; beyond that neighbours are joined, in both runs alike.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, Nanos, VarId};
use dosmos_trace::query::Catalog;
use dosmos_trace::record::{Op, Origin, Record};
use serde::Serialize;

use crate::analyse::Analysis;
use crate::finding::{Finding, Kind};

/// Most phases told apart.
pub const MOST: usize = 4096;

/// Sums over the accesses to one variable by one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Accesses.
    pub count: u64,
    /// Time spent in them, nanoseconds.
    pub time_ns: u64,
    /// Of that, waiting, nanoseconds.
    pub wait_ns: u64,
    /// Of the accesses, local ones.
    pub local: u64,
    /// Intra-group ones.
    pub intra: u64,
    /// Inter-group ones.
    pub inter: u64,
    /// Of the local ones, cached reads at memory processes.
    pub optimized: u64,
    /// Of the local ones, accesses served in the application process.
    pub in_process: u64,
}

impl Sums {
    fn count(&mut self, record: &Record) {
        let n = record.accesses();
        self.count += n;
        self.time_ns += record.spent().0;
        self.wait_ns += record.wait.0;
        match record.origin {
            Origin::Local => self.local += n,
            Origin::Intra => self.intra += n,
            Origin::Inter => self.inter += n,
        }
        if record.flags.in_process && record.origin == Origin::Local {
            self.in_process += n;
        } else if record.flags.optimized {
            self.optimized += n;
        }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.time_ns += other.time_ns;
        self.wait_ns += other.wait_ns;
        self.local += other.local;
        self.intra += other.intra;
        self.inter += other.inter;
        self.optimized += other.optimized;
        self.in_process += other.in_process;
    }
}

type Table = BTreeMap<(String, Op), Sums>;

#[derive(Clone, Debug, Default)]
struct Phase {
    /// From the first start to the last end.
    span: Option<(Nanos, Nanos)>,
    table: BTreeMap<(VarId, Op), Sums>,
}

impl Phase {
    fn join(&mut self, other: &Self) {
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (one, two) => one.or(two),
        };
        for (key, sums) in &other.table {
            self.table.entry(*key).or_default().add(sums);
        }
    }

    fn length(&self) -> u64 {
        self.span.map_or(0, |(from, to)| (to - from).0)
    }
}

/// A run by phases. Feed it the records in order of their start.
#[derive(Clone, Debug)]
pub struct PhasedRun {
    catalog: Catalog,
    /// The barriers that end phases; empty: all of them do.
    aligning: BTreeSet<VarId>,
    passed: BTreeMap<ApId, u64>,
    /// By number of the phase over `stride`.
    phases: BTreeMap<u64, Phase>,
    stride: u64,
}

impl PhasedRun {
    /// A run without records so far.
    pub fn new(catalog: Catalog) -> Self {
        let of_all = catalog.barriers.iter().filter(|b| b.group.is_none());
        Self {
            aligning: of_all.map(|b| b.id).collect(),
            catalog,
            passed: BTreeMap::new(),
            phases: BTreeMap::new(),
            stride: 1,
        }
    }

    /// Takes a record into account.
    pub fn add(&mut self, record: &Record) {
        if !record.is_access() {
            return;
        }
        let passed = self.passed.entry(record.ap).or_default();
        let number = *passed / self.stride;
        let ends = self.aligning.is_empty() || self.aligning.contains(&record.object.var);
        *passed += u64::from(record.op == Op::Barrier && ends);
        let phase = self.phases.entry(number).or_default();
        let table = phase.table.entry((record.object.var, record.op));
        table.or_default().count(record);
        phase.span = Some(match phase.span {
            Some((from, to)) => (from.min(record.start), to.max(record.end())),
            None => (record.start, record.end()),
        });
        if self.phases.len() > MOST {
            self.coarsen(self.stride * 2);
        }
    }

    /// Joins neighbours until each phase stands for `stride`, a power of two.
    fn coarsen(&mut self, stride: u64) {
        let factor = (stride / self.stride).max(1);
        let mut joined: BTreeMap<u64, Phase> = BTreeMap::new();
        for (number, phase) in std::mem::take(&mut self.phases) {
            joined.entry(number / factor).or_default().join(&phase);
        }
        self.phases = joined;
        self.stride = stride.max(self.stride);
    }

    fn named(&self, table: &BTreeMap<(VarId, Op), Sums>) -> Table {
        let mut named = Table::new();
        for ((variable, op), sums) in table {
            let key = (self.catalog.name_of(*variable), *op);
            named.entry(key).or_default().add(sums);
        }
        named
    }

    fn total(&self) -> Phase {
        let mut all = Phase::default();
        self.phases.values().for_each(|p| all.join(p));
        all
    }
}

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
}

/// One variable and operation in both runs; none: not in that run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the variable or barrier.
    pub variable: String,
    /// The operation.
    pub op: Op,
    /// In the first run.
    pub first: Option<Sums>,
    /// In the second run.
    pub second: Option<Sums>,
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
    /// Phases joined into one.
    pub stride: u64,
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
    let (all_a, all_b) = (a.total(), b.total());
    Comparison {
        first: summary(&a, &all_a, of_a),
        second: summary(&b, &all_b, of_b),
        stride,
        totals: rows(&a.named(&all_a.table), &b.named(&all_b.table)),
        phases,
        findings: findings(&of_a.findings, &of_b.findings),
    }
}

fn rows(first: &Table, second: &Table) -> Vec<Row> {
    let keys: BTreeSet<&(String, Op)> = first.keys().chain(second.keys()).collect();
    keys.into_iter()
        .map(|key| Row {
            variable: key.0.clone(),
            op: key.1,
            first: first.get(key).copied(),
            second: second.get(key).copied(),
        })
        .collect()
}

fn summary(run: &PhasedRun, total: &Phase, analysis: &Analysis) -> RunSummary {
    RunSummary {
        length_ns: total.length(),
        phases: run.passed.values().copied().max().unwrap_or(0),
        processes: run.passed.len(),
        accesses: total.table.values().map(|s| s.count).sum(),
        complete: analysis.complete,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, Thresholds, analyse};
    use dosmos_testkit::labelled::{Labelled, generate};

    fn phased(catalog: &Catalog, records: &[Record]) -> (PhasedRun, Analysis) {
        let mut run = PhasedRun::new(catalog.clone());
        records.iter().for_each(|r| run.add(r));
        let input = Input {
            catalog: catalog.clone(),
            records: &mut records.iter().copied(),
            window: None,
        };
        (run, analyse(input, &Thresholds::default()))
    }

    /// A generated run whose processes pass barriers.
    fn with_barriers() -> Labelled {
        let mut traces = (0..).map(generate);
        let passes = |t: &Labelled| t.records.iter().filter(|r| r.op == Op::Barrier).count() > 20;
        traces.find(passes).unwrap()
    }

    #[test]
    fn a_run_equals_itself_however_slow_its_clock() {
        let trace = with_barriers();
        let (a, of_a) = phased(&trace.catalog, &trace.records);
        let same = compare((a.clone(), &of_a), (a.clone(), &of_a));
        assert!(same.phases.len() > 1 && same.phases.iter().all(|p| p.rows.is_empty()));
        assert!(same.findings.new.is_empty() && same.findings.gone.is_empty());
        // The same program, everything shifted and later phases twice as slow: counts agree phase by phase.
        let mut slow = trace.records.clone();
        for r in &mut slow {
            r.start = Nanos(r.start.0 * 2 + 5_000_000_000);
        }
        let (b, of_b) = phased(&trace.catalog, &slow);
        let late = compare((a, &of_a), (b, &of_b));
        assert!(late.phases.iter().all(|p| p.rows.is_empty()));
        assert!(late.second.length_ns > late.first.length_ns);
    }

    #[test]
    fn what_one_phase_has_more_shows_there_and_nowhere_else() {
        let trace = with_barriers();
        let mut more = trace.records.clone();
        // One process reads once more before its third barrier.
        let mut passed = 0;
        let at = more.iter().position(|r| {
            passed += u64::from(r.is_access() && r.op == Op::Barrier && r.ap == ApId(0));
            passed == 2 && r.is_access() && r.op != Op::Barrier && r.ap == ApId(0)
        });
        let extra = more[at.unwrap()];
        more.insert(at.unwrap(), extra);
        let (a, of_a) = phased(&trace.catalog, &trace.records);
        let (b, of_b) = phased(&trace.catalog, &more);
        let diff = compare((a, &of_a), (b, &of_b));
        let differing: Vec<u64> = diff
            .phases
            .iter()
            .filter(|p| !p.rows.is_empty())
            .map(|p| p.phase)
            .collect();
        assert_eq!(differing, [2]);
    }

    #[test]
    fn many_phases_are_joined_and_nothing_is_lost() {
        let trace = with_barriers();
        let barrier = trace.records.iter().find(|r| r.op == Op::Barrier).unwrap();
        let mut run = PhasedRun::new(trace.catalog.clone());
        for i in 0..10_000 {
            let mut r = *barrier;
            r.start = Nanos(i);
            run.add(&r);
        }
        assert!(run.phases.len() <= MOST && run.stride == 4);
        assert_eq!(
            run.total().table.values().map(|s| s.count).sum::<u64>(),
            10_000
        );
        let (short, of) = phased(&trace.catalog, &trace.records);
        let both = compare((short, &of), (run, &of));
        assert_eq!(both.stride, 4);
    }
}
