//! Any topology, any variables, any records: a store as event managers might leave it.

use std::path::Path;

use dosmos_proto::topology::{
    ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess, Topology, TopologyBuilder,
};
use dosmos_proto::{
    ApId, Cache, CopyPolicy, ElementType, EmpId, GroupId, Layout, LockKind, MpId, Nanos, ObjectId,
    Placement, VarId, Variable, VariableSpec,
};
use dosmos_trace::clock::Correction;
use dosmos_trace::meta::HandOver;
use dosmos_trace::query::BarrierName;
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use dosmos_trace::store::{
    BatchMark, Commit, Event, Identity, RecordingCounters, StoreSource, StoreWriter,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// What a store is made of.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) topology: Topology,
    variables: Vec<Variable>,
    barriers: Vec<BarrierName>,
    pub(crate) records: Vec<Record>,
    hand_overs: Vec<(usize, HandOver)>,
    dropped: u64,
    /// Records per commit.
    pace: usize,
}

/// A name with whatever names may have in them, made unique by a number.
fn name() -> impl Strategy<Value = String> {
    "[^\\p{Cc}/]{0,8}"
}

fn topology() -> impl Strategy<Value = Topology> {
    let group = (name(), any::<Option<Index>>());
    let mp = (name(), any::<Index>());
    let ap = (name(), any::<Index>());
    (name(), vec(group, 1..5), vec(mp, 1..5), vec(ap, 1..5)).prop_map(
        |(title, groups, mps, aps)| {
            let mut t = TopologyBuilder {
                name: title,
                event_managers: vec![EventManager {
                    name: "emp 0".to_owned(),
                }],
                ..TopologyBuilder::default()
            };
            for (i, (name, parent)) in groups.into_iter().enumerate() {
                let parent = parent.filter(|_| i > 0).map(|p| GroupId(p.index(i) as u32));
                let above = parent.map_or("", |p| t.groups[p.index()].path.as_str());
                let path = GroupPath::from(format!("{above}/{name}{i}").as_str());
                t.groups.push(Group { path, parent });
            }
            for (i, (name, group)) in mps.into_iter().enumerate() {
                t.memory_processes.push(MemoryProcess {
                    name: format!("{name} mp{i}"),
                    group: GroupId(group.index(t.groups.len()) as u32),
                    event_manager: EmpId(0),
                    link: false,
                });
            }
            for (i, (name, mp)) in aps.into_iter().enumerate() {
                t.application_processes.push(ApplicationProcess {
                    name: format!("{name} ap{i}"),
                    memory_process: MpId(mp.index(t.memory_processes.len()) as u32),
                });
            }
            for group in 0..t.groups.len() as u32 {
                t.memory_processes.push(MemoryProcess {
                    name: format!("lp{group}"),
                    group: GroupId(group),
                    event_manager: EmpId(0),
                    link: true,
                });
            }
            t.build().unwrap()
        },
    )
}

fn layout() -> impl Strategy<Value = Layout> {
    let element = prop_oneof![
        Just(ElementType::Bool),
        Just(ElementType::U8),
        Just(ElementType::I64),
        Just(ElementType::F32),
        Just(ElementType::F64),
    ];
    (element, (1u64..1000, 1u64..1000), any::<(Index, Index)>()).prop_map(
        |(element, (rows, columns), (r, c))| {
            let parts = |n: u64, i: Index| 1 + i.index(n as usize) as u32;
            Layout::new(
                element,
                (rows, columns),
                (parts(rows, r), parts(columns, c)),
            )
            .unwrap()
        },
    )
}

/// Name, layout, owners; policy, lock and group.
type Declared = (String, Layout, Vec<u32>, (bool, usize, u32));

fn variables(t: &Topology) -> impl Strategy<Value = Vec<Variable>> + use<> {
    let mps = t.memory_processes().to_vec();
    let groups = t.groups().len() as u32;
    let owners = vec(0..mps.len() as u32, 1..4);
    let kind = (any::<bool>(), 0usize..3, 0..groups);
    vec((name(), layout(), owners, kind), 1..5).prop_map(move |list| {
        let make = |(i, (name, layout, owners, kind)): (usize, Declared)| {
            let (update, lock, group) = kind;
            let names = owners.iter().map(|&o| &*mps[o as usize].name);
            let (policy, cache) = match update {
                true => (CopyPolicy::Update, Cache::Ap),
                false => (CopyPolicy::Invalidate, Cache::Mp),
            };
            let spec = VariableSpec::new(format!("{name} {i}"), layout)
                .unwrap()
                .with_placement(Placement::explicit(names).unwrap())
                .with_policy(policy)
                .with_lock(LockKind::ALL[lock])
                .with_cache(cache);
            // As a directory numbers them: not one after the other.
            let id = VarId(((i as u32) << 20) + 7);
            let owners = owners.into_iter().map(MpId).collect();
            Variable::new(id, spec, owners, GroupId(group)).unwrap()
        };
        list.into_iter().enumerate().map(make).collect()
    })
}

fn barriers(t: &Topology) -> impl Strategy<Value = Vec<BarrierName>> + use<> {
    let group = proptest::option::of(0..t.groups().len() as u32);
    vec((name(), group), 1..4).prop_map(|list| {
        let make = |(i, (name, group)): (usize, (String, Option<u32>))| BarrierName {
            id: VarId((1 << 31) + 1000 * i as u32 + 3),
            group: group.map(GroupId),
            name: match i {
                0 => String::new(),
                _ => format!("{name} {i}"),
            },
        };
        list.into_iter().enumerate().map(make).collect()
    })
}

fn records(
    t: &Topology,
    variables: &[Variable],
    barriers: &[BarrierName],
) -> impl Strategy<Value = Vec<Record>> + use<> {
    let variables: Vec<(VarId, u32)> = variables
        .iter()
        .map(|v| (v.id(), v.spec().layout().objects()))
        .collect();
    let barriers: Vec<VarId> = barriers.iter().map(|b| b.id).collect();
    let (mps, aps) = (
        t.memory_processes().len() as u32,
        t.application_processes().len() as u32,
    );
    let half = i64::MAX as u64 / 2;
    let times = (
        prop_oneof![0..half, 1_000_000u64..2_000_000],
        prop_oneof![0..half, 0u64..100_000],
        any::<u64>(),
        any::<u64>(),
    );
    let kind = (0usize..5, any::<bool>(), 0usize..3, any::<[bool; 10]>());
    let who = (any::<Index>(), any::<u32>(), 0..aps, 0..mps, 0..mps);
    let count = prop_oneof![Just(1u32), 1u32..=u32::MAX];
    let rest = (any::<u64>(), any::<u64>(), any::<(u32, u32)>(), count);
    let record = (times, kind, who, rest).prop_map(move |(times, kind, who, rest)| {
        let op = Op::ALL[kind.0];
        let object = match op {
            Op::Barrier => ObjectId::new(barriers[who.0.index(barriers.len())], who.1),
            _ => {
                let (id, objects) = variables[who.0.index(variables.len())];
                ObjectId::new(id, who.1 % objects)
            }
        };
        let (a, b) = rest.2;
        Record {
            start: Nanos(times.0),
            duration: Nanos(times.1),
            wait: Nanos(times.2),
            service: Nanos(times.3),
            op,
            side: if kind.1 { Side::Owner } else { Side::Requester },
            origin: Origin::ALL[kind.2],
            flags: Flags {
                optimized: kind.3[0],
                sampled: kind.3[1],
                failed: kind.3[2],
                waiting: kind.3[3],
                in_process: kind.3[4],
                atomic: kind.3[5],
                first: kind.3[6],
                own_clock: kind.3[7],
                ahead: kind.3[8],
                posted: kind.3[9],
            },
            object,
            ap: ApId(who.2),
            mp: MpId(who.3),
            peer: MpId(who.4),
            count: rest.3,
            bytes: rest.0,
            version: rest.1,
            range: (a.min(b), a.max(b)),
        }
    });
    vec(record, 1..120)
}

/// Any trace at all.
pub(crate) fn traces() -> impl Strategy<Value = Trace> {
    let parts = topology().prop_flat_map(|t| (variables(&t), barriers(&t), Just(t)));
    let parts = parts.prop_flat_map(|(variables, barriers, topology)| {
        let records = records(&topology, &variables, &barriers);
        (records, Just((topology, variables, barriers)))
    });
    let hand_overs = vec(
        (
            any::<Index>(),
            any::<Index>(),
            any::<Index>(),
            any::<bool>(),
        ),
        0..5,
    );
    (parts, hand_overs, 0u64..1000, 1usize..60).prop_map(|(parts, hand_overs, dropped, pace)| {
        let (records, (topology, variables, barriers)) = parts;
        let hand_over = |(at, variable, mp, dropped): (Index, Index, Index, bool)| {
            let v = &variables[variable.index(variables.len())];
            let hand_over = HandOver {
                object: ObjectId::new(v.id(), v.spec().layout().objects() - 1),
                copy_at: MpId(mp.index(topology.memory_processes().len()) as u32),
                primary_emp: EmpId(0),
                dropped,
            };
            (at.index(records.len()), hand_over)
        };
        let mut hand_overs: Vec<_> = hand_overs.into_iter().map(hand_over).collect();
        hand_overs.sort_by_key(|(at, _)| *at);
        Trace {
            topology,
            variables,
            barriers,
            records,
            hand_overs,
            dropped,
            pace,
        }
    })
}

impl Trace {
    /// As an event manager would store it.
    pub(crate) fn store(&self, dir: &Path) -> StoreSource {
        let identity = Identity {
            run: dosmos_trace::run::RunId::from_bits(1),
            event_manager: "emp 0".to_owned(),
            emp: EmpId(0),
            topology: self.topology.clone(),
        };
        let (mut writer, _) = StoreWriter::open(dir, &identity).unwrap();
        let declared = self.variables.iter().cloned().map(Event::Variable);
        let named = self.barriers.iter().cloned().map(Event::Barrier);
        let mut events: Vec<(u32, Event)> = declared.chain(named).map(|e| (0, e)).collect();
        let counters = RecordingCounters {
            unselected: 0,
            extra_dropped: 2 * self.dropped,
            recorded: self.records.len() as u64 + self.dropped,
            dropped: self.dropped,
            sampling: 1.0,
        };
        events.push((
            0,
            Event::Counters {
                mp: MpId(0),
                incarnation: 1,
                counters,
            },
        ));
        for (number, records) in self.records.chunks(self.pace).enumerate() {
            let (from, to) = (number * self.pace, number * self.pace + records.len());
            for (at, hand_over) in &self.hand_overs {
                if (from..to).contains(at) {
                    events.push(((at - from) as u32, Event::HandOver(*hand_over)));
                }
            }
            let mark = BatchMark {
                mp: MpId(0),
                incarnation: 1,
                sequence: number as u64 + 1,
                until: Default::default(),
            };
            let commit = Commit {
                marks: vec![mark],
                records: records.to_vec(),
                events: std::mem::take(&mut events),
            };
            writer.commit(&commit).unwrap();
        }
        writer.close().unwrap();
        StoreSource::open(dir).unwrap()
    }
}

/// What two event managers stored of a lock that goes to and fro between a process of each, `turns` times: one record
/// for each acquire and release, every other section of the same process; and one of the owner of each remote acquire, if
/// everything is `told`. The clock of the second event manager is `ahead`.
pub(crate) fn contended(dir: &Path, turns: u64, ahead: Nanos, told: bool) -> Vec<StoreSource> {
    let two = |name: &str| [format!("{name}0"), format!("{name}1")];
    let topology = TopologyBuilder {
        name: "contended".to_owned(),
        groups: two("group")
            .map(|name| Group {
                path: GroupPath::top(&name),
                parent: None,
            })
            .to_vec(),
        event_managers: two("emp").map(|name| EventManager { name }).to_vec(),
        memory_processes: two("mp")
            .into_iter()
            .zip(0..)
            .map(|(name, i)| MemoryProcess {
                name,
                group: GroupId(i),
                event_manager: EmpId(i),
                link: false,
            })
            .collect(),
        application_processes: two("ap")
            .into_iter()
            .zip(0..)
            .map(|(name, i)| ApplicationProcess {
                name,
                memory_process: MpId(i),
            })
            .collect(),
    }
    .build()
    .unwrap();
    let step = |turn: u64, op, (begin, length)| Record {
        start: Nanos(1_000_000 + turn * 1_000 + begin),
        duration: Nanos(length),
        wait: Nanos(0),
        service: Nanos(0),
        op,
        side: Side::Requester,
        origin: match turn % 2 {
            0 => Origin::Local,
            _ => Origin::Inter,
        },
        flags: Flags::default(),
        object: ObjectId::new(VarId(0), 0),
        ap: ApId((turn % 2) as u32),
        mp: MpId((turn % 2) as u32),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: turn,
        range: (0, 1),
    };
    let stored = |emp: u32| {
        let identity = Identity {
            run: dosmos_trace::run::RunId::from_bits(1),
            event_manager: format!("emp{emp}"),
            emp: EmpId(emp),
            topology: topology.clone(),
        };
        let dir = dir.join(&identity.event_manager);
        let (mut writer, _) = StoreWriter::open(&dir, &identity).unwrap();
        let shift = |at: Nanos| match emp {
            0 => at,
            _ => at + ahead,
        };
        let records = (0..turns).flat_map(|turn| {
            let served = Record {
                side: Side::Owner,
                ..step(turn, Op::Acquire, (100, 100))
            };
            match turn % 2 == u64::from(emp) {
                true => vec![
                    step(turn, Op::Acquire, (0, 300)),
                    step(turn, Op::Release, (700, 100)),
                ],
                false if emp == 0 && told => vec![served],
                false => Vec::new(),
            }
        });
        let records: Vec<_> = records.map(|r| r.moved(shift)).collect();
        let (mp, incarnation) = (MpId(emp), 1);
        let correction = Correction {
            error: Nanos(50),
            ..Correction::default()
        };
        let mut events = vec![
            (
                0,
                Event::Clock {
                    mp,
                    incarnation,
                    correction,
                },
            ),
            (
                0,
                Event::Report {
                    mp,
                    incarnation,
                    ended: told,
                },
            ),
        ];
        for (records, sequence) in records.chunks(4_000).zip(1..) {
            let mark = BatchMark {
                mp: MpId(emp),
                incarnation: 1,
                sequence,
                until: Default::default(),
            };
            let commit = Commit {
                marks: vec![mark],
                records: records.to_vec(),
                events: std::mem::take(&mut events),
            };
            writer.commit(&commit).unwrap();
        }
        writer.close().unwrap();
        StoreSource::open(&dir).unwrap()
    };
    (0..2).map(stored).collect()
}
