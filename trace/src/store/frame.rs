//! Frames: the entries of a log file, each with a header and checksums of its own, so that damage to one hides no other
//! (docs/design/store-format.md#frames).
//!
//! Header, little-endian, 68 bytes: magic `DSF1`; kind (u8) and three zero bytes; length of the body (u32); CRC32 of the
//! body; number of the first and of the last block covered (u64 each); number of the commit (u64); records and events of
//! the log before the block (u64 each); records and events in it (u32 each); CRC32 of all that.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Length of a header.
pub(super) const HEADER: usize = 68;
const MAGIC: &[u8; 4] = b"DSF1";
/// Bytes looked at in one go for the next header, after damage.
const WINDOW: usize = 1 << 20;
/// Longest body: no allocation follows a longer claim.
pub(super) const MOST_BODY: usize = 256 << 20;
/// More than a log can have of anything. Sums of such numbers fit into 64 bits.
pub(super) const MOST_COUNT: u64 = 1 << 60;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A copy of the manifest, at the beginning of each file.
    Manifest = 1,
    /// Everything the events before said (variables, barriers, counters …), for when the files before are gone.
    Dictionary = 2,
    /// A chunk of records, after its summary.
    Chunk = 3,
    /// The events between the records of the chunk of the same number.
    Events = 4,
    /// The end of a commit: the batches it holds. What is behind the last one was never acknowledged.
    Commit = 5,
}

impl Kind {
    fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Manifest,
            Self::Dictionary,
            Self::Chunk,
            Self::Events,
            Self::Commit,
        ];
        all.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// The first and the last block that it stands for: several if they were merged.
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) commit: u64,
    /// Of the whole log, before the first block.
    pub(super) records_before: u64,
    pub(super) events_before: u64,
    pub(super) records: u32,
    pub(super) events: u32,
}

impl Header {
    /// Appends a frame.
    pub(super) fn put(&self, body: &[u8], out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[self.kind as u8, 0, 0, 0]);
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
        for number in [
            self.first,
            self.last,
            self.commit,
            self.records_before,
            self.events_before,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.records.to_le_bytes());
        out.extend_from_slice(&self.events.to_le_bytes());
        let checksum = crc32fast::hash(&out[at..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(body);
    }

    /// Reads a header: what it says, and length and checksum of its body.
    fn read(bytes: &[u8]) -> Option<(Self, u32, u32)> {
        let bytes: &[u8; HEADER] = bytes.get(..HEADER)?.try_into().ok()?;
        let small = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let large = |at: usize| u64::from(small(at)) | u64::from(small(at + 4)) << 32;
        let whole =
            bytes[..4] == *MAGIC && crc32fast::hash(&bytes[..HEADER - 4]) == small(HEADER - 4);
        let header = Self {
            kind: Kind::from_number(bytes[4]).filter(|_| whole)?,
            first: large(16),
            last: large(24),
            commit: large(32),
            records_before: large(40),
            events_before: large(48),
            records: small(56),
            events: small(60),
        };
        let numbers = [
            header.last,
            header.commit,
            header.records_before,
            header.events_before,
        ];
        let possible = header.first <= header.last && numbers.iter().all(|n| *n <= MOST_COUNT);
        possible.then(|| (header, small(8), small(12)))
    }
}

/// What stands at a place of a file.
#[derive(Debug)]
pub(super) enum Found {
    /// A whole frame; its body begins at this place.
    Frame(Header, u64, Vec<u8>),
    /// A frame whose body is damaged or cut.
    Broken(Header),
    /// Bytes that do not form a frame, up to the next one or to the end of the file.
    Garbage,
}

/// The frames of a file, in order.
pub(super) struct Frames<'a> {
    file: &'a File,
    at: u64,
    length: u64,
}

impl<'a> Frames<'a> {
    pub(super) fn of(file: &'a File) -> std::io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            file,
            at: 0,
            length,
        })
    }

    /// Where the next frame begins.
    pub(super) fn place(&self) -> u64 {
        self.at
    }

    fn header(&self) -> std::io::Result<Option<(Header, u32, u32)>> {
        let mut bytes = [0; HEADER];
        if self.length - self.at < HEADER as u64 {
            return Ok(None);
        }
        self.file.read_exact_at(&mut bytes, self.at)?;
        Ok(Header::read(&bytes))
    }

    /// The next thing that is there; none at the end.
    pub(super) fn next(&mut self) -> std::io::Result<Option<Found>> {
        if self.at >= self.length {
            return Ok(None);
        }
        let Some((header, length, checksum)) = self.header()? else {
            self.at = self.next_header(self.at + 1)?;
            return Ok(Some(Found::Garbage));
        };
        let begin = self.at + HEADER as u64;
        let end = begin + u64::from(length);
        if end <= self.length && length as usize <= MOST_BODY {
            let mut body = vec![0; length as usize];
            self.file.read_exact_at(&mut body, begin)?;
            if crc32fast::hash(&body) == checksum {
                self.at = end;
                return Ok(Some(Found::Frame(header, begin, body)));
            }
        }
        // Its length counts for nothing: a frame that was cut may be followed by others written since.
        self.at = self.next_header(begin)?;
        Ok(Some(Found::Broken(header)))
    }

    /// Where the first whole header from `from` on is; the end of the file if there is none.
    fn next_header(&self, mut from: u64) -> std::io::Result<u64> {
        let mut window = Vec::new();
        while from + HEADER as u64 <= self.length {
            let here = (self.length - from).min(WINDOW as u64) as usize;
            window.resize(here, 0);
            self.file.read_exact_at(&mut window, from)?;
            let found = window
                .windows(HEADER)
                .position(|bytes| bytes[..4] == *MAGIC && Header::read(bytes).is_some());
            if let Some(at) = found {
                return Ok(from + at as u64);
            }
            from += (here - (HEADER - 1)) as u64;
        }
        Ok(self.length)
    }
}
