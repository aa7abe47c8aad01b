//! A writer is killed, for real, in the middle of its work: whatever it was told is durable is there,
//! once, in order, and the next writer goes on from there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use dosmos_proto::{ApId, MpId, Nanos, ObjectId, VarId};
use dosmos_testseeds::child::{self, Victim};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use dosmos_trace::store::{BatchMark, Commit, Event, Item, RecordingCounters, StoreWriter};

use crate::common;

/// Set in the process that is to be killed: the store it writes.
const DIRECTORY: &str = "DOSMOS_TEST_KILLED_WRITER";

fn record(i: u64) -> Record {
    Record {
        start: Nanos(i),
        duration: Nanos(1),
        wait: Nanos(0),
        service: Nanos(0),
        op: Op::Read,
        side: Side::Requester,
        origin: Origin::Local,
        flags: Flags::default(),
        object: ObjectId::new(VarId(1), (i % 7) as u32),
        ap: ApId(0),
        mp: MpId(0),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: i,
        range: (0, 1),
    }
}

/// Batch `sequence` (from 1) has this many records: most are small, some fill chunks.
fn size(sequence: u64) -> u64 {
    if sequence.is_multiple_of(5) {
        9_000
    } else {
        sequence * 37 % 300 + 1
    }
}

fn batch(sequence: u64) -> Commit {
    let first: u64 = (1..sequence).map(size).sum();
    let counters = RecordingCounters {
        recorded: sequence,
        ..RecordingCounters::default()
    };
    Commit {
        marks: vec![BatchMark {
            mp: MpId(0),
            incarnation: 1,
            sequence,
            until: Default::default(),
        }],
        records: (first..first + size(sequence)).map(record).collect(),
        events: vec![(
            0,
            Event::Counters {
                mp: MpId(0),
                incarnation: 1,
                counters,
            },
        )],
    }
}

/// Writes batch after batch until killed, and says each time one is durable.
#[allow(clippy::print_stdout)] // how the parent hears of it
fn write_until_killed(dir: &Path) {
    let (mut writer, recovered) = StoreWriter::open(dir, &common::identity()).unwrap();
    writer.rotate_at(1 << 19);
    let done = recovered.marks().get(&MpId(0)).map_or(0, |m| m.sequence);
    for sequence in done + 1..10_000 {
        writer.commit(&batch(sequence)).unwrap();
        println!("\ndurable {sequence}");
    }
}

/// Runs a writer on `dir` and kills it once it has said `batches` times that a batch is durable; the
/// number of the last one.
fn kill_after(dir: &Path, batches: usize) -> u64 {
    let mut victim = Victim::start(child::again(DIRECTORY, dir).stdout(Stdio::piped()));
    let lines = BufReader::new(victim.output().unwrap()).lines();
    let durable = lines.filter_map(|line| line.ok()?.strip_prefix("durable ")?.parse().ok());
    durable.take(batches).last().unwrap()
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    if let Some(dir) = std::env::var_os(DIRECTORY) {
        return write_until_killed(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for batches in [1, 2, 7, 16, 3, 11] {
        acknowledged = kill_after(dir.path(), batches).max(acknowledged);
        let (writer, recovered) = StoreWriter::open(dir.path(), &common::identity()).unwrap();
        let stored = recovered.marks()[&MpId(0)].sequence;
        assert!(
            stored >= acknowledged,
            "{stored} stored, {acknowledged} acknowledged"
        );
        // All of every batch up to the last one stored, and nothing else.
        let (mut records, mut last_event) = (0, 0);
        recovered.replay(|item| match item {
            Item::Record(r) => {
                assert_eq!(*r, record(records));
                records += 1;
            }
            Item::Event(Event::Counters { counters, .. }) => {
                last_event += 1;
                assert_eq!(counters.recorded, last_event);
                let before: u64 = (1..last_event).map(size).sum();
                assert_eq!(records, before, "the event of batch {last_event}");
            }
            Item::Event(e) => panic!("{e:?}"),
        });
        assert_eq!(records, (1..=stored).map(size).sum::<u64>());
        assert_eq!(last_event, stored);
        assert_eq!(writer.view().usage().records, records);
        assert!(writer.view().completeness().corrupt_chunks == 0);
    }
}
