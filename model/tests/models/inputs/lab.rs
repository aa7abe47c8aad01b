//! A run whose every figure is known.

use dosmos_model::dvsm::{Network, Segment};
use dosmos_model::inputs::{Builder, Hop, Measured, NetworkRecord};
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, Component, EmpId, GroupId, GroupPath, MpId, Nanos, ObjectId, PhaseTimes, Topology,
    TopologyBuilder, VarId,
};
use dosmos_trace::query::{Breakdown, Catalog};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

pub(super) const X: VarId = VarId(7);
/// Soft 10 µs an end, interfaces 1 µs, wire 0.01 µs a byte, way to the own memory process 30 µs.
pub(super) fn network() -> NetworkRecord {
    NetworkRecord {
        machine: String::new(),
        processors: 8,
        network: Network {
            segments: vec![Segment {
                max_size: None,
                syscall_us: [5.0, 0.0],
                total_us: [10.0, 0.0],
            }],
            wire_us_per_byte: 0.01,
            interface_us: 1.0,
            switch_us: 0.0,
            wire_overhead_bytes: 0.0,
            software_overhead_bytes: 0.0,
            effective_mbps: None,
        },
        hop: Hop {
            read_us: [30.0, 0.0],
            write_us: [30.0, 0.0],
        },
        carried_us: [0.0; 2],
    }
}

/// A group a pair of numbers: memory processes in it. Each has an application process; links where there
/// is more than one group.
pub(super) fn topology(groups: &[u32]) -> Topology {
    let mut t = TopologyBuilder {
        name: "test".into(),
        event_managers: vec![EventManager {
            name: "emp0".into(),
        }],
        ..TopologyBuilder::default()
    };
    for (g, size) in groups.iter().enumerate() {
        t.groups.push(Group {
            path: GroupPath::top(&format!("g{g}")),
            parent: None,
        });
        for _ in 0..*size {
            let n = t.application_processes.len();
            t.application_processes.push(ApplicationProcess {
                name: format!("ap{n}"),
                memory_process: MpId(t.memory_processes.len() as u32),
            });
            t.memory_processes.push(process(format!("mp{n}"), g, false));
        }
    }
    if groups.len() > 1 {
        for g in 0..groups.len() {
            t.memory_processes.push(process(format!("lp{g}"), g, true));
        }
    }
    t.build().unwrap()
}

pub(super) fn process(name: String, group: usize, link: bool) -> MemoryProcess {
    MemoryProcess {
        name,
        group: GroupId(group as u32),
        event_manager: EmpId(0),
        link,
    }
}

/// Records and times of a run.
pub(super) struct Lab {
    pub(super) catalog: Catalog,
    pub(super) records: Vec<Record>,
    pub(super) breakdown: Breakdown,
}

impl Lab {
    pub(super) fn new(groups: &[u32]) -> Self {
        Self {
            catalog: Catalog {
                run: None,
                topology: topology(groups),
                ..Catalog::default()
            },
            records: Vec::new(),
            breakdown: Breakdown::default(),
        }
    }

    /// `ap` does `op` on an object of `owner`, version `version`; with the owner's record if it is remote.
    pub(super) fn access(
        &mut self,
        ap: u32,
        op: Op,
        owner: u32,
        version: u64,
        bytes: u32,
    ) -> &mut Self {
        let t = &self.catalog.topology;
        let mp = t.ap(ApId(ap)).unwrap().memory_process;
        let group = |mp: MpId| t.mp(mp).unwrap().group;
        let origin = match MpId(owner) {
            o if o == mp => Origin::Local,
            o if group(o) == group(mp) => Origin::Intra,
            _ => Origin::Inter,
        };
        let at = self.records.len() as u64 * 1000;
        let record = Record {
            start: Nanos(at),
            duration: Nanos(60_000),
            wait: Nanos::ZERO,
            service: Nanos(4_000),
            op,
            side: Side::Requester,
            origin,
            flags: Flags::default(),
            object: ObjectId::new(X, owner),
            ap: ApId(ap),
            mp,
            peer: MpId(owner),
            count: 1,
            bytes: bytes.into(),
            version,
            range: (0, 0),
        };
        if origin != Origin::Local && op != Op::Barrier {
            self.records.push(Record {
                side: Side::Owner,
                mp: MpId(owner),
                ..record
            });
        }
        self.records.push(record);
        self
    }

    /// Times of a phase of `ap`, in µs.
    pub(super) fn times(
        &mut self,
        ap: u32,
        phase: u64,
        parts: &[(Component, u64, u64)],
    ) -> &mut Self {
        let mut piece = PhaseTimes {
            ap: ApId(ap),
            phase,
            ..PhaseTimes::default()
        };
        for (of, us, calls) in parts {
            piece.spent.add(*of, Nanos(us * 1000), *calls);
        }
        piece.wall = piece.spent.total();
        self.breakdown.merge(&Breakdown {
            phases: vec![piece],
            ..Breakdown::default()
        });
        self
    }

    pub(super) fn run(&self) -> Measured {
        let mut builder = Builder::new(self.catalog.clone(), network()).unwrap();
        self.records.iter().for_each(|r| builder.add(r));
        builder.finish(&self.breakdown).unwrap()
    }
}

/// ap0 reads its own object ten times; ap1 asks mp0 five times for 100 bytes, once new each time.
pub(super) fn one_phase(groups: &[u32]) -> Lab {
    let mut lab = Lab::new(groups);
    for _ in 0..10 {
        lab.access(0, Op::Read, 0, 0, 8);
    }
    for version in 0..5 {
        lab.access(1, Op::Read, 0, version, 100);
    }
    lab.times(
        0,
        0,
        &[(Component::Busy, 1000, 0), (Component::Local, 400, 10)],
    );
    lab.times(
        1,
        0,
        &[
            (Component::Busy, 500, 0),
            (Component::Cold, 200, 1),
            (Component::Fault, 480, 4),
        ],
    );
    lab
}

#[track_caller]
pub(super) fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

/// 4 ends, 4 interfaces, 100 bytes on the wire, service, way to the own memory process.
pub(super) const FAULT_US: f64 = 40.0 + 4.0 + 1.0 + 4.0 + 30.0;
