//! Records of small runs, written by hand: three application processes, each with its memory process; the third in a group of
//! its own. `x` has one object at mp0, `y` one at mp2, both of 8 elements.

#![allow(dead_code, unreachable_pub)] // each test is a crate, and uses a part

use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, Cache, ElementType, EmpId, GroupId, GroupPath, Layout, MpId, Nanos, ObjectId,
    TopologyBuilder, VarId, Variable, VariableSpec,
};
use dosmos_trace::query::{BarrierName, Catalog, Completeness};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use dosmos_verify::{Kind, Options, State, Verdict, Verifier};

pub const X: u32 = 1;
pub const Y: u32 = 2;
const BARRIER: VarId = VarId(1 << 31);
const ELEMENTS: u32 = 8;

fn owner_of(variable: u32) -> MpId {
    MpId(if variable == Y { 2 } else { 0 })
}

pub fn catalog() -> Catalog {
    let mut topology = TopologyBuilder {
        name: "small".into(),
        event_managers: vec![EventManager {
            name: "emp0".into(),
        }],
        ..TopologyBuilder::default()
    };
    for name in ["north", "south"] {
        topology.groups.push(Group {
            path: GroupPath::from(name),
            parent: None,
        });
    }
    for n in 0..3 {
        topology.memory_processes.push(MemoryProcess {
            name: format!("mp{n}"),
            group: GroupId(n / 2),
            event_manager: EmpId(0),
            link: false,
        });
        topology.application_processes.push(ApplicationProcess {
            name: format!("ap{n}"),
            memory_process: MpId(n),
        });
    }
    let variable = |id, name: &str| {
        let layout = Layout::new(ElementType::F64, (1, ELEMENTS.into()), (1, 1)).unwrap();
        let spec = VariableSpec::new(name, layout)
            .unwrap()
            .with_cache(Cache::Ap);
        Variable::new(VarId(id), spec, vec![owner_of(id)], GroupId(0)).unwrap()
    };
    Catalog {
        topology: topology.build().unwrap(),
        variables: vec![variable(X, "x"), variable(Y, "y")],
        barriers: vec![BarrierName {
            id: BARRIER,
            group: None,
            name: String::new(),
        }],
        ..Catalog::default()
    }
}

/// The variable with a replica.
pub fn replicated(variable: &Variable) -> Variable {
    let spec = variable.spec().clone().with_replicas(1).unwrap();
    Variable::new(variable.id(), spec, variable.owners().to_vec(), GroupId(0)).unwrap()
}

/// A record under construction.
#[derive(Clone, Copy)]
pub struct Made(pub Record);

impl Made {
    pub fn version(mut self, version: u64) -> Self {
        self.0.version = version;
        self
    }
    pub fn took(mut self, duration: u64) -> Self {
        self.0.duration = Nanos(duration);
        self
    }
    pub fn range(mut self, first: u32, end: u32) -> Self {
        self.0.range = (first, end);
        self.0.bytes = u64::from(end.saturating_sub(first)) * 8;
        self
    }
    pub fn count(mut self, count: u32) -> Self {
        self.0.count = count;
        self
    }
    pub fn set(mut self, change: impl FnOnce(&mut Record)) -> Self {
        change(&mut self.0);
        self
    }
    /// From the copy at the process's memory process.
    pub fn cached(mut self) -> Self {
        self.0.flags.optimized = true;
        self.0.origin = Origin::Local;
        self
    }
    /// In the application process itself, by its own clock; which elements is not said.
    pub fn inside(mut self) -> Self {
        self.0.flags.own_clock = true;
        self.with_release()
    }
    /// In the application process itself, in a section, told by the release; which elements is not said.
    pub fn with_release(mut self) -> Self {
        self.0.flags.in_process = true;
        self.0.origin = Origin::Local;
        self.0.range = (0, 0);
        self
    }
    pub fn atomic(mut self) -> Self {
        self.0.flags.atomic = true;
        self
    }
    pub fn failed(mut self) -> Self {
        self.0.flags.failed = true;
        self
    }
    /// The owner's record of the same access.
    pub fn at_owner(mut self) -> Self {
        self.0.side = Side::Owner;
        self
    }
}

/// What process `ap` did with an object at time `at`.
pub fn of(ap: u32, op: Op, variable: u32, at: u64) -> Made {
    let (mp, peer) = (MpId(ap), owner_of(variable));
    let touches = matches!(op, Op::Read | Op::Write);
    let origin = match (mp == peer, (mp.0 < 2) == (peer.0 < 2)) {
        (true, _) => Origin::Local,
        (_, true) => Origin::Intra,
        _ => Origin::Inter,
    };
    Made(Record {
        start: Nanos(at),
        duration: Nanos(5),
        wait: Nanos(0),
        service: Nanos(0),
        op,
        side: Side::Requester,
        origin,
        flags: Flags::default(),
        object: ObjectId::new(VarId(variable), 0),
        ap: ApId(ap),
        mp,
        peer,
        count: 1,
        bytes: if touches { 64 } else { 0 },
        version: 0,
        range: if touches { (0, ELEMENTS) } else { (0, 0) },
    })
}

pub fn read(ap: u32, variable: u32, at: u64) -> Made {
    of(ap, Op::Read, variable, at)
}
pub fn write(ap: u32, variable: u32, at: u64) -> Made {
    of(ap, Op::Write, variable, at)
}
pub fn acquire(ap: u32, variable: u32, at: u64) -> Made {
    of(ap, Op::Acquire, variable, at)
}
pub fn release(ap: u32, variable: u32, at: u64) -> Made {
    of(ap, Op::Release, variable, at)
}

/// A process at the barrier of all from `from` to `to`, opened by the first start of its coordinator.
pub fn barrier(ap: u32, generation: u32, (from, to): (u64, u64)) -> Made {
    of(ap, Op::Barrier, X, from)
        .version(1)
        .took(to - from)
        .set(|r| {
            r.object = ObjectId::new(BARRIER, generation);
            (r.peer, r.origin) = (MpId(0), Origin::Inter);
        })
}

/// All three at the barrier.
pub fn all_at(generation: u32, at: u64) -> Vec<Made> {
    (0..3)
        .map(|ap| barrier(ap, generation, (at + u64::from(ap), at + 10)))
        .collect()
}

/// A section of a process with a write in it, that starts from a version and makes the next one.
pub fn section(ap: u32, variable: u32, at: u64, from: u64) -> Vec<Made> {
    vec![
        acquire(ap, variable, at).version(from),
        write(ap, variable, at + 10).version(from),
        release(ap, variable, at + 20).version(from + 1),
    ]
}

/// Records in order of their start.
pub fn in_order(records: impl IntoIterator<Item = Made>) -> Vec<Record> {
    let mut records: Vec<Record> = records.into_iter().map(|m| m.0).collect();
    records.sort_by_key(|r| r.start);
    records
}

pub fn verdict_of(records: &[Record], completeness: &Completeness) -> Verdict {
    let mut verifier = Verifier::new(catalog(), Options::default());
    records.iter().for_each(|r| verifier.add(r));
    verifier.finish(completeness, false, &[])
}

pub fn judge(records: impl IntoIterator<Item = Made>) -> Verdict {
    judge_with(catalog(), records)
}

pub fn judge_with(catalog: Catalog, records: impl IntoIterator<Item = Made>) -> Verdict {
    judge_by(catalog, Options::default(), records)
}

pub fn judge_by(
    catalog: Catalog,
    options: Options,
    records: impl IntoIterator<Item = Made>,
) -> Verdict {
    let mut verifier = Verifier::new(catalog, options);
    in_order(records).iter().for_each(|r| verifier.add(r));
    verifier.finish(&Completeness::default(), false, &[])
}

pub fn kinds(verdict: &Verdict) -> Vec<Kind> {
    verdict.violations.iter().map(|v| v.kind).collect()
}

/// The one question that is open.
#[track_caller]
pub fn question(verdict: &Verdict) -> &str {
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    assert_eq!(verdict.doubts.len(), 1, "{verdict:#?}");
    &verdict.doubts[0].question
}

#[track_caller]
pub fn consistent(records: impl IntoIterator<Item = Made>) {
    let verdict = judge(records);
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
}

/// The catalog with another variable in the place of `x`.
pub fn with_x(change: impl FnOnce(&Variable) -> Variable) -> Catalog {
    let mut catalog = catalog();
    catalog.variables[0] = change(&catalog.variables[0]);
    catalog
}
