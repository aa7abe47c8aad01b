//! Runs that are written down operation by operation.

use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, Component, EmpId, GroupId, GroupPath, MpId, Nanos, ObjectId, PhaseTimes, TopologyBuilder,
    VarId, Variable,
};
use dosmos_replay::{Calibrated, Change, Costs, Outcome, Scale, Script, ScriptBuilder};
use dosmos_trace::query::{Breakdown, Catalog};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;

/// A process waits for so much longer than its memory process takes for an operation.
const HOP: u64 = 10 * US;

/// An end of a message takes 1 µs of a processor; nothing else takes time.
pub(crate) fn costs() -> Costs {
    Costs {
        end_ns: 1e3,
        end_ns_per_byte: 0.0,
        between: 1.0,
        serve_ns: 0.0,
        near_ns: 0.0,
        far_ns: 0.0,
        link_ns: 0.0,
        way_ns_per_byte: 0.0,
        network_ns_per_byte: 0.0,
        woken_ns: 0.0,
        wake_ns: 0.0,
        processors: 8,
        shared: 1.0,
        carried_ns: 0.0,
        carried_ns_per_byte: 0.0,
    }
}

pub(crate) fn catalog(processes: u32) -> Catalog {
    let mp = |i| MemoryProcess {
        name: format!("mp{i}"),
        group: GroupId(0),
        event_manager: EmpId(0),
        link: false,
    };
    let ap = |i| ApplicationProcess {
        name: format!("ap{i}"),
        memory_process: MpId(i),
    };
    Catalog {
        topology: TopologyBuilder {
            groups: vec![Group {
                path: GroupPath::top("g"),
                parent: None,
            }],
            memory_processes: (0..processes).map(mp).collect(),
            application_processes: (0..processes).map(ap).collect(),
            event_managers: vec![EventManager { name: "emp".into() }],
            ..TopologyBuilder::default()
        }
        .build()
        .expect("a valid topology"),
        ..Catalog::default()
    }
}

pub(crate) const OBJECT: ObjectId = ObjectId {
    var: VarId(1),
    index: 0,
};

/// A run that is written down operation by operation. Each process computes a millisecond before each operation.
pub(crate) struct Run {
    pub(crate) records: Vec<Record>,
    /// When each process is done with what it did so far.
    pub(crate) now: Vec<u64>,
    pub(crate) spent: Vec<PhaseTimes>,
    /// What each memory process says that serving took of a processor; none: they do not say it.
    pub(crate) serving: Option<u64>,
    /// Variables whose declarations are known.
    pub(crate) variables: Vec<Variable>,
}

impl Run {
    pub(crate) fn of(processes: u32) -> Self {
        let times = |ap| PhaseTimes {
            ap: ApId(ap),
            ..PhaseTimes::default()
        };
        Self {
            records: Vec::new(),
            now: vec![0; processes as usize],
            spent: (0..processes).map(times).collect(),
            serving: None,
            variables: Vec::new(),
        }
    }

    /// `ap` computes for `computing`, then does `op` on an object of `owner`, which takes `takes`.
    pub(crate) fn does(
        &mut self,
        ap: u32,
        computing: u64,
        op: Op,
        owner: u32,
        takes: u64,
    ) -> &mut Record {
        let now = &mut self.now[ap as usize];
        let start = Nanos(*now + computing);
        *now = start.0 + takes;
        let spent = &mut self.spent[ap as usize];
        spent.spent.add(Component::Busy, Nanos(computing), 0);
        let waits = match op {
            Op::Read | Op::Write if ap == owner => Component::Local,
            Op::Read | Op::Write => Component::Fault,
            Op::Acquire | Op::Release => Component::Lock,
            Op::Barrier => Component::Barrier,
        };
        spent.spent.add(waits, Nanos(takes + HOP), 1);
        self.records.push(Record {
            start,
            duration: Nanos(takes),
            wait: Nanos::ZERO,
            service: Nanos::ZERO,
            op,
            side: Side::Requester,
            origin: if ap == owner {
                Origin::Local
            } else {
                Origin::Intra
            },
            flags: Flags::default(),
            object: OBJECT,
            ap: ApId(ap),
            mp: MpId(ap),
            peer: MpId(owner),
            count: 1,
            bytes: 8,
            version: 0,
            range: (0, 0),
        });
        self.records.last_mut().expect("just pushed")
    }

    pub(crate) fn barrier(&mut self, generation: u32) {
        for ap in 0..self.now.len() as u32 {
            let record = self.does(ap, 0, Op::Barrier, 0, 10 * US);
            record.object = ObjectId::new(VarId(100), generation);
        }
        let all = self.now.iter().copied().max().expect("a process");
        self.now.iter_mut().for_each(|now| *now = all);
    }

    pub(crate) fn script(&self) -> Script {
        let mut builder = ScriptBuilder::new(Catalog {
            variables: self.variables.clone(),
            ..catalog(self.now.len() as u32)
        });
        let mut records = self.records.clone();
        records.sort_by_key(|r| r.start);
        records.iter().for_each(|r| builder.add(r));
        let phases = self
            .spent
            .iter()
            .zip(&self.now)
            .map(|(times, end)| PhaseTimes {
                wall: Nanos(*end),
                ..*times
            });
        let told = |ns| (0..self.now.len() as u32).map(move |mp| (MpId(mp), Nanos(ns)));
        let times = Breakdown {
            phases: phases.collect(),
            processor: self.serving.into_iter().flat_map(told).collect(),
            ..Breakdown::default()
        };
        builder.finish(&times).expect("a script")
    }

    pub(crate) fn replay(&self, change: &Change) -> Outcome {
        let outcome = self.script().replay(&costs(), change);
        assert!(outcome.is_whole(), "{outcome:?}");
        outcome
    }
}

/// The run of that many processes, replayed; none if no law says what they do.
pub(crate) fn scaled(run: &Run, processes: usize) -> Option<Outcome> {
    let fitted = Calibrated::new(run.script(), &costs()).expect("a replay");
    let scale = Scale {
        processes: Some(processes),
        ..Scale::default()
    };
    let scaled = fitted.scaled(&scale)?;
    let outcome = scaled.script().replay(&costs(), &Change::default());
    assert!(outcome.is_whole(), "{outcome:?}");
    Some(outcome)
}

#[track_caller]
pub(crate) fn takes(outcome: &Outcome, expected_us: u64) {
    let us = (outcome.length.0 + 500) / US;
    assert_eq!(us, expected_us, "{outcome:?}");
}

pub(crate) fn owned_by(mp: u32) -> Change {
    Change {
        owners: [(OBJECT, MpId(mp))].into(),
        ..Change::default()
    }
}
