//! Replays of small runs whose lengths can be worked out by hand.

mod fitted;
mod queues;
mod runs;
mod scaled;

use dosmos_proto::{ApId, Component, CopyPolicy, MpId, Nanos, TopologyBuilder, VarId};
use dosmos_replay::{Calibrated, Change, Costs};
use dosmos_trace::record::Op;

use crate::runs::{MS, OBJECT, Run, US, catalog, costs, owned_by, takes};

#[test]
fn a_read_takes_its_messages_and_computing_takes_what_was_measured() {
    let mut run = Run::of(2);
    for _ in 0..10 {
        run.does(1, MS, Op::Read, 0, 100 * US);
    }
    // There and back to the own memory process, four ends; and as much from there to the owner.
    takes(&run.replay(&Change::default()), 10 * (1000 + 8));
    takes(&run.replay(&owned_by(1)), 10 * (1000 + 4));
    let private = Change {
        private: [OBJECT].into(),
        ..Change::default()
    };
    takes(&run.replay(&private), 10 * 1000);
    let nearer = Change {
        homes: [(ApId(1), MpId(0))].into(),
        ..Change::default()
    };
    takes(&run.replay(&nearer), 10 * (1000 + 4));
}

#[test]
fn what_is_asked_for_ahead_is_waited_for_where_it_is_needed() {
    // A process asks ten times for what it needs a millisecond later; where messages are fast, it has it long before.
    let ahead = |posted: bool, waited: u64| {
        let mut run = Run::of(2);
        for _ in 0..10 {
            let flags = &mut run.does(1, 0, Op::Read, 0, 100 * US).flags;
            flags.posted = posted;
            run.now[1] += 900 * US;
        }
        run.does(0, 10 * MS, Op::Read, 0, 0);
        let mut spent = dosmos_proto::Spent::default();
        spent.add(Component::Busy, Nanos(10 * MS), 0);
        spent.add(Component::Fault, Nanos(waited), 10);
        run.spent[1].spent = spent;
        run.script()
    };
    // A request and its reply pass two ways each.
    let length = |script: &dosmos_replay::Script, way: f64| {
        let costs = Costs {
            near_ns: way / 2.0,
            far_ns: way / 2.0,
            ..costs()
        };
        let outcome = script.replay(&costs, &Change::default());
        assert!(outcome.is_whole(), "{outcome:?}");
        outcome.length.0 / US
    };
    let near = |us: u64, expected: u64| us.abs_diff(expected) < expected / 20;
    // 200 and 1,200 µs there and back: only beyond the millisecond that it computes does it wait.
    let went_on = ahead(true, 10 * US);
    let (fast, slow) = (length(&went_on, 1e5), length(&went_on, 6e5));
    assert!(near(fast, 10_000), "{fast}");
    assert!(near(slow, 12_000), "{slow}");
    // Who asked so came to wait soon after, or it did not ask so: whatever was measured then, it waits.
    for waits in [ahead(true, 1_100 * US), ahead(false, 10 * US)] {
        let (fast, slow) = (length(&waits, 1e5), length(&waits, 6e5));
        assert!(near(fast, 12_000), "{fast}");
        assert!(near(slow, 22_000), "{slow}");
    }
}

#[test]
fn processes_share_processors() {
    let mut run = Run::of(2);
    for ap in 0..2 {
        run.does(ap, 10 * MS, Op::Read, ap, 10 * US);
    }
    takes(&run.replay(&Change::default()), 10_004);
    let one = Change {
        processors: Some(1),
        ..Change::default()
    };
    takes(&run.replay(&one), 20_008);
}

/// Two processes take a lock in turns and compute a millisecond while they have it.
fn sections() -> Run {
    let mut run = Run::of(2);
    for _ in 0..10 {
        for ap in 0..2 {
            run.does(ap, 0, Op::Acquire, 0, MS);
            run.does(ap, MS, Op::Release, 0, 10 * US);
        }
    }
    run
}

#[test]
fn who_wants_a_lock_waits_for_its_holder() {
    let shared = sections().replay(&Change::default()).length;
    assert!(
        shared >= Nanos(20 * MS) && shared < Nanos(21 * MS),
        "{shared}"
    );
    let split = Change {
        split: [OBJECT].into(),
        ..Change::default()
    };
    let alone = sections().replay(&split).length;
    assert!(alone < Nanos(11 * MS), "{alone}");
}

#[test]
fn who_reads_without_acquiring_waits_for_nobody_and_reads_a_copy() {
    let unlocked = |aps: &[u32]| Change {
        unlocked: aps.iter().map(|ap| (OBJECT, ApId(*ap))).collect(),
        ..Change::default()
    };
    // Each section is a read of four ends; the first of process 1 goes to the owner, which takes four more.
    takes(&sections().replay(&unlocked(&[0, 1])), 10 * (1000 + 4) + 4);
    // The other one keeps its lock, which nobody else wants: eight ends per section at its own memory process.
    takes(&sections().replay(&unlocked(&[1])), 10 * (1000 + 8));
}

/// Between barriers, process 0 computes three milliseconds and process 1 one.
fn uneven(barriers: u32) -> Run {
    let mut run = Run::of(2);
    for generation in 0..barriers {
        run.does(0, 3 * MS, Op::Read, 0, 10 * US);
        run.does(1, MS, Op::Read, 1, 10 * US);
        run.barrier(generation);
    }
    run
}

#[test]
fn a_barrier_opens_when_the_last_has_arrived_and_even_work_is_as_long_as_its_mean() {
    let run = uneven(5);
    let uneven = run.replay(&Change::default()).length;
    assert!(
        uneven >= Nanos(15 * MS) && uneven < Nanos(16 * MS),
        "{uneven}"
    );
    let even = Change {
        balanced: [ApId(0), ApId(1)].into(),
        ..Change::default()
    };
    let even = run.replay(&even).length;
    assert!(even >= Nanos(10 * MS) && even < Nanos(11 * MS), "{even}");
}

#[test]
fn who_is_without_a_processor_no_longer_than_the_others_does_not_keep_them_waiting() {
    let mut run = uneven(5);
    // Process 0 computes one millisecond as well, and is without a processor for two.
    let mut spent = dosmos_proto::Spent::default();
    spent.add(Component::Busy, Nanos(5 * MS), 0);
    spent.add(Component::Service, Nanos(10 * MS), 0);
    run.spent[0].spent = spent;
    let fitted = Calibrated::new(run.script(), &costs()).expect("a replay");
    let unhindered = Change {
        unhindered: [ApId(0)].into(),
        others: [ApId(1)].into(),
        ..Change::default()
    };
    // Ten milliseconds less of fifteen, and of what messages and barriers take.
    let gain = fitted.gain(&unhindered).expect("a gain").gain;
    assert!(gain > 10.0 / 16.0 && gain < 10.0 / 15.0, "{gain}");
    // A process that is hardly ever on a processor seems to sleep.
    let mut spent = dosmos_proto::Spent::default();
    spent.add(Component::Busy, Nanos(MS / 2), 0);
    spent.add(Component::Service, Nanos(14_500 * US), 0);
    let mut stopped = uneven(5);
    stopped.spent[0].spent = spent;
    let stopped = Calibrated::new(stopped.script(), &costs()).expect("a replay");
    let gain = stopped.gain(&unhindered).expect("a gain").gain;
    assert!(gain > 0.5, "{gain}");
    // Compared with itself nothing changes.
    let itself = Change {
        others: [ApId(0)].into(),
        ..unhindered
    };
    assert_eq!(fitted.gain(&itself).expect("a gain").gain, 0.0);
}

#[test]
fn requests_that_overlapped_overlap() {
    let apart = |overlap: bool| {
        let mut run = Run::of(2);
        for i in 0..10 {
            run.does(1, 0, Op::Read, 0, 100 * US).start = match overlap {
                true => Nanos(0),
                false => Nanos(100 * US * i),
            };
        }
        run.replay(&Change::default()).length
    };
    // One after the other each takes eight ends; together the busiest process, with four of each, decides.
    assert_eq!(apart(false).0 / US, 80);
    assert!(apart(true).0 / US < 50, "{}", apart(true));
}

/// Process 0 writes, process 1 reads what it wrote, with barriers between.
fn rounds() -> Run {
    let mut run = Run::of(2);
    for round in 0..10 {
        run.does(0, 0, Op::Write, 0, 10 * US);
        run.barrier(2 * round);
        run.does(1, 0, Op::Read, 0, 20 * US);
        run.barrier(2 * round + 1);
    }
    run
}

#[test]
fn with_another_policy_copies_are_told_instead_of_fetched() {
    let update = Change {
        policies: [(VarId(1), CopyPolicy::Update)].into(),
        ..Change::default()
    };
    let before = rounds().replay(&Change::default());
    let after = rounds().replay(&update);
    // Two messages less for each read but the first.
    assert_eq!(before.messages - after.messages, 2 * 9);
    let same = Change {
        policies: [(VarId(1), CopyPolicy::Invalidate)].into(),
        ..Change::default()
    };
    assert_eq!(rounds().replay(&same).messages, before.messages);
}

#[test]
fn a_run_whose_grants_were_not_recorded_has_no_replay() {
    let mut run = sections();
    run.records
        .retain(|r| !(r.op == Op::Release && r.ap == ApId(0)));
    let outcome = run.script().replay(&costs(), &Change::default());
    assert!(!outcome.is_whole(), "{outcome:?}");
    assert!(Calibrated::new(run.script(), &costs()).is_none());
}

#[test]
fn in_another_cluster_processes_are_found_by_their_names() {
    let mut run = Run::of(2);
    for _ in 0..10 {
        run.does(1, MS, Op::Read, 0, 100 * US);
    }
    let mut reversed = TopologyBuilder::from(catalog(2).topology);
    reversed.memory_processes.reverse();
    for ap in &mut reversed.application_processes {
        ap.memory_process = MpId(1 - ap.memory_process.0);
    }
    let change = Change {
        topology: Some(reversed.build().expect("a valid topology")),
        ..Change::default()
    };
    let here = run.replay(&Change::default());
    assert_eq!(run.replay(&change), here);
}

#[test]
fn what_a_process_reads_from_its_own_copy_is_fetched_where_copies_are_dropped() {
    let mut run = rounds();
    let mut told = false;
    for record in &mut run.records {
        if record.op == Op::Read {
            record.flags.optimized = told;
            record.flags.in_process = told;
            record.count = if told { 3 } else { 1 };
            told = true;
        }
    }
    let told = |policy| Change {
        policies: [(VarId(1), policy)].into(),
        ..Change::default()
    };
    let update = run.replay(&told(CopyPolicy::Update));
    let dropped = run.replay(&told(CopyPolicy::Invalidate));
    // Request and response, to the own memory process and to the owner: four messages for each of nine versions.
    assert_eq!(dropped.messages - update.messages, 4 * 9);
}

#[test]
fn who_has_waited_for_long_has_to_be_woken() {
    let slow = Costs {
        woken_ns: 5e3,
        wake_ns: 20e3,
        ..costs()
    };
    let each = |computing: u64, costs: &Costs| {
        let mut run = Run::of(1);
        for _ in 0..100 {
            run.does(0, computing, Op::Read, 0, 20 * US);
        }
        let length = run.script().replay(costs, &Change::default()).length.0;
        (length + 50 * US) / 100 / US - computing / US
    };
    assert_eq!(each(MS, &costs()), 4);
    // The memory process had nothing to do for a millisecond; the application process waits for microseconds only.
    assert_eq!(each(MS, &slow), 4 + 5 + 20);
    assert_eq!(each(50 * US, &slow), 4);
    // With no processor that sleeps, only what waking costs of a processor is left; the last one is alone with it, and waits asleep.
    let mut run = Run::of(2);
    run.does(0, MS, Op::Read, 0, 20 * US);
    run.does(1, 3 * MS, Op::Read, 1, 20 * US);
    let one = Costs {
        processors: 1,
        ..slow
    };
    let length = run.script().replay(&one, &Change::default()).length;
    assert!(
        length.0 / US < 4000 + 2 * (4 + 2 * 5) + 2 * 20 + 1,
        "{length}"
    );
}

#[test]
fn where_others_need_the_processor_nobody_waits_awake() {
    // Two processes on two processors, whose messages are answered at once; on one, each time somebody has to be woken.
    let length = |processors: usize, woken_ns: f64| {
        let mut run = Run::of(2);
        for ap in [0, 1].repeat(1_000) {
            run.does(ap, 30 * US, Op::Read, ap, 10 * US);
        }
        let costs = Costs {
            processors,
            woken_ns,
            ..costs()
        };
        let outcome = run.script().replay(&costs, &Change::default());
        assert!(outcome.is_whole(), "{outcome:?}");
        outcome.length.0 / US
    };
    let near = |us: u64, expected: u64| us.abs_diff(expected) < expected / 50;
    let free = length(2, 5e3);
    assert!(near(free, 34_000), "{free}");
    // Two processes of 30 µs and 4 µs for messages; and a memory process and an application process woken for each.
    let shared = length(1, 0.0);
    assert!(near(shared, 68_000), "{shared}");
    let shared = length(1, 5e3);
    assert!(near(shared, 68_000 + 2 * 10_000), "{shared}");
}

#[test]
fn what_hands_messages_on_needs_a_processor_too() {
    // Two processes on one processor: what computes is later by what each message takes on its way.
    let mut run = Run::of(2);
    run.does(0, 30 * MS, Op::Read, 0, 0);
    for _ in 0..10 {
        run.does(1, 0, Op::Read, 1, 10 * US).bytes = 1000;
    }
    let length = |carried_ns: f64, carried_ns_per_byte: f64| {
        let costs = Costs {
            processors: 1,
            carried_ns,
            carried_ns_per_byte,
            ..costs()
        };
        run.script().replay(&costs, &Change::default()).length.0 / US
    };
    // There and back, eleven times.
    assert_eq!(length(50e3, 0.0) - length(0.0, 0.0), 22 * 50);
    // The content goes one way; the read of the first process has none.
    assert_eq!(length(0.0, 20.0) - length(0.0, 0.0), 10 * 20);
}

#[test]
fn what_nobody_waits_for_is_not_waited_for_at_a_barrier() {
    // Each process writes an object of its own, waits for no reply, and goes to a barrier.
    let length = |posted: bool| {
        let mut run = Run::of(2);
        for round in 0..10 {
            for ap in 0..2 {
                let record = run.does(ap, MS, Op::Write, ap, 10 * US);
                record.object.index = ap;
                record.flags.posted = posted;
            }
            run.barrier(round);
        }
        let costs = Costs {
            near_ns: 250e3,
            ..costs()
        };
        let outcome = run.script().replay(&costs, &Change::default());
        assert!(outcome.is_whole(), "{outcome:?}");
        outcome.length.0 / US
    };
    // However long the process was in its calls, as where others need the processors.
    let (waiting, posted) = (length(false), length(true));
    // A way there and back, ten times.
    assert!(
        (waiting - posted).abs_diff(5_000) < 100,
        "{waiting} {posted}"
    );
}

#[test]
fn a_message_between_memory_processes_takes_more_than_one_of_the_own() {
    let dear = Costs {
        between: 3.0,
        ..costs()
    };
    let length = |owner| {
        let mut run = Run::of(2);
        run.does(1, MS, Op::Read, owner, 100 * US);
        let outcome = run.script().replay(&dear, &Change::default());
        outcome.length.0 / US
    };
    // Two messages of two ends each, and as many three times as dear.
    assert_eq!(length(1), 1000 + 4);
    assert_eq!(length(0), 1000 + 4 + 4 * 3);
}

/// Process 1 writes eight elements one by one.
fn one_by_one() -> Run {
    let mut run = Run::of(2);
    for round in 0..10 {
        for i in 0..8 {
            let computing = if i == 0 { MS } else { 0 };
            run.does(1, computing, Op::Write, 0, 20 * US).range = (i, i + 1);
        }
        run.barrier(round);
    }
    run
}

#[test]
fn neighbours_are_one_access_where_they_are_to_be_together() {
    let before = one_by_one().replay(&Change::default());
    let together = |writes| Change {
        together: [(VarId(1), writes)].into(),
        ..Change::default()
    };
    let after = one_by_one().replay(&together(true));
    // Seven of eight, with four messages each.
    assert_eq!(before.messages - after.messages, 10 * 7 * 4);
    let saved = before.length - after.length;
    assert_eq!((saved.0 + 500) / US, 10 * 7 * 8);
    assert_eq!(one_by_one().replay(&together(false)), before);
}

#[test]
fn a_barrier_that_costs_nothing_is_still_waited_at() {
    let run = uneven(10);
    let free = Change {
        free_barriers: [VarId(100)].into(),
        ..Change::default()
    };
    let before = run.replay(&Change::default());
    let after = run.replay(&free);
    // Process 0 is always the last; only the reads are messages.
    assert_eq!(after.ended[0], Some(Nanos(10 * (3 * MS + 4 * US))));
    assert_eq!(after.messages, 2 * 10 * 2);
    assert!(before.ended[0] > after.ended[0] && before.messages > after.messages);
}

/// Process 0 works for ten milliseconds and writes, process 1 reads meanwhile until it sees that.
fn polling() -> Run {
    let mut run = Run::of(2);
    for round in 1..=5u64 {
        run.does(0, 10 * MS, Op::Acquire, 0, 10 * US).version = round - 1;
        run.does(0, 0, Op::Release, 0, 10 * US).version = round;
        for i in 0..10 {
            let version = if i == 9 { round } else { round - 1 };
            run.does(1, 0, Op::Read, 0, MS + 5 * US).version = version;
        }
        run.barrier(round as u32 - 1);
    }
    run
}

#[test]
fn who_reads_until_something_has_changed_reads_as_often_as_that_takes() {
    let all = polling().replay(&Change::default());
    assert!(
        all.length >= Nanos(50 * MS) && all.length < Nanos(51 * MS),
        "{all:?}"
    );
    // Eight microseconds each, not a millisecond as in the run: more than ten reads a round, of four messages.
    assert!(all.messages > 5 * 1000 * 4, "{all:?}");
    let told = Change {
        awaited: [OBJECT].into(),
        ..Change::default()
    };
    let told = polling().replay(&told);
    assert!(
        told.length <= all.length && told.messages < 5 * 50,
        "{told:?}"
    );
    // A change that was not recorded does not come: then it is reads as they were.
    let mut lost = polling();
    lost.records
        .retain(|r| r.op != Op::Release && r.op != Op::Acquire);
    let lost = lost.replay(&Change::default());
    assert!(lost.messages < 5 * 50 + 5 * 10 * 4, "{lost:?}");
}
