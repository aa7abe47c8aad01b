//! Files of this process: filled, sent, and filled again when nobody reads them any more.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::mapped::Room;

/// Files that are kept for later contents, if they are not larger than this, and their bytes.
const MOST_KEPT: usize = 32;
const LARGEST_KEPT: usize = 16 << 20;
const KEPT_BYTES: usize = 64 << 20;

/// What files are a multiple of.
const PAGE: usize = 4 << 10;

/// A name of a file, removed with this.
#[derive(Debug)]
pub(crate) struct Name(PathBuf);

impl Name {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // It may be gone with its directory.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A file of this process.
#[derive(Debug)]
pub(crate) struct Segment {
    room: Room,
    name: Name,
}

impl Segment {
    /// A new file with room for this length.
    pub(crate) fn create(path: PathBuf, length: usize) -> io::Result<Self> {
        let name = Name::new(path);
        let room = Room::create(name.path(), length.next_multiple_of(PAGE))?;
        Ok(Self { room, name })
    }

    pub(crate) fn content(&self, length: usize) -> &[u8] {
        &self.room[..length]
    }

    pub(crate) fn room(&mut self, length: usize) -> &mut [u8] {
        &mut self.room[..length]
    }

    pub(crate) fn path(&self) -> &Path {
        self.name.path()
    }

    fn fits(&self, length: usize) -> bool {
        self.room.len() >= length && self.room.len() / 2 <= length.next_multiple_of(PAGE)
    }

    /// Nobody else has a name of it.
    fn is_free(&self) -> bool {
        std::fs::symlink_metadata(self.path()).is_ok_and(|m| m.nlink() == 1)
    }
}

/// Files whose contents nobody needs in this process; others may.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// The oldest first.
    segments: Vec<Segment>,
    bytes: usize,
}

impl Pool {
    /// One for a content of this length, if there is one that nobody reads.
    pub(crate) fn take(&mut self, length: usize) -> Option<Segment> {
        let mut segments = self.segments.iter();
        let at = segments.position(|s| s.fits(length) && s.is_free())?;
        let segment = self.segments.remove(at);
        self.bytes -= segment.room.len();
        Some(segment)
    }

    /// Keeps one for later; those that are too much for that, to be dropped.
    pub(crate) fn give_back(&mut self, segment: Segment) -> Vec<Segment> {
        if segment.room.len() > LARGEST_KEPT {
            return vec![segment];
        }
        self.bytes += segment.room.len();
        self.segments.push(segment);
        let mut too_much = Vec::new();
        while self.segments.len() > MOST_KEPT || self.bytes > KEPT_BYTES {
            let oldest = self.segments.remove(0);
            self.bytes -= oldest.room.len();
            too_much.push(oldest);
        }
        too_much
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;

    #[test]
    fn what_is_kept_is_bounded_in_number_size_and_bytes() {
        let directory = Directory::create().unwrap();
        let mut pool = Pool::default();
        let lengths = [PAGE; 2 * MOST_KEPT].into_iter();
        let large = [LARGEST_KEPT, LARGEST_KEPT + 1, LARGEST_KEPT / 2].repeat(5);
        for (n, length) in lengths.chain(large).enumerate() {
            let path = directory.path().join(n.to_string());
            pool.give_back(Segment::create(path, length).unwrap());
            let sizes = pool.segments.iter().map(|s| s.room.len());
            assert!(pool.segments.len() <= MOST_KEPT);
            assert!(sizes.clone().max() <= Some(LARGEST_KEPT));
            assert_eq!(sizes.sum::<usize>(), pool.bytes);
            assert!(pool.bytes <= KEPT_BYTES);
        }
        // What is not kept is gone.
        let files = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(files, pool.segments.len());
        // A small content does not take a large file.
        assert!(pool.take(PAGE).is_none());
        assert!(pool.take(LARGEST_KEPT - PAGE).is_some());
    }
}
