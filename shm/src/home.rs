//! What a process has in shared memory: its own contents, and those of others that it took.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;

use crate::directory::Directory;
use crate::mapped::Mapping;
use crate::segment::{Name, Pool, Segment};

/// Contents of a process in shared memory, own ones and others'. The system bounds the mappings of a process, usually to 65,530.
const MOST_CONTENTS: usize = 8 << 10;

/// A part of a content is handed on as one unless it is smaller than this fraction of it: who needs it keeps the memory of all.
pub(crate) const SMALLEST_PART: usize = 16;

/// Own contents at a time that are made before it is known where they go: about as many as wait to be taken by another process.
const MOST_AHEAD: usize = 64;

/// The directory of this process, as long as a connection or a content needs it.
#[derive(Debug)]
pub(crate) struct Home {
    directory: Directory,
    next_name: AtomicU64,
    pool: Mutex<Pool>,
    /// Which file has a content, by the place of its first byte in the memory of this process.
    files: Mutex<BTreeMap<usize, Entry>>,
    counts: Counts,
}

/// How many there are.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Contents, own ones and others'.
    contents: AtomicUsize,
    /// Contents of this process's own making.
    own: AtomicUsize,
    /// Connections whose other end takes contents of this process.
    pub(crate) takers: AtomicUsize,
}

#[derive(Debug)]
struct Entry {
    length: usize,
    path: PathBuf,
    /// Where in the file it begins.
    offset: u64,
}

/// A content that has another name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linked {
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// Bytes that are kept for it: of the content that it is a part of.
    pub(crate) keeps: usize,
}

static HOME: Mutex<Weak<Home>> = Mutex::new(Weak::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Home {
    /// That of this process, if contents of its own are likely to be taken from there.
    pub(crate) fn in_use() -> Option<Arc<Self>> {
        let home = lock(&HOME).upgrade()?;
        let few = home.counts.own.load(Ordering::Relaxed) < MOST_AHEAD;
        (few && home.counts.takers.load(Ordering::Relaxed) > 0).then_some(home)
    }

    /// That of this process; none if there is no file system in memory.
    pub(crate) fn of_process() -> Option<Arc<Self>> {
        let mut home = lock(&HOME);
        if let Some(home) = home.upgrade() {
            return Some(home);
        }
        let new = Self::create()?;
        *home = Arc::downgrade(&new);
        Some(new)
    }

    fn create() -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            directory: Directory::create()?,
            next_name: AtomicU64::new(0),
            pool: Mutex::default(),
            files: Mutex::default(),
            counts: Counts::default(),
        }))
    }

    /// A copy of `content` in a file.
    pub(crate) fn content_of(self: &Arc<Self>, content: &[u8]) -> io::Result<Bytes> {
        let counted = self.count_content()?;
        let length = content.len();
        let pooled = lock(&self.pool).take(length);
        let mut segment = match pooled {
            Some(segment) => segment,
            None => Segment::create(self.new_path(), length)?,
        };
        segment.room(length).copy_from_slice(content);
        self.note(segment.content(length), segment.path(), 0);
        Ok(Bytes::from_owner(Own {
            length,
            segment: Some(segment),
            home: Arc::clone(self),
            _counted: [counted, Counted::new(self, |counts| &counts.own)],
        }))
    }

    /// The content of the file `from`, which loses that name: its offset and length there; mapped as a whole if it is `wanted`
    /// now.
    pub(crate) fn take(
        self: &Arc<Self>,
        from: &Path,
        (offset, length): (u64, usize),
        wanted: bool,
    ) -> io::Result<Bytes> {
        let counted = self.count_content()?;
        let mapping = Mapping::of(&File::open(from)?, offset, length, wanted)?;
        let path = self.new_path();
        std::fs::rename(from, &path)?;
        let name = Name::new(path);
        self.note(&mapping, name.path(), offset);
        Ok(Bytes::from_owner(Taken {
            mapping,
            _name: name,
            home: Arc::clone(self),
            _counted: counted,
        }))
    }

    fn count_content(self: &Arc<Self>) -> io::Result<Counted> {
        let counted = Counted::new(self, |counts| &counts.contents);
        match self.counts.contents.load(Ordering::Relaxed) <= MOST_CONTENTS {
            true => Ok(counted),
            false => Err(io::ErrorKind::QuotaExceeded.into()),
        }
    }

    /// Gives the file that has this very content, or one that this is a part of, another name, if there is one.
    pub(crate) fn link(&self, content: &[u8], path: &Path) -> Option<Linked> {
        // Whoever calls this has the content, so the file keeps its name.
        let (from, linked) = {
            let files = lock(&self.files);
            let (start, entry) = files.range(..=place(content)).next_back()?;
            let before = place(content) - start;
            if before + content.len() > entry.length || content.len() < entry.length / SMALLEST_PART
            {
                return None;
            }
            let linked = Linked {
                offset: entry.offset + before as u64,
                keeps: entry.length,
            };
            (entry.path.clone(), linked)
        };
        std::fs::hard_link(from, path).ok().map(|()| linked)
    }

    fn new_path(&self) -> PathBuf {
        let number = self.next_name.fetch_add(1, Ordering::Relaxed);
        self.directory.path().join(number.to_string())
    }

    fn note(&self, content: &[u8], path: &Path, offset: u64) {
        let entry = Entry {
            length: content.len(),
            path: path.to_owned(),
            offset,
        };
        lock(&self.files).insert(place(content), entry);
    }

    fn forget(&self, content: &[u8]) {
        lock(&self.files).remove(&place(content));
    }
}

fn place(content: &[u8]) -> usize {
    content.as_ptr().addr()
}

/// One of those that are counted, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    home: Arc<Home>,
    which: fn(&Counts) -> &AtomicUsize,
}

impl Counted {
    pub(crate) fn new(home: &Arc<Home>, which: fn(&Counts) -> &AtomicUsize) -> Self {
        which(&home.counts).fetch_add(1, Ordering::Relaxed);
        let home = Arc::clone(home);
        Self { home, which }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.which)(&self.home.counts).fetch_sub(1, Ordering::Relaxed);
    }
}

/// A content of this process.
#[derive(Debug)]
struct Own {
    length: usize,
    /// Until it is dropped.
    segment: Option<Segment>,
    home: Arc<Home>,
    _counted: [Counted; 2],
}

impl AsRef<[u8]> for Own {
    fn as_ref(&self) -> &[u8] {
        let content = self.segment.as_ref().map(|s| s.content(self.length));
        content.unwrap_or_default()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.home.forget(self.as_ref());
        if let Some(segment) = self.segment.take() {
            let too_much = lock(&self.home.pool).give_back(segment);
            drop(too_much);
        }
    }
}

/// A content of another process.
#[derive(Debug)]
struct Taken {
    mapping: Mapping,
    /// After the mapping: its maker may write to the file then.
    _name: Name,
    home: Arc<Home>,
    _counted: Counted,
}

impl AsRef<[u8]> for Taken {
    fn as_ref(&self) -> &[u8] {
        &self.mapping
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.home.forget(&self.mapping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_of_a_process_are_bounded() {
        let home = Home::create().unwrap();
        let content = || home.content_of(&[7]);
        let held: Vec<_> = (0..MOST_CONTENTS).map(|_| content().unwrap()).collect();
        assert_eq!(content().unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        drop(held);
        assert_eq!(content().unwrap(), [7][..]);
    }

    #[test]
    fn contents_are_made_ahead_if_somebody_takes_them_and_not_too_many() {
        let content = vec![7; crate::ring::LARGER];
        let home = Home::of_process().unwrap();
        let is_shared = |content: &Bytes| lock(&home.files).contains_key(&place(content));
        assert!(!is_shared(&crate::copy_of(&content)), "nobody takes it");
        let _taker = Counted::new(&home, |counts| &counts.takers);
        let many = 2 * MOST_AHEAD;
        let held: Vec<_> = (0..many).map(|_| crate::copy_of(&content)).collect();
        assert_eq!(held.iter().filter(|c| is_shared(c)).count(), MOST_AHEAD);
        assert!(held.iter().all(|c| *c == content));
    }
}
