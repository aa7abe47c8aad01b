//! Contents that are small enough to be copied: a ring of bytes between the two processes of a connection, mapped by both. What
//! is sent through it takes two copies and no call of the system.
//!
//! The sender appends and the receiver takes, in the same order. Places are counted from the first byte on, beyond the end of
//! the ring; the number that both share says up to which place everything was taken. Where everything was, the sender
//! begins at the front again, so that few contents at a time stay in the processor's cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::mapped::Common;

/// The name of the ring of an inbox.
pub(crate) const NAME: &str = "ring";

/// Bytes of a ring.
const SIZE: u64 = 256 << 10;

/// Contents of this many bytes or more do not go through a ring.
pub(crate) const LARGER: usize = 64 << 10;

/// The end that sends.
#[derive(Debug)]
pub(crate) struct Sender {
    ring: Common,
    /// What was sent ends before this place.
    end: u64,
}

impl Sender {
    /// Makes the file of a ring.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let ring = Common::create(&file, SIZE as usize);
        if ring.is_err() {
            std::fs::remove_file(path)?;
        }
        Ok(Self {
            ring: ring?,
            end: 0,
        })
    }

    /// Sends `content`; its place, if there is room.
    pub(crate) fn send(&mut self, content: &[u8]) -> Option<u64> {
        let length = content.len() as u64;
        let taken = self.ring.number().load(Ordering::Acquire);
        let all_taken = taken == self.end;
        let left = SIZE - self.end % SIZE;
        let place = match all_taken || left < length {
            true => self.end.next_multiple_of(SIZE),
            false => self.end,
        };
        if length > SIZE || (!all_taken && place + length > taken + SIZE) {
            return None;
        }
        self.ring.write((place % SIZE) as usize, content);
        self.end = place + length;
        Some(place)
    }
}

/// The end that takes.
#[derive(Debug)]
pub(crate) struct Receiver {
    ring: Common,
    /// What was taken ends before this place.
    end: u64,
}

impl Receiver {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Self {
            ring: Common::open(&file, SIZE as usize)?,
            end: 0,
        })
    }

    /// Takes the `length` bytes at `place`.
    pub(crate) fn take(&mut self, place: u64, length: usize, to: &mut Vec<u8>) -> io::Result<()> {
        let at = place % SIZE;
        let end = place.checked_add(length as u64);
        let end = end.filter(|_| at + length as u64 <= SIZE && place >= self.end);
        let end = end.ok_or_else(|| io::Error::other(format!("it has not {length} bytes")))?;
        self.ring.read(at as usize, length, to);
        self.ring.number().store(end, Ordering::Release);
        self.end = end;
        Ok(())
    }
}
