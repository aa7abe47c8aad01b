//! Which records are kept: the selection, worked out per variable and application process so that the
//! hot path looks up two bits.

use dosmos_proto::{Nanos, Topology, VarId, Variable};
use dosmos_trace::selection::{Mode, Selection, chosen};
use dosmos_trace::{Op, Record};

use rustc_hash::FxHashMap;

/// Kinds of records that are sampled apart: operation, origin, optimized, in the application process.
const KINDS: usize = 6 * 4 * 2 * 2;

/// The selection at work.
#[derive(Debug)]
pub(crate) struct Filter {
    selection: Selection,
    ops: [bool; 6],
    aps: Vec<bool>,
    variables: FxHashMap<VarId, bool>,
    seen: [u32; KINDS],
}

impl Filter {
    pub(crate) fn new(selection: Selection, topology: &Topology) -> Self {
        let mut ops = [selection.ops.is_empty(); 6];
        for op in &selection.ops {
            ops[*op as usize] = true;
        }
        let aps = topology.application_processes().iter();
        Self {
            ops,
            aps: aps
                .map(|ap| chosen(&selection.processes, &ap.name))
                .collect(),
            variables: FxHashMap::default(),
            seen: [0; KINDS],
            selection,
        }
    }

    /// Another selection for the variables known so far.
    pub(crate) fn change<'a>(
        &mut self,
        selection: Selection,
        topology: &Topology,
        known: impl Iterator<Item = &'a Variable>,
    ) {
        *self = Self::new(selection, topology);
        known.for_each(|v| self.learn(v));
    }

    pub(crate) fn learn(&mut self, variable: &Variable) {
        let keep = chosen(&self.selection.variables, variable.spec().name());
        self.variables.insert(variable.id(), keep);
    }

    /// Whether anything at all is recorded.
    pub(crate) fn events(&self) -> bool {
        self.selection.mode == Mode::Events
    }

    /// Whether even counters are not wanted.
    pub(crate) fn off(&self) -> bool {
        self.selection.mode == Mode::Off
    }

    /// The fraction of the selected accesses that is kept.
    pub(crate) fn sampling(&self) -> f64 {
        match self.selection.mode {
            Mode::Events => 1.0 / f64::from(self.selection.sample_one_in.max(1)),
            _ => 0.0,
        }
    }

    /// What is selected.
    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Whether records like this one are selected.
    pub(crate) fn selects(&self, record: &Record) -> bool {
        if !self.events() || !self.ops[record.op as usize] {
            return false;
        }
        if !self.aps.get(record.ap.index()).copied().unwrap_or(true) {
            return false;
        }
        // Barriers are not variables.
        record.op == Op::Barrier
            || self
                .variables
                .get(&record.object.var)
                .copied()
                .unwrap_or(true)
    }

    /// Whether to keep a selected record; marks it if others like it are not. Of several accesses it then stands for
    /// those that are kept.
    pub(crate) fn samples(&mut self, record: &mut Record) -> bool {
        let every = self.selection.sample_one_in.max(1);
        if every == 1 {
            return true;
        }
        let kind = (record.op as usize * 4 + record.origin as usize) * 4
            + usize::from(record.flags.optimized) * 2
            + usize::from(record.flags.in_process);
        let seen = &mut self.seen[kind];
        let all = record.accesses();
        let due = u64::from(*seen) + all;
        *seen = (due % u64::from(every)) as u32;
        let kept = due / u64::from(every);
        record.flags.sampled = true;
        if all > 1 && kept > 0 {
            let share = |sum: u64| (u128::from(sum) * u128::from(kept) / u128::from(all)) as u64;
            record.count = kept as u32;
            record.bytes = share(record.bytes);
            record.wait = Nanos(share(record.wait.0));
            record.service = Nanos(share(record.service.0));
            if kept == 1 {
                record.duration = record.wait + record.service;
            }
        }
        kept > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::test_topology;
    use crate::recorder::testing::record;
    use dosmos_proto::ApId;

    #[test]
    fn selects_by_operation_process_and_sample() {
        let t = test_topology(&["/a"], 1, 2);
        let kept = |selection: Selection| {
            let mut filter = Filter::new(selection, &t);
            let mut kept = Vec::new();
            for i in 0..12 {
                let op = if i % 2 == 0 { Op::Read } else { Op::Write };
                let mut r = record(op, i);
                r.ap = ApId(u32::from(i >= 6));
                if filter.selects(&r) && filter.samples(&mut r) {
                    kept.push(i);
                }
            }
            kept
        };
        let all = Selection::default;
        assert_eq!(kept(all()).len(), 12);
        let writes = Selection {
            ops: vec![Op::Write],
            ..all()
        };
        assert_eq!(kept(writes), [1, 3, 5, 7, 9, 11]);
        let one = Selection {
            processes: vec!["ap1".into()],
            ..all()
        };
        assert_eq!(kept(one), [6, 7, 8, 9, 10, 11]);
        let sampled = Selection {
            sample_one_in: 3,
            ..all()
        };
        assert_eq!(kept(sampled), [4, 5, 10, 11]);
        let all_of_the_ocean = Filter::new(
            Selection {
                variables: vec!["ocean*".into()],
                ..all()
            },
            &t,
        );
        assert!(chosen(&all_of_the_ocean.selection.variables, "ocean/h[3]"));
        let mut filter = Filter::new(
            Selection {
                sample_one_in: 4,
                ..all()
            },
            &t,
        );
        // 3 and 6 accesses in turn are as many as 45 single ones: one in four of them is kept.
        let in_turn: Vec<(u32, u64)> = (0..10)
            .filter_map(|i| {
                let mut r = record(Op::Read, i);
                (r.count, r.bytes) = if i % 2 == 0 { (3, 24) } else { (6, 48) };
                filter.samples(&mut r).then_some((r.count, r.bytes))
            })
            .collect();
        assert_eq!(in_turn.iter().map(|k| k.0).sum::<u32>(), 45 / 4);
        assert!(
            in_turn
                .iter()
                .all(|(count, bytes)| *bytes == u64::from(*count) * 8)
        );
        let off = Selection {
            mode: Mode::Counters,
            ..all()
        };
        assert!(kept(off).is_empty());
    }
}
