//! A disk that is simulated: files are written as the store writes them, in a directory of this machine, and what was
//! done to them is kept beside, so that power can be lost at any moment; it may be full; it need not be waited for.
//!
//! Of a file, what was written since its last sync survives sector by sector or not at all, and a sector may come out as
//! zeros; names made, changed or removed since the last sync of the directory survive up to some place in their order. The
//! files of the storage engine are not there: nothing rests on them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::step::Step;

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
#[derive(Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
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
#[derive(Debug, Default)]
pub(super) struct Disk {
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

    pub(super) fn step(&mut self, step: &Step) {
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
    pub(super) fn lose_power(
        &self,
        home: &Path,
        dir: &Path,
        chance: &mut Chance,
    ) -> io::Result<()> {
        let mut names = self.durable.clone();
        let survive = chance.below(self.pending.len() as u64 + 1) as usize;
        let all: BTreeMap<PathBuf, usize> = self.created();
        for step in &self.pending[..survive] {
            Self::rename(&mut names, &all, step);
        }
        for (path, content) in names {
            let bytes = self.contents[content].survives(chance);
            let name = path.strip_prefix(home).unwrap_or(&path);
            std::fs::write(dir.join(name), bytes)?;
        }
        Ok(())
    }

    /// A file that is there.
    fn found(&mut self, path: PathBuf, durable: Vec<u8>) {
        self.contents.push(Content {
            durable,
            pending: Vec::new(),
        });
        let number = self.contents.len() - 1;
        self.durable.insert(path.clone(), number);
        self.names.insert(path, number);
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

thread_local! {
    /// The disk that the store, on this thread, writes to now.
    static CURRENT: RefCell<Option<State>> = const { RefCell::new(None) };
}

#[derive(Debug, Default)]
struct State {
    disk: Disk,
    full: bool,
}

/// Whether this thread writes to a simulated disk.
pub(super) fn is_current() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Something is about to be done to the disk of this thread, if it is simulated.
pub(super) fn done(step: &Step) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(state) = current {
            state.disk.step(step);
        }
    });
}

/// Whether there is room.
pub(super) fn room() -> io::Result<()> {
    match CURRENT.with_borrow(|current| current.as_ref().is_some_and(|s| s.full)) {
        true => Err(io::ErrorKind::StorageFull.into()),
        false => Ok(()),
    }
}

/// The disk of one directory.
#[derive(Debug)]
pub struct SimulatedDisk {
    home: PathBuf,
    state: State,
}

impl SimulatedDisk {
    /// The disk of this directory, where nothing is yet.
    pub fn new(home: PathBuf) -> Self {
        Self {
            home,
            state: State::default(),
        }
    }

    /// What stores do on this thread in `work`, they do to this disk.
    pub fn with<R>(&mut self, work: impl FnOnce() -> R) -> R {
        CURRENT.set(Some(std::mem::take(&mut self.state)));
        let result = work();
        self.state = CURRENT.take().unwrap_or_default();
        result
    }

    /// From now on there is room, or none.
    pub fn set_full(&mut self, full: bool) {
        self.state.full = full;
    }

    /// Power is lost; nobody may have files open. What survives is up to `seed`.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn lose_power(&mut self, seed: u64) -> io::Result<()> {
        if self.home.exists() {
            std::fs::remove_dir_all(&self.home)?;
        }
        std::fs::create_dir(&self.home)?;
        let mut chance = Chance::new(seed);
        let disk = std::mem::take(&mut self.state.disk);
        disk.lose_power(&self.home, &self.home, &mut chance)?;
        for entry in std::fs::read_dir(&self.home)? {
            let path = entry?.path();
            let content = std::fs::read(&path)?;
            self.state.disk.found(path, content);
        }
        Ok(())
    }
}
