//! Loss of power at any moment: what was not synced is lost, kept or torn, as the disk likes; what was acknowledged is
//! there.
//!
//! The writer's own steps (`disk.rs`) are recorded and replayed up to some place. Of a file, what was written since its
//! last sync survives sector by sector or not at all, and a sector may come out as zeros; names made, changed or removed
//! since the last sync of the directory survive up to some place in their order. The engine's files, which the store does
//! not rest on, are not there, or garbage.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;

use super::disk::{STEPS, Step};
use super::*;

const SECTOR: usize = 512;

/// A file as it is on the disk for sure, and what may have been written to it since.
#[derive(Clone, Debug, Default)]
struct Content {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, new) => {
                let end = *at as usize + new.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at as usize..end].copy_from_slice(new);
            }
            Self::Truncate(length) => bytes.resize(*length as usize, 0),
        }
    }
}

/// Numbers that decide what survives.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        // Xorshift: the same seed gives the same loss.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n.max(1)
    }
}

impl Content {
    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// What is found after the loss.
    fn survives(&self, chance: &mut Chance) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for change in &self.pending {
            match change {
                Change::Truncate(_) if chance.below(2) == 0 => change.apply(&mut bytes),
                Change::Truncate(_) => {}
                Change::Write(at, new) => {
                    let all = chance.below(4);
                    for (i, sector) in new.chunks(SECTOR).enumerate() {
                        let at = at + (i * SECTOR) as u64;
                        match (all, chance.below(4)) {
                            (0, _) | (1, 0) => {}
                            (1, 1) => Change::Write(at, vec![0; sector.len()]).apply(&mut bytes),
                            _ => Change::Write(at, sector.to_vec()).apply(&mut bytes),
                        }
                    }
                }
            }
        }
        bytes
    }
}

/// The disk after some steps.
#[derive(Default)]
struct Disk {
    contents: Vec<Content>,
    /// Names as they are for sure, and as they are now; by number of content.
    durable: BTreeMap<PathBuf, usize>,
    names: BTreeMap<PathBuf, usize>,
    /// What was done to names since.
    pending: Vec<Step>,
}

impl Disk {
    fn rename(names: &mut BTreeMap<PathBuf, usize>, new: &BTreeMap<PathBuf, usize>, step: &Step) {
        match step {
            Step::Create(path) => {
                names.extend(new.get(path).map(|content| (path.clone(), *content)));
            }
            Step::Rename(from, to) => {
                if let Some(content) = names.remove(from) {
                    names.insert(to.clone(), content);
                }
            }
            Step::Remove(path) => {
                names.remove(path);
            }
            _ => {}
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Create(path) => {
                self.contents.push(Content::default());
                self.names.insert(path.clone(), self.contents.len() - 1);
                self.pending.push(step.clone());
            }
            Step::Write(path, at, bytes) => {
                let change = Change::Write(*at, bytes.clone());
                self.contents[self.names[path]].pending.push(change);
            }
            Step::Truncate(path, length) => {
                let change = Change::Truncate(*length);
                self.contents[self.names[path]].pending.push(change);
            }
            Step::Sync(path) => self.contents[self.names[path]].sync(),
            Step::Rename(..) | Step::Remove(_) => {
                Self::rename(&mut self.names, &BTreeMap::new(), step);
                self.pending.push(step.clone());
            }
            Step::SyncDir => {
                self.durable.clone_from(&self.names);
                self.pending.clear();
            }
        }
    }

    /// Writes what is left into `dir` instead of `home`.
    fn lose_power(&self, home: &Path, dir: &Path, chance: &mut Chance) {
        let mut names = self.durable.clone();
        let survive = chance.below(self.pending.len() as u64 + 1) as usize;
        let all: BTreeMap<PathBuf, usize> = self.created();
        for step in &self.pending[..survive] {
            Self::rename(&mut names, &all, step);
        }
        for (path, content) in names {
            let bytes = self.contents[content].survives(chance);
            std::fs::write(dir.join(path.strip_prefix(home).unwrap()), bytes).unwrap();
        }
        // It is made after the manifest.
        if dir.join("manifest.json").exists() && chance.below(2) == 0 {
            std::fs::create_dir(dir.join("engine")).unwrap();
            std::fs::write(dir.join("engine/db"), vec![0x3c; 70_000]).unwrap();
        }
    }

    /// The content of each file made since the names were last durable.
    fn created(&self) -> BTreeMap<PathBuf, usize> {
        let made = self.pending.iter().filter_map(|step| match step {
            Step::Create(path) => Some(path.clone()),
            _ => None,
        });
        let made: Vec<PathBuf> = made.collect();
        let first = self.contents.len() - made.len();
        made.into_iter().zip(first..).collect()
    }
}

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
        disk.lose_power(&home, left.path(), &mut Chance(seed | 1));
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
