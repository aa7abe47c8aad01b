//! What the tests and the preview draw: a made-up run of a small cluster, the same every time.
//!
//! Two groups of two memory processes under one parent, a link process each, two event managers, four
//! application processes that sweep a grid, add to a sum under its lock and meet at a barrier.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // each test, and the preview, uses its part

use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, ElementType, EmpId, GroupId, GroupPath, Layout, MpId, Nanos, ObjectId, Placement,
    ProcessCounters, Topology, TopologyBuilder, VarId, Variable, VariableSpec,
};
use dosmos_testkit::Memory;
use dosmos_trace::meta::OpCounts;
use dosmos_trace::query::{ApOrigins, BarrierName, Catalog, EmpStatus, ProcessStatus, Status};
use dosmos_trace::record::Flags;
use dosmos_trace::{Op, Origin, PerOrigin, Record, Side};

pub const START: u64 = 1_700_000_000_000_000_000;
pub const GRID: VarId = VarId(1);
pub const SUM: VarId = VarId(2);
pub const BARRIER: VarId = VarId(1 << 31 | 7);

pub fn topology() -> Topology {
    let group = |path: &str, parent| Group {
        path: GroupPath::from(path),
        parent,
    };
    let mp = |name: &str, group, emp, link| MemoryProcess {
        name: name.into(),
        group: GroupId(group),
        event_manager: EmpId(emp),
        link,
    };
    let ap = |i| ApplicationProcess {
        name: format!("ap{i}"),
        memory_process: MpId(i),
    };
    TopologyBuilder {
        name: "demo".into(),
        groups: vec![
            group("/ocean", None),
            group("/ocean/north", Some(GroupId(0))),
            group("/ocean/south", Some(GroupId(0))),
        ],
        memory_processes: vec![
            mp("mp0", 1, 0, false),
            mp("mp1", 1, 0, false),
            mp("mp2", 2, 1, false),
            mp("mp3", 2, 1, false),
            mp("lp.north", 1, 0, true),
            mp("lp.south", 2, 1, true),
        ],
        application_processes: (0..4).map(ap).collect(),
        event_managers: ["emp0", "emp1"]
            .map(|name| EventManager { name: name.into() })
            .into(),
    }
    .build()
    .unwrap()
}

pub fn variable(id: VarId, name: &str, shape: (u64, u64), rows: u32, owners: &[u32]) -> Variable {
    let layout = Layout::new(ElementType::F64, shape, (rows, 1)).unwrap();
    let spec = VariableSpec::new(name, layout).unwrap();
    let spec = spec.with_placement(Placement::RoundRobin(None));
    let owners = owners.iter().copied().map(MpId).collect();
    Variable::new(id, spec, owners, GroupId(1)).unwrap()
}

pub fn catalog() -> Catalog {
    Catalog {
        run: None,
        event_managers: vec!["emp0".into(), "emp1".into()],
        topology: topology(),
        variables: vec![
            variable(GRID, "grid", (1024, 64), 8, &[0, 0, 1, 1, 2, 2, 3, 3]),
            variable(SUM, "residual", (1, 1), 1, &[0]),
        ],
        barriers: vec![BarrierName {
            id: BARRIER,
            group: None,
            name: "sweep".into(),
        }],
        ..Catalog::default()
    }
}

fn origin(a: u32, owner: u32) -> Origin {
    if a == owner {
        Origin::Local
    } else if a / 2 == owner / 2 {
        Origin::Intra
    } else {
        Origin::Inter
    }
}

pub struct Trace {
    records: Vec<Record>,
    versions: [u64; 16],
}

impl Trace {
    /// One access at the requester's side, and at the owner's if it is remote.
    #[allow(clippy::too_many_arguments)]
    fn access(
        &mut self,
        ap: u32,
        op: Op,
        at: u64,
        length: u64,
        wait: u64,
        object: ObjectId,
        owner: u32,
        optimized: bool,
    ) {
        let slot = (object.index as usize + object.var.index() * 8) % 16;
        if op == Op::Release {
            self.versions[slot] += 1;
        }
        let origin = if optimized {
            Origin::Local
        } else {
            origin(ap, owner)
        };
        let record = Record {
            start: Nanos(START + at),
            duration: Nanos(length),
            wait: Nanos(wait),
            service: Nanos(length / 4),
            op,
            side: Side::Requester,
            origin,
            flags: Flags {
                optimized,
                ..Flags::default()
            },
            object,
            ap: ApId(ap),
            mp: MpId(ap),
            peer: MpId(owner),
            count: 1,
            bytes: 8,
            version: self.versions[slot],
            // Neighbours read an edge that is not written: the program has no race.
            range: match (op, object.var) {
                (Op::Write, GRID) => (1, 2),
                _ => (0, 1),
            },
        };
        self.records.push(record);
        if origin != Origin::Local && op != Op::Barrier {
            let start = record.start + Nanos(length / 4);
            self.records.push(Record {
                side: Side::Owner,
                start,
                ..record
            });
        }
    }
}

/// The records of `sweeps` sweeps of 10 ms.
pub fn records(sweeps: u64) -> Vec<Record> {
    let mut trace = Trace {
        records: Vec::new(),
        versions: [0; 16],
    };
    for sweep in 0..sweeps {
        let base = sweep * 10_000_000;
        let mut free = base;
        let mut arrivals = Vec::new();
        for a in 0..4u32 {
            let mut t = base + u64::from(a) * 130_000 + 1;
            let own = |i| ObjectId::new(GRID, 2 * a + i);
            for round in 0..2 {
                for i in 0..2 {
                    trace.access(a, Op::Read, t, 8_000, 0, own(i), a, false);
                    t += 200_000;
                }
                for neighbour in [(2 * a).checked_sub(1), Some(2 * a + 2)] {
                    let Some(index) = neighbour.filter(|i| *i < 8) else {
                        continue;
                    };
                    let (object, owner) = (ObjectId::new(GRID, index), index / 2);
                    let copied = round == 1 && origin(a, owner) == Origin::Intra;
                    let length = if copied {
                        7_000
                    } else {
                        60_000 + 90_000 * u64::from(origin(a, owner) == Origin::Inter)
                    };
                    trace.access(a, Op::Read, t, length, 0, object, owner, copied);
                    t += 300_000;
                }
                for i in 0..2 {
                    trace.access(a, Op::Write, t, 9_000, 0, own(i), a, false);
                    t += 250_000;
                }
            }
            // The sum: granted in the order asked for, here that of the processes.
            let sum = ObjectId::new(SUM, 0);
            let granted = free.max(t + 40_000);
            trace.access(
                a,
                Op::Acquire,
                t,
                granted - t,
                (granted - t).saturating_sub(40_000),
                sum,
                0,
                false,
            );
            trace.access(a, Op::Write, granted + 20_000, 10_000, 0, sum, 0, false);
            trace.access(
                a,
                Op::Release,
                granted + 700_000,
                150_000,
                100_000,
                sum,
                0,
                false,
            );
            free = granted + 800_000;
            arrivals.push((a, granted + 900_000));
        }
        let open = arrivals.iter().map(|(_, t)| *t).max().unwrap_or(base) + 50_000;
        for (a, at) in arrivals {
            let generation = ObjectId::new(BARRIER, sweep as u32);
            trace.access(
                a,
                Op::Barrier,
                at,
                open - at,
                open - at,
                generation,
                a,
                false,
            );
        }
    }
    trace.records.sort_by_key(|r| (r.start, r.ap, r.side as u8));
    trace.records
}

/// Of each event manager, what its memory processes recorded.
pub fn split(all: &[Record]) -> Vec<Memory> {
    let topology = topology();
    let manager = |r: &Record| {
        let mp = if r.side == Side::Owner { r.peer } else { r.mp };
        topology.mp(mp).unwrap().event_manager
    };
    (0..2)
        .map(|emp| {
            let its: Vec<Record> = all
                .iter()
                .filter(|r| manager(r) == EmpId(emp))
                .copied()
                .collect();
            let mut catalog = catalog();
            catalog.event_managers = vec![format!("emp{emp}")];
            Memory::new(catalog, its)
        })
        .collect()
}

/// A finished run.
pub fn finished() -> Memory {
    Memory::new(catalog(), records(60))
}

/// A finished run in which everybody fights for the sum all the time.
pub fn crowded_lock() -> Memory {
    let mut trace = Trace {
        records: Vec::new(),
        versions: [0; 16],
    };
    let sum = ObjectId::new(SUM, 0);
    for turn in 0..400u64 {
        let a = (turn % 4) as u32;
        let (asked, granted) = ((turn.max(3) - 3) * 1_000_000, turn * 1_000_000);
        let waited = granted - asked;
        trace.access(
            a,
            Op::Acquire,
            asked,
            waited + 50_000,
            waited,
            sum,
            0,
            false,
        );
        trace.access(a, Op::Write, granted + 100_000, 60_000, 0, sum, 0, false);
        trace.access(a, Op::Release, granted + 700_000, 150_000, 0, sum, 0, false);
        for i in 0..3 {
            let other = ObjectId::new(GRID, (2 * a + 4) % 8);
            let at = granted + 720_000 + i * 40_000;
            trace.access(a, Op::Read, at, 30_000, 0, other, (a + 2) % 4, false);
        }
    }
    trace.records.sort_by_key(|r| (r.start, r.ap, r.side as u8));
    Memory::new(catalog(), trace.records)
}

/// A run that is on: the first `until` of it.
pub fn live(until: Nanos) -> Memory {
    let now = Nanos(START) + until;
    let so_far: Vec<Record> = records(60).into_iter().filter(|r| r.end() < now).collect();
    let mut memory = Memory::new(
        Catalog {
            run: None,
            live: true,
            ..catalog()
        },
        so_far.clone(),
    );
    memory.status = status(&so_far, now);
    memory
}

pub fn status(records: &[Record], now: Nanos) -> Status {
    let topology = topology();
    let process = |mp: u32| {
        let mut by_origin = PerOrigin::<OpCounts>::default();
        for r in records.iter().filter(|r| r.mp == MpId(mp) && r.is_access()) {
            by_origin[r.origin].count(r.op, r.accesses());
        }
        let requests: u64 = by_origin.map(OpCounts::total).total();
        let link = mp >= 4;
        ProcessStatus {
            mp: MpId(mp),
            connected: true,
            counters: ProcessCounters {
                requests,
                served: if link { 0 } else { requests / 3 },
                forwarded: if link { records.len() as u64 / 5 } else { 0 },
                recorded: requests,
                buffered_bytes: 4_096,
                cpu: Some(Nanos(320_000_000)),
                copies: 2,
                objects: 2,
                monitor: Nanos(19_000_000),
                ..ProcessCounters::default()
            },
            clock_error: Nanos(14_000),
            by_origin,
            last_record: now - Nanos(3_000_000),
            aps: (0..4)
                .filter(|ap| *ap == mp)
                .map(|ap| ApOrigins {
                    ap: ApId(ap),
                    by_origin,
                })
                .collect(),
            ..ProcessStatus::default()
        }
    };
    let manager = |emp: u32| EmpStatus {
        name: format!("emp{emp}"),
        now,
        processes: (0..6)
            .filter(|mp| topology.memory_processes()[*mp as usize].event_manager == EmpId(emp))
            .map(process)
            .collect(),
        records: records.len() as u64 / 2,
        pending: 17,
        stored_bytes: records.len() as u64 * 8,
        chunks: 1 + records.len() as u64 / 4_096,
        cpu: Nanos(81_000_000),
        store: format!("run/store/emp{emp}"),
        exchanged_out: 12,
        exchanged_in: 9,
        ..EmpStatus::default()
    };
    Status {
        event_managers: vec![manager(0), manager(1)],
        ..Status::default()
    }
}
