//! The inbox of the other end of a connection.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::directory::{find, is_abandoned, sweep};
use crate::home::{Counted, Home, Linked};
use crate::ring;
use crate::zeros::are_zeros;

/// Contents that wait to be taken by the other end, and the most of their bytes, but for a single larger one.
const MOST_WAITING: usize = 64;
const WAITING_BYTES: usize = 64 << 20;

/// Where a content was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// In the file of this number, from byte `offset` on.
    File {
        /// Its name in the inbox.
        number: u64,
        /// The content's first byte in it.
        offset: u64,
    },
    /// At this place of the ring.
    InRing(u64),
    /// Nowhere: it is all zeros, as an object is that nobody has written to.
    Zeros,
}

/// The inbox of the other end.
#[derive(Debug)]
pub struct Outbox {
    path: PathBuf,
    home: Arc<Home>,
    _taker: Counted,
    next: u64,
    /// What was not known to be taken when last looked at, in its order: number, and bytes that are kept for it.
    waiting: VecDeque<(u64, usize)>,
    waiting_bytes: usize,
    /// None before it is needed.
    ring: Option<ring::Sender>,
}

impl Outbox {
    /// That which the other end calls `name`; none if there is no such inbox on this host.
    pub fn open(name: &str) -> Option<Self> {
        let (path, home) = (find(name)?, Home::of_process()?);
        Some(Self {
            _taker: Counted::new(&home, |counts| &counts.takers),
            path,
            home,
            next: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            ring: None,
        })
    }

    /// Puts `content` there; where it is. It is copied only if it is small, or in memory of this process alone, or a part of
    /// less than a [sixteenth](crate::home::SMALLEST_PART) of a content in shared memory.
    ///
    /// # Errors
    /// If too much waits to be taken, there is no room for a copy, or the other end is gone.
    pub fn put(&mut self, content: &[u8]) -> io::Result<Sent> {
        let small = content.len() < ring::LARGER;
        match small.then(|| self.put_in_ring(content)).flatten() {
            Some(place) => Ok(Sent::InRing(place)),
            None => self.put_file(content),
        }
    }

    fn put_in_ring(&mut self, content: &[u8]) -> Option<u64> {
        let ring = match &mut self.ring {
            Some(ring) => ring,
            none => none.insert(ring::Sender::create(&self.path.join(ring::NAME)).ok()?),
        };
        ring.send(content)
    }

    fn put_file(&mut self, content: &[u8]) -> io::Result<Sent> {
        if self.is_full(content.len()) {
            self.collect();
        }
        if self.is_full(content.len()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let number = self.next;
        let path = self.path_of(number);
        let Linked { offset, keeps } = match self.home.link(content, &path) {
            Some(linked) => linked,
            None if are_zeros(content) || is_zero(content) => return Ok(Sent::Zeros),
            None => {
                let copy = self.home.content_of(content)?;
                let linked = self.home.link(&copy, &path);
                linked.ok_or(io::ErrorKind::NotFound)?
            }
        };
        self.next += 1;
        self.waiting.push_back((number, keeps));
        self.waiting_bytes += keeps;
        Ok(Sent::File { number, offset })
    }

    fn is_full(&self, more: usize) -> bool {
        self.waiting.len() >= MOST_WAITING || self.waiting_bytes + more > WAITING_BYTES.max(more)
    }

    /// Contents are taken in their order.
    fn collect(&mut self) {
        while let Some(&(number, length)) = self.waiting.front()
            && std::fs::symlink_metadata(self.path_of(number)).is_err()
        {
            self.waiting.pop_front();
            self.waiting_bytes -= length;
        }
    }

    fn path_of(&self, number: u64) -> PathBuf {
        self.path.join(number.to_string())
    }
}

/// Whether all bytes are zero; as soon as one is found that is not, no.
fn is_zero(content: &[u8]) -> bool {
    let mut pages = content.chunks(4 << 10);
    pages.all(|page| page.iter().fold(0, |all, byte| all | byte) == 0)
}

impl Drop for Outbox {
    fn drop(&mut self) {
        // If the other end was killed, it has left its names of our files, too.
        if is_abandoned(&self.path) {
            sweep();
        }
    }
}
