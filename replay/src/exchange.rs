//! Who exchanges data with whom. A program whose processes exchange something with their neighbours does the same with any number of
//! processes; one whose processes exchange something with everyone has more operations per process the more processes there are. Which of
//! the two a program is, is told by its variables: by how they are divided, and by whom their parts are accessed.

use std::collections::BTreeMap;

use dosmos_proto::{Layout, MpId, VarId, Variable, VariableSpec};
use dosmos_trace::record::Op;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::thread::{Step, Thread};

/// Objects of a variable that a process owns, at most, if their number is taken to depend on the number of processes.
const MOST_OF_EACH: u32 = 4;

/// Who accesses objects of more than this part of the others exchanges something with everyone, and not with neighbours only.
const MOST_OTHERS: f64 = 0.7;

/// Where there are fewer processes, everyone is a neighbour.
const FEWEST: u32 = 4;

/// Fewer phases do not tell whether accesses are the same in each.
const FEWEST_PHASES: u32 = 8;

/// An access of less than this part of an object is one of a part.
const WHOLE: f64 = 0.9;

/// A variable of which each process owns parts, and accesses those of everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// There is an object for each pair of processes.
    pub(crate) pairs: bool,
    /// Objects that a process owns.
    each: u32,
    /// Processes own objects in turn; else one after the other all of theirs.
    in_turn: bool,
    /// In how many dimensions the variable is divided among processes: with more processes their parts are smaller.
    divided: i32,
    processes: u32,
    object_bytes: u32,
    /// How often a process accesses each object differs from phase to phase.
    pub(crate) at_random: bool,
}

/// What processes access of others.
#[derive(Debug, Default)]
struct Uses {
    others: FxHashSet<(u32, MpId)>,
    objects: FxHashSet<(u32, u32)>,
    sections: bool,
    /// Of an object for a pair of processes, which is neither of them.
    of_another: bool,
    most_bytes: u32,
}

/// The variables that are accessed by everyone.
pub(crate) fn find(variables: &[Variable], threads: &[Thread]) -> FxHashMap<VarId, Exchange> {
    let divided = variables.iter().filter_map(|v| {
        let exchange = Exchange::of(v, threads.len())?;
        Some((v.id(), (exchange, Uses::default())))
    });
    let mut divided: FxHashMap<VarId, (Exchange, Uses)> = divided.collect();
    for (ap, thread) in (0u32..).zip(threads) {
        let remote = thread.steps.iter().filter(|s| s.owner.0 != ap);
        for step in remote.filter(|s| s.op != Op::Barrier) {
            if let Some((exchange, uses)) = divided.get_mut(&step.object.var) {
                uses.others.insert((ap, step.owner));
                uses.objects.insert((ap, step.object.index));
                uses.sections |= step.op == Op::Acquire;
                uses.of_another |= exchange.pairs && exchange.slot(step) != ap;
                uses.most_bytes = uses.most_bytes.max(step.bytes);
            }
        }
    }
    divided.retain(|_, (exchange, uses)| exchange.is_with_everyone(uses));
    for (var, (exchange, _)) in &mut divided {
        exchange.at_random = !is_regular(*var, threads);
    }
    let exchanges = divided.into_iter().map(|(var, (e, _))| (var, e));
    exchanges.collect()
}

/// Whether processes access others' objects of a variable in some of the phases between barriers as often as in others: who decides
/// anew each time what to access does not access more if there are more processes.
fn is_regular(var: VarId, threads: &[Thread]) -> bool {
    let (mut like_others, mut all) = (0, 0);
    for (ap, thread) in (0u32..).zip(threads) {
        let mut phases: BTreeMap<u32, BTreeMap<u32, u32>> = BTreeMap::new();
        let its = |s: &&Step| s.object.var == var && s.owner.0 != ap && s.op != Op::Barrier;
        for step in thread.steps.iter().filter(its) {
            let counts = phases.entry(step.phase).or_default();
            *counts.entry(step.object.index).or_default() += 1;
        }
        let mut alike: BTreeMap<&BTreeMap<u32, u32>, u32> = BTreeMap::new();
        phases
            .values()
            .for_each(|p| *alike.entry(p).or_default() += 1);
        like_others += alike.values().filter(|n| **n > 1).sum::<u32>();
        all += phases.len() as u32;
    }
    all < FEWEST_PHASES || 2 * like_others > all
}

impl Exchange {
    /// How a variable is divided among processes; none if their number has nothing to do with it.
    fn of(variable: &Variable, processes: usize) -> Option<Self> {
        let layout = variable.spec().layout();
        let processes = u32::try_from(processes).ok().filter(|n| *n > 1)?;
        let parts = layout.parts();
        let pairs = parts == (processes, processes);
        let each = layout.objects() / processes;
        let is_divided = each > 0 && layout.objects().is_multiple_of(processes);
        if !is_divided || !(pairs || each <= MOST_OF_EACH) {
            return None;
        }
        let owned = |owner: &dyn Fn(u32) -> u32| {
            (0..layout.objects()).all(|o| variable.owner(o).0 == owner(o))
        };
        let in_turn = !owned(&|object| object / each);
        if in_turn && !owned(&|object| object % processes) {
            return None;
        }
        let dimensions = [(layout.rows(), parts.0), (layout.columns(), parts.1)];
        let divided = dimensions.map(|(length, parts)| {
            i32::from(by_processes(parts, processes) && length > u64::from(parts))
        });
        Some(Self {
            pairs,
            each,
            in_turn,
            divided: divided.iter().sum(),
            processes,
            object_bytes: layout.bytes_of(0).unwrap_or(0),
            at_random: false,
        })
    }

    fn is_with_everyone(&self, uses: &Uses) -> bool {
        let processes = f64::from(self.processes);
        let possible = processes * (processes - 1.0);
        if self.processes >= FEWEST || self.pairs {
            return !uses.of_another && uses.others.len() as f64 > MOST_OTHERS * possible;
        }
        // Of two processes both are neighbours; but who needs of a neighbour no more than a border does not read all that it has, nor the
        // part of it that falls to one process.
        let large = f64::from(uses.most_bytes) > 0.5 * f64::from(self.object_bytes) / processes;
        let objects = uses.objects.len() as f64 > 0.5 * possible * f64::from(self.each);
        objects && (uses.sections || large)
    }

    /// Which of its owner's objects a step accesses: of pairs, the other process.
    pub(crate) fn slot(&self, step: &Step) -> u32 {
        let index = step.object.index;
        match self.in_turn {
            true => index / self.processes,
            false => index % self.each,
        }
    }

    /// Bytes of a step with that many processes, over what they were.
    pub(crate) fn content(&self, step: &Step, processes: usize) -> f64 {
        let is_part = f64::from(step.bytes) < WHOLE * f64::from(self.object_bytes);
        // Of a part that is divided in one dimension a process reads its own part of the other one.
        let other = is_part && step.remote && self.divided == 1;
        let ratio = f64::from(self.processes) / processes as f64;
        ratio.powi(self.divided + i32::from(other))
    }

    /// The declaration with that many processes: as many objects for each.
    pub(crate) fn spec(&self, spec: &VariableSpec, processes: u32) -> Option<VariableSpec> {
        let layout = spec.layout();
        let parts = |parts: u32, length: u64| {
            let parts_there = match by_processes(parts, self.processes) {
                true => parts / self.processes * processes,
                false => parts,
            };
            // One row, say, for each part: there are as many rows as parts.
            let length = match length == u64::from(parts) {
                true => u64::from(parts_there),
                false => length,
            };
            (length, parts_there)
        };
        let (rows, row_parts) = parts(layout.parts().0, layout.rows());
        let (columns, column_parts) = parts(layout.parts().1, layout.columns());
        let layout =
            Layout::new(layout.element(), (rows, columns), (row_parts, column_parts)).ok()?;
        let there = VariableSpec::new(spec.name(), layout).ok()?;
        Some(there.with_policy(spec.policy()))
    }

    /// The numbers of others, from the process on, that take the place of the one that was `distance` from it.
    pub(crate) fn distances(
        &self,
        distance: usize,
        processes: usize,
    ) -> impl Iterator<Item = usize> + use<> {
        let others = self.processes as usize - 1;
        (1..processes).filter(move |there| {
            let like = 1 + (there - 1) * others / (processes - 1);
            like == distance
        })
    }
}

/// Whether a dimension in that many parts is divided among processes.
fn by_processes(parts: u32, processes: u32) -> bool {
    parts > 1 && parts.is_multiple_of(processes)
}
