//! From single records to what the detectors know and say, where order and loss make it hard.

#![allow(clippy::unwrap_used)] // a test may

use dosmos_analysis::{Input, Kind, Profile, ProfileBuilder, Thresholds, analyse, conclude};
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, Component, EmpId, GroupId, GroupPath, MpId, Nanos, ObjectId, PhaseTimes, TopologyBuilder,
    VarId,
};
use dosmos_trace::query::{Breakdown, Catalog};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

const X: ObjectId = ObjectId {
    var: VarId(1),
    index: 0,
};

/// One group, `n` memory processes with an application process each.
fn catalog(n: u32) -> Catalog {
    Catalog {
        run: None,
        event_managers: vec!["emp0".into()],
        topology: TopologyBuilder {
            name: "test".into(),
            groups: vec![Group {
                path: GroupPath::from("g"),
                parent: None,
            }],
            memory_processes: (0..n)
                .map(|i| MemoryProcess {
                    name: format!("mp{i}"),
                    group: GroupId(0),
                    event_manager: EmpId(0),
                    link: false,
                })
                .collect(),
            application_processes: (0..n)
                .map(|i| ApplicationProcess {
                    name: format!("ap{i}"),
                    memory_process: MpId(i),
                })
                .collect(),
            event_managers: vec![EventManager {
                name: "emp0".into(),
            }],
        }
        .build()
        .unwrap(),
        ..Catalog::default()
    }
}

/// An access by `ap` to X, owned by memory process 0.
fn access(ap: u32, op: Op, (start, end): (u64, u64), wait: u64) -> Record {
    Record {
        start: Nanos(start),
        duration: Nanos(end - start),
        wait: Nanos(wait),
        service: Nanos(0),
        op,
        side: Side::Requester,
        origin: if ap == 0 {
            Origin::Local
        } else {
            Origin::Intra
        },
        flags: Flags::default(),
        object: X,
        ap: ApId(ap),
        mp: MpId(ap),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: 0,
        range: (0, 0),
    }
}

fn notice(ap: u32, at: u64) -> Record {
    let mut record = access(ap, Op::Acquire, (at, at), 0);
    record.side = Side::Owner;
    record.flags.waiting = true;
    record
}

fn profile(mut records: Vec<Record>) -> Profile {
    records.sort_by_key(|r| r.start);
    let mut builder = ProfileBuilder::new(catalog(3));
    records.iter().for_each(|r| builder.add(r));
    builder.finish(None)
}

#[test]
fn a_grant_that_is_recorded_before_its_waiting_notice_leaves_nobody_waiting() {
    // 1 asks at 5, its request is queued at 7, granted at 50: the record of the grant starts first.
    let seen = profile(vec![
        access(0, Op::Acquire, (0, 1), 0),
        access(1, Op::Acquire, (5, 52), 43),
        notice(1, 7),
        access(0, Op::Release, (50, 51), 0),
    ]);
    assert!(seen.objects[&X].waiting.is_empty());
    // Not granted yet: it waits.
    let seen = profile(vec![access(0, Op::Acquire, (0, 1), 0), notice(1, 7)]);
    let waiting = &seen.objects[&X].waiting;
    assert_eq!(
        (waiting.len(), waiting[0].ap, waiting[0].since),
        (1, ApId(1), Nanos(7))
    );
}

#[test]
fn sections_are_measured_from_grant_to_release_however_acquires_overlap() {
    let seen = profile(vec![
        access(0, Op::Acquire, (0, 10), 0),
        access(1, Op::Acquire, (5, 112), 100),
        access(2, Op::Acquire, (6, 214), 200),
        access(0, Op::Release, (110, 111), 0),
        access(0, Op::Acquire, (112, 320), 200),
        access(1, Op::Release, (212, 213), 0),
        access(2, Op::Release, (314, 315), 0),
        access(0, Op::Release, (420, 421), 0),
    ]);
    let x = &seen.objects[&X];
    assert_eq!((x.sections, x.hold), (4, Nanos(100 + 100 + 100 + 100)));
    assert!(x.held.is_empty());
    assert_eq!((x.hand_overs.count, x.hand_overs.returns), (3, 0));
}

/// Process 1 alone uses X; process 2 is active.
fn private() -> Vec<Record> {
    let mut records: Vec<Record> = (0..500)
        .map(|i| access(1, Op::Write, (i * 100, i * 100 + 50), 0))
        .collect();
    let mut other = access(2, Op::Read, (10, 20), 0);
    other.object = ObjectId::new(VarId(2), 0);
    records.push(other);
    records.sort_by_key(|r| r.start);
    records
}

fn analysed(catalog: Catalog) -> dosmos_analysis::Analysis {
    let records = private();
    let input = Input {
        catalog,
        records: &mut records.into_iter(),
        window: None,
    };
    analyse(input, &Thresholds::default())
}

#[test]
fn what_is_lacking_could_be_another_user() {
    let all = analysed(catalog(3));
    assert_eq!(all.findings.len(), 1, "{all:?}");
    assert_eq!(all.findings[0].kind, Kind::NoSharing);
    let symptoms = &all.findings[0].evidence["symptoms"];
    assert_eq!(symptoms[0]["kind"], "misplaced-owner");
    let mut lossy = catalog(3);
    (lossy.completeness.recorded, lossy.completeness.dropped) = (1_000, 10);
    let some = analysed(lossy);
    assert!(some.findings.is_empty() && (some.complete - 0.99).abs() < 1e-9);
    assert_eq!(some.withheld[0].kind, Kind::NoSharing);
    let mut sampled = catalog(3);
    sampled.completeness.sampling = 0.1;
    let little = analysed(sampled);
    assert!(little.findings.is_empty());
    assert!(
        little
            .withheld
            .iter()
            .all(|w| w.why.contains("only 10.0 %")),
        "{little:?}"
    );
}

/// Ten phases of 100: between barriers process 0 takes 90, process 1 takes 30. Of that, so much on a processor; none: they
/// do not say.
fn uneven(on_processor: Option<[u64; 2]>) -> Vec<(Kind, f64)> {
    let mut builder = ProfileBuilder::new(catalog(2));
    let mut times = Breakdown::default();
    for phase in 0..10 {
        for (ap, takes) in [(0, 90), (1, 30)] {
            let start = phase * 100;
            let mut barrier = access(ap, Op::Barrier, (start + takes, start + 100), 100 - takes);
            barrier.object = ObjectId::new(VarId(1 << 31), phase as u32);
            builder.add(&barrier);
            let mut piece = PhaseTimes {
                ap: ApId(ap),
                phase,
                start: Nanos(start),
                wall: Nanos(100),
                ..PhaseTimes::default()
            };
            let busy = on_processor.map_or(0, |busy| busy[ap as usize]);
            let mut spent = |on, time, calls| piece.spent.add(on, Nanos(time), calls);
            spent(Component::Busy, busy, 0);
            spent(Component::Service, takes - busy, 0);
            spent(Component::Barrier, 100 - takes, 1);
            times.phases.push(piece);
        }
    }
    if on_processor.is_some() {
        builder.times(times);
    }
    let findings = conclude(&builder.finish(None), &Thresholds::default()).findings;
    let kinds = findings.iter();
    kinds
        .map(|f| (f.kind, (f.severity * 100.0).round()))
        .collect()
}

#[test]
fn waiting_for_a_processor_is_no_work() {
    // A window of 970 (it begins with the first arrival): 9 phases × 60 lost, of two processes' time.
    let found = (Kind::Imbalance, 28.0);
    assert_eq!(uneven(None), [found]);
    assert_eq!(uneven(Some([90, 30])), [found]);
    // The machine was busy with others for two thirds of what process 0 took, and not while process 1 worked.
    assert_eq!(uneven(Some([30, 30])), [(Kind::SlowProcess, 28.0)]);
    // Both, as much as each explains: 9 × 40 without a processor, 9 × 20 of work.
    let both = [(Kind::SlowProcess, 19.0), (Kind::Imbalance, 9.0)];
    assert_eq!(uneven(Some([50, 30])), both);
    // Both are as long without a processor.
    assert_eq!(uneven(Some([70, 10])), [found]);
    // They sleep: what they do needs no processor.
    assert_eq!(uneven(Some([1, 1])), [found]);
}

/// Twenty phases of even work; of process 1 every second passage of the barrier is lost, and nothing counted that.
#[test]
fn silently_lost_barriers_are_no_imbalance() {
    let analysed = |lost: fn(u32, u64) -> bool| {
        let mut builder = ProfileBuilder::new(catalog(2));
        for phase in 0..20 {
            for (ap, takes) in [(0, 10), (1, 12)] {
                if lost(ap, phase) {
                    continue;
                }
                let start = phase * 100;
                let mut barrier =
                    access(ap, Op::Barrier, (start + takes, start + 100), 100 - takes);
                barrier.object = ObjectId::new(VarId(1 << 31), phase as u32);
                builder.add(&barrier);
            }
        }
        conclude(&builder.finish(None), &Thresholds::default())
    };
    let whole = analysed(|_, _| false);
    assert!(whole.findings.is_empty() && whole.withheld.is_empty());
    let silent = analysed(|ap, phase| ap == 1 && phase % 2 == 1);
    assert!(silent.findings.is_empty(), "{:?}", silent.findings);
    assert_eq!(silent.withheld.len(), 1);
    assert_eq!(silent.withheld[0].kind, Kind::Imbalance);
    let why = &silent.withheld[0].why;
    assert_eq!(why, "ap1 passed 9 barriers more than were recorded of it");
    // An opening that failed is recorded of nobody.
    let failed = analysed(|_, phase| phase % 2 == 1);
    assert!(failed.withheld.is_empty(), "{:?}", failed.withheld);
}

#[test]
fn what_one_produces_and_another_consumes_is_no_ping_pong() {
    let found = |writers: [bool; 2]| -> Vec<Kind> {
        let mut records = Vec::new();
        for turn in 0..100 {
            for ap in [0, 1] {
                let at = turn * 100 + u64::from(ap) * 50;
                let op = if writers[ap as usize] {
                    Op::Write
                } else {
                    Op::Read
                };
                records.push(access(ap, Op::Acquire, (at, at + 30), 10));
                records.push(access(ap, op, (at + 30, at + 35), 0));
                records.push(access(ap, Op::Release, (at + 35, at + 45), 0));
            }
        }
        let input = Input {
            catalog: catalog(2),
            records: &mut records.into_iter(),
            window: None,
        };
        let findings = analyse(input, &Thresholds::default()).findings;
        findings.iter().map(|f| f.kind).collect()
    };
    assert_eq!(found([true, true]), [Kind::PingPong]);
    // That one could read what the other has released without a lock is another matter.
    assert_eq!(found([true, false]), [Kind::ReadOnlyLocking]);
}

#[test]
fn the_way_to_a_process_is_no_work_in_a_section() {
    // Each call is recorded by the memory process: 30 to the application process and back lie between them.
    let section = |work: u64| {
        let seen = profile(vec![
            access(0, Op::Acquire, (0, 10), 0),
            access(0, Op::Read, (40, 45), 0),
            access(0, Op::Write, (75 + work, 80 + work), 0),
            access(0, Op::Release, (110 + work, 120 + work), 0),
        ]);
        seen.objects[&X].mean_section()
    };
    assert_eq!(section(0), (100.0, 0.0));
    assert_eq!(section(200), (300.0, 200.0));
}

#[test]
fn nothing_gives_nothing() {
    let input = Input {
        catalog: Catalog::default(),
        records: &mut std::iter::empty(),
        window: None,
    };
    let nothing = analyse(input, &Thresholds::default());
    assert!(nothing.findings.is_empty() && nothing.withheld.is_empty());
}

/// Reads of X by the second process, in itself: few records of many, or as many as there are reads.
fn cached(single: bool) -> Vec<Record> {
    let mut records = Vec::new();
    for i in 0..40u64 {
        let whole = Record {
            flags: Flags {
                in_process: true,
                ..Flags::default()
            },
            origin: Origin::Local,
            count: 101,
            bytes: 808,
            ..access(1, Op::Read, (i * 1_000 + 1, i * 1_000 + 801), 0)
        };
        match single {
            false => records.push(whole),
            true => records.extend((0..101).map(|i| Record {
                start: whole.spread().at(i),
                duration: Nanos(0),
                count: 1,
                bytes: 8,
                ..whole
            })),
        }
    }
    records
}

#[test]
fn records_of_many_accesses_give_the_sums_of_single_ones() {
    let with = |records: Vec<Record>| {
        let mut all = records;
        for i in 0..40u64 {
            all.push(access(0, Op::Write, (i * 1_000, i * 1_000 + 700), 0));
            all.push(access(2, Op::Read, (i * 1_000 + 3, i * 1_000 + 400), 0));
        }
        profile(all)
    };
    let (several, each) = (with(cached(false)), with(cached(true)));
    assert_eq!(several.objects[&X].by_ap, each.objects[&X].by_ap);
    assert_eq!(several.objects[&X].by_mp, each.objects[&X].by_mp);
    assert_eq!(several.objects[&X].bytes, each.objects[&X].bytes);
    assert_eq!((several.aps, several.costs), (each.aps, each.costs));
    assert_eq!(each.objects[&X].by_ap[&ApId(1)].counts.reads, 4_040);
}

#[test]
fn an_owner_far_from_who_reads_it_from_a_cache_is_where_it_belongs() {
    let uses = |in_process| {
        let mut records = Vec::new();
        for i in 0..400u64 {
            let at = i * 10_000;
            records.push(access(0, Op::Write, (at, at + 100), 0));
            let mut read = access(1, Op::Read, (at + 200, at + 5_000), 0);
            read.version = i;
            if in_process {
                (read.flags.in_process, read.origin) = (true, Origin::Local);
                read.duration = Nanos(0);
            }
            records.push(read);
            records.push(access(
                1,
                Op::Write,
                (at + 6_000, at + 6_000 + if in_process { 0 } else { 3_000 }),
                0,
            ));
            if in_process {
                let last = records.len() - 1;
                (records[last].flags.in_process, records[last].origin) = (true, Origin::Local);
            }
        }
        records.sort_by_key(|r| r.start);
        let input = Input {
            catalog: catalog(3),
            records: &mut records.into_iter(),
            window: None,
        };
        let found = analyse(input, &Thresholds::default()).findings;
        found.iter().any(|f| f.kind == Kind::MisplacedOwner)
    };
    assert!(uses(false));
    assert!(!uses(true));
}
