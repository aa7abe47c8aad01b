//! Who exchanges data with whom. A program whose processes exchange something with their neighbours does the same with any number of
//! processes; one whose processes exchange something with everyone has more operations per process the more processes there are. Which of
//! the two a program is, is told by its variables: by how they are divided, and by whom their parts are accessed.

use dosmos_proto::{Layout, Variable, VariableSpec};
use dosmos_trace::record::Op;
use rustc_hash::FxHashSet;

use crate::thread::{Step, Thread};

/// Objects of a variable that a process owns, at most, if their number is taken to depend on the number of processes.
const MOST_OF_EACH: u32 = 4;

/// Who accesses objects of more than this part of the others exchanges something with everyone, and not with neighbours only.
const MOST_OTHERS: f64 = 0.7;

/// Where there are fewer processes, everyone is a neighbour.
const FEWEST: usize = 4;

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
}

impl Exchange {
    /// How a variable is accessed by everyone; none if it is not.
    pub(crate) fn of(variable: &Variable, threads: &[Thread]) -> Option<Self> {
        let layout = variable.spec().layout();
        let processes = u32::try_from(threads.len()).ok().filter(|n| *n > 1)?;
        let parts = layout.parts();
        let pairs = parts == (processes, processes);
        let each = layout.objects() / processes;
        if each == 0
            || !layout.objects().is_multiple_of(processes)
            || !(pairs || each <= MOST_OF_EACH)
        {
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
            let by_processes = parts > 1 && parts.is_multiple_of(processes);
            i32::from(by_processes && length > u64::from(parts))
        });
        let exchange = Self {
            pairs,
            each,
            in_turn,
            divided: divided.iter().sum(),
            processes,
        };
        exchange
            .is_with_everyone(variable, threads)
            .then_some(exchange)
    }

    fn is_with_everyone(&self, variable: &Variable, threads: &[Thread]) -> bool {
        let (mut others, mut objects) = (FxHashSet::default(), FxHashSet::default());
        let (mut sections, mut most) = (false, 0);
        for (ap, thread) in (0u32..).zip(threads) {
            let remote = thread.steps.iter().filter(|s| {
                s.object.var == variable.id() && s.op != Op::Barrier && s.owner.0 != ap
            });
            for step in remote {
                if self.pairs && self.slot(step) != ap {
                    // What is meant for another one.
                    return false;
                }
                others.insert((ap, step.owner));
                objects.insert((ap, step.object.index));
                sections |= step.op == Op::Acquire;
                most = most.max(step.bytes);
            }
        }
        let possible = f64::from(self.processes * (self.processes - 1));
        let share = |of: usize, all: f64| of as f64 / all;
        if threads.len() >= FEWEST || self.pairs {
            return share(others.len(), possible) > MOST_OTHERS;
        }
        // Of two processes both are neighbours; but who needs of a neighbour no more than a border does not read all that it has, nor the
        // part of it that falls to one process.
        let object = variable.spec().layout().bytes_of(0).unwrap_or(0);
        let large = f64::from(most) > 0.5 * f64::from(object) / f64::from(self.processes);
        share(objects.len(), possible * f64::from(self.each)) > 0.5 && (sections || large)
    }

    /// Which of its owner's objects a step accesses: of pairs, the other process.
    pub(crate) fn slot(&self, step: &Step) -> u32 {
        let index = step.object.index;
        match self.in_turn {
            true => index / self.processes,
            false => index % self.each,
        }
    }

    /// Bytes of a step with that many processes.
    pub(crate) fn bytes(&self, step: &Step, variable: &Variable, processes: usize) -> u32 {
        let object = variable.spec().layout().bytes_of(step.object.index);
        let is_part = f64::from(step.bytes) < WHOLE * f64::from(object.unwrap_or(0));
        let is_remote = matches!(step.op, Op::Read | Op::Write) && step.remote;
        let dimensions = self.divided + i32::from(is_part && is_remote && self.divided == 1);
        let ratio = f64::from(self.processes) / processes as f64;
        (f64::from(step.bytes) * ratio.powi(dimensions)) as u32
    }

    /// The declaration with that many processes: as many objects for each.
    pub(crate) fn spec(&self, spec: &VariableSpec, processes: u32) -> Option<VariableSpec> {
        let layout = spec.layout();
        let parts = |parts: u32, length: u64| {
            let by_processes = parts > 1 && parts.is_multiple_of(self.processes);
            let parts_there = match by_processes {
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
