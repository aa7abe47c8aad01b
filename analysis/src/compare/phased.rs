//! A run by phases: what was done to each variable in each.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, Nanos, PhaseTimes, VarId};
use dosmos_trace::meta::Times;
use dosmos_trace::query::{Breakdown, Catalog, TimeRange};
use dosmos_trace::record::{Op, Origin, Record};
use serde::{Serialize, Serializer};

use crate::efficiency::Efficiency;

/// Most phases told apart.
pub const MOST: usize = 4096;

/// Sums over the accesses to one variable by one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Accesses.
    pub count: u64,
    /// Time spent in them, and its distribution: `time_ns`, `p50_ns`, `p99_ns`, `max_ns`.
    #[serde(flatten, serialize_with = "in_figures")]
    pub times: Times,
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

/// Nanoseconds.
#[derive(Serialize)]
struct Figures {
    time_ns: Nanos,
    p50_ns: Option<Nanos>,
    p99_ns: Option<Nanos>,
    max_ns: Nanos,
}

fn in_figures<S: Serializer>(times: &Times, serializer: S) -> Result<S::Ok, S::Error> {
    let figures = Figures {
        time_ns: times.total,
        p50_ns: times.quantile(0.5),
        p99_ns: times.quantile(0.99),
        max_ns: times.longest,
    };
    figures.serialize(serializer)
}

impl Sums {
    fn count(&mut self, record: &Record) {
        let n = record.accesses();
        self.count += n;
        self.times.count(record.spent(), n);
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

    /// The mean time of one access, nanoseconds.
    pub fn mean_ns(&self) -> u64 {
        self.each() as u64
    }

    pub(super) fn each(&self) -> f64 {
        self.times.total.0 as f64 / self.count.max(1) as f64
    }

    /// The fraction of inter-group ones.
    pub(super) fn inter_share(&self) -> f64 {
        self.inter as f64 / self.count.max(1) as f64
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.times.add(&other.times);
        self.wait_ns += other.wait_ns;
        self.local += other.local;
        self.intra += other.intra;
        self.inter += other.inter;
        self.optimized += other.optimized;
        self.in_process += other.in_process;
    }
}

pub(super) type Table = BTreeMap<(String, Op), Sums>;

#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    /// From the first start to the last end.
    pub(super) span: Option<(Nanos, Nanos)>,
    pub(super) table: BTreeMap<(VarId, Op), Sums>,
}

impl Phase {
    pub(super) fn join(&mut self, other: &Self) {
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (one, two) => one.or(two),
        };
        for (key, sums) in &other.table {
            self.table.entry(*key).or_default().add(sums);
        }
    }

    pub(super) fn length(&self) -> u64 {
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
    pub(super) phases: BTreeMap<u64, Phase>,
    pub(super) stride: u64,
    times: Vec<PhaseTimes>,
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
            times: Vec::new(),
        }
    }

    /// Takes into account where the processes say their time went.
    pub fn times(&mut self, breakdown: &Breakdown) {
        self.times.clone_from(&breakdown.phases);
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
    pub(super) fn coarsen(&mut self, stride: u64) {
        let factor = (stride / self.stride).max(1);
        let mut joined: BTreeMap<u64, Phase> = BTreeMap::new();
        for (number, phase) in std::mem::take(&mut self.phases) {
            joined.entry(number / factor).or_default().join(&phase);
        }
        self.phases = joined;
        self.stride = stride.max(self.stride);
    }

    pub(super) fn named(&self, table: &BTreeMap<(VarId, Op), Sums>) -> Table {
        let mut named = Table::new();
        for ((variable, op), sums) in table {
            let key = (self.catalog.name_of(*variable), *op);
            named.entry(key).or_default().add(sums);
        }
        named
    }

    pub(super) fn total(&self) -> Phase {
        joined(self.phases.values())
    }

    /// Barriers that end phases, as the process passed them that passed most.
    pub(super) fn barriers(&self) -> u64 {
        self.passed.values().copied().max().unwrap_or(0)
    }

    /// Application processes that did anything.
    pub(super) fn processes(&self) -> usize {
        self.passed.len()
    }

    /// The efficiency of what lies in `part`; none: of the whole run.
    pub(super) fn efficiency(&self, part: Option<TimeRange>) -> Option<Efficiency> {
        let inside = |p: &&PhaseTimes| part.is_none_or(|w| w.from <= p.start && p.end() <= w.to);
        Efficiency::of(self.times.iter().filter(inside))
    }
}

/// Some phases as one.
pub(super) fn joined<'a>(phases: impl IntoIterator<Item = &'a Phase>) -> Phase {
    let mut all = Phase::default();
    phases.into_iter().for_each(|p| all.join(p));
    all
}
