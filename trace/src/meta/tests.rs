//! The rules of the fold, and its invariant over random runs.

use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess};
use dosmos_proto::{
    ApId, ElementType, EmpId, GroupId, Layout, MpId, Nanos, ObjectId, Topology, TopologyBuilder,
    VarId, Variable, VariableSpec,
};
use proptest::prelude::*;

use super::*;
use crate::query::{Completeness, MetaObjects, MetaQuery};
use crate::record::{Flags, Op, Origin, Record, Side};

/// Two memory processes in one group, each with its own event manager and application process.
fn topology() -> Topology {
    let mp = |i: u32| MemoryProcess {
        name: format!("mp{i}"),
        group: GroupId(0),
        event_manager: EmpId(i),
        link: false,
    };
    let ap = |i: u32| ApplicationProcess {
        name: format!("ap{i}"),
        memory_process: MpId(i),
    };
    TopologyBuilder {
        name: "test".into(),
        groups: vec![Group {
            path: GroupPath::top("a"),
            parent: None,
        }],
        memory_processes: vec![mp(0), mp(1)],
        application_processes: vec![ap(0), ap(1)],
        event_managers: vec![
            EventManager {
                name: "emp0".into(),
            },
            EventManager {
                name: "emp1".into(),
            },
        ],
    }
    .build()
    .unwrap()
}

const X: ObjectId = ObjectId {
    var: VarId(7),
    index: 0,
};

/// A record of `op` by the process of `mp` on X, owned by mp0.
fn record(op: Op, mp: u32, side: Side) -> Record {
    Record {
        start: Nanos(100),
        duration: Nanos(10),
        wait: Nanos(4),
        service: Nanos(1),
        op,
        side,
        origin: if mp == 0 {
            Origin::Local
        } else {
            Origin::Intra
        },
        flags: Flags::default(),
        object: X,
        ap: ApId(mp),
        mp: MpId(mp),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: 1,
        range: (0, 1),
    }
}

fn optimized(mp: u32) -> Record {
    Record {
        origin: Origin::Local,
        flags: Flags {
            optimized: true,
            ..Flags::default()
        },
        ..record(Op::Read, mp, Side::Requester)
    }
}

fn all(state: &MetaState) -> MetaObjects {
    state.query(&MetaQuery::default(), Completeness::default())
}

#[test]
fn a_remote_read_counts_at_the_primary_and_makes_a_secondary() {
    let mut owner = MetaState::new(topology(), EmpId(0));
    let mut reader = MetaState::new(topology(), EmpId(1));
    owner.apply(&record(Op::Read, 1, Side::Owner));
    reader.apply(&record(Op::Read, 1, Side::Requester));
    reader.apply(&optimized(1));
    let at_owner = all(&owner);
    assert_eq!(at_owner.primaries[0].counts.reads, 1);
    assert_eq!(at_owner.primaries[0].copies_at, [MpId(1)]);
    let at_reader = all(&reader);
    assert!(at_reader.primaries.is_empty());
    assert_eq!(at_reader.secondaries[0].reads, 1);
    assert_eq!(at_reader.secondaries[0].primary_emp, EmpId(0));
}

#[test]
fn an_invalidated_copy_hands_its_reads_over_once() {
    let mut owner = MetaState::new(topology(), EmpId(0));
    let mut reader = MetaState::new(topology(), EmpId(1));
    owner.apply(&record(Op::Read, 1, Side::Owner));
    reader.apply(&record(Op::Read, 1, Side::Requester));
    reader.apply(&optimized(1));
    reader.apply(&optimized(1));
    let hand_over = HandOver {
        object: X,
        copy_at: MpId(1),
        primary_emp: EmpId(0),
        dropped: true,
    };
    let (to, content) = reader.hand_over(&hand_over).unwrap();
    assert_eq!((to, content.sequence, content.reads), (EmpId(0), 1, 2));
    assert!(all(&reader).secondaries.is_empty());
    assert!(owner.receive(EmpId(1), &content));
    assert!(!owner.receive(EmpId(1), &content), "a duplicate is ignored");
    let primary = &all(&owner).primaries[0];
    assert_eq!(primary.reads_on_copies, 2);
    assert_eq!(primary.by_ap[&ApId(1)].reads, 3);
    assert!(primary.copies_at.is_empty());
}

#[test]
fn times_are_those_of_the_requester_by_operation() {
    let mut owner = MetaState::new(topology(), EmpId(0));
    let mut reader = MetaState::new(topology(), EmpId(1));
    owner.apply(&record(Op::Read, 1, Side::Owner));
    assert!(all(&owner).times.is_empty());
    let with = |change: fn(&mut Record)| {
        let mut record = record(Op::Read, 1, Side::Requester);
        change(&mut record);
        record
    };
    for record in [
        with(|r| r.duration = Nanos(1_000)),
        with(|r| r.duration = Nanos(3_000)),
        // Three in one record: what they waited and were served, not the time from the first to the last.
        with(|r| (r.op, r.count, r.wait, r.service) = (Op::Write, 3, Nanos(50), Nanos(10))),
        optimized(1),
        with(|r| r.flags.failed = true),
        with(|r| (r.op, r.flags.waiting) = (Op::Acquire, true)),
        with(|r| (r.flags.in_process, r.count) = (true, 9)),
        with(|r| (r.op, r.object.var) = (Op::Barrier, VarId(8))),
    ] {
        reader.apply(&record);
    }
    let times = all(&reader).times;
    let of = |var: u32| {
        let operations = times[&VarId(var)].by_operation().into_iter();
        let measured = operations.filter(|(_, t)| t.number() > 0);
        let figures =
            |(name, t): (_, &crate::meta::Times)| (name, t.number(), t.total.0, t.longest.0);
        measured.map(figures).collect::<Vec<_>>()
    };
    let expected = [
        ("read", 2, 4_000, 3_000),
        ("cached read", 1, 10, 10),
        ("write", 3, 60, 20),
    ];
    assert_eq!(of(7), expected);
    assert_eq!(of(8), [("barrier", 1, 10, 10)]);
    assert_eq!(times[&VarId(7)].total(), Nanos(4_070));
    assert_eq!(times[&VarId(7)].all().quantile(1.0), Some(Nanos(3_000)));
}

#[test]
fn an_updated_copy_keeps_its_secondary() {
    let mut reader = MetaState::new(topology(), EmpId(1));
    reader.apply(&record(Op::Read, 1, Side::Requester));
    reader.apply(&optimized(1));
    let hand_over = HandOver {
        object: X,
        copy_at: MpId(1),
        primary_emp: EmpId(0),
        dropped: false,
    };
    let (_, content) = reader.hand_over(&hand_over).unwrap();
    assert_eq!(content.reads, 1);
    assert_eq!(all(&reader).secondaries[0].reads, 0);
}

#[test]
fn sections_give_waits_holds_and_last_lists() {
    let mut owner = MetaState::new(topology(), EmpId(0));
    let waiting = Record {
        flags: Flags {
            waiting: true,
            ..Flags::default()
        },
        ..record(Op::Acquire, 1, Side::Owner)
    };
    owner.apply(&waiting);
    owner.apply(&record(Op::Acquire, 1, Side::Owner));
    owner.apply(&record(Op::Write, 1, Side::Owner));
    let release = Record {
        start: Nanos(1110),
        ..record(Op::Release, 1, Side::Owner)
    };
    owner.apply(&release);
    let primary = &all(&owner).primaries[0];
    assert_eq!(primary.counts.acquires, 1);
    assert_eq!(primary.delayed, 1);
    assert_eq!(primary.delayed_acquires[0].ap, ApId(1));
    assert_eq!(primary.delayed_acquires[0].wait, Nanos(4));
    assert_eq!(primary.last_writes.len(), 1);
    assert_eq!(primary.wait, Nanos(4));
    assert_eq!(
        primary.hold,
        Nanos(1000),
        "from the grant at 110 to the release at 1110"
    );
    for _ in 0..100 {
        owner.apply(&record(Op::Write, 0, Side::Requester));
    }
    assert_eq!(all(&owner).primaries[0].last_writes.len(), LAST_ACCESSES);
}

#[test]
fn an_acquire_that_still_waits_has_no_wait_yet() {
    let mut owner = MetaState::new(topology(), EmpId(0));
    let mut waiting = record(Op::Acquire, 1, Side::Owner);
    waiting.flags.waiting = true;
    waiting.wait = Nanos::ZERO;
    owner.apply(&waiting);
    // Another one is granted meanwhile.
    owner.apply(&record(Op::Acquire, 0, Side::Requester));
    let primary = &all(&owner).primaries[0];
    assert_eq!(primary.delayed_acquires[0].wait, Nanos::ZERO);
    assert_eq!((primary.delayed, primary.counts.acquires), (1, 1));
}

#[test]
fn a_copy_made_again_is_not_taken_for_the_one_that_is_gone() {
    let mut owner = MetaState::new(topology(), EmpId(0));
    let mut reader = MetaState::new(topology(), EmpId(1));
    let gone = HandOver {
        object: X,
        copy_at: MpId(1),
        primary_emp: EmpId(0),
        dropped: true,
    };
    reader.apply(&record(Op::Read, 1, Side::Requester));
    let (_, first) = reader.hand_over(&gone).unwrap();
    owner.apply(&record(Op::Read, 1, Side::Owner));
    owner.apply(&record(Op::Read, 1, Side::Owner));
    owner.receive(EmpId(1), &first);
    assert_eq!(all(&owner).primaries[0].copies_at, [MpId(1)]);
    reader.apply(&record(Op::Read, 1, Side::Requester));
    let (_, second) = reader.hand_over(&gone).unwrap();
    owner.receive(EmpId(1), &second);
    assert!(all(&owner).primaries[0].copies_at.is_empty());
}

#[test]
fn a_variable_brings_its_group_early_or_late() {
    let layout = Layout::new(ElementType::U8, (1, 4), (1, 4)).unwrap();
    let spec = VariableSpec::new("x", layout).unwrap();
    let variable = Variable::new(X.var, spec, vec![MpId(0)], GroupId(5)).unwrap();
    let access = record(Op::Write, 0, Side::Requester);
    let (mut early, mut late) = (
        MetaState::new(topology(), EmpId(0)),
        MetaState::new(topology(), EmpId(0)),
    );
    early.declare(&variable);
    early.apply(&access);
    late.apply(&access);
    assert_eq!(all(&late).primaries[0].group, GroupId(0), "its owner's");
    late.declare(&variable);
    assert_eq!(all(&late), all(&early));
    assert_eq!(all(&late).primaries[0].group, GroupId(5));
}

#[test]
fn failed_operations_and_barriers_change_nothing() {
    let mut owner = MetaState::new(topology(), EmpId(0));
    let mut failed = record(Op::Write, 0, Side::Requester);
    failed.flags.failed = true;
    owner.apply(&failed);
    owner.apply(&record(Op::Barrier, 0, Side::Requester));
    assert!(all(&owner).primaries.is_empty());
}

/// What can happen to X, in one total order: an access by either process, or the copy's end.
#[derive(Clone, Debug)]
enum Step {
    Access(Op, u32),
    Invalidate,
    Update,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![
        4 => Just(Op::Read),
        1 => Just(Op::Write),
        1 => Just(Op::Acquire),
        1 => Just(Op::Release)
    ];
    let step = prop_oneof![
        6 => (op, 0u32..2).prop_map(|(op, mp)| Step::Access(op, mp)),
        1 => Just(Step::Invalidate),
        1 => Just(Step::Update),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(256))]

    /// Reads on the main copy + reads handed over + reads in secondaries = reads done; likewise the rest.
    #[test]
    fn nothing_is_lost_or_counted_twice(steps in steps()) {
        let mut emps = [
            MetaState::new(topology(), EmpId(0)),
            MetaState::new(topology(), EmpId(1)),
        ];
        let mut done = OpCounts::default();
        let mut copy = false;
        for step in steps {
            match step {
                Step::Access(op, mp) => {
                    done.count(op, 1);
                    if mp == 0 {
                        emps[0].apply(&record(op, 0, Side::Requester));
                    } else if op == Op::Read && copy {
                        emps[1].apply(&optimized(1));
                    } else {
                        emps[0].apply(&record(op, 1, Side::Owner));
                        emps[1].apply(&record(op, 1, Side::Requester));
                        copy |= op == Op::Read;
                    }
                }
                Step::Invalidate | Step::Update => {
                    let dropped = matches!(step, Step::Invalidate);
                    let hand_over = HandOver { object: X, copy_at: MpId(1), primary_emp: EmpId(0), dropped };
                    let (_, content) = emps[1].hand_over(&hand_over).unwrap();
                    emps[0].receive(EmpId(1), &content);
                    copy &= !dropped;
                }
            }
        }
        let mut seen = OpCounts::default();
        for emp in &emps {
            let metas = all(emp);
            for p in &metas.primaries {
                seen.add(&p.counts);
                seen.reads += p.reads_on_copies;
                let mut by_ap = OpCounts::default();
                p.by_ap.values().for_each(|c| by_ap.add(c));
                prop_assert_eq!(by_ap.reads, p.counts.reads + p.reads_on_copies);
            }
            seen.reads += metas.secondaries.iter().map(|s| s.reads).sum::<u64>();
        }
        prop_assert_eq!(seen, done);
    }

    #[test]
    fn a_sketch_brackets_its_quantiles(mut values in prop::collection::vec(0u64..1 << 40, 1..100), q in 0.0f64..=1.0) {
        let mut sketch = Sketch::default();
        values.iter().for_each(|&v| sketch.count(Nanos(v), 1));
        values.sort_unstable();
        let rank = ((q * values.len() as f64).ceil() as usize).max(1) - 1;
        let bound = sketch.quantile(q).unwrap().0;
        prop_assert!(values[rank] <= bound && bound <= 2 * values[rank].max(1));
        prop_assert_eq!(sketch.total(), values.len() as u64);
    }
}

#[test]
fn two_sections_are_both_held_though_the_second_grant_is_told_before_the_first_release() {
    let mut owner = MetaState::new(topology(), EmpId(0));
    let at = |mp, start, op| Record {
        start: Nanos(start),
        ..record(op, mp, Side::Owner)
    };
    owner.apply(&at(0, 100, Op::Acquire));
    owner.apply(&at(1, 200, Op::Acquire));
    owner.apply(&at(0, 150, Op::Release));
    owner.apply(&at(1, 300, Op::Release));
    let meta = &all(&owner).primaries[0];
    // Grants at 110 and 210.
    assert_eq!(meta.hold, Nanos(40 + 90));
}
