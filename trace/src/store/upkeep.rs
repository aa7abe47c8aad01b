//! What is done to a store that nobody writes: looking whether it is whole, and writing it anew in less space.

use std::path::Path;

use super::entry::{Commit, Event};
use super::error::StoreError;
use super::manifest::Manifest;
use super::replay::Item;
use super::snapshot::Snapshot;
use super::writer::StoreWriter;

/// Records, or events, written at once.
const PORTION: usize = 1 << 16;

/// What [`StoreSource::verify`](super::StoreSource::verify) found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Chunks looked at.
    pub chunks: u64,
    /// Records in them, as their summaries say.
    pub records: u64,
    /// Events between them.
    pub events: u64,
    /// Chunks, or stretches of a database, that are damaged.
    pub damaged: u64,
    /// What is wrong, the first of it.
    pub notes: Vec<String>,
}

/// What [`compact`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Records in the store.
    pub records: u64,
    /// Chunks before and after.
    pub chunks: (u64, u64),
    /// Bytes on disk before and after.
    pub bytes: (u64, u64),
}

/// Writes the store in `dir` anew: full chunks, and none of the space that the engine does not give
/// back. Needs as much space again until it is done. After a crash at any moment the store is as it was or
/// as it is to be.
///
/// # Errors
/// If it is in use, or damaged (nothing is changed then), or the system says no.
pub fn compact(dir: &Path) -> Result<Compacted, StoreError> {
    let manifest = Manifest::read(dir)?;
    let (old, mut recovered) = StoreWriter::open(dir, &manifest.identity)?;
    let (view, marks) = (old.view(), recovered.marks().clone());
    let before = view.usage();
    let dictionary = old.dictionary();
    let whole = recovered.clone();
    let saved = recovered.take_snapshot();
    let mut state = saved.unwrap_or_else(|| Snapshot::new(&manifest));
    // What was imported is folded in another way, by whoever reads it.
    let imported = dictionary.iter().any(|e| matches!(e, Event::Imported(_)));
    if !imported {
        recovered.replay(|item| state.take(item));
    }
    let mut new = old.next_generation()?;
    let mut portion = Commit::default();
    let mut outcome = Ok(());
    portion
        .events
        .extend(dictionary.into_iter().map(|e| (0, e)));
    whole.replay(|item| {
        match item {
            Item::Record(record) => portion.records.push(*record),
            // Where the time went was summed up in the dictionary.
            Item::Event(Event::Times(_)) => {}
            Item::Event(event) => {
                let place = portion.records.len() as u32;
                portion.events.push((place, event.clone()));
            }
        }
        if portion.records.len().max(portion.events.len()) >= PORTION && outcome.is_ok() {
            outcome = new.commit(&std::mem::take(&mut portion));
        }
    });
    outcome?;
    let lacking = view.completeness();
    if lacking.corrupt_chunks > 0 {
        return Err(StoreError::Damaged {
            path: dir.to_owned(),
            why: format!(
                "{} chunks cannot be read ({}); compacting would lose them, so nothing was changed",
                lacking.corrupt_chunks,
                lacking.notes.join("; ")
            ),
        });
    }
    portion.marks = marks.into_values().collect();
    new.commit(&portion)?;
    drop((view, recovered, whole));
    new.succeed((!imported).then_some(&state))?;
    let after = new.view().usage();
    new.close()?;
    Ok(Compacted {
        records: after.records,
        chunks: (before.chunks, after.chunks),
        bytes: (before.bytes, after.bytes),
    })
}
