//! Where the contents of one connection arrive.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::directory::Directory;
use crate::heap;
use crate::home::Home;
use crate::outbox::Sent;
use crate::ring;
use crate::zeros::zeros;

/// Where the contents of one connection arrive, until it is dropped.
#[derive(Debug)]
pub struct Inbox {
    directory: Directory,
    home: Arc<Home>,
    /// None before it is needed.
    ring: Mutex<Option<ring::Receiver>>,
}

impl Inbox {
    /// A new one; none if there is no file system in memory.
    pub fn create() -> Option<Self> {
        Some(Self {
            home: Home::of_process()?,
            directory: Directory::create()?,
            ring: Mutex::default(),
        })
    }

    /// The name to tell the other end.
    pub fn name(&self) -> &str {
        self.directory.name()
    }

    /// Takes the content that was `sent`, of `length` bytes; contents are taken in the order in which they were put. A large one
    /// is mapped page by page as it is used, or as a whole if it is `wanted` now.
    ///
    /// # Errors
    /// If there is no such content, or it is shorter.
    pub fn take(&self, sent: Sent, length: usize, wanted: bool) -> io::Result<Bytes> {
        let (number, offset) = match sent {
            Sent::File { number, offset } => (number, offset),
            Sent::InRing(place) => return self.take_from_ring(place, length),
            Sent::Zeros => return Ok(zeros(length)),
        };
        let path = self.directory.path().join(number.to_string());
        if length >= ring::LARGER
            && let Ok(content) = self.home.take(&path, (offset, length), wanted)
        {
            return Ok(content);
        }
        let content = heap::read(File::open(&path)?, offset, length)?;
        std::fs::remove_file(&path)?;
        Ok(content)
    }

    fn take_from_ring(&self, place: u64, length: usize) -> io::Result<Bytes> {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = match &mut *ring {
            Some(ring) => ring,
            none => none.insert(ring::Receiver::open(
                &self.directory.path().join(ring::NAME),
            )?),
        };
        heap::filled(length, |buffer| ring.take(place, length, buffer))
    }
}
