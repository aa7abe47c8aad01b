//! Frames of HTTP/2 (RFC 9113), as far as a connection of one call has them.

/// A client begins with this.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes before each frame.
pub(super) const HEAD: usize = 9;

/// The one call of a connection.
pub(super) const STREAM: u32 = 1;

/// The largest frame that is not content, and the largest of all that an end takes before it has said otherwise.
pub(super) const SMALLEST_MOST: usize = 16 << 10;
/// The largest that this end takes.
pub(super) const MOST: usize = 1 << 20;

/// What a window has room for before anything was said, in bytes.
pub(super) const FIRST_WINDOW: i64 = 65_535;
/// What this end has room for.
pub(super) const WINDOW: i64 = 16 << 20;

pub(super) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RESET: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GO_AWAY: u8 = 7;
    pub(crate) const WINDOW: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

pub(super) mod flag {
    /// Of a setting or a ping.
    pub(crate) const ANSWER: u8 = 1;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 32;
}

pub(super) mod setting {
    pub(crate) const TABLE: u16 = 1;
    pub(crate) const PUSH: u16 = 2;
    pub(crate) const MOST_STREAMS: u16 = 3;
    pub(crate) const WINDOW: u16 = 4;
    pub(crate) const MOST: u16 = 5;
    /// The client makes one call on this connection. Who does not know it ignores it, as the standard says.
    pub(crate) const ONE_CALL: u16 = 0xd05a;
}

/// Why a connection ends, as a number of the standard.
pub(super) mod code {
    pub(crate) const NONE: u32 = 0;
    pub(crate) const PROTOCOL: u32 = 1;
    pub(crate) const FLOW_CONTROL: u32 = 3;
    pub(crate) const FRAME_SIZE: u32 = 6;
    pub(crate) const REFUSED: u32 = 7;
    pub(crate) const CANCEL: u32 = 8;
    pub(crate) const COMPRESSION: u32 = 9;
    pub(crate) const CALM: u32 = 11;
}

/// What stands before a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Head {
    pub(super) fn new(length: usize, kind: u8, flags: u8, stream: u32) -> Self {
        Self {
            length,
            kind,
            flags,
            stream,
        }
    }

    pub(super) fn read(bytes: &[u8; HEAD]) -> Self {
        let [a, b, c, kind, flags, s, t, u, v] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([s & 0x7f, t, u, v]),
        }
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.length as u32).to_be_bytes()[1..]);
        out.extend_from_slice(&[self.kind, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The settings in the payload of a frame, number and value.
pub(super) fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.chunks_exact(6).map(|s| {
        (
            u16::from_be_bytes([s[0], s[1]]),
            u32::from_be_bytes([s[2], s[3], s[4], s[5]]),
        )
    })
}

/// The number of four bytes, as windows and reasons are.
pub(super) fn number(payload: &[u8]) -> Option<u32> {
    let bytes = payload.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_read_back() {
        let head = Head::new(
            MOST,
            kind::HEADERS,
            flag::END_HEADERS | flag::END_STREAM,
            STREAM,
        );
        let mut out = Vec::new();
        head.write(&mut out);
        assert_eq!(Head::read(out.first_chunk().unwrap()), head);
        assert_eq!(out, [0x10, 0, 0, 1, 5, 0, 0, 0, 1]);
        assert!(head.has(flag::END_STREAM) && !head.has(flag::PADDED));
    }
}
