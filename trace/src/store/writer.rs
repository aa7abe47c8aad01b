//! The writing side: one process, one thread.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use dosmos_proto::{MpId, Nanos};

use super::disk;
use super::engine::Engine;
use super::entry::{BatchMark, Commit, Event};
use super::error::{StoreError, encode};
use super::frame::Kind;
use super::framing::Framing;
use super::index::{Index, LogFile};
use super::ledger::{self, Extent, Ledger};
use super::load;
use super::lock::DirLock;
use super::log::Log;
use super::manifest::{self, Identity, Manifest};
use super::merge::Run;
use super::pieces::pieces;
use super::replay::Recovered;
use super::retention::Retention;
use super::snapshot::{self, Position, Snapshot};
use super::view::StoreView;
use crate::chunk::Encoder;

/// Log entries after which the state is saved again: about as many as are replayed in half a second.
const SAVE_AFTER: u64 = 2_000_000;
/// Time after which it is, if anything happened.
const SAVE_EVERY: Nanos = Nanos(60_000_000_000);
/// How often retention looks for what has expired.
const LOOK_EVERY: Nanos = Nanos(1_000_000_000);

/// The writing side of a store.
#[derive(Debug)]
pub struct StoreWriter {
    dir: PathBuf,
    manifest: Manifest,
    index: Arc<RwLock<Index>>,
    log: Log,
    ledger: Ledger,
    engine: Engine,
    /// How far the log goes.
    extent: Extent,
    /// The last chunks of the current file, as long as they fit into one.
    run: Run,
    rotate_at: u64,
    encoder: Encoder,
    marks: BTreeMap<MpId, BatchMark>,
    retention: Retention,
    /// When the current file was begun.
    begun: Option<Nanos>,
    /// Log entries since the state was saved; when that was.
    unsaved: u64,
    saved_at: Option<Nanos>,
    looked_at: Nanos,
    lock: DirLock,
}

impl StoreWriter {
    /// Opens the store in `dir`, or makes one in a directory that is empty or does not exist; whatever a writer before
    /// committed is there.
    ///
    /// # Errors
    /// If the directory cannot be used, is in use, holds something else, or another event manager's trace.
    pub fn open(dir: &Path, identity: &Identity) -> Result<(Self, Recovered), StoreError> {
        disk::create_dir(dir)?;
        if let Err(StoreError::NoStore(_)) = load::manifest(dir) {
            manifest::refuse_other_files(dir)?;
        }
        let lock = DirLock::exclusive(dir)?;
        let mut manifest = match load::manifest(dir) {
            Ok((found, _)) if found.identity != *identity => {
                return Err(StoreError::Foreign {
                    path: dir.to_owned(),
                    found: found.identity.to_string(),
                    wanted: identity.to_string(),
                });
            }
            Ok((found, _)) => found,
            Err(StoreError::NoStore(_)) => Manifest::new(identity.clone()),
            Err(e) => return Err(e),
        };
        let Some(lock) = lock else {
            return Err(match manifest.pid {
                Some(_) => manifest.in_use(dir),
                None => StoreError::Busy(dir.to_owned()),
            });
        };
        let expected = manifest.closed.or_else(|| ledger::read(dir));
        manifest.pid = Some(std::process::id());
        manifest.live = None;
        manifest.closed = None;
        manifest.write(dir)?;
        remove_leftovers(dir, &manifest);
        let (mut engine, known) = Engine::open(dir);
        // Either of the two may have lost something; a store that is new has neither.
        let expected = match (expected, known.extent) {
            (Some(a), Some(b)) => Some(a.or_later(b)),
            (a, b) => a.or(b),
        };
        let mut loaded = load::load(dir, &manifest, expected)?;
        for mark in known.marks {
            let last = loaded.marks.entry(mark.mp).or_insert(mark);
            if mark.is_after(last) {
                *last = mark;
            }
        }
        loaded.index.learn(known.names);
        loaded.marks.values().for_each(|mark| engine.mark(mark));
        let snapshot = Snapshot::read(dir, &manifest).unwrap_or_else(|e| {
            loaded.index.lost_state(&e);
            None
        });
        Self::go_on(dir, manifest, lock, engine, loaded, snapshot)
    }

    /// Goes on where the log ends.
    fn go_on(
        dir: &Path,
        manifest: Manifest,
        lock: DirLock,
        engine: Engine,
        loaded: load::Loaded,
        snapshot: Option<(Position, Snapshot)>,
    ) -> Result<(Self, Recovered), StoreError> {
        let last = loaded.index.files.last_key_value();
        let number = last.map_or(manifest.first, |(number, _)| *number);
        let log = Log::open(dir, &manifest.log_name(number), number, loaded.end)?;
        let index = Arc::new(RwLock::new(loaded.index));
        let recovered = Recovered::new(index.clone(), loaded.marks.clone(), snapshot);
        let mut writer = Self {
            dir: dir.to_owned(),
            manifest,
            index,
            log,
            ledger: Ledger::open(dir)?,
            engine,
            extent: loaded.extent,
            run: Run::default(),
            rotate_at: Retention::default().rotate_at(),
            encoder: Encoder::new(),
            marks: loaded.marks,
            retention: Retention::default(),
            begun: None,
            unsaved: 0,
            saved_at: None,
            looked_at: Nanos::ZERO,
            lock,
        };
        if writer.log.length() == 0 {
            writer.begin()?;
        }
        writer.note();
        Ok((writer, recovered))
    }

    /// What the events so far said.
    pub(super) fn dictionary(&self) -> Vec<Event> {
        self.read_index().dictionary()
    }

    /// A writer of the next generation of this store, which counts when [`StoreWriter::succeed`] says so.
    pub(super) fn next_generation(self) -> Result<Self, StoreError> {
        let mut manifest = self.manifest.clone();
        manifest.generation += 1;
        manifest.first = 0;
        for (_, path) in load::files(&self.dir, &manifest)? {
            disk::remove(&path)?;
        }
        let records = manifest.removed.records;
        let mut loaded = load::Loaded::default();
        loaded.extent.records = records;
        loaded.extent.commit = self.extent.commit;
        loaded.index.removed = manifest.removed;
        Self::go_on(&self.dir, manifest, self.lock, self.engine, loaded, None)
            .map(|(writer, _)| writer)
    }

    /// From now on this generation counts, and the others are removed.
    pub(super) fn succeed(&mut self, snapshot: Option<&Snapshot>) -> Result<(), StoreError> {
        if let Some(snapshot) = snapshot {
            self.save(snapshot)?;
        }
        self.manifest.write(&self.dir)?;
        remove_leftovers(&self.dir, &self.manifest);
        Ok(())
    }

    /// Keeps no more than this. Takes effect in [`maintain`](Self::maintain).
    pub fn retain(&mut self, retention: Retention) {
        self.rotate_at = retention.rotate_at();
        self.retention = retention;
    }

    /// To be called after commits: begins the next file, saves the state and removes what has expired,
    /// each when it is time. `now` is the time of the records; `state` is what all of the log so far comes
    /// to, asked for only when it is needed.
    ///
    /// # Errors
    /// If the system refuses. What was committed is safe.
    pub fn maintain(
        &mut self,
        now: Nanos,
        state: impl FnOnce() -> Snapshot,
    ) -> Result<(), StoreError> {
        let begun = *self.begun.get_or_insert(now);
        let saved_at = *self.saved_at.get_or_insert(now);
        if self.retention.is_to_rotate(now - begun) && !self.is_empty() {
            self.rotate()?;
        }
        let mut first_kept = None;
        if now - self.looked_at >= LOOK_EVERY {
            self.looked_at = now;
            first_kept = self.retention.first_kept(&self.read_index(), now);
        }
        let due = self.unsaved >= SAVE_AFTER || now - saved_at >= SAVE_EVERY;
        if self.unsaved > 0 && due || first_kept.is_some() {
            self.save(&state())?;
            self.saved_at = Some(now);
        }
        first_kept.map_or(Ok(()), |first| self.remove_before(first))
    }

    /// Saves what all of the log so far comes to: opening the store reads only what follows.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn save(&mut self, state: &Snapshot) -> Result<(), StoreError> {
        let at = Position {
            records: self.extent.records,
            events: self.extent.events,
        };
        state.write(&self.dir, &self.manifest, at)?;
        self.unsaved = 0;
        Ok(())
    }

    /// Whether the current file has no chunk.
    fn is_empty(&self) -> bool {
        let index = self.read_index();
        let last = index.chunks.last();
        last.is_none_or(|c| c.place.database != self.log.number())
    }

    /// Removes the files before `first`. First the manifest says so, so that after a crash in between they do not count.
    fn remove_before(&mut self, first: u32) -> Result<(), StoreError> {
        let mut manifest = self.manifest.clone();
        manifest.first = first;
        {
            let index = self.read_index();
            let kept = index.files.get(&first).map(|file| file.records_before);
            manifest.removed.records = kept.unwrap_or(manifest.removed.records);
            let removed = index.chunks.iter();
            let removed = removed.filter(|c| c.place.database < first);
            let until = removed.clone().map(|c| c.summary.end).max();
            manifest.removed.until = manifest.removed.until.max(until.unwrap_or_default());
            manifest.removed.extra += removed.map(|c| c.summary.extra).sum::<u64>();
        }
        manifest.write(&self.dir)?;
        self.manifest = manifest;
        {
            let mut index = self.write_index();
            index.forget(first);
            index.removed = self.manifest.removed;
        }
        remove_leftovers(&self.dir, &self.manifest);
        Ok(())
    }

    /// Begins the next file at this size instead of 256 MiB.
    pub fn rotate_at(&mut self, bytes: u64) {
        self.rotate_at = bytes;
    }

    /// Says in the manifest where the event manager that writes this store answers.
    ///
    /// # Errors
    /// If the manifest cannot be written.
    pub fn answers_at(&mut self, address: &str) -> Result<(), StoreError> {
        self.manifest.live = Some(address.to_owned());
        self.manifest.write(&self.dir)
    }

    /// What is committed, for readers in this process.
    pub fn view(&self) -> StoreView {
        StoreView::new(self.index.clone(), self.manifest.identity.clone(), true)
    }

    /// Adds to the log. All of it is durable on return; after an error (a full disk, for example) nothing of it is there,
    /// and the same commit may be tried again; after a crash all of it is there or none.
    ///
    /// # Errors
    /// If a batch was committed before, or the system refuses.
    pub fn commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let marks = self.newer_marks(&commit.marks)?;
        if self.log.length() >= self.rotate_at && !self.is_empty() {
            self.rotate()?;
        }
        let mut extent = Extent {
            commit: self.extent.commit + 1,
            ..self.extent
        };
        let mut frames = self.framing();
        let mut run = self.run.clone();
        for piece in pieces(&commit.records, &commit.events) {
            let chunk = frames.piece(&piece, &mut extent, &mut self.encoder)?;
            if let Some(full) = chunk.and_then(|c| run.take(c)) {
                self.merge(&full, extent.commit, &mut frames)?;
            }
        }
        let marks: Vec<BatchMark> = marks.into_values().collect();
        frames.plain(&extent, Kind::Commit, &encode(&marks)?);
        self.log.append(&frames.bytes)?;
        self.run = run;
        self.extent = extent;
        self.unsaved += (commit.records.len() + commit.events.len()) as u64;
        for mark in marks {
            self.engine.mark(&mark);
            self.marks.insert(mark.mp, mark);
        }
        for (_, event) in &commit.events {
            self.engine.name(event);
        }
        let mut index = self.write_index();
        let Framing { chunks, events, .. } = frames;
        chunks
            .into_iter()
            .for_each(|(c, last)| index.chunk(c, last));
        index.events.extend(events);
        commit.events.iter().for_each(|(_, e)| index.event(e));
        drop(index);
        self.note();
        Ok(())
    }

    /// Notes beside the log how far it goes. Nothing depends on that while the log is whole.
    fn note(&mut self) {
        if let Err(e) = self.ledger.note(&self.extent) {
            tracing::warn!("{e}");
        }
        self.engine.write(&self.extent);
    }

    /// Adds the chunks of a run once more, as one, if their file can be read.
    fn merge(&mut self, run: &Run, commit: u64, frames: &mut Framing) -> Result<(), StoreError> {
        let file = self.read_index().files.get(&self.log.number()).cloned();
        match file {
            Some(file) => frames.merged(run, &file, commit, &mut self.encoder),
            None => Ok(()),
        }
    }

    /// The last mark of each memory process, if every one of `marks` is new.
    fn newer_marks(&self, marks: &[BatchMark]) -> Result<BTreeMap<MpId, BatchMark>, StoreError> {
        let mut newer = BTreeMap::new();
        for mark in marks {
            if let Some(last) = newer.get(&mark.mp).or_else(|| self.marks.get(&mark.mp))
                && !mark.is_after(last)
            {
                return Err(StoreError::Duplicate {
                    mark: *mark,
                    last: *last,
                });
            }
            newer.insert(mark.mp, *mark);
        }
        Ok(newer)
    }

    /// Begins the next file.
    fn rotate(&mut self) -> Result<(), StoreError> {
        let number = self.log.number() + 1;
        let next = Log::open(&self.dir, &self.manifest.log_name(number), number, 0)?;
        let before = std::mem::replace(&mut self.log, next);
        if let Err(e) = self.begin() {
            self.log = before;
            return Err(e);
        }
        self.begun = None;
        Ok(())
    }

    /// Writes the beginning of a file: whose it is, and all that the files before said, so that it can do without them.
    fn begin(&mut self) -> Result<(), StoreError> {
        let mut extent = self.extent;
        extent.commit += 1;
        let manifest = serde_json::to_vec(&self.manifest);
        let manifest = manifest.map_err(|e| StoreError::damaged(&self.dir, e))?;
        let marks: Vec<BatchMark> = self.marks.values().copied().collect();
        let mut frames = self.framing();
        frames.plain(&extent, Kind::Manifest, &manifest);
        frames.plain(&extent, Kind::Dictionary, &encode(&self.dictionary())?);
        frames.plain(&extent, Kind::Commit, &encode(&marks)?);
        let path = self.dir.join(self.manifest.log_name(self.log.number()));
        self.log.append(&frames.bytes)?;
        let file = File::open(&path).map_err(|e| StoreError::io(path.clone(), e))?;
        let file = LogFile {
            file,
            path,
            records_before: extent.records,
        };
        self.extent = extent;
        self.run = Run::default();
        let mut index = self.write_index();
        index.files.insert(self.log.number(), Arc::new(file));
        Ok(())
    }

    /// Frames for the end of the log.
    fn framing(&self) -> Framing {
        Framing::at(self.log.number(), self.log.length())
    }

    fn read_index(&self) -> std::sync::RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_index(&self) -> std::sync::RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the store: from now on it is read as a directory.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn close(mut self) -> Result<(), StoreError> {
        let extent = Extent {
            commit: self.extent.commit + 1,
            ..self.extent
        };
        let mut frames = self.framing();
        let run = std::mem::take(&mut self.run);
        if run.is_worth_merging() {
            self.merge(&run, extent.commit, &mut frames)?;
        }
        // Names a second time: damage to the first time takes nothing then. Times would be counted twice.
        let mut dictionary = self.dictionary();
        dictionary.retain(|event| !matches!(event, Event::Times(_)));
        frames.plain(&extent, Kind::Dictionary, &encode(&dictionary)?);
        frames.plain(&extent, Kind::Commit, &encode(&Vec::<BatchMark>::new())?);
        self.log.append(&frames.bytes)?;
        self.extent = extent;
        self.note();
        self.manifest.closed = Some(self.extent);
        self.manifest.live = None;
        self.manifest.pid = None;
        self.manifest.write(&self.dir)
    }
}

/// Removes log files and states of this store that do not count: left by a crash, or by somebody who read what was
/// removed. What cannot be removed now is tried again next time. Nothing else is touched.
fn remove_leftovers(dir: &Path, manifest: &Manifest) {
    let state = snapshot::file_name(manifest);
    for path in load::entries(dir).unwrap_or_default() {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        let old_log = manifest::is_log(name) && manifest.log_number(name).is_none();
        let old_state = snapshot::is_state(name) && name != state;
        if (old_log || old_state)
            && path.is_file()
            && let Err(e) = disk::remove(&path)
        {
            tracing::warn!("{e}");
        }
    }
}
