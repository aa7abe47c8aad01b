//! An event manager message by message, without its connections and its store: what it takes, what is to be written, and what
//! follows once that is on disk.

#![allow(clippy::unwrap_used)] // a test may

use dosmos_emp::core::{BatchError, Dictionary, Durable, Full, Manager};
use dosmos_proto::clock::ClockEstimate;
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, ElementType, EmpId, GroupId, GroupPath, Incarnation, Layout, MAX_DECLARED_BYTES, MpId,
    Nanos, ObjectId, ProcessCounters, Topology, TopologyBuilder, VarId, Variable, VariableSpec,
    wire,
};
use dosmos_trace::meta::{HandOver, SecondaryContent};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use dosmos_trace::selection::{Mode, Selection};
use dosmos_trace::store::{Commit, Event, Item};

const ME: EmpId = EmpId(0);
const OTHER: EmpId = EmpId(1);
const MP: MpId = MpId(0);
const FIRST: Incarnation = Incarnation::new(1, 7);
const SECOND: Incarnation = Incarnation::new(2, 7);

/// Three memory processes; the second reports to the other event manager.
fn topology() -> Topology {
    let mut topology = TopologyBuilder {
        name: "manager".into(),
        groups: vec![Group {
            path: GroupPath::top("a"),
            parent: None,
        }],
        ..TopologyBuilder::default()
    };
    for n in 0..2 {
        topology.event_managers.push(EventManager {
            name: format!("emp{n}"),
        });
    }
    for n in 0..3 {
        topology.memory_processes.push(MemoryProcess {
            name: format!("mp{n}"),
            group: GroupId(0),
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

fn manager() -> Manager {
    Manager::new(topology(), ME, Selection::default(), [])
}

fn variable(id: u32, owners: usize) -> Variable {
    let layout = Layout::new(ElementType::F64, (1, 1 << 20), (1, 1 << 20)).unwrap();
    let spec = VariableSpec::new(format!("v{id}"), layout).unwrap();
    // Owners that repeat take one entry each time they differ from what was before.
    let owners = (0..owners).map(|i| MpId((i % 3) as u32 * (1 + i as u32 / 7)));
    Variable::new(VarId(id), spec, owners.collect(), GroupId(0)).unwrap()
}

fn read(start: u64) -> Record {
    Record {
        start: Nanos(start),
        duration: Nanos(10),
        wait: Nanos(0),
        service: Nanos(0),
        op: Op::Read,
        side: Side::Requester,
        origin: Origin::Local,
        flags: Flags::default(),
        object: ObjectId::new(VarId(1), 0),
        ap: ApId(0),
        mp: MP,
        peer: MP,
        count: 1,
        bytes: 8,
        version: 0,
        range: (0, 1),
    }
}

fn batch(sequence: u64, records: &[Record]) -> wire::Batch {
    wire::Batch {
        sequence,
        records: Some(dosmos_trace::wire::encode(records)),
        sampling: 1.0,
        ..wire::Batch::default()
    }
}

/// What is to be written, and who is told once it is.
fn commit(manager: &mut Manager) -> (Commit, Vec<Durable>) {
    let commit = manager.take_pending();
    assert!(manager.pending().is_empty());
    let told = manager.durable(&commit);
    (commit, told)
}

fn reports(commit: &Commit) -> Vec<(u32, u64, bool)> {
    let report = |event: &Event| match event {
        Event::Report {
            mp,
            incarnation,
            ended,
        } => Some((mp.0, *incarnation, *ended)),
        _ => None,
    };
    commit
        .events
        .iter()
        .filter_map(|(_, e)| report(e))
        .collect()
}

#[test]
fn those_that_report_here_are_expected_before_they_came() {
    let commit = Manager::expected_reports(&topology(), ME);
    assert_eq!(reports(&commit), [(0, 0, false), (2, 0, false)]);
    assert!(commit.records.is_empty() && commit.marks.is_empty());
    assert!(commit.events.iter().all(|(at, _)| *at == 0));
    let other = Manager::expected_reports(&topology(), OTHER);
    assert_eq!(reports(&other), [(1, 0, false)]);
}

#[test]
fn a_batch_counts_when_it_is_on_disk() {
    let mut m = manager();
    assert!(m.pending().is_empty() && m.links().is_empty());
    assert_eq!(m.hello(MP, FIRST).unwrap(), 0);
    assert!(!m.pending().is_empty());
    let mut sent = batch(1, &[read(100), read(200)]);
    sent.variables = vec![variable(1, 1).into()];
    m.batch(MP, FIRST, sent.clone(), Nanos(300)).unwrap();
    assert_eq!(m.pending().records(), 2);
    // Sent again, it counts once.
    m.batch(MP, FIRST, sent, Nanos(400)).unwrap();
    assert_eq!(m.pending().records(), 2);
    let link = &m.links()[&MP];
    assert_eq!((link.last_record(), link.lag()), (Nanos(210), Nanos(90)));
    // Nothing is known of it before it is on disk.
    assert!(m.variables().is_empty());
    assert_eq!(m.metas().accesses_at(MP)[Origin::Local].reads, 0);

    let (commit, told) = commit(&mut m);
    assert_eq!(told, [Durable::Batch(MP, 1)]);
    assert_eq!(reports(&commit), [(0, FIRST.to_wire(), false)]);
    let marks: Vec<(u32, u64, u64)> = commit
        .marks
        .iter()
        .map(|k| (k.mp.0, k.incarnation, k.sequence))
        .collect();
    assert_eq!(marks, [(0, FIRST.to_wire(), 1)]);
    assert_eq!(m.metas().accesses_at(MP)[Origin::Local].reads, 2);
    assert_eq!(
        m.variables().keys().copied().collect::<Vec<_>>(),
        [VarId(1)]
    );
    assert_eq!(m.hello(MP, FIRST).unwrap(), 1);
    let mut counted = dosmos_node::metrics::AccessCounts::default();
    commit.records.iter().for_each(|r| counted.count(r));
    assert_eq!(format!("{:?}", m.accesses()), format!("{counted:?}"));
    assert_ne!(
        format!("{counted:?}"),
        format!("{:?}", dosmos_node::metrics::AccessCounts::default())
    );
}

#[test]
fn what_is_replayed_or_saved_is_what_was_there() {
    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    let mut sent = batch(1, &[read(100), read(200)]);
    sent.variables = vec![variable(1, 1).into()];
    m.batch(MP, FIRST, sent, Nanos(300)).unwrap();
    let (log, _) = commit(&mut m);

    let mut replayed = Manager::new(topology(), ME, Selection::default(), &log.marks);
    let mut events = log.events.iter().peekable();
    for (i, record) in (0..).zip(&log.records) {
        while let Some((_, event)) = events.next_if(|(at, _)| *at <= i) {
            replayed.replay(Item::Event(event));
        }
        replayed.replay(Item::Record(record));
    }
    events.for_each(|(_, event)| replayed.replay(Item::Event(event)));
    let figures = |m: &Manager| {
        let all = m.metas().query(&Default::default(), Default::default());
        (all, m.variables().clone())
    };
    assert_eq!(figures(&replayed), figures(&m));
    assert_eq!(
        replayed.hello(MP, FIRST).unwrap(),
        1,
        "it goes on behind what is on disk"
    );

    let mut resumed = manager();
    resumed.resume(m.snapshot(), vec![variable(1, 1)]);
    assert_eq!(figures(&resumed), figures(&m));
}

#[test]
fn batches_that_cannot_be_taken_change_nothing() {
    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    commit(&mut m);
    let gap = m
        .batch(MP, FIRST, batch(2, &[read(1)]), Nanos(9))
        .unwrap_err();
    assert!(
        matches!(
            gap,
            BatchError::Gap {
                sequence: 2,
                due: 1
            }
        ),
        "{gap}"
    );
    let mut nowhere = batch(1, &[read(1)]);
    nowhere.hand_overs = vec![wire::HandOver {
        primary_event_manager: 2,
        ..wire::HandOver::default()
    }];
    let nowhere = m.batch(MP, FIRST, nowhere, Nanos(9)).unwrap_err();
    assert!(matches!(nowhere, BatchError::Malformed(_)), "{nowhere}");
    let mut named = batch(1, &[read(1)]);
    named.barriers = vec![wire::BarrierName {
        name: "a\nb".into(),
        ..wire::BarrierName::default()
    }];
    let named = m.batch(MP, FIRST, named, Nanos(9)).unwrap_err();
    assert!(matches!(named, BatchError::Malformed(_)), "{named}");
    assert!(m.pending().is_empty());
    // A later start reports now.
    assert_eq!(m.hello(MP, SECOND).unwrap(), 0);
    commit(&mut m);
    let late = m
        .batch(MP, FIRST, batch(1, &[read(1)]), Nanos(9))
        .unwrap_err();
    assert!(matches!(late, BatchError::Superseded(_)), "{late}");
    assert!(m.hello(MP, FIRST).is_err());
    assert!(m.pending().is_empty());
    m.batch(MP, SECOND, batch(1, &[read(1)]), Nanos(9)).unwrap();
}

#[test]
fn declarations_beyond_the_bound_are_refused_and_each_counts_once() {
    let one = variable(0, 60_000);
    let fit = MAX_DECLARED_BYTES / one.footprint();
    assert!((2..10_000).contains(&fit), "{fit}");
    let mut dictionary = Dictionary::default();
    assert_eq!(dictionary.check(&vec![one.clone(); fit]), Ok(()));
    assert_eq!(dictionary.check(&vec![one.clone(); fit + 1]), Err(Full));
    let mut variables = (0..).map(|id| variable(id, 60_000));
    for known in variables.by_ref().take(fit) {
        assert_eq!(dictionary.check(std::slice::from_ref(&known)), Ok(()));
        dictionary.add(&known);
        dictionary.add(&known);
    }
    let next = variables.next().unwrap();
    assert_eq!(dictionary.check(std::slice::from_ref(&next)), Err(Full));
    // What is known is not counted again.
    assert_eq!(dictionary.check(&[one]), Ok(()));

    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    let mut full = batch(1, &[]);
    full.variables = (0..=fit as u32)
        .map(|id| variable(id, 60_000).into())
        .collect();
    let refused = m.batch(MP, FIRST, full.clone(), Nanos(9)).unwrap_err();
    assert!(matches!(refused, BatchError::Full(_)), "{refused}");
    let last = full.variables.pop().unwrap();
    m.batch(MP, FIRST, full, Nanos(9)).unwrap();
    let mut one_more = batch(2, &[]);
    one_more.variables = vec![last];
    let refused = m.batch(MP, FIRST, one_more, Nanos(9)).unwrap_err();
    assert!(matches!(refused, BatchError::Full(_)), "{refused}");
}

/// What is said of completeness is written when it is news, and again, whole, at the end.
#[test]
fn counters_are_written_when_they_are_news_and_at_the_end() {
    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    let mut send = |sequence, recorded, dropped| {
        let mut sent = batch(sequence, &[read(100 * sequence)]);
        let counters = ProcessCounters {
            recorded,
            dropped,
            cpu: Some(Nanos(50)),
            ..ProcessCounters::default()
        };
        sent.counters = Some(counters.into());
        m.batch(MP, FIRST, sent, Nanos(1_000)).unwrap();
        let commit = m.take_pending();
        m.durable(&commit);
        counters_in(&commit)
    };
    fn counters_in(commit: &Commit) -> Vec<(u32, u64, u64)> {
        let of = |(at, event): &(u32, Event)| match event {
            Event::Counters { counters, .. } => Some((*at, counters.recorded, counters.dropped)),
            _ => None,
        };
        commit.events.iter().filter_map(of).collect()
    }
    // Behind the records of its batch.
    assert_eq!(send(1, 1, 0), [(1, 1, 0)]);
    assert_eq!(send(2, 2, 0), []);
    assert_eq!(send(3, 3, 7), [(1, 3, 7)]);
    assert_eq!(send(4, 4, 7), []);
    assert_eq!(m.links()[&MP].counters().recorded, 4);

    // Not all has arrived: it did not report to its end.
    m.bye(MP, FIRST, 5);
    let (early, _) = commit(&mut m);
    assert_eq!(
        (reports(&early), early.events.len()),
        (vec![(0, FIRST.to_wire(), false)], 1)
    );
    m.bye(MP, FIRST, 4);
    let (end, _) = commit(&mut m);
    assert_eq!(reports(&end), [(0, FIRST.to_wire(), true)]);
    assert_eq!(counters_in(&end), [(0, 4, 7)]);
    let time = end.events.iter().find_map(|(_, e)| match e {
        Event::Processor { time, .. } => Some(*time),
        _ => None,
    });
    assert_eq!(time, Some(Nanos(50)));
    assert_eq!(time, m.links()[&MP].counters().serving());
}

#[test]
fn processor_time_that_nobody_knows_is_not_written() {
    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    let mut sent = batch(1, &[read(100)]);
    sent.counters = Some(ProcessCounters::default().into());
    m.batch(MP, FIRST, sent, Nanos(1_000)).unwrap();
    commit(&mut m);
    m.bye(MP, FIRST, 1);
    let (end, _) = commit(&mut m);
    assert_eq!(reports(&end), [(0, FIRST.to_wire(), true)]);
    let told = |(_, e): &(u32, Event)| matches!(e, Event::Processor { .. });
    assert!(!end.events.iter().any(told), "{:?}", end.events);
}

#[test]
fn copies_are_handed_over_to_the_other_event_manager_until_it_has_them() {
    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    // A copy of what mp1 owns, which the other event manager has the primary meta-object of.
    let mut copied = read(100);
    (copied.flags.optimized, copied.peer) = (true, MpId(1));
    let hand_over = HandOver {
        object: copied.object,
        copy_at: MP,
        primary_emp: OTHER,
        dropped: true,
    };
    let mut sent = batch(1, &[copied, copied]);
    sent.hand_overs = vec![dosmos_trace::wire::hand_over_to_wire(&hand_over, 1)];
    m.batch(MP, FIRST, sent, Nanos(300)).unwrap();
    assert!(m.outbox().is_empty());
    let (log, _) = commit(&mut m);
    // Between the two reads, so of one.
    let at: Vec<u32> = log
        .events
        .iter()
        .filter(|(_, e)| matches!(e, Event::HandOver(_)))
        .map(|e| e.0)
        .collect();
    assert_eq!(at, [1]);
    let due: Vec<(EmpId, u64, u64)> = m
        .outbox()
        .due()
        .map(|(to, c)| (to, c.sequence, c.reads))
        .collect();
    assert_eq!(due, [(OTHER, 1, 1)]);
    assert!(!m.outbox().is_empty());
    // Another start goes on with it.
    let mut resumed = manager();
    resumed.resume(m.snapshot(), Vec::new());
    assert_eq!(resumed.outbox().due().count(), 1);
    m.handed_over(OTHER, 1);
    assert!(m.outbox().is_empty());
}

#[test]
fn what_another_hands_over_is_answered_when_it_is_on_disk() {
    let mut m = manager();
    let content = |sequence| SecondaryContent {
        sequence,
        object: ObjectId::new(VarId(1), 0),
        copy_at: MpId(1),
        reads: 5,
        dropped: false,
        fetches: 0,
        by_ap: Default::default(),
    };
    m.content(OTHER, content(1));
    m.content(OTHER, content(2));
    assert_eq!(m.metas().last_received(OTHER), 0);
    let (_, told) = commit(&mut m);
    assert_eq!(told, [Durable::Content(OTHER, 2); 2]);
    // A number that was received already counts once.
    m.content(OTHER, content(2));
    let (_, told) = commit(&mut m);
    assert_eq!(told, [Durable::Content(OTHER, 2)]);
    let all = m.metas().query(&Default::default(), Default::default());
    assert_eq!(all.primaries[0].reads_on_copies, 10);
}

#[test]
fn what_is_left_out_stands_in_the_log() {
    let selections = |commit: &Commit| -> Vec<(u32, u64, Mode)> {
        let of = |event: &Event| match event {
            Event::Selection {
                mp,
                incarnation,
                selection,
            } => Some((mp.0, *incarnation, selection.mode)),
            _ => None,
        };
        commit.events.iter().filter_map(|(_, e)| of(e)).collect()
    };
    let counters = || Selection {
        mode: Mode::Counters,
        ..Selection::default()
    };
    // By the cluster file, for everybody who connects.
    let mut m = Manager::new(topology(), ME, counters(), []);
    m.hello(MP, FIRST).unwrap();
    assert_eq!(
        selections(&commit(&mut m).0),
        [(0, FIRST.to_wire(), Mode::Counters)]
    );
    assert_eq!(m.selection(), None);

    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    assert_eq!(selections(&commit(&mut m).0), []);
    // From now on; who never connected is not told, and whoever connects later is.
    m.select(counters(), &[MP, MpId(2)]);
    assert_eq!(
        selections(&commit(&mut m).0),
        [(0, FIRST.to_wire(), Mode::Counters)]
    );
    assert_eq!(m.selection(), Some(&counters()));
    m.hello(MpId(2), FIRST).unwrap();
    assert_eq!(
        selections(&commit(&mut m).0),
        [(2, FIRST.to_wire(), Mode::Counters)]
    );
    // All of it is nothing left out.
    m.select(Selection::default(), &[MP]);
    assert_eq!(selections(&commit(&mut m).0), []);
    // What a memory process says itself goes into the log too.
    let mut sent = batch(1, &[read(5)]);
    sent.selection = Some(counters().into());
    m.batch(MP, FIRST, sent, Nanos(9)).unwrap();
    assert_eq!(
        selections(&commit(&mut m).0),
        [(0, FIRST.to_wire(), Mode::Counters)]
    );
}

#[test]
fn times_are_corrected_by_what_a_process_makes_of_its_clock() {
    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    assert!(m.links()[&MP].clock().is_none());
    let estimate = ClockEstimate {
        reference: Nanos(0),
        offset_ns: 1_000,
        error: Nanos(5),
        ..ClockEstimate::default()
    };
    m.learn_clock(MP, estimate);
    assert_eq!(m.links()[&MP].clock(), Some(&estimate));
    m.batch(MP, FIRST, batch(1, &[read(100)]), Nanos(2_000))
        .unwrap();
    let (log, _) = commit(&mut m);
    assert_eq!(log.records[0].start, Nanos(1_100));
    assert!(log.marks[0].until != Default::default());
    let clocks: Vec<(u32, u64)> = log
        .events
        .iter()
        .filter_map(|(at, e)| match e {
            Event::Clock { incarnation, .. } => Some((*at, *incarnation)),
            _ => None,
        })
        .collect();
    assert_eq!(clocks, [(0, FIRST.to_wire())]);
    // Of another start nothing is known yet.
    m.hello(MP, SECOND).unwrap();
    assert!(m.links()[&MP].clock().is_none());
}

#[test]
fn what_a_later_start_did_is_not_before_what_the_one_before_it_did() {
    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    let ahead = ClockEstimate {
        offset_ns: 1_000,
        ..ClockEstimate::default()
    };
    m.learn_clock(MP, ahead);
    let start_of = |m: &mut Manager, incarnation| {
        let done = m.batch(MP, incarnation, batch(1, &[read(100)]), Nanos(2_000));
        done.unwrap();
        commit(m).0.records[0].start
    };
    assert_eq!(start_of(&mut m, FIRST), Nanos(1_100));
    // The clock of the second start is that of the event manager.
    m.hello(MP, SECOND).unwrap();
    let end = read(100).end() + Nanos(1_000);
    assert_eq!(start_of(&mut m, SECOND), end);
}

#[test]
fn what_a_lost_store_had_is_left_behind() {
    let mut m = manager();
    m.hello(MP, FIRST).unwrap();
    assert_eq!(m.skip(MP, FIRST, 4), 4);
    assert_eq!(m.skip(MP, FIRST, 4), 0);
    assert_eq!(m.skip(MP, FIRST, 6), 2);
    m.batch(MP, FIRST, batch(7, &[read(1)]), Nanos(9)).unwrap();
}
