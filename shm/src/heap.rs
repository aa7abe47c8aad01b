//! Contents in memory of this process alone: where there is none that is shared, and where a content is too small to be
//! mapped.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// Buffers that are kept for later contents, if they are not larger than this.
const MOST_FREE: usize = 8;
const LARGEST_KEPT: usize = 16 << 20;

/// Memory for contents, used again when nobody needs it any more: to get it of the system takes longer than to fill
/// it.
#[derive(Debug)]
struct Buffer(Vec<u8>);

/// Buffers that nobody uses.
static FREE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// A copy of `content`.
pub(crate) fn copy_of(content: &[u8]) -> Bytes {
    let mut buffer = Buffer::take(content.len());
    buffer.0.extend_from_slice(content);
    Bytes::from_owner(buffer)
}

/// The `length` bytes of `file` from `offset` on.
pub(crate) fn read(mut file: File, offset: u64, length: usize) -> io::Result<Bytes> {
    file.seek(SeekFrom::Start(offset))?;
    filled(length, |buffer| {
        match file.take(length as u64).read_to_end(buffer)? == length {
            true => Ok(()),
            false => {
                let why = format!("it has not {length} bytes from byte {offset} on");
                Err(io::Error::other(why))
            }
        }
    })
}

/// What `fill` puts into an empty buffer with room for `length` bytes.
pub(crate) fn filled(
    length: usize,
    fill: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> io::Result<Bytes> {
    let mut buffer = Buffer::take(length.min(LARGEST_KEPT));
    fill(&mut buffer.0)?;
    Ok(Bytes::from_owner(buffer))
}

impl Buffer {
    /// An empty one with room for this length.
    fn take(length: usize) -> Self {
        let fits = |b: &Vec<u8>| b.capacity() >= length && b.capacity() / 2 <= length;
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.iter().rposition(fits);
        let found = found.map(|at| free.swap_remove(at));
        drop(free);
        let mut buffer = found.unwrap_or_default();
        buffer.clear();
        buffer.reserve_exact(length);
        Self(buffer)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.0.capacity() > LARGEST_KEPT {
            return;
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = (free.len() == MOST_FREE).then(|| free.remove(0));
        free.push(std::mem::take(&mut self.0));
        drop((free, oldest));
    }
}
