//! Reading numbers and text as the format has them. A file is read in pieces and is not open in between: an archive may have
//! thousands.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::error::Otf2Error;
use super::ids::frame;

/// Bytes read at once.
const PIECE: usize = 64 << 10;
/// Longest text: room for what this project says of a large run.
const LONGEST_TEXT: u64 = 64 << 20;

/// A file that is read.
#[derive(Debug)]
pub(super) struct Take {
    path: PathBuf,
    size: u64,
    /// Where in the file the piece begins.
    begin: u64,
    piece: Vec<u8>,
    /// What has been read of the piece.
    at: usize,
    big_endian: bool,
}

impl Take {
    pub(super) fn open(path: &Path) -> Result<Self, Otf2Error> {
        let meta = std::fs::metadata(path).map_err(Otf2Error::read(path))?;
        Ok(Self {
            path: path.to_owned(),
            size: meta.len(),
            begin: 0,
            piece: Vec::new(),
            at: 0,
            big_endian: false,
        })
    }

    /// Where the next byte is.
    pub(super) fn position(&self) -> u64 {
        self.begin + self.at as u64
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.position() >= self.size
    }

    /// What is wrong here.
    pub(super) fn bad(&self, why: impl Into<String>) -> Otf2Error {
        Otf2Error::Damaged {
            path: self.path.clone(),
            at: self.position(),
            why: why.into(),
        }
    }

    /// Goes on at `position`.
    pub(super) fn go_to(&mut self, position: u64) {
        match position.checked_sub(self.begin) {
            Some(at) if at <= self.piece.len() as u64 => self.at = at as usize,
            _ => {
                self.begin = position;
                self.piece.clear();
                self.at = 0;
            }
        }
    }

    /// Leaves out what is before `position`.
    pub(super) fn skip(&mut self, length: u64) -> Result<(), Otf2Error> {
        let end = self.position().checked_add(length);
        let end = end.filter(|&end| end <= self.size);
        let end = end.ok_or_else(|| {
            self.bad(format!(
                "{length} bytes were to follow, the file ends before"
            ))
        })?;
        self.go_to(end);
        Ok(())
    }

    /// The next bytes, at most [`PIECE`].
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Otf2Error> {
        if self.at + N > self.piece.len() {
            self.fill()?;
        }
        let found = self.piece.get(self.at..self.at + N);
        let bytes = found.and_then(|b| b.try_into().ok());
        let bytes = bytes.ok_or_else(|| self.bad("the file ends in the middle of something"))?;
        self.at += N;
        Ok(bytes)
    }

    /// Reads the piece that begins here.
    fn fill(&mut self) -> Result<(), Otf2Error> {
        self.begin += self.at as u64;
        self.at = 0;
        let left = self.size.saturating_sub(self.begin);
        self.piece.resize(left.min(PIECE as u64) as usize, 0);
        let read = |file: File| file.read_exact_at(&mut self.piece, self.begin);
        File::open(&self.path)
            .and_then(read)
            .map_err(Otf2Error::read(&self.path))
    }

    pub(super) fn byte(&mut self) -> Result<u8, Otf2Error> {
        let [byte] = self.bytes()?;
        Ok(byte)
    }

    pub(super) fn whole_u64(&mut self) -> Result<u64, Otf2Error> {
        let bytes = self.bytes()?;
        Ok(match self.big_endian {
            true => u64::from_be_bytes(bytes),
            false => u64::from_le_bytes(bytes),
        })
    }

    pub(super) fn whole_u32(&mut self) -> Result<u32, Otf2Error> {
        let bytes = self.bytes()?;
        Ok(match self.big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        })
    }

    /// A compressed number: how many bytes follow, and these; none for zero and for the greatest.
    pub(super) fn u64(&mut self) -> Result<u64, Otf2Error> {
        let length = self.byte()?;
        if length == u8::MAX {
            return Ok(u64::MAX);
        }
        if length > 8 {
            return Err(self.bad(format!("a number cannot have {length} bytes")));
        }
        let mut value = 0;
        for i in 0..u32::from(length) {
            let byte = u64::from(self.byte()?);
            value = match self.big_endian {
                true => value << 8 | byte,
                false => value | byte << (8 * i),
            };
        }
        Ok(value)
    }

    /// The same of 32 bits.
    pub(super) fn u32(&mut self) -> Result<u32, Otf2Error> {
        match self.u64()? {
            u64::MAX => Ok(u32::MAX),
            value => {
                u32::try_from(value).map_err(|_| self.bad(format!("{value} does not fit 32 bits")))
            }
        }
    }

    /// Text, which ends with a zero byte.
    pub(super) fn text(&mut self) -> Result<String, Otf2Error> {
        let mut text = Vec::new();
        loop {
            if self.at == self.piece.len() {
                self.fill()?;
            }
            let rest = &self.piece[self.at..];
            let end = rest.iter().position(|&b| b == 0);
            text.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            if let Some(end) = end {
                self.at += end + 1;
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
            self.at = self.piece.len();
            if self.is_at_end() || text.len() as u64 > LONGEST_TEXT {
                return Err(self.bad("a text has no end"));
            }
        }
    }

    /// Length of a record.
    pub(super) fn length(&mut self) -> Result<u64, Otf2Error> {
        match self.byte()? {
            u8::MAX => self.whole_u64(),
            length => Ok(length.into()),
        }
    }

    /// The two bytes that every file begins with, and every chunk.
    pub(super) fn header(&mut self) -> Result<(), Otf2Error> {
        let at = self.position();
        if self.byte()? != frame::CHUNK_HEADER {
            self.go_to(at);
            return Err(self.bad("no chunk begins here"));
        }
        self.big_endian = match self.byte()? {
            frame::LITTLE_ENDIAN => false,
            frame::BIG_ENDIAN => true,
            other => {
                return Err(self.bad(format!(
                    "{other:#x} is neither order of bytes (0x42 little endian, 0x23 big endian)"
                )));
            }
        };
        Ok(())
    }
}

/// A file of chunks that is read record by record.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) take: Take,
    /// Length of a chunk.
    chunk: u64,
    ended: bool,
}

impl Records {
    pub(super) fn open(path: &Path, chunk: u64) -> Result<Self, Otf2Error> {
        let mut records = Self {
            take: Take::open(path)?,
            chunk,
            ended: false,
        };
        records.header()?;
        Ok(records)
    }

    fn header(&mut self) -> Result<(), Otf2Error> {
        self.take.header()?;
        // Numbers of the first and the last event.
        self.take.skip(16)
    }

    /// First byte of the next record; none at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<u8>, Otf2Error> {
        while !self.ended {
            if self.take.is_at_end() {
                return Err(self
                    .take
                    .bad("the file has no end mark: it was cut off, or never finished"));
            }
            match self.take.byte()? {
                frame::END_OF_FILE => self.ended = true,
                frame::END_OF_CHUNK => {
                    let here = self.take.position() - 1;
                    let next = (here / self.chunk + 1).checked_mul(self.chunk);
                    self.take.go_to(next.unwrap_or(u64::MAX));
                    if self.take.is_at_end() {
                        continue;
                    }
                    self.header()?;
                }
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
    }

    /// Reads a record that has its length in front, and goes behind it.
    pub(super) fn within<T>(
        &mut self,
        read: impl FnOnce(&mut Take, u64) -> Result<T, Otf2Error>,
    ) -> Result<T, Otf2Error> {
        let length = self.take.length()?;
        let end = self.take.position().checked_add(length);
        let end = end.ok_or_else(|| self.take.bad("a record is longer than any file"))?;
        let read = read(&mut self.take, end)?;
        let here = self.take.position();
        if here > end {
            return Err(self
                .take
                .bad(format!("a record of {length} bytes has more")));
        }
        self.take.skip(end - here)?;
        Ok(read)
    }
}
