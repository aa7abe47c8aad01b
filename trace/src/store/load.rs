//! Opening what a writer left: the frames of its log files, whole or damaged, and what they should have been.
//!
//! A store is read as it is: nothing is written, and any number of readers may do so at once. Every frame is compared with
//! its checksum; what is damaged is skipped, and what the rest says of its place in the log tells what is missing.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dosmos_proto::MpId;

use super::entry::{BatchMark, Event};
use super::error::StoreError;
use super::frame::{Found, Frames, HEADER, Header, Kind};
use super::index::{ChunkRef, EventsRef, Index, LogFile, Place};
use super::ledger::Extent;
use super::manifest::Manifest;
use crate::chunk::Summary;

/// The log files of a store that count, in order, with their numbers.
pub(super) fn files(dir: &Path, manifest: &Manifest) -> Result<Vec<(u32, PathBuf)>, StoreError> {
    let mut found = Vec::new();
    for path in entries(dir)? {
        let name = path.file_name().and_then(|n| n.to_str());
        // A directory of that name is none of ours, and what reading it gives depends on the file system.
        if let Some(number) = name.and_then(|n| manifest.log_number(n))
            && !path.is_dir()
        {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// The paths in a directory.
pub(super) fn entries(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = |e| StoreError::io(dir.to_owned(), e);
    let entries = std::fs::read_dir(dir).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry.map_err(failed)?.path()));
    paths.collect()
}

/// The manifest of the store in `dir`. Where it is damaged, its copy in the log counts, and what is wrong is said.
///
/// # Errors
/// If there is none, or neither can be read.
pub(super) fn manifest(dir: &Path) -> Result<(Manifest, Option<StoreError>), StoreError> {
    match Manifest::read(dir) {
        Ok(manifest) => Ok((manifest, None)),
        Err(e @ StoreError::Damaged { .. }) => match manifest_in_log(dir) {
            Some(manifest) => Ok((manifest, Some(e))),
            None => Err(e),
        },
        Err(e) => Err(e),
    }
}

fn manifest_in_log(dir: &Path) -> Option<Manifest> {
    let mut files = entries(dir).ok()?;
    files.sort();
    // The newest counts: what its beginning says of the others is the latest.
    let manifests = files.iter().filter_map(|path| -> Option<Manifest> {
        let file = File::open(path).ok()?;
        let mut frames = Frames::of(&file).ok()?;
        let Found::Frame(header, _, body) = frames.next().ok()?? else {
            return None;
        };
        (header.kind == Kind::Manifest).then(|| serde_json::from_slice(&body).ok())?
    });
    let manifests = manifests.filter(Manifest::is_possible);
    manifests.max_by_key(|m| (m.generation, m.first))
}

/// What the log files hold.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) index: Index,
    pub(super) marks: BTreeMap<MpId, BatchMark>,
    /// How far the log goes, as far as it can be read.
    pub(super) extent: Extent,
    /// Of the last file: where the last commit ends.
    pub(super) end: u64,
}

/// Reads all log files. `expected` is how far the log should go, if that is known.
pub(super) fn load(
    dir: &Path,
    manifest: &Manifest,
    expected: Option<Extent>,
) -> Result<Loaded, StoreError> {
    let mut loading = Loading {
        loaded: Loaded::default(),
        open: Group::default(),
        acknowledged: expected.map_or(0, |e| e.commit),
        dictionary_read: false,
    };
    loading.loaded.index.removed = manifest.removed;
    let files = files(dir, manifest)?;
    let mut next = manifest.first;
    for (number, path) in &files {
        for missing in next..*number {
            let name = manifest.log_name(missing);
            loading.damaged(format!("{name} is missing"));
        }
        next = number + 1;
        loading.file(*number, path);
    }
    loading.last_group();
    let mut loaded = loading.loaded;
    if expected.is_none() && !files.is_empty() {
        let note = "the ledger is damaged, so records at the end of the log may be missing";
        loaded.index.damaged_log(note.to_owned());
    }
    let extent = expected.unwrap_or_default().or_later(loaded.extent);
    loaded.index.expect(&extent);
    if loaded.index.lacks_events(&extent) {
        let note = "events between the records cannot be read: names or hand-overs may be missing";
        loaded.index.damaged_log(note.to_owned());
    }
    loaded.extent = extent;
    Ok(loaded)
}

/// Frames of one commit.
#[derive(Default)]
struct Group {
    commit: u64,
    frames: Vec<(Header, Place, Vec<u8>)>,
    /// What is wrong with it.
    damage: Vec<String>,
    /// Its last frame is there.
    ended: bool,
    begin: u64,
    end: u64,
}

struct Loading {
    loaded: Loaded,
    /// The last commit begun: whether it counts shows when the next one begins, or at the end.
    open: Group,
    /// Number of the last commit known to have been acknowledged.
    acknowledged: u64,
    dictionary_read: bool,
}

impl Loading {
    fn damaged(&mut self, note: String) {
        self.loaded.index.damaged_log(note);
    }

    /// Reads one file, as far as it can be read.
    fn file(&mut self, database: u32, path: &Path) {
        // A commit never spans two files.
        self.close_group();
        if let Err(e) = self.frames(database, path) {
            self.damaged(e.to_string());
        }
    }

    fn frames(&mut self, database: u32, path: &Path) -> Result<(), StoreError> {
        let failed = |e| StoreError::io(path.to_owned(), e);
        let file = File::open(path).map_err(failed)?;
        let mut frames = Frames::of(&file).map_err(failed)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut records_before = None;
        let mut loose = Vec::new();
        let mut begin = 0;
        while let Some(found) = frames.next().map_err(failed)? {
            let place = frames.place();
            let note = format!("{name} is damaged between bytes {begin} and {place}");
            let header = match &found {
                Found::Frame(header, ..) | Found::Broken(header) => *header,
                Found::Garbage => {
                    if self.open.ended || self.open.frames.is_empty() {
                        loose.push(note);
                    } else {
                        self.open.damage.push(note);
                    }
                    continue;
                }
            };
            records_before.get_or_insert(header.records_before);
            if header.commit != self.open.commit {
                self.close_group();
                self.open.commit = header.commit;
                self.open.begin = begin;
                self.open.damage.append(&mut loose);
            }
            self.open.end = place;
            match found {
                Found::Frame(_, at, body) => {
                    self.open.ended |= header.kind == Kind::Commit;
                    let bytes = body.len() as u32;
                    let place = Place {
                        database,
                        at,
                        bytes,
                    };
                    self.open.frames.push((header, place, body));
                }
                _ => self.open.damage.push(note),
            }
            begin = place;
        }
        let file = LogFile {
            file,
            path: path.to_owned(),
            records_before: records_before.unwrap_or(self.loaded.extent.records),
        };
        self.loaded.index.files.insert(database, Arc::new(file));
        // What follows the last whole frame was lost, or never acknowledged.
        if self.acknowledged > self.open.commit.max(self.loaded.extent.commit) {
            loose.into_iter().for_each(|note| self.damaged(note));
        }
        Ok(())
    }

    /// The commit before was followed by another, so it was acknowledged.
    fn close_group(&mut self) {
        let group = std::mem::take(&mut self.open);
        self.loaded.end = group.end;
        self.take(group);
    }

    /// The last commit of all counts if it is whole, or if it is known to have been acknowledged.
    fn last_group(&mut self) {
        let group = std::mem::take(&mut self.open);
        let whole = group.ended && group.damage.is_empty();
        if whole || group.commit <= self.acknowledged {
            self.loaded.end = group.end;
            self.take(group);
        } else {
            self.loaded.end = group.begin;
        }
    }

    fn take(&mut self, group: Group) {
        for note in group.damage {
            self.damaged(note);
        }
        for (header, place, body) in group.frames {
            let taken = match header.kind {
                Kind::Manifest => Some(()),
                Kind::Dictionary => self.dictionary(&body),
                Kind::Chunk => self.chunk(&header, place, &body),
                Kind::Events => self.events(&header, place, &body),
                Kind::Commit => self.marks(&body),
            };
            if taken.is_none() {
                self.damaged(format!(
                    "block {} of commit {} makes no sense",
                    header.first, header.commit
                ));
            }
            let is_block = matches!(header.kind, Kind::Chunk | Kind::Events);
            let extent = &mut self.loaded.extent;
            *extent = Extent {
                commit: extent.commit.max(header.commit),
                next: extent.next.max(header.last + u64::from(is_block)),
                records: extent
                    .records
                    .max(header.records_before + u64::from(header.records)),
                events: extent
                    .events
                    .max(header.events_before + u64::from(header.events)),
            };
        }
    }

    /// What the events before a file said. Of the first file it is all that there is; of the others it gives back the
    /// names that damage took, but not the times, which add up.
    fn dictionary(&mut self, body: &[u8]) -> Option<()> {
        let events: Vec<Event> = postcard::from_bytes(body).ok()?;
        for event in &events {
            if !self.dictionary_read || !matches!(event, Event::Times(_)) {
                self.loaded.index.event(event);
            }
        }
        self.dictionary_read = true;
        Some(())
    }

    fn chunk(&mut self, header: &Header, place: Place, body: &[u8]) -> Option<()> {
        let (length, rest) = body.split_first_chunk()?;
        let length = u32::from_le_bytes(*length);
        let summary: Summary = postcard::from_bytes(rest.get(..length as usize)?).ok()?;
        let most_extra = u64::from(header.records) * u64::from(u32::MAX);
        if summary.records != header.records || summary.extra > most_extra {
            return None;
        }
        let before = 4 + length;
        let place = Place {
            at: place.at + u64::from(before),
            bytes: place.bytes - before,
            ..place
        };
        let chunk = ChunkRef {
            number: header.first,
            place,
            records_before: header.records_before,
            summary,
        };
        self.loaded.index.chunk(Arc::new(chunk), header.last);
        Some(())
    }

    fn events(&mut self, header: &Header, place: Place, body: &[u8]) -> Option<()> {
        let events: Vec<(u32, Event)> = postcard::from_bytes(body).ok()?;
        events.iter().for_each(|(_, e)| self.loaded.index.event(e));
        let events = EventsRef {
            number: header.first,
            place,
            events: header.events,
            records_before: header.records_before,
            events_before: header.events_before,
        };
        self.loaded.index.events.push(events);
        Some(())
    }

    fn marks(&mut self, body: &[u8]) -> Option<()> {
        let marks: Vec<BatchMark> = postcard::from_bytes(body).ok()?;
        for mark in marks {
            let last = self.loaded.marks.entry(mark.mp).or_insert(mark);
            if mark.is_after(last) {
                *last = mark;
            }
        }
        Some(())
    }
}

/// The length of a chunk's frame before its chunk.
pub(super) fn chunk_begins(summary: &[u8]) -> u64 {
    (HEADER + 4 + summary.len()) as u64
}
