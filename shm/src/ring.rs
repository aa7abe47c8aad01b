//! Contents that are small enough to be copied: a ring of bytes between the two processes of a connection, mapped by both. What
//! is sent through it takes two copies and no call of the system.
//!
//! The sender appends and the receiver takes, in the same order; before each content stands its length. Places are counted from the first byte on, beyond the end of
//! the ring; the number that both share says up to which place everything was taken. Where everything was, the sender
//! begins at the front again, so that few contents at a time stay in the processor's cache.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::mapped::Common;

/// The name of the ring of an inbox.
pub(crate) const NAME: &str = "ring";

/// Bytes of a ring.
const SIZE: u64 = 256 << 10;

/// Bytes of the length before a content.
const LENGTH: u64 = size_of::<u64>() as u64;

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
        Ok(Self {
            ring: Common::create(path, SIZE as usize)?,
            end: 0,
        })
    }

    /// Sends `content`; its place, if there is room.
    pub(crate) fn send(&mut self, content: &[u8]) -> Option<u64> {
        let bytes = LENGTH + content.len() as u64;
        let taken = self.ring.number().load(Ordering::Acquire);
        // No receiver has taken what was not sent.
        let waiting = self.end.checked_sub(taken)?;
        let place = match waiting == 0 || SIZE - self.end % SIZE < bytes {
            true => self.end.next_multiple_of(SIZE),
            false => self.end,
        };
        if bytes > SIZE || (waiting > 0 && place + bytes > taken + SIZE) {
            return None;
        }
        let at = (place % SIZE) as usize;
        let length = content.len() as u64;
        self.ring.write(at, &length.to_le_bytes());
        self.ring.write(at + LENGTH as usize, content);
        self.end = place + bytes;
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
        Ok(Self {
            ring: Common::open(path, SIZE as usize)?,
            end: 0,
        })
    }

    /// Takes the content of `length` bytes at `place`.
    pub(crate) fn take(&mut self, place: u64, length: usize, to: &mut Vec<u8>) -> io::Result<()> {
        let bytes = (length as u64).saturating_add(LENGTH);
        let (at, end) = (place % SIZE, place.checked_add(bytes));
        let end = end.filter(|_| place >= self.end && bytes <= SIZE - at);
        let found = end.filter(|_| {
            let there = self.ring.written(at as usize, LENGTH as usize);
            there == (length as u64).to_le_bytes()
        });
        let end = found.ok_or_else(|| io::Error::other(format!("it has not {length} bytes")))?;
        let content = (at + LENGTH) as usize;
        to.extend_from_slice(self.ring.written(content, length));
        self.ring.number().store(end, Ordering::Release);
        self.end = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;

    fn ring(directory: &Directory) -> (Sender, Receiver) {
        let path = directory.path().join(NAME);
        let sender = Sender::create(&path).unwrap();
        (sender, Receiver::open(&path).unwrap())
    }

    #[test]
    fn a_length_that_is_not_that_of_the_content_is_refused() {
        let directory = Directory::create().unwrap();
        let (mut sender, mut receiver) = ring(&directory);
        for content in [&[1; 100][..], &[2; 7], &[3; 30_001]] {
            let place = sender.send(content).unwrap();
            let length = content.len();
            for wrong in [0, length - 1, length + 1, length + 8] {
                let mut to = Vec::new();
                assert!(receiver.take(place, wrong, &mut to).is_err(), "{wrong}");
            }
            assert!(receiver.take(place + 1, length, &mut Vec::new()).is_err());
            let mut to = Vec::new();
            receiver.take(place, length, &mut to).unwrap();
            assert_eq!(to, content);
        }
    }

    #[test]
    fn a_number_that_the_other_end_cannot_have_meant_ends_the_ring_and_nothing_else() {
        let directory = Directory::create().unwrap();
        let (mut sender, _) = ring(&directory);
        sender.send(&[1; 100]).unwrap();
        for number in [u64::MAX, 1 << 40] {
            sender.ring.number().store(number, Ordering::Release);
            assert_eq!(sender.send(&[2; 100]), None);
        }
    }
}
