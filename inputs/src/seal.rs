//! Checksums made to hold, whatever the bytes (docs/design/store-format.md): so that what is behind them is read.

use dosmos_trace::chunk::Column;

const FRAME: usize = 68;
const COLUMNS: usize = Column::ALL.len();
const CHUNK: usize = 4 + 4 + 1 + COLUMNS * 8 + 4;

fn word(bytes: &[u8], at: usize) -> usize {
    let word = bytes[at..at + 4].try_into().unwrap();
    u32::from_le_bytes(word) as usize
}

fn put(bytes: &mut [u8], at: usize, checksum: u32) {
    bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
}

fn position(bytes: &[u8], magic: &[u8; 4]) -> Option<usize> {
    bytes.windows(4).position(|w| w == magic)
}

/// A chunk: columns that reach beyond it end where it ends.
pub(crate) fn chunk(bytes: &mut [u8]) {
    if bytes.len() < CHUNK || !bytes.starts_with(b"DSC4") {
        return;
    }
    let mut begin = CHUNK;
    for column in 0..COLUMNS {
        let at = 9 + column * 8;
        let rest = bytes.len() - begin;
        let last = column + 1 == COLUMNS;
        let length = if last {
            rest
        } else {
            word(bytes, at).min(rest)
        };
        put(bytes, at, length as u32);
        let checksum = crc32fast::hash(&bytes[begin..begin + length]);
        put(bytes, at + 4, checksum);
        begin += length;
    }
    bytes[8] = COLUMNS as u8;
    let checksum = crc32fast::hash(&bytes[..CHUNK - 4]);
    put(bytes, CHUNK - 4, checksum);
}

/// A log file: its frames, and the chunks in them.
pub(crate) fn log(mut bytes: &mut [u8]) {
    while let Some(at) = position(bytes, b"DSF1") {
        bytes = &mut bytes[at..];
        if bytes.len() < FRAME {
            return;
        }
        let (header, behind) = bytes.split_at_mut(FRAME);
        let length = word(header, 8).min(behind.len());
        put(header, 8, length as u32);
        let (body, behind) = behind.split_at_mut(length);
        if let Some(at) = position(body, b"DSC4") {
            chunk(&mut body[at..]);
        }
        put(header, 12, crc32fast::hash(body));
        let checksum = crc32fast::hash(&header[..FRAME - 4]);
        put(header, FRAME - 4, checksum);
        bytes = behind;
    }
}

/// The saved state of a store.
pub(crate) fn state(body: &[u8]) -> Vec<u8> {
    let mut bytes = b"DSS1".to_vec();
    bytes.extend(crc32fast::hash(body).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// A ledger, at its first place.
pub(crate) fn ledger(numbers: &[u8]) -> Vec<u8> {
    let mut bytes = b"DSL1".to_vec();
    bytes.extend(numbers);
    bytes.resize(36, 0);
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// A JSON document of a store, without its first line and its checksum.
pub(crate) fn document(body: &[u8]) -> Vec<u8> {
    let checksum = crc32fast::hash(body);
    let mut bytes = format!("{{\n  \"checksum\": \"{checksum:08x}\",\n").into_bytes();
    bytes.extend(body);
    bytes.push(b'\n');
    bytes
}

/// What [`document`] was made of.
pub(crate) fn opened(document: &[u8]) -> Vec<u8> {
    let lines = document.splitn(3, |b| *b == b'\n');
    let body = lines.last().unwrap();
    body.strip_suffix(b"\n").unwrap_or(body).to_vec()
}
