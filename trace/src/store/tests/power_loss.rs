//! Loss of power at any moment: what was not synced is lost, kept or torn, as the disk likes (`simulated.rs`); what was
//! acknowledged is there.
//!
//! The writer's own steps (`disk.rs`) are recorded and replayed up to some place. The engine's files, which the store does
//! not rest on, are not there, or garbage.

use proptest::prelude::*;

use super::disk::{STEPS, Step};
use super::simulated::{Chance, Disk};
use super::*;

/// What a writer does, step by step, and after which step each batch was acknowledged.
fn written(home: &Path) -> (Vec<Step>, Vec<usize>) {
    STEPS.set(Some(Vec::new()));
    let steps = || STEPS.with_borrow(|s| s.as_ref().map_or(0, Vec::len));
    let mut acknowledged = Vec::new();
    let (mut writer, _) = StoreWriter::open(home, &identity()).unwrap();
    for sequence in 1..=24u64 {
        if sequence % 9 == 0 {
            writer.close().unwrap();
            writer = StoreWriter::open(home, &identity()).unwrap().0;
        }
        writer.rotate_at(if sequence % 7 == 0 { 1 } else { u64::MAX });
        writer.commit(&batch(sequence)).unwrap();
        acknowledged.push(steps());
    }
    writer.close().unwrap();
    (STEPS.take().unwrap(), acknowledged)
}

/// Batch `sequence` (from 1): small ones, and some of more than a chunk; with an event at its beginning.
fn batch(sequence: u64) -> Commit {
    let received = Event::Received {
        from: EmpId(1),
        content: content(sequence),
    };
    Commit {
        events: vec![(0, received)],
        ..commit(sequence, records(first(sequence)..first(sequence + 1)))
    }
}

fn first(sequence: u64) -> u64 {
    (1..sequence)
        .map(|s| if s % 5 == 0 { 9_000 } else { s * 37 % 300 + 1 })
        .sum()
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power_at_any_moment() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let (steps, acknowledged) = written(&home);
    let cases = (0..=steps.len(), any::<u64>());
    proptest!(dosmos_testseeds::config(300), |((at, seed) in cases)| {
        let mut disk = Disk::default();
        steps[..at].iter().for_each(|step| disk.step(step));
        let left = tempfile::tempdir_in(dir.path()).unwrap();
        let mut chance = Chance::new(seed);
        disk.lose_power(&home, left.path(), &mut chance).unwrap();
        // It is made after the manifest.
        if left.path().join("manifest.json").exists() && chance.below(2) == 0 {
            std::fs::create_dir(left.path().join("engine")).unwrap();
            std::fs::write(left.path().join("engine/db"), vec![0x3c; 70_000]).unwrap();
        }
        let sure = acknowledged.iter().filter(|done| **done <= at).count() as u64;
        // A reader finds it first, and changes nothing.
        if sure > 0 {
            let source = StoreSource::open(left.path()).unwrap();
            prop_assert!(source.describe().records >= first(sure + 1));
            prop_assert_eq!(source.completeness().damaged, 0);
        }
        let (mut writer, recovered) = StoreWriter::open(left.path(), &identity()).unwrap();
        let stored = recovered.marks().get(&MpId(0)).map_or(0, |mark| mark.sequence);
        prop_assert!(stored >= sure, "{} stored, {} acknowledged", stored, sure);
        // All of every batch up to the last one stored, and nothing else.
        let (mut found, mut events) = (Vec::new(), 0);
        recovered.replay(|item| match item {
            Item::Record(record) => found.push(*record),
            Item::Event(Event::Received { content, .. }) => {
                events += 1;
                assert_eq!((content.sequence, found.len() as u64), (events, first(events)));
            }
            Item::Event(e) => panic!("{e:?}"),
        });
        prop_assert!(found == records(0..first(stored + 1)), "{} of batch {}", found.len(), stored);
        prop_assert_eq!(events, stored);
        writer.commit(&batch(stored + 1)).unwrap();
        prop_assert_eq!(writer.view().completeness().damaged, 0);
        writer.close().unwrap();
        let source = StoreSource::open(left.path()).unwrap();
        prop_assert!(source.completeness().is_complete());
        prop_assert_eq!(source.describe().records, first(stored + 2));
    });
}
