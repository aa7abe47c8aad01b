//! Costs that fit a run, and what they say of others: another transport, another number of processes.

use dosmos_model::inputs::NetworkRecord;
use dosmos_proto::{Component, Nanos, ObjectId, Spent, VarId};
use dosmos_replay::{Calibrated, Change, Costs, Outcome, Scale, Technology};
use dosmos_trace::record::Op;

use crate::runs::{MS, Run, US, costs, owned_by, scaled};

#[test]
fn costs_are_fitted_to_the_run_and_the_gain_says_how_far_they_matter() {
    let mut run = Run::of(2);
    for _ in 0..100 {
        run.does(1, MS, Op::Read, 0, MS);
    }
    let fitted = Calibrated::new(run.script(), &costs()).expect("a replay");
    let (plain, fit) = fitted.errors();
    assert!(plain < -0.4 && fit.abs() < 0.01, "{plain} {fit}");
    let gain = fitted.gain(&owned_by(1)).expect("a gain");
    // The millisecond that a read took at its memory process was the way to the owner and back.
    assert!((gain.gain - 0.5).abs() < 0.01, "{gain:?}");
    assert!(gain.least < 0.01 && gain.most == gain.gain, "{gain:?}");
    let none = fitted.gain(&Change::default()).expect("a gain");
    assert_eq!((none.gain, none.least, none.most), (0.0, 0.0, 0.0));
    assert!(!none.differs);
}

#[test]
fn what_nobody_waits_for_gains_nothing_and_differs() {
    let mut run = Run::of(2);
    for _ in 0..10 {
        run.does(1, 10 * US, Op::Read, 0, 100 * US);
    }
    run.does(0, 100 * MS, Op::Read, 0, 10 * US);
    let fitted = Calibrated::new(run.script(), &costs()).expect("a replay");
    let nearer = fitted.gain(&owned_by(1)).expect("a gain");
    assert!(nearer.gain.abs() < 0.002 && nearer.differs, "{nearer:?}");
}

/// No access goes to another memory process. By how much longer it would take is what was measured.
#[test]
fn ways_that_no_access_took_are_as_much_longer_as_the_microbenchmark_says() {
    let far = |far_ns: f64| {
        let mut run = Run::of(2);
        for _ in 0..100 {
            run.does(0, 10 * US, Op::Read, 0, 100 * US);
            run.does(1, 10 * US, Op::Read, 1, 100 * US);
        }
        let given = Costs { far_ns, ..costs() };
        let fitted = Calibrated::new(run.script(), &given).expect("a replay");
        fitted.costs().far_ns
    };
    let [near, longer] = [0.0, 50e3].map(far);
    assert!((longer - near - 50e3).abs() < 1e3, "{near} {longer}");
}

#[test]
fn software_takes_what_memory_processes_say_that_it_took() {
    let mut run = Run::of(1);
    for _ in 0..100 {
        run.does(0, 10 * US, Op::Read, 0, 100 * US);
    }
    // Each read has two ends at the memory process, which was never idle for long.
    run.serving = Some(100 * 2 * 3 * US);
    let fitted = Calibrated::new(run.script(), &costs()).expect("a replay");
    let end = fitted.costs().end_ns;
    assert!((end - 3e3).abs() < 30.0, "{end}");
    // What is not told of all is not known.
    run.serving = None;
    let unknown = Calibrated::new(run.script(), &costs()).expect("a replay");
    assert_eq!(unknown.costs().end_ns, 1e3);
    // What was measured was messages between memory processes: then none takes more than that.
    let dear = Costs {
        between: 3.0,
        ..costs()
    };
    let unknown = Calibrated::new(run.script(), &dear).expect("a replay");
    let costs = unknown.costs();
    assert_eq!((costs.end_ns, costs.between), (1e3, 1.0));
}

/// Processes that take a lock in turn; each turn takes so long.
fn in_turn(processes: u32, turn: u64) -> Run {
    let mut run = Run::of(processes);
    let mut version = 0;
    for round in 0..20 {
        for ap in 0..processes {
            // It asks when it is done, and waits for all others.
            let waits = if round == 0 {
                u64::from(ap + 1)
            } else {
                u64::from(processes)
            };
            run.does(ap, 0, Op::Acquire, 0, waits * turn - turn / 4)
                .version = version;
            version += 1;
            run.does(ap, 0, Op::Release, 0, turn / 4).version = version;
        }
    }
    run
}

#[test]
fn costs_are_as_near_to_the_run_as_any_where_none_fit() {
    // The longer a turn takes, the more of them sleep meanwhile and have to be woken, which takes longer: the length jumps.
    let slow = Costs {
        woken_ns: 10e3,
        wake_ns: 30e3,
        ..costs()
    };
    for turn in [30, 40, 50, 60] {
        let run = in_turn(16, turn * US);
        let fitted = Calibrated::new(run.script(), &slow).expect("a replay");
        let (_, fit) = fitted.errors();
        assert!(fit.abs() < 0.02, "a turn of {turn} us: off by {fit}");
    }
}

/// Four processes that compute together on two processors; each says that it had one for a millisecond and for `without` none.
fn crowded(without: u64) -> Run {
    let mut run = Run::of(4);
    for round in 0..50 {
        for ap in 0..4 {
            run.does(ap, MS + without, Op::Read, ap, 10 * US);
            let spent = &mut run.spent[ap as usize].spent;
            *spent = Spent::default();
            spent.add(Component::Busy, Nanos(MS * (round + 1)), 0);
            spent.add(Component::Service, Nanos(without * (round + 1)), 0);
        }
        run.barrier(round as u32);
    }
    run
}

#[test]
fn what_takes_longer_where_processors_are_shared_is_theirs_and_not_of_the_messages() {
    let two = Costs {
        processors: 2,
        ..costs()
    };
    // As long without a processor as with one, and half as long again.
    for (without, expected) in [(MS, 1.0), (3 * MS / 2, 0.8)] {
        let fitted = Calibrated::new(crowded(without).script(), &two).expect("a replay");
        let (_, fit) = fitted.errors();
        assert!(fit.abs() < 0.02, "off by {fit}");
        let shared = fitted.costs().shared;
        assert!((shared - expected).abs() < 0.05, "{shared}");
        // With a processor for each, all of that time is saved.
        let change = Change {
            processors: Some(4),
            ..Change::default()
        };
        let gain = fitted.gain(&change).expect("a gain").gain;
        let saved = without as f64 / (MS + without) as f64;
        assert!((gain - saved).abs() < 0.05, "{gain} of {saved}");
    }
    // Nobody shares anything here: nothing is known of it.
    let four = Costs {
        processors: 4,
        shared: 0.7,
        ..costs()
    };
    let fitted = Calibrated::new(crowded(MS).script(), &four).expect("a replay");
    assert_eq!(fitted.costs().shared, 0.7);
}

#[test]
fn of_a_run_with_room_the_messages_say_what_shared_processors_will_do() {
    let two = Costs {
        processors: 2,
        shared: 0.5,
        ..costs()
    };
    let of = |computing: u64| {
        let mut run = Run::of(2);
        for _ in 0..50 {
            for ap in 0..2 {
                run.does(ap, computing, Op::Read, ap, 10 * US);
            }
        }
        let eight = Scale {
            processes: Some(8),
            ..Scale::default()
        };
        let fitted = Calibrated::new(run.script(), &two).expect("a replay");
        let scaled = fitted.scaled(&eight).expect("a run");
        (fitted.costs().shared, scaled.costs().shared)
    };
    let ((here, computes), (_, asks)) = (of(10 * MS), of(US));
    // Nobody shares anything in the run itself.
    assert_eq!(here, 0.5);
    assert!((computes - 1.0 / 1.04).abs() < 0.01, "{computes}");
    assert!(asks < computes - 0.05 && asks > 0.6, "{asks}");
}

#[test]
fn who_has_no_processor_although_there_are_some_sleeps() {
    let mut run = Run::of(1);
    for _ in 0..50 {
        run.does(0, 2 * MS, Op::Read, 0, 10 * US);
    }
    let spent = &mut run.spent[0].spent;
    let waits = spent.time(Component::Local);
    *spent = Spent::default();
    spent.add(Component::Local, waits, 50);
    spent.add(Component::Busy, Nanos(50 * MS), 0);
    spent.add(Component::Service, Nanos(50 * MS), 0);
    let fitted = Calibrated::new(run.script(), &costs()).expect("a replay");
    // Twice the processors do not wake it.
    let outcome = fitted.script().replay(&costs(), &Change::default());
    let off = outcome.length.0.abs_diff(100 * MS);
    assert!(off < 2 * MS, "{outcome:?}");
}

#[test]
fn another_transport_is_as_much_dearer_as_microbenchmarks_say() {
    let mut run = Run::of(2);
    for _ in 0..100 {
        run.does(1, MS, Op::Read, 0, 8 * US);
    }
    let fitted = Calibrated::new(run.script(), &costs()).expect("a replay");
    let here = NetworkRecord::typical();
    let length = |end_us: f64, read_us: f64| {
        let mut there = here.clone();
        there.network.segments[0].total_us[0] += end_us;
        there.hop.read_us[0] += read_us;
        let there = fitted.expected(&Change::default(), &here, &there);
        there.expect("an end").0 as f64 / 100.0 / US as f64
    };
    let same = length(0.0, 0.0);
    assert!((same - 1008.0).abs() < 5.0, "{same}");
    // Each read has four ends of messages between memory processes, and as many of the hop.
    let far = length(3.0, 0.0) - same;
    assert!((far - 4.0 * 3.0).abs() < 0.5, "{far}");
    let near = length(0.0, 8.0) - same;
    assert!((near - 8.0).abs() < 0.5, "{near}");
}

#[test]
fn of_another_number_of_processes_each_does_what_one_at_its_place_did() {
    // Each reads its own object and that of the other, and both write one that process 0 owns.
    let mut run = Run::of(2);
    run.barrier(0);
    for round in 1..=10 {
        for ap in 0..2 {
            run.does(ap, 2 * MS, Op::Read, ap, 10 * US).object.index = 1 + ap;
            run.does(ap, 2 * MS, Op::Read, 1 - ap, 10 * US).object.index = 2 - ap;
            run.does(ap, 0, Op::Write, 0, 10 * US);
        }
        run.barrier(round);
    }
    let fitted = Calibrated::new(run.script(), &costs()).expect("a replay");
    let of = |processes: Option<usize>, work: f64| {
        let scale = Scale {
            processes,
            work,
            ..Scale::default()
        };
        let scaled = fitted.scaled(&scale).expect("a run");
        let outcome = scaled.script().replay(&costs(), &Change::default());
        assert!(outcome.is_whole(), "{outcome:?}");
        outcome
    };
    let near = |outcome: &Outcome, ms: u64| {
        let off = outcome.length.0.abs_diff(ms * MS);
        assert!(off < MS, "{outcome:?}");
    };
    let two = of(None, 1.0);
    near(&two, 40);
    near(&of(None, 2.0), 80);
    let four = of(Some(4), 1.0);
    near(&four, 20);
    assert_eq!(four.ended.len(), 4);
    near(&of(Some(1), 1.0), 80);
    // Two messages there and back for each operation and each remote one, and for barriers.
    assert!(four.messages > 2 * two.messages - 40, "{four:?} {two:?}");
    // What one computes alone is not divided.
    run.does(0, 30 * MS, Op::Read, 0, 10 * US);
    for (ap, waits) in [(0, 0), (1, 30 * MS)] {
        let record = run.does(ap, 0, Op::Barrier, 0, waits + 20 * US);
        record.object = ObjectId::new(VarId(100), 11);
    }
    run.barrier(12);
    near(&scaled(&run, 4).expect("a run"), 20 + 30);
    let is_told = |processes| scaled(&run, processes).is_some();
    assert!(is_told(3) && !is_told(0));
    // Nobody waits for the answer, or has the memory.
    assert!(!is_told(4_000_000_000) && !is_told(usize::MAX));
}

#[test]
fn what_is_computed_and_sent_faster_takes_less_and_longer_ways_take_longer() {
    // Ten times a millisecond of computing, and a read at another memory process with 8 bytes: four messages of two ends each, so nothing
    // is on the way.
    let mut run = Run::of(2);
    for _ in 0..10 {
        run.does(0, MS, Op::Read, 1, 8 * US);
    }
    let fitted = Calibrated::new(run.script(), &costs()).expect("a replay");
    let saved = |technology: Technology| {
        let other = fitted.with_technology(&technology);
        let gain = other.gain(&Change::default()).expect("a replay").gain;
        gain * run.script().measured().0 as f64 / 1e3
    };
    let near = |saved: f64, expected: f64| {
        assert!(
            (saved - expected).abs() < 100.0,
            "{saved} and not {expected}"
        );
    };
    near(saved(Technology::default()), 0.0);
    let speed = Technology {
        speed: 2.0,
        ..Technology::default()
    };
    near(saved(speed), 10.0 * 500.0);
    let longer = Technology {
        way_ns: 200e3,
        way_ns_per_byte: 1e4,
        ..Technology::default()
    };
    // Two of the messages are between memory processes, one of which has the content.
    near(saved(longer), -10.0 * (2.0 * 200.0 + 80.0));
}
