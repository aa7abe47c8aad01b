//! Runs with a known critical path and known causes of waits, and random ones.

#![allow(clippy::unwrap_used)] // a test may

use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, EmpId, GroupId, GroupPath, MpId, Nanos, ObjectId, TopologyBuilder, VarId,
};
use dosmos_testseeds::Random;
use dosmos_trace::query::{BarrierName, Breakdown, Catalog};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

use super::{CriticalPath, Delay, PathBuilder};

const ALL: VarId = VarId(1 << 31);
const NORTH: VarId = VarId((1 << 31) + 1);
const SOUTH: VarId = VarId((1 << 31) + 2);

/// Two groups, half of the processes in each; barriers of all and of the groups.
fn catalog(processes: u32) -> Catalog {
    let top = GroupPath::top("all");
    let group = |path: GroupPath, parent| Group { path, parent };
    let barrier = |id, group, name: &str| BarrierName {
        id,
        group,
        name: name.to_owned(),
    };
    Catalog {
        topology: TopologyBuilder {
            name: "test".into(),
            groups: vec![
                group(top.clone(), None),
                group(top.child("north"), Some(GroupId(0))),
                group(top.child("south"), Some(GroupId(0))),
            ],
            memory_processes: (0..2)
                .map(|i| MemoryProcess {
                    name: format!("mp{i}"),
                    group: GroupId(i + 1),
                    event_manager: EmpId(0),
                    link: false,
                })
                .collect(),
            application_processes: (0..processes)
                .map(|i| ApplicationProcess {
                    name: format!("ap{i}"),
                    memory_process: MpId(u32::from(i >= processes.div_ceil(2))),
                })
                .collect(),
            event_managers: vec![EventManager {
                name: "emp0".into(),
            }],
        }
        .build()
        .unwrap(),
        barriers: vec![
            barrier(ALL, None, "solve"),
            barrier(NORTH, Some(GroupId(1)), "north"),
            barrier(SOUTH, Some(GroupId(2)), "south"),
        ],
        ..Catalog::default()
    }
}

fn record(ap: u32, op: Op, object: (VarId, u32), (start, end): (u64, u64), wait: u64) -> Record {
    Record {
        start: Nanos(start),
        duration: Nanos(end - start),
        wait: Nanos(wait),
        service: Nanos(0),
        op,
        side: Side::Requester,
        origin: Origin::Local,
        flags: Flags::default(),
        object: ObjectId::new(object.0, object.1),
        ap: ApId(ap),
        mp: MpId(0),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: 0,
        range: (0, 0),
    }
}

const X: (VarId, u32) = (VarId(1), 2);

fn read(ap: u32, at: (u64, u64)) -> Record {
    record(ap, Op::Read, (VarId(2), 0), at, 0)
}
fn acquire(ap: u32, at: (u64, u64), wait: u64) -> Record {
    record(ap, Op::Acquire, X, at, wait)
}
fn release(ap: u32, at: (u64, u64)) -> Record {
    record(ap, Op::Release, X, at, 0)
}
fn barrier(ap: u32, name: VarId, generation: u32, at: (u64, u64)) -> Record {
    record(ap, Op::Barrier, (name, generation), at, at.1 - at.0)
}

fn found(processes: u32, mut records: Vec<Record>) -> (CriticalPath, Vec<Delay>) {
    records.sort_by_key(|r| r.start);
    let catalog = catalog(processes);
    let mut builder = PathBuilder::new(&catalog);
    records.iter().for_each(|r| builder.add(r));
    let (path, delays) = builder.finish(&catalog, &Breakdown::default());
    (path.unwrap(), delays)
}

/// Parts of the path, in order of their lengths.
fn parts(path: &CriticalPath) -> Vec<(&str, &str, u64)> {
    let parts = path.parts.iter();
    parts
        .map(|p| (p.process.as_deref().unwrap_or(""), p.doing, p.time_ns))
        .collect()
}

fn texts(delays: &[Delay]) -> Vec<&str> {
    delays.iter().map(|d| d.text.as_str()).collect()
}

#[test]
fn the_slow_process_is_the_path_and_is_waited_for() {
    let mut records: Vec<Record> = (0..4).map(|ap| read(ap, (0, 10))).collect();
    for ap in 0..4 {
        let arrives = if ap == 3 { 1_000 } else { 100 };
        records.push(barrier(ap, ALL, 1, (arrives, 1_010)));
        records.push(read(ap, (1_010, 1_020)));
    }
    let (path, delays) = found(4, records);
    assert_eq!(path.length_ns, 1_020);
    assert_eq!(
        parts(&path)[..2],
        [("ap3", "computing", 990), ("ap3", "access", 20)]
    );
    assert_eq!(
        texts(&delays),
        [
            "ap3 was waited for by 3 others at barrier solve (2.7 µs together, 66 % of process time), because it computed \
             longer than they did"
        ]
    );
    assert_eq!((delays[0].waited_ns, delays[0].times), (2_700, 1));
    assert!(delays[0].path_share.unwrap() > 0.99);
}

#[test]
fn in_a_convoy_each_waits_for_the_one_before() {
    // Everybody wants the object at 0 and holds it for 100, computing.
    let mut records = vec![acquire(0, (0, 0), 0), release(0, (100, 110))];
    for ap in 1..4 {
        let granted = u64::from(ap) * 110;
        records.push(acquire(ap, (1, granted), granted - 1));
        records.push(release(ap, (granted + 100, granted + 110)));
    }
    let (path, delays) = found(4, records);
    assert_eq!(path.length_ns, 440);
    let computing: Vec<_> = parts(&path)
        .into_iter()
        .filter(|p| p.1 == "computing")
        .collect();
    assert_eq!(
        computing,
        ["ap0", "ap1", "ap2", "ap3"].map(|ap| (ap, "computing", 100))
    );
    // For ap0 three waited 109, for ap1 two 110, for ap2 one.
    let waited: Vec<_> = delays
        .iter()
        .map(|d| (d.process.as_deref().unwrap(), d.waited_ns, d.waiting.len()))
        .collect();
    assert_eq!(waited, [("ap0", 327, 3), ("ap1", 220, 2), ("ap2", 110, 1)]);
    assert!(
        delays
            .iter()
            .all(|d| (d.at, d.because) == ("lock", "computing"))
    );
    assert_eq!(path.unexplained_ns, 0);
}

/// ap1 holds the object long, ap3 waits for it, and all others wait for ap3 at the barrier.
fn late_holder() -> Vec<Record> {
    let mut records: Vec<Record> = (0..6).map(|ap| read(ap, (0, 10))).collect();
    records.extend([acquire(1, (20, 30), 0), release(1, (830, 840))]);
    records.extend([acquire(3, (50, 840), 785), release(3, (850, 860))]);
    for ap in 0..6 {
        let arrives = match ap {
            1 => 845,
            3 => 870,
            _ => 100,
        };
        records.push(barrier(ap, ALL, 7, (arrives, 880)));
    }
    records
}

#[test]
fn who_is_late_because_of_a_holder_names_the_holder() {
    let (path, delays) = found(6, late_holder());
    assert_eq!(path.length_ns, 880);
    // The chain: ap1 computes in its section until 830 and releases; ap3 goes on.
    assert_eq!(parts(&path)[0], ("ap1", "computing", 810));
    let at_barrier = delays.iter().find(|d| d.at == "barrier").unwrap();
    assert_eq!(at_barrier.waiting.len(), 5);
    assert!(
        at_barrier
            .text
            .ends_with("because it waited for var#1[2] held by ap1, which computed meanwhile"),
        "{}",
        at_barrier.text
    );
    assert!(at_barrier.path_share.unwrap() > 0.9, "ap1 is the cause");
    let at_lock = delays.iter().find(|d| d.at == "lock").unwrap();
    assert_eq!(at_lock.process.as_deref(), Some("ap1"));
    assert_eq!(at_lock.waited_ns, 785);
}

#[test]
fn failed_counted_and_in_process_records_are_no_waits() {
    let mut records = late_holder();
    let mut failed = acquire(0, (20, 90), 70);
    failed.flags.failed = true;
    let mut counted = acquire(5, (20, 90), 60);
    counted.count = 10;
    let mut inside = release(2, (20, 90));
    inside.flags.in_process = true;
    let mut waiting = acquire(4, (50, 60), 5);
    waiting.flags.waiting = true;
    let (_, before) = found(6, records.clone());
    records.extend([failed, counted, inside, waiting]);
    let (path, after) = found(6, records);
    let waited = |delays: &[Delay]| -> Vec<u64> { delays.iter().map(|d| d.waited_ns).collect() };
    assert_eq!(waited(&before), waited(&after));
    assert_eq!(path.length_ns, 880);
}

#[test]
fn a_group_waits_for_its_own_members_and_all_for_the_late_group() {
    let mut records: Vec<Record> = (0..4).map(|ap| read(ap, (0, 10))).collect();
    for ap in 0..4 {
        let south = ap >= 2;
        let (name, open) = if south { (SOUTH, 910) } else { (NORTH, 210) };
        let arrives = match ap {
            1 => 200,
            2 => 900,
            _ => 50,
        };
        records.push(barrier(ap, name, 1, (arrives, open)));
        records.push(read(ap, (open, open + 10)));
        let arrives = open + 20 + u64::from(ap);
        records.push(barrier(ap, ALL, 1, (arrives, 950)));
    }
    let (path, delays) = found(4, records);
    assert_eq!(path.length_ns, 950);
    assert_eq!(parts(&path)[0].0, "ap2");
    let of = |name: &str| delays.iter().find(|d| d.of == name).unwrap();
    let north = of("barrier north");
    assert_eq!(north.process.as_deref(), Some("ap1"));
    assert_eq!(
        (&north.waiting[..], north.waited_ns),
        (&["ap0".to_owned()][..], 150)
    );
    let south = of("barrier south");
    assert_eq!(south.process.as_deref(), Some("ap2"));
    // ap3 arrives last of all, because it waited for ap2.
    let all = of("barrier solve");
    assert_eq!(all.process.as_deref(), Some("ap3"));
    assert!(
        all.text
            .ends_with("because it waited at barrier south for ap2"),
        "{}",
        all.text
    );
}

#[test]
fn releases_that_wait_for_copies_are_a_row_of_their_own() {
    let mut slow = release(0, (20, 520));
    slow.wait = Nanos(480);
    let records = vec![
        acquire(0, (0, 10), 0),
        slow,
        acquire(1, (15, 525), 500),
        release(1, (530, 540)),
    ];
    let (_, delays) = found(2, records);
    let lock = delays.iter().find(|d| d.at == "lock").unwrap();
    assert_eq!(lock.because, "copies");
    let copies = delays.iter().find(|d| d.at == "copies").unwrap();
    assert_eq!((copies.process.as_ref(), copies.waited_ns), (None, 480));
}

#[test]
fn what_is_missing_is_said() {
    let catalog = Catalog {
        completeness: dosmos_trace::query::Completeness {
            recorded: 2,
            dropped: 5,
            ..Default::default()
        },
        ..catalog(2)
    };
    let mut builder = PathBuilder::new(&catalog);
    builder.add(&read(0, (0, 10)));
    builder.add(&acquire(1, (5, 100), 90));
    let (path, delays) = builder.finish(&catalog, &Breakdown::default());
    let path = path.unwrap();
    assert!(!path.complete && delays.is_empty());
    assert_eq!(path.unexplained_ns, 90);
    assert!(path.summary.contains("not everything was recorded"));
    assert!(path.summary.contains("have no recorded cause"));
}

#[test]
fn without_records_there_is_no_path() {
    let catalog = catalog(2);
    let (path, delays) = PathBuilder::new(&catalog).finish(&catalog, &Breakdown::default());
    assert!(path.is_none() && delays.is_empty());
}

/// A run in which processes compute, read, work in sections and pass barriers, at random; some times overlap, some records
/// are lost.
fn random_run(random: &mut Random, processes: u32) -> Vec<Record> {
    let mut now = vec![random.below(50); processes as usize];
    let mut free = [0; 3];
    let mut records = Vec::new();
    for generation in 0..1 + random.below(8) as u32 {
        for _ in 0..random.below(60) {
            let ap = random.below(u64::from(processes)) as u32;
            let at = &mut now[ap as usize];
            let start = *at + random.below(100);
            match random.below(3) {
                0 => {
                    let end = start + random.below(50);
                    records.push(read(ap, (start, end)));
                    // Asynchronous: the next one may begin before it ends.
                    *at = if random.below(4) == 0 { start } else { end };
                }
                _ => {
                    let lock = random.below(3) as usize;
                    let object = (VarId(1), lock as u32);
                    let granted = free[lock].max(start) + 2;
                    let wait = granted - start - 2;
                    records.push(record(ap, Op::Acquire, object, (start, granted), wait));
                    let release = granted + random.below(80);
                    let over = release + random.below(20);
                    records.push(record(ap, Op::Release, object, (release, over), 0));
                    (free[lock], *at) = (over, over);
                }
            }
        }
        let open = now.iter().max().unwrap() + 5;
        for ap in 0..processes {
            let arrives = std::mem::replace(&mut now[ap as usize], open);
            records.push(barrier(ap, ALL, generation, (arrives, open)));
        }
    }
    if random.below(4) == 0 {
        records.retain(|_| random.below(20) > 0);
    }
    records
}

#[test]
fn the_parts_of_the_path_add_up_to_the_length_of_random_runs() {
    let seed = dosmos_testseeds::seed();
    for case in 0..u64::from(dosmos_testseeds::cases(500)) {
        let mut random = Random::new(seed.wrapping_add(case));
        let processes = 1 + random.below(9) as u32;
        let records = random_run(&mut random, processes);
        let Some(begin) = records.iter().map(|r| r.start).min() else {
            continue;
        };
        let end = records.iter().map(Record::end).max().unwrap();
        if end == begin {
            continue;
        }
        let (path, delays) = found(processes, records);
        assert_eq!(path.length_ns, (end - begin).0, "case {case}");
        let sum: u64 = path.parts.iter().map(|p| p.time_ns).sum();
        assert_eq!(sum, path.length_ns, "case {case}");
        assert!(delays.iter().all(|d| d.share <= 1.0), "case {case}");
    }
}
