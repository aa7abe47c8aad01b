//! What is asked of the fold: sums by variable, parts of it, who exchanged how much. Compared with what follows from its
//! meta-objects one by one.

use std::collections::{HashMap, HashSet};

use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess};
use dosmos_proto::{ApId, EmpId, GroupId, MpId, Nanos, ObjectId, Topology, TopologyBuilder, VarId};
use proptest::prelude::*;

use super::{HandOver, MetaState, OpCounts, Times};
use crate::query::table::Sums;
use crate::query::{Completeness, MetaObjects, MetaQuery};
use crate::record::{Op, Origin, PerOrigin, Record, Side};
use crate::testing::{records, single};

/// Four memory processes with an application process each, at two event managers and in two groups.
fn topology() -> Topology {
    let mut topology = TopologyBuilder {
        name: "figures".into(),
        ..TopologyBuilder::default()
    };
    for n in 0..2 {
        topology.groups.push(Group {
            path: GroupPath::top(&format!("g{n}")),
            parent: None,
        });
        topology.event_managers.push(EventManager {
            name: format!("emp{n}"),
        });
    }
    for n in 0..4 {
        topology.memory_processes.push(MemoryProcess {
            name: format!("mp{n}"),
            group: GroupId(n / 2),
            event_manager: EmpId(n % 2),
            link: false,
        });
        topology.application_processes.push(ApplicationProcess {
            name: format!("ap{n}"),
            memory_process: MpId(n),
        });
    }
    topology.build().unwrap()
}

fn state() -> MetaState {
    MetaState::new(topology(), EmpId(0))
}

fn asked(state: &MetaState, variables: &[VarId], objects: &[ObjectId]) -> MetaObjects {
    let query = MetaQuery {
        variables: variables.to_vec(),
        objects: objects.to_vec(),
    };
    state.query(&query, Completeness::default())
}

/// A record by the process of `mp` of an object that mp0 owns.
fn record(op: Op, mp: u32, side: Side) -> Record {
    Record {
        op,
        side,
        ap: ApId(mp),
        mp: MpId(mp),
        origin: match mp {
            0 => Origin::Local,
            1 => Origin::Intra,
            _ => Origin::Inter,
        },
        ..single()
    }
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(200))]

    #[test]
    fn sums_are_those_of_the_meta_objects(records in prop::collection::vec(records(), 0..60)) {
        let mut state = state();
        // Times that add up beyond what a number holds are not of this world.
        for mut record in records {
            record.duration = Nanos(record.duration.0 % 1_000_000);
            record.wait = Nanos(record.wait.0 % 1_000);
            record.service = Nanos(record.service.0 % 1_000);
            record.start = Nanos(record.start.0 % 1_000_000_000);
            record.count %= 1_000;
            state.apply(&record);
        }
        let all = asked(&state, &[], &[]);
        let mut expected: HashMap<VarId, Sums> = HashMap::new();
        for p in &all.primaries {
            let its = expected.entry(p.object.var).or_default();
            its.primary(p, p.copies_at.len() as u64);
            prop_assert_eq!(&state.copies_of(p.object), &p.copies_at);
        }
        for s in &all.secondaries {
            expected.entry(s.object.var).or_default().secondary(s);
        }
        for (id, times) in &all.times {
            expected.entry(*id).or_default().times.add(times);
        }
        let wanted: HashSet<VarId> = (0..6).map(VarId).collect();
        let sums = state.sums(Some(&wanted));
        prop_assert_eq!(sums.len(), wanted.len());
        for (id, its) in &sums {
            prop_assert_eq!(its, &expected.get(id).cloned().unwrap_or_default());
        }
        // Sums of all variables have totals, and no distributions.
        let sums = state.sums(None);
        prop_assert_eq!(sums.len(), expected.len());
        for (id, its) in &sums {
            let totals = |s: &Sums| s.times.by_operation().map(|(_, t)| t.total);
            prop_assert_eq!(totals(its), totals(&expected[id]));
            let without = |s: &Sums| Sums { times: Default::default(), ..s.clone() };
            prop_assert_eq!(without(its), without(&expected[id]));
            prop_assert!(its.times.by_operation().iter().all(|(_, t)| t.number() == 0));
        }
    }

    #[test]
    fn a_part_is_what_was_asked_for(
        records in prop::collection::vec(records(), 0..60),
        variables in prop::collection::vec(0u32..5, 0..3),
        objects in prop::collection::vec((0u32..5, 0u32..3), 0..3),
    ) {
        let mut state = state();
        records.iter().for_each(|r| state.apply(r));
        let variables: Vec<VarId> = variables.into_iter().map(VarId).collect();
        let objects: Vec<ObjectId> = objects.into_iter().map(|(v, i)| ObjectId::new(VarId(v), i)).collect();
        let mut expected = asked(&state, &[], &[]);
        let wanted = |o: ObjectId| {
            let variable = variables.is_empty() || variables.contains(&o.var);
            variable && (objects.is_empty() || objects.contains(&o))
        };
        expected.primaries.retain(|p| wanted(p.object));
        expected.secondaries.retain(|s| wanted(s.object));
        // Times are by variable: of those of which an object was asked for.
        expected.times.retain(|id, _| {
            let variable = variables.is_empty() || variables.contains(id);
            variable && (objects.is_empty() || objects.iter().any(|o| o.var == *id))
        });
        prop_assert_eq!(asked(&state, &variables, &objects), expected);
    }
}

#[test]
fn accesses_are_counted_by_process_origin_and_operation() {
    let mut state = state();
    for (op, n) in [
        (Op::Read, 1),
        (Op::Write, 2),
        (Op::Acquire, 3),
        (Op::Release, 4),
    ] {
        for mp in [0, 1] {
            let mut record = record(op, mp, Side::Requester);
            record.count = n * (mp + 1);
            state.apply(&record);
        }
    }
    // Records of owners, of failures and of waiting are not counted as accesses.
    state.apply(&record(Op::Read, 0, Side::Owner));
    for change in [
        |r: &mut Record| r.flags.failed = true,
        |r: &mut Record| r.flags.waiting = true,
    ] {
        let mut record = record(Op::Acquire, 0, Side::Requester);
        change(&mut record);
        state.apply(&record);
    }
    let counts = |n: u64| OpCounts {
        reads: n,
        writes: 2 * n,
        acquires: 3 * n,
        releases: 4 * n,
    };
    let nothing = OpCounts::default();
    let of = |counts: PerOrigin<OpCounts>| {
        [Origin::Local, Origin::Intra, Origin::Inter].map(|o| counts[o])
    };
    assert_eq!(
        of(state.accesses_at(MpId(0))),
        [counts(1), nothing, nothing]
    );
    assert_eq!(
        of(state.accesses_of(ApId(1))),
        [nothing, counts(2), nothing]
    );
    assert_eq!(state.accesses_at(MpId(2)), Default::default());
    assert_eq!((counts(1).total(), counts(5).total()), (10, 50));
    let mut sum = counts(1);
    sum.add(&counts(2));
    assert_eq!(sum, counts(3));
}

#[test]
fn contents_are_counted_by_who_sent_and_who_received_them() {
    // Copies of what mp0 owns, at memory processes of the other event manager.
    let mut reader = MetaState::new(topology(), EmpId(1));
    let mut owner = state();
    let object = single().object;
    let mut contents = Vec::new();
    for reads in 1..=3 {
        for _ in 0..reads {
            let mut read = record(Op::Read, 1, Side::Requester);
            (read.flags.optimized, read.origin) = (true, Origin::Local);
            reader.apply(&read);
        }
        let hand_over = HandOver {
            object,
            copy_at: MpId(1),
            primary_emp: EmpId(0),
            dropped: false,
        };
        contents.push(reader.hand_over(&hand_over).unwrap().1);
    }
    assert_eq!((reader.exchanged(), owner.exchanged()), ((3, 0), (0, 0)));
    assert_eq!(owner.last_received(EmpId(1)), 0);
    for content in &contents[..2] {
        assert!(owner.receive(EmpId(1), content));
    }
    assert_eq!(
        (owner.exchanged(), owner.last_received(EmpId(1))),
        ((0, 2), 2)
    );
    assert_eq!(owner.last_received(EmpId(0)), 0);
    assert_eq!(asked(&owner, &[], &[]).primaries[0].reads_on_copies, 3);
}

#[test]
fn what_is_owned_where_the_copy_is_handed_over_stays_there() {
    let mut state = state();
    let mut read = record(Op::Read, 2, Side::Requester);
    (read.flags.optimized, read.origin) = (true, Origin::Local);
    state.apply(&read);
    let hand_over = HandOver {
        object: read.object,
        copy_at: MpId(2),
        primary_emp: EmpId(0),
        dropped: true,
    };
    assert_eq!(state.hand_over(&hand_over), None);
    assert_eq!(asked(&state, &[], &[]).primaries[0].reads_on_copies, 1);
    assert_eq!(state.exchanged(), (0, 0));
}

#[test]
fn the_mean_of_no_access_is_none() {
    let mut times = Times::default();
    assert_eq!(times.mean(), None);
    times.count(Nanos(90), 3);
    times.count(Nanos(10), 1);
    assert_eq!((times.mean(), times.longest), (Some(Nanos(25)), Nanos(30)));
}

/// An acquire that waits is told twice: that it waits, and its grant.
#[test]
fn the_grant_of_a_delayed_acquire_says_how_long_it_waited() {
    let waits = |at: u64, ap: u32| {
        let mut notice = record(Op::Acquire, ap, Side::Owner);
        (notice.flags.waiting, notice.start, notice.duration) = (true, Nanos(at), Nanos(0));
        notice
    };
    let granted = |(from, to): (u64, u64), ap: u32| {
        let mut grant = record(Op::Acquire, ap, Side::Owner);
        (grant.start, grant.duration, grant.wait) = (Nanos(from), Nanos(to - from), Nanos(40));
        grant
    };
    let told = |notices: &[Record], grant: Record| {
        let mut state = state();
        notices.iter().for_each(|n| state.apply(n));
        state.apply(&grant);
        let primary = &asked(&state, &[], &[]).primaries[0];
        assert_eq!(primary.delayed, notices.len() as u64);
        let waits = primary.delayed_acquires.iter().map(|a| a.wait.0);
        waits.collect::<Vec<_>>()
    };
    assert_eq!(told(&[waits(100, 1)], granted((100, 150), 1)), [40]);
    assert_eq!(told(&[waits(150, 1)], granted((100, 150), 1)), [40]);
    assert_eq!(told(&[waits(99, 1)], granted((100, 150), 1)), [0]);
    assert_eq!(told(&[waits(151, 1)], granted((100, 150), 1)), [0]);
    assert_eq!(told(&[waits(120, 2)], granted((100, 150), 1)), [0]);
    // The last of its own that has no grant yet.
    let two = [waits(110, 1), waits(120, 1), waits(130, 2)];
    assert_eq!(told(&two, granted((100, 150), 1)), [0, 40, 0]);
}

#[test]
fn of_several_acquires_in_one_record_each_waited_its_part() {
    let mut state = state();
    let mut several = record(Op::Acquire, 1, Side::Owner);
    (several.count, several.wait) = (4, Nanos(400));
    state.apply(&several);
    let primary = &asked(&state, &[], &[]).primaries[0];
    assert_eq!((primary.wait, primary.wait_sketch.total()), (Nanos(400), 4));
    assert!(primary.last_acquires.iter().all(|a| a.wait == Nanos(100)));
    let quantile = primary.wait_sketch.quantile(1.0).unwrap();
    assert!((100..=125).contains(&quantile.0), "{quantile:?}");
}

/// Sections that a process held in itself are over when they are told of: who reads after that makes a copy.
#[test]
fn past_sections_leave_no_section_open() {
    let copies = |several: bool| {
        let mut state = MetaState::new(topology(), EmpId(1));
        let mut acquire = record(Op::Acquire, 1, Side::Requester);
        acquire.count = if several { 2 } else { 1 };
        state.apply(&acquire);
        state.apply(&record(Op::Write, 1, Side::Requester));
        state.apply(&record(Op::Read, 1, Side::Requester));
        asked(&state, &[], &[]).secondaries.len()
    };
    assert_eq!((copies(true), copies(false)), (1, 0));
}

/// What a process did in itself with what another memory process owns, the owner has a record of.
#[test]
fn accesses_in_a_process_count_at_the_owner_alone() {
    let counted = |mp: u32, in_process: bool| {
        let mut state = state();
        let mut write = record(Op::Write, mp, Side::Requester);
        (write.flags.in_process, write.origin) = (in_process, Origin::Local);
        state.apply(&write);
        let primaries = asked(&state, &[], &[]).primaries;
        primaries.iter().map(|p| p.counts.writes).sum::<u64>()
    };
    assert_eq!(counted(0, true), 1);
    assert_eq!(counted(0, false), 1);
    assert_eq!(counted(2, true), 0);
}

#[test]
fn a_failure_and_a_barrier_change_no_meta_object() {
    let mut state = state();
    let mut failed = record(Op::Write, 0, Side::Requester);
    failed.flags.failed = true;
    state.apply(&failed);
    state.apply(&record(Op::Barrier, 0, Side::Requester));
    let all = asked(&state, &[], &[]);
    assert!(all.primaries.is_empty() && all.secondaries.is_empty());
    assert_eq!(all.times.len(), 1, "of the barrier");
}
