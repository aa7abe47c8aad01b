//! What goes out: frames that wait to be written, and how much the other end has room for.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use tonic::Status;
use tonic::codegen::http::HeaderMap;

use super::fault::Fault;
use super::fields;
use super::frame::{
    FIRST_WINDOW, HEAD, Head, MOST, SMALLEST_MOST, STREAM, WINDOW, code, flag, kind, setting,
    settings,
};

/// A flag and a length, before each message.
pub(super) const PREFIX: usize = 5;

/// No more messages are taken while so much waits to be written.
const FULL: usize = 256 << 10;
/// A message up to this size is written where frames are put together; a larger one is its own piece.
const TOGETHER: usize = 64 << 10;
/// Bytes of answers that may wait to be written. An end that asks for more and does not read loses its connection.
const MOST_ANSWERS: usize = 1 << 20;

/// What goes out.
#[derive(Debug)]
pub(super) struct Sending {
    /// Pieces that wait to be written, each of whole frames or the content of one, before `together`.
    pieces: VecDeque<Bytes>,
    together: Vec<u8>,
    /// Bytes of `together` that were written.
    written: usize,
    /// Bytes in `pieces`.
    bytes: usize,
    /// The rest of a message that is not in frames yet.
    rest: Bytes,
    /// What the other end has room for, on the connection and on its stream; the second may be below zero.
    connection: i64,
    stream: i64,
    /// What it said at first, to which what it says later is compared.
    announced: i64,
    /// The largest frame that it takes.
    most: usize,
    ended: bool,
}

impl Sending {
    pub(super) fn new() -> Self {
        Self {
            pieces: VecDeque::new(),
            together: Vec::with_capacity(1024),
            written: 0,
            bytes: 0,
            rest: Bytes::new(),
            connection: FIRST_WINDOW,
            stream: FIRST_WINDOW,
            announced: FIRST_WINDOW,
            most: SMALLEST_MOST,
            ended: false,
        }
    }

    /// Bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.bytes + self.together.len() - self.written
    }

    /// Whether another message may be given to [`message`](Self::message).
    pub(super) fn takes(&self) -> bool {
        self.rest.is_empty() && !self.ended && self.waiting() < FULL
    }

    /// Whether everything was written, the end included.
    pub(super) fn is_done(&self) -> bool {
        self.ended && self.waiting() == 0
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.together.extend_from_slice(bytes);
    }

    fn room(&self) -> i64 {
        self.connection.min(self.stream)
    }

    /// Puts a message into frames, as far as there is room for it.
    pub(super) fn message(&mut self, message: &impl Message) {
        let length = message.encoded_len();
        let whole = length + PREFIX;
        if whole <= TOGETHER.min(self.most) && self.room() >= whole as i64 {
            self.data(whole, 0);
            prefix(length, &mut self.together);
            self.together.reserve(length);
            message.encode_raw(&mut self.together);
            return;
        }
        let mut bytes = BytesMut::with_capacity(whole);
        prefix(length, &mut bytes);
        message.encode_raw(&mut bytes);
        self.rest = bytes.freeze();
        self.frames();
    }

    /// Puts what is left of a message into frames, as far as there is room for it.
    pub(super) fn frames(&mut self) {
        while !self.rest.is_empty() && self.room() > 0 && self.waiting() < FULL {
            let most = self.most.min(FULL).min(self.room() as usize);
            let piece = self.rest.split_to(most.min(self.rest.len()));
            self.data(piece.len(), 0);
            let before = std::mem::take(&mut self.together);
            let before = Bytes::from(before).split_off(std::mem::take(&mut self.written));
            self.bytes += before.len() + piece.len();
            self.pieces.extend([before, piece]);
        }
    }

    fn data(&mut self, length: usize, flags: u8) {
        self.connection -= length as i64;
        self.stream -= length as i64;
        Head::new(length, kind::DATA, flags, STREAM).write(&mut self.together);
    }

    /// Nothing more comes, and no status: what a client says at its end.
    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.data(0, flag::END_STREAM);
        }
    }

    /// Header fields, the last of all if `end`.
    pub(super) fn fields<'a>(
        &mut self,
        all: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        end: bool,
    ) {
        if self.ended {
            return;
        }
        self.ended = end;
        let mut block = Vec::new();
        for (name, value) in all {
            fields::write(name, value, &mut block);
        }
        let flags = flag::END_HEADERS | if end { flag::END_STREAM } else { 0 };
        Head::new(block.len(), kind::HEADERS, flags, STREAM).write(&mut self.together);
        self.raw(&block);
    }

    /// The end of a call, as a server says it; `alone` if nothing was said before.
    pub(super) fn status(&mut self, status: &Status, alone: bool) {
        let mut headers = HeaderMap::new();
        if status.add_header(&mut headers).is_err() {
            // Its metadata are no header fields: at least what is wrong is said.
            headers.insert("grpc-status", (status.code() as i32).into());
        }
        let first = [
            (":status", &b"200"[..]),
            ("content-type", b"application/grpc"),
        ];
        let first = first.into_iter().filter(|_| alone);
        let rest = headers.iter().filter(|(n, _)| *n != "content-type");
        let rest = rest.map(|(name, value)| (name.as_str(), value.as_bytes()));
        self.fields(first.chain(rest), true);
    }

    /// What this end has room for, and what the connection is for.
    pub(super) fn settings(&mut self, more: &[(u16, u32)]) {
        let first = [
            (setting::TABLE, 0),
            (setting::WINDOW, WINDOW as u32),
            (setting::MOST, MOST as u32),
        ];
        let all = first.iter().chain(more);
        let length = 6 * (first.len() + more.len());
        Head::new(length, kind::SETTINGS, 0, 0).write(&mut self.together);
        for (number, value) in all {
            self.raw(&number.to_be_bytes());
            self.raw(&value.to_be_bytes());
        }
        self.window(0, (WINDOW - FIRST_WINDOW) as u32);
    }

    fn window(&mut self, stream: u32, more: u32) {
        Head::new(4, kind::WINDOW, 0, stream).write(&mut self.together);
        self.raw(&more.to_be_bytes());
    }

    /// This end has room for so much more.
    pub(super) fn more_room(&mut self, bytes: u32) {
        self.window(0, bytes);
        self.window(STREAM, bytes);
    }

    /// Asks whether the other end is there.
    pub(super) fn ask(&mut self) {
        Head::new(8, kind::PING, 0, 0).write(&mut self.together);
        self.raw(b"dosmos ?");
    }

    pub(super) fn answer_ping(&mut self, payload: &[u8]) -> Result<(), Fault> {
        Head::new(8, kind::PING, flag::ANSWER, 0).write(&mut self.together);
        self.raw(payload);
        self.calm()
    }

    /// Refuses another call.
    pub(super) fn refuse(&mut self, stream: u32) -> Result<(), Fault> {
        Head::new(4, kind::RESET, 0, stream).write(&mut self.together);
        self.raw(&code::REFUSED.to_be_bytes());
        self.calm()
    }

    /// Says why the connection ends.
    pub(super) fn go_away(&mut self, code: u32) {
        self.ended = true;
        self.rest = Bytes::new();
        Head::new(8, kind::GO_AWAY, 0, 0).write(&mut self.together);
        self.raw(&STREAM.to_be_bytes());
        self.raw(&code.to_be_bytes());
    }

    /// Nobody takes what is sent.
    pub(super) fn give_up(&mut self) {
        *self = Self {
            ended: true,
            ..Self::new()
        };
    }

    fn calm(&self) -> Result<(), Fault> {
        match self.together.len() - self.written > MOST_ANSWERS {
            true => Err(Fault::new(code::CALM, "it asks and does not read")),
            false => Ok(()),
        }
    }

    /// The other end's settings.
    pub(super) fn learn(&mut self, payload: &[u8]) -> Result<(), Fault> {
        for (number, value) in settings(payload) {
            match number {
                setting::WINDOW if value <= i32::MAX as u32 => {
                    self.stream += i64::from(value) - self.announced;
                    self.announced = i64::from(value);
                }
                setting::WINDOW => {
                    return Err(Fault::new(code::FLOW_CONTROL, "its window is too large"));
                }
                setting::MOST if (SMALLEST_MOST..1 << 24).contains(&(value as usize)) => {
                    self.most = value as usize;
                }
                setting::MOST => {
                    return Err(Fault::new(
                        code::PROTOCOL,
                        "its largest frame is smaller or larger than HTTP/2 allows",
                    ));
                }
                _ => {}
            }
        }
        Head::new(0, kind::SETTINGS, flag::ANSWER, 0).write(&mut self.together);
        self.frames();
        self.calm()
    }

    /// The other end has room for more, on its stream or on the connection.
    pub(super) fn has_room(&mut self, stream: u32, more: u32) -> Result<(), Fault> {
        let window = match stream {
            0 => &mut self.connection,
            _ => &mut self.stream,
        };
        *window += i64::from(more);
        if more == 0 || *window > i64::from(i32::MAX) {
            return Err(Fault::new(code::FLOW_CONTROL, "its window is no window"));
        }
        self.frames();
        Ok(())
    }

    /// What waits to be written, in order; how many slices there are.
    pub(super) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let together = &self.together[self.written..];
        let all = self.pieces.iter().map(|piece| &piece[..]).chain([together]);
        let mut n = 0;
        for (slice, bytes) in slices.iter_mut().zip(all.filter(|b| !b.is_empty())) {
            *slice = IoSlice::new(bytes);
            n += 1;
        }
        n
    }

    /// So much of it was written.
    pub(super) fn wrote(&mut self, mut bytes: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            let n = bytes.min(piece.len());
            piece.advance(n);
            bytes -= n;
            self.bytes -= n;
            if !piece.is_empty() {
                return;
            }
            self.pieces.pop_front();
        }
        self.written += bytes;
        if self.written == self.together.len() {
            self.together.clear();
            self.written = 0;
            // What was once large is not kept.
            self.together.shrink_to(TOGETHER);
        }
        self.frames();
    }
}

fn prefix(length: usize, out: &mut impl BufMut) {
    out.put_u8(0);
    out.put_u32(length as u32);
}

const _: () = assert!(TOGETHER + HEAD < FULL && FULL < MOST_ANSWERS);
