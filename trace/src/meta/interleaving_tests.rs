//! The invariant of docs/design/monitoring.md#invariant over random runs of a model of the memory, whose records reach two event
//! managers in any order that keeps each memory process's own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess};
use dosmos_proto::{ApId, EmpId, GroupId, MpId, Nanos, ObjectId, Topology, TopologyBuilder, VarId};
use proptest::prelude::*;

use super::*;
use crate::query::{Completeness, MetaQuery};
use crate::record::{Flags, Op, Origin, Record, Side};

/// Owner of everything, and its event manager.
const OWNER: MpId = MpId(0);
const OWNERS_EMP: EmpId = EmpId(0);
/// mp0 to mp2 are in one group, mp3 in another; mp0 and mp2 report to emp0, the others to emp1.
const GROUPS: [u32; 4] = [0, 0, 0, 1];
const EMPS: [u32; 4] = [0, 1, 0, 1];

fn topology() -> Topology {
    let group = |name| Group {
        path: GroupPath::top(name),
        parent: None,
    };
    TopologyBuilder {
        name: "test".into(),
        groups: vec![group("a"), group("b")],
        memory_processes: (0..4)
            .map(|i| MemoryProcess {
                name: format!("mp{i}"),
                group: GroupId(GROUPS[i]),
                event_manager: EmpId(EMPS[i]),
                link: false,
            })
            .collect(),
        application_processes: (0..4)
            .map(|i| ApplicationProcess {
                name: format!("ap{i}"),
                memory_process: MpId(i),
            })
            .collect(),
        event_managers: (0..2)
            .map(|i| EventManager {
                name: format!("emp{i}"),
            })
            .collect(),
    }
    .build()
    .unwrap()
}

/// What a memory process tells its event manager.
enum Told {
    Record(Record),
    HandOver(HandOver),
}

/// The memory, as simple as can be: who has a copy, who is in a section and wrote there.
#[derive(Default)]
struct Memory {
    copies: BTreeSet<(ObjectId, MpId)>,
    sections: BTreeMap<ObjectId, (ApId, bool)>,
    told: BTreeMap<MpId, VecDeque<Told>>,
    done: BTreeMap<ObjectId, OpCounts>,
}

impl Memory {
    /// Process `i` does `op` (if it may); `update` is the policy if that is a release.
    fn step(&mut self, op: Op, i: u32, object: ObjectId, update: bool) {
        let (ap, mp) = (ApId(i), MpId(i));
        let held = self.sections.get(&object).copied();
        let mine = held.filter(|(holder, _)| *holder == ap);
        match op {
            Op::Acquire if held.is_some() => return,
            Op::Release if mine.is_none() => return,
            _ => {}
        }
        self.done.entry(object).or_default().count(op, 1);
        match op {
            Op::Read if self.copies.contains(&(object, mp)) && mine.is_none_or(|(_, w)| !w) => {
                return self.optimized(ap, mp, object);
            }
            Op::Read => {
                let near = mp != OWNER && GROUPS[i as usize] == GROUPS[0];
                if near && mine.is_none_or(|(_, wrote)| !wrote) {
                    self.copies.insert((object, mp));
                }
            }
            Op::Write => {
                self.copy_ends(object, mp, true);
                if mine.is_some() {
                    self.sections.insert(object, (ap, true));
                }
            }
            Op::Acquire => {
                self.sections.insert(object, (ap, false));
            }
            Op::Release => {
                if mine.is_some_and(|(_, wrote)| wrote) {
                    for mp in 1..3 {
                        self.copy_ends(object, MpId(mp), !update);
                    }
                }
                self.sections.remove(&object);
            }
            Op::Barrier => unreachable!(),
        }
        self.records(op, ap, mp, object);
    }

    fn copy_ends(&mut self, object: ObjectId, copy_at: MpId, dropped: bool) {
        if self.copies.contains(&(object, copy_at)) {
            self.tell(
                copy_at,
                Told::HandOver(HandOver {
                    object,
                    copy_at,
                    primary_emp: OWNERS_EMP,
                    dropped,
                }),
            );
            if dropped {
                self.copies.remove(&(object, copy_at));
            }
        }
    }

    fn optimized(&mut self, ap: ApId, mp: MpId, object: ObjectId) {
        let mut r = record(Op::Read, ap, mp, object, Side::Requester);
        r.origin = Origin::Local;
        r.flags.optimized = true;
        self.tell(mp, Told::Record(r));
    }

    fn records(&mut self, op: Op, ap: ApId, mp: MpId, object: ObjectId) {
        if mp != OWNER {
            let r = record(op, ap, mp, object, Side::Owner);
            self.tell(OWNER, Told::Record(r));
        }
        let r = record(op, ap, mp, object, Side::Requester);
        self.tell(mp, Told::Record(r));
    }

    fn tell(&mut self, mp: MpId, what: Told) {
        self.told.entry(mp).or_default().push_back(what);
    }
}

fn record(op: Op, ap: ApId, mp: MpId, object: ObjectId, side: Side) -> Record {
    Record {
        start: Nanos(1),
        duration: Nanos(1),
        wait: Nanos(0),
        service: Nanos(0),
        op,
        side,
        origin: match (mp, GROUPS[mp.index()]) {
            (OWNER, _) => Origin::Local,
            (_, 0) => Origin::Intra,
            _ => Origin::Inter,
        },
        flags: Flags::default(),
        object,
        ap,
        mp,
        peer: OWNER,
        count: 1,
        bytes: 8,
        version: 0,
        range: (0, 1),
    }
}

/// Brings everything told to the event managers, each memory process's in order, else as `choices` say.
fn deliver(memory: &mut Memory, choices: &[u8]) -> [MetaState; 2] {
    let mut emps = [0, 1].map(|e| MetaState::new(topology(), EmpId(e)));
    let mut exchange: VecDeque<SecondaryContent> = VecDeque::new();
    let mut choices = choices.iter().cycle();
    loop {
        let mut ways: Vec<Option<MpId>> = Vec::new();
        let waiting = memory.told.iter().filter(|(_, queue)| !queue.is_empty());
        ways.extend(waiting.map(|(mp, _)| Some(*mp)));
        if !exchange.is_empty() {
            ways.push(None);
        }
        if ways.is_empty() {
            return emps;
        }
        let choice = usize::from(*choices.next().unwrap_or(&0));
        match ways[choice % ways.len()] {
            None => {
                let content = exchange.pop_front().unwrap();
                assert!(emps[0].receive(EmpId(1), &content));
                assert!(!emps[0].receive(EmpId(1), &content), "twice");
            }
            Some(mp) => {
                let emp = &mut emps[EMPS[mp.index()] as usize];
                match memory.told.get_mut(&mp).unwrap().pop_front().unwrap() {
                    Told::Record(r) => emp.apply(&r),
                    Told::HandOver(h) => {
                        let due = emp.hand_over(&h);
                        assert_eq!(due.is_none(), EMPS[mp.index()] == OWNERS_EMP.0);
                        exchange.extend(due.map(|(_, content)| content));
                    }
                }
            }
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<(Op, u32, u32, bool)>> {
    let op = prop_oneof![
        6 => Just(Op::Read), 2 => Just(Op::Write), 2 => Just(Op::Acquire), 2 => Just(Op::Release)
    ];
    prop::collection::vec((op, 0u32..4, 0u32..2, any::<bool>()), 0..300)
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(256))]

    #[test]
    fn metas_are_what_the_applications_did(steps in steps(), choices in prop::collection::vec(any::<u8>(), 1..200)) {
        let mut memory = Memory::default();
        for (op, process, index, update) in steps {
            memory.step(op, process, ObjectId::new(VarId(1), index), update);
        }
        let emps = deliver(&mut memory, &choices);
        let metas = emps.map(|e| e.query(&MetaQuery::default(), Completeness::default()));
        prop_assert!(metas[1].primaries.is_empty(), "all objects are owned by a process of emp0");
        let mut seen: BTreeMap<ObjectId, OpCounts> = BTreeMap::new();
        for p in &metas[0].primaries {
            let counts = seen.entry(p.object).or_default();
            counts.add(&p.counts);
            counts.reads += p.reads_on_copies;
            let mut by_origin = OpCounts::default();
            p.by_origin.iter().for_each(|(_, c)| by_origin.add(c));
            prop_assert_eq!(by_origin, p.counts);
            let mut by_ap = OpCounts::default();
            p.by_ap.values().for_each(|c| by_ap.add(c));
            prop_assert_eq!(by_ap, *counts);
            let copies: Vec<MpId> = memory.copies.iter().filter(|(o, _)| *o == p.object).map(|(_, mp)| *mp).collect();
            prop_assert_eq!(&p.copies_at, &copies, "copies of {}", p.object);
        }
        for s in metas.iter().flat_map(|m| &m.secondaries) {
            prop_assert!(memory.copies.contains(&(s.object, s.copy_at)));
            prop_assert_eq!(s.primary_emp, OWNERS_EMP);
            prop_assert_eq!(s.by_ap.values().sum::<u64>(), s.reads);
            seen.entry(s.object).or_default().reads += s.reads;
        }
        prop_assert_eq!(seen, memory.done);
    }
}
