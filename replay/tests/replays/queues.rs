//! Work that processes take from a shared counter.

use dosmos_proto::{
    Cache, ElementType, GroupId, Layout, MpId, ObjectId, VarId, Variable, VariableSpec,
};
use dosmos_replay::{Change, Costs, Outcome};
use dosmos_trace::record::Op;

use crate::runs::{MS, Run, US, costs, scaled};

/// Each process takes something from a counter of process 0 this number of times, in turn while each has some left, and
/// works on it for a millisecond; then it looks once more and finds nothing, and goes to a barrier.
fn takes(times: [u64; 2], before_each: impl Fn(&mut Run, u32)) -> Run {
    let mut run = Run::of(2);
    run.barrier(0);
    for round in 0..=times[0].max(times[1]) {
        for (ap, times) in (0..2).zip(times) {
            if round <= times {
                before_each(&mut run, ap);
                let computing = if round == 0 { 0 } else { MS };
                let record = run.does(ap, computing, Op::Write, 0, 10 * US);
                record.flags.atomic = true;
            }
        }
    }
    end(&mut run);
    run
}

/// A barrier at which those that come first wait for the last one.
fn end(run: &mut Run) {
    let last = run.now.iter().copied().max().expect("a process");
    for ap in 0..2 {
        let waits = last - run.now[ap as usize] + 10 * US;
        let record = run.does(ap, 0, Op::Barrier, 0, waits);
        record.object = ObjectId::new(VarId(100), 1);
    }
}

fn replayed(run: &Run, costs: &Costs) -> Outcome {
    let outcome = run.script().replay(costs, &Change::default());
    assert!(outcome.is_whole(), "{outcome:?}");
    outcome
}

/// What is served by another memory process takes three milliseconds more.
fn far() -> Costs {
    Costs {
        far_ns: 1.5e6,
        ..costs()
    }
}

#[track_caller]
fn near(outcome: &Outcome, ms: u64) {
    let off = outcome.length.0.abs_diff(ms * MS);
    assert!(off < 4 * MS, "{ms} ms: {outcome:?}");
}

#[test]
fn who_comes_back_sooner_takes_more() {
    let run = takes([90, 30], |_, _| {});
    // 120 ms of work, whoever does it.
    near(&replayed(&run, &costs()), 60);
    // One does four times as much as the other: 96 and 24. As in the run the farther one would take 120 ms. The last work of that one, the
    // last look and the barriers come on top.
    near(&replayed(&run, &far()), 96 + 7);
}

#[test]
fn what_was_divided_evenly_stays_divided() {
    let run = takes([20, 20], |_, _| {});
    near(&replayed(&run, &costs()), 20);
    near(&replayed(&run, &far()), 20 * 4 + 7);
}

#[test]
fn what_one_took_more_of_by_chance_stays_with_it() {
    let run = takes([60, 46], |_, _| {});
    near(&replayed(&run, &costs()), 60);
}

#[test]
fn a_counter_that_is_read_as_well_deals_nothing_out() {
    let run = takes([30, 10], |run, ap| {
        run.does(ap, 0, Op::Read, 0, 10 * US);
    });
    near(&replayed(&run, &costs()), 30);
}

#[test]
fn a_section_that_lasts_beyond_the_work_keeps_it_with_its_process() {
    let lock = ObjectId::new(VarId(9), 0);
    let mut first = [true; 2];
    let mut run = Run::of(2);
    run.barrier(0);
    for round in 0..=30 {
        for (ap, times) in [(0u32, 30), (1, 10)] {
            if round > times {
                continue;
            }
            // Each section begins in one work and ends in the next.
            let object = ObjectId::new(lock.var, ap);
            if !std::mem::take(&mut first[ap as usize]) {
                run.does(ap, MS, Op::Release, ap, 10 * US).object = object;
            }
            run.does(ap, 0, Op::Acquire, ap, 10 * US).object = object;
            run.does(ap, 0, Op::Write, 0, 10 * US).flags.atomic = true;
        }
    }
    for ap in 0..2 {
        run.does(ap, 0, Op::Release, ap, 10 * US).object = ObjectId::new(lock.var, ap);
    }
    end(&mut run);
    near(&replayed(&run, &costs()), 30);
}

#[test]
fn with_more_processes_there_is_no_more_work() {
    let run = takes([30, 10], |_, _| {});
    for processes in [4, 8] {
        let outcome = scaled(&run, processes).expect("a run");
        near(&outcome, 40 / processes as u64);
        // Forty times something is taken, and once by each there is nothing left: four messages each, or two by who has the counter.
        let n = processes as u64;
        let barriers = 2 * (2 * n + 2 * (n - 1));
        let most = 4 * (40 + n) + barriers;
        let least = 2 * (40 + n) + barriers;
        assert!((least..=most).contains(&outcome.messages), "{outcome:?}");
    }
}

#[test]
fn with_fewer_processes_there_is_as_much_work() {
    let run = takes([30, 10], |_, _| {});
    let outcome = scaled(&run, 1).expect("a run");
    near(&outcome, 40);
    // Forty times something is taken, and once nothing is left; two barriers.
    assert_eq!(outcome.messages, 2 * (40 + 1 + 2), "{outcome:?}");
}

#[test]
fn the_counter_is_as_near_to_another_process_once_it_is_moved_there() {
    // Moved elsewhere, the counter is as near to the other.
    let run = takes([90, 30], |_, _| {});
    let elsewhere = Change {
        owners: [(crate::runs::OBJECT, MpId(1))].into(),
        ..Change::default()
    };
    let outcome = run.script().replay(&far(), &elsewhere);
    near(&outcome, 96 + 7);
}

#[test]
fn who_has_the_counter_to_itself_takes_without_messages() {
    let length = |cache: Cache| {
        let mut run = takes([90, 30], |_, _| {});
        let layout = Layout::new(ElementType::U64, (1, 1), (1, 1)).expect("a layout");
        let spec = VariableSpec::new("counter", layout).expect("a declaration");
        let spec = spec.with_cache(cache);
        let counter = Variable::new(crate::runs::OBJECT.var, spec, vec![MpId(0)], GroupId(0));
        run.variables.push(counter.expect("a variable"));
        // Ten milliseconds between each process and its memory process.
        let costs = Costs {
            near_ns: 10e6,
            ..costs()
        };
        replayed(&run, &costs).length.0 / MS
    };
    // With copies in memory processes only, both take half of the work: 60 times 21 ms. Once more there is nothing, and two barriers.
    let (messages, to_itself) = (length(Cache::Mp), length(Cache::Ap));
    assert!(messages.abs_diff(60 * 21 + 60) < 30, "{messages}");
    // The owner's process has the counter after three messages, up to 41 ms until the other one asks, for a millisecond each; and not
    // for the 20 ms of its return: 35 or so in 120 ms.
    assert!((400..600).contains(&to_itself), "{to_itself}");
}
