//! Writing files of chunks: each begins with a header that says which events it has, a record never reaches from one into the next.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::ids::frame;
use super::put::Bytes;

/// Of events: the least that the format allows, so that files of few events are small.
pub(super) const OF_EVENTS: u64 = 256 << 10;
/// Of definitions: what the library takes. No definition is longer.
pub(super) const OF_DEFINITIONS: u64 = 4 << 20;
/// Bytes kept in memory of a file: with a thousand locations the file is not open all the time, either.
const PIECE: usize = 32 << 10;
/// Where a header has the number of the chunk's last event.
const LAST_EVENT: u64 = 10;
/// A time stamp.
const STAMP: u64 = 9;
/// End of file and end of buffer: there is always room for these.
const END: u64 = 2;

/// A file in the making.
#[derive(Debug)]
pub(super) struct Chunks {
    path: PathBuf,
    /// Length of a chunk.
    length: u64,
    /// What is not in the file yet.
    piece: Bytes,
    /// Bytes in the file.
    written: u64,
    /// Where the chunk began.
    begin: u64,
    /// Events so far.
    events: u64,
    /// The last time stamp.
    time: Option<u64>,
}

impl Chunks {
    /// A new file at `path` with chunks of `length` bytes.
    pub(super) fn create(path: &Path, length: u64) -> io::Result<Self> {
        File::create_new(path)?;
        let mut chunks = Self {
            path: path.to_owned(),
            length,
            piece: Bytes::default(),
            written: 0,
            begin: 0,
            events: 0,
            time: None,
        };
        chunks.header();
        Ok(chunks)
    }

    fn header(&mut self) {
        self.piece.byte(frame::CHUNK_HEADER);
        self.piece.byte(frame::LITTLE_ENDIAN);
        self.piece.whole_u64(self.events + 1);
        // That of the last event is put there when the chunk is whole.
        self.piece.whole_u64(0);
    }

    fn at(&self) -> u64 {
        self.written + self.piece.0.len() as u64
    }

    /// Adds a definition.
    pub(super) fn definition(&mut self, record: &[u8]) -> io::Result<()> {
        self.room(record.len() as u64)?;
        self.add(record)
    }

    /// Adds an event at `time`, which is not before that of the last one.
    pub(super) fn event(&mut self, time: u64, event: &[u8]) -> io::Result<()> {
        if self.room(STAMP + event.len() as u64)? || self.time != Some(time) {
            self.piece.byte(frame::TIMESTAMP);
            self.piece.whole_u64(time);
            self.time = Some(time);
        }
        self.events += 1;
        self.add(event)
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.piece.0.extend(bytes);
        match self.piece.0.len() >= PIECE {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Begins another chunk if `more` bytes and the end do not fit; whether it did.
    fn room(&mut self, more: u64) -> io::Result<bool> {
        if self.at() - self.begin + more + END <= self.length {
            return Ok(false);
        }
        let header = 2 + 8 + 8;
        if header + more + END > self.length {
            let long = format!(
                "{}: a name of {more} bytes is too long for OTF2",
                self.path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, long));
        }
        let rest = self.begin + self.length - self.at();
        let padded = self.piece.0.len() + rest as usize;
        self.piece.0.resize(padded, frame::END_OF_CHUNK);
        self.close_chunk()?;
        self.begin = self.written;
        self.header();
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        file.write_all(&self.piece.0)?;
        self.written += self.piece.0.len() as u64;
        self.piece.0.clear();
        Ok(())
    }

    /// Writes what there is, and into the chunk's header its last event.
    fn close_chunk(&mut self) -> io::Result<()> {
        self.flush()?;
        let file = OpenOptions::new().write(true).open(&self.path)?;
        file.write_all_at(&self.events.to_le_bytes(), self.begin + LAST_EVENT)
    }

    /// The end of the file; how many events it has.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.piece.byte(frame::END_OF_FILE);
        self.piece.byte(frame::END_OF_BUFFER);
        self.close_chunk()?;
        Ok(self.events)
    }
}
