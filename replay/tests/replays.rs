//! Replays of small runs whose lengths can be worked out by hand.

use dosmos_model::inputs::NetworkRecord;
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, Component, CopyPolicy, EmpId, GroupId, GroupPath, MpId, Nanos, ObjectId, PhaseTimes,
    TopologyBuilder, VarId,
};
use dosmos_replay::{Calibrated, Change, Costs, Outcome, Scale, Script, ScriptBuilder};
use dosmos_trace::query::{Breakdown, Catalog};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// An end of a message takes 1 µs of a processor; nothing else takes time.
fn costs() -> Costs {
    Costs {
        end_ns: 1e3,
        end_ns_per_byte: 0.0,
        between: 1.0,
        serve_ns: 0.0,
        near_ns: 0.0,
        far_ns: 0.0,
        link_ns: 0.0,
        way_ns_per_byte: 0.0,
        woken_ns: 0.0,
        wake_ns: 0.0,
        processors: 8,
    }
}

fn catalog(processes: u32) -> Catalog {
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

const OBJECT: ObjectId = ObjectId {
    var: VarId(1),
    index: 0,
};

/// A run that is written down operation by operation. Each process computes a millisecond before each operation.
struct Run {
    records: Vec<Record>,
    /// When each process is done with what it did so far.
    now: Vec<u64>,
    spent: Vec<PhaseTimes>,
    /// What each memory process says that serving took of a processor; none: they do not say it.
    serving: Option<u64>,
}

impl Run {
    fn of(processes: u32) -> Self {
        let times = |ap| PhaseTimes {
            ap: ApId(ap),
            ..PhaseTimes::default()
        };
        Self {
            records: Vec::new(),
            now: vec![0; processes as usize],
            spent: (0..processes).map(times).collect(),
            serving: None,
        }
    }

    /// `ap` computes for `computing`, then does `op` on an object of `owner`, which takes `takes`.
    fn does(&mut self, ap: u32, computing: u64, op: Op, owner: u32, takes: u64) -> &mut Record {
        let now = &mut self.now[ap as usize];
        let start = Nanos(*now + computing);
        *now = start.0 + takes;
        let spent = &mut self.spent[ap as usize];
        spent.spent.add(Component::Busy, Nanos(computing), 0);
        spent.spent.add(Component::Fault, Nanos(takes), 1);
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

    fn barrier(&mut self, generation: u32) {
        for ap in 0..self.now.len() as u32 {
            let record = self.does(ap, 0, Op::Barrier, 0, 10 * US);
            record.object = ObjectId::new(VarId(100), generation);
        }
        let all = self.now.iter().copied().max().expect("a process");
        self.now.iter_mut().for_each(|now| *now = all);
    }

    fn script(&self) -> Script {
        let mut builder = ScriptBuilder::new(catalog(self.now.len() as u32));
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

    fn replay(&self, change: &Change) -> Outcome {
        let outcome = self.script().replay(&costs(), change);
        assert!(outcome.is_whole(), "{outcome:?}");
        outcome
    }
}

#[track_caller]
fn takes(outcome: &Outcome, expected_us: u64) {
    let us = (outcome.length.0 + 500) / US;
    assert_eq!(us, expected_us, "{outcome:?}");
}

fn owned_by(mp: u32) -> Change {
    Change {
        owners: [(OBJECT, MpId(mp))].into(),
        ..Change::default()
    }
}

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
    // With no processor that sleeps, only what waking costs of a processor is left.
    let mut run = Run::of(2);
    run.does(0, MS, Op::Read, 0, 20 * US);
    run.does(1, 3 * MS, Op::Read, 1, 20 * US);
    let one = Costs {
        processors: 1,
        ..slow
    };
    let length = run.script().replay(&one, &Change::default()).length;
    assert!(length.0 / US < 4000 + 2 * (4 + 5) + 21, "{length}");
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
    let alone = Calibrated::new(run.script(), &costs()).expect("a replay");
    let scale = Scale {
        processes: Some(4),
        ..Scale::default()
    };
    let alone = alone.scaled(&scale).expect("a run");
    near(
        &alone.script().replay(&costs(), &Change::default()),
        20 + 30,
    );
    let topology = |processes| {
        let scale = Scale {
            processes: Some(processes),
            ..Scale::default()
        };
        fitted.scaled(&scale).is_some()
    };
    assert!(topology(3) && !topology(0));
    // Nobody waits for the answer, or has the memory.
    assert!(!topology(4_000_000_000) && !topology(usize::MAX));
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
