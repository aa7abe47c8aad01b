//! What comes in: from bytes to messages, however they are cut.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use prost::Message;
use tonic::codegen::http::HeaderMap;
use tonic::{Code, Status};

use super::fault::Fault;
use super::fields::Fields;
use super::frame::{
    HEAD, Head, MOST, PREFACE, SMALLEST_MOST, STREAM, WINDOW, code, flag, kind, number,
};
use super::sending::{PREFIX, Sending};
use crate::whole::MAX_MESSAGE_BYTES;

/// The memory of a message that arrives in parts grows by no less.
const GROWTH: usize = 64 << 10;
/// A message takes no more of the window: what is beyond is given back at once, or it would never be whole.
const MOST_HELD: usize = (WINDOW / 2) as usize;
/// Room is given back when so much of it was used.
const GIVE_BACK: usize = (WINDOW / 4) as usize;

/// Which end of the call this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

/// Messages that have arrived and were not taken yet, with the bytes that they hold of the window.
pub(super) type Arrived<M> = VecDeque<(M, usize)>;

/// What comes in.
#[derive(Debug)]
pub(super) struct Receiving {
    end: End,
    /// How much of the client's beginning was read.
    preface: usize,
    /// The frame of content that is being read: how much of it is to come, and of what fills it up, and whether it is the last.
    content: usize,
    filling: usize,
    last: bool,
    /// A frame of a kind that this end does not know: how much of it is to come.
    skipped: usize,
    message: Partial,
    /// What the other end may still send, and what it may be told that it may send again.
    window: i64,
    owed: usize,
    /// The other end's fields at the start of the call.
    opened: Option<Fields>,
    /// How the other end ended the call.
    ended: Option<Result<(), Status>>,
}

/// A message of which a part has arrived.
#[derive(Debug, Default)]
struct Partial {
    prefix: [u8; PREFIX],
    read: usize,
    left: usize,
    body: BytesMut,
    /// What it takes of the window.
    held: usize,
}

impl Partial {
    /// More of it has arrived; what of that does not count.
    fn hold(&mut self, bytes: usize) -> usize {
        let held = bytes.min(MOST_HELD - self.held.min(MOST_HELD));
        self.held += held;
        bytes - held
    }
}

impl Receiving {
    pub(super) fn new(end: End) -> Self {
        Self {
            end,
            preface: match end {
                End::Client => PREFACE.len(),
                End::Server => 0,
            },
            content: 0,
            filling: 0,
            last: false,
            skipped: 0,
            message: Partial::default(),
            window: WINDOW,
            owed: 0,
            opened: None,
            ended: None,
        }
    }

    /// The fields with which the other end began the call.
    pub(super) fn opened(&self) -> Option<&Fields> {
        self.opened.as_ref()
    }

    /// How the other end ended the call, if it did.
    pub(super) fn ended(&self) -> Option<&Result<(), Status>> {
        self.ended.as_ref()
    }

    /// Reads what has arrived; how much of it, the rest being the beginning of a frame. A server stops where the call begins: what
    /// kind of messages follow is in its fields.
    pub(super) fn read<M: Message + Default>(
        &mut self,
        bytes: &[u8],
        sending: &mut Sending,
        arrived: &mut Arrived<M>,
    ) -> Result<usize, Fault> {
        let mut at = 0;
        // Who has said everything still says how much it has room for.
        while !matches!(self.ended, Some(Err(_))) {
            let rest = &bytes[at..];
            let expected = &PREFACE[self.preface..];
            if !expected.is_empty() {
                let n = expected.len().min(rest.len());
                if rest[..n] != expected[..n] {
                    return Err(Fault::new(code::PROTOCOL, "this is not HTTP/2"));
                }
                self.preface += n;
                at += n;
                if n < expected.len() {
                    break;
                }
                continue;
            }
            if self.content > 0 {
                let n = self.content.min(rest.len());
                self.content -= n;
                self.contents(&rest[..n], arrived)?;
                at += n;
                if self.content > 0 {
                    break;
                }
                self.end_of_content();
                continue;
            }
            let unread = self.filling + self.skipped;
            if unread > 0 {
                let n = unread.min(rest.len());
                let filling = n.min(self.filling);
                self.owed += filling;
                self.filling -= filling;
                self.skipped -= n - filling;
                at += n;
                if n < unread {
                    break;
                }
                self.end_of_content();
                continue;
            }
            let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else {
                break;
            };
            let head = Head::read(head);
            if head.length > MOST || head.kind != kind::DATA && head.length > SMALLEST_MOST {
                return Err(Fault::new(code::FRAME_SIZE, "a frame is too large"));
            }
            if head.kind == kind::DATA {
                let Some(read) = self.begin_content(head, rest)? else {
                    break;
                };
                at += HEAD + read;
                continue;
            }
            if head.kind > kind::CONTINUATION {
                at += HEAD;
                self.skipped = head.length;
                continue;
            }
            let Some(payload) = rest.get(..head.length) else {
                break;
            };
            at += HEAD + head.length;
            let begun = self.opened.is_some();
            self.frame(head, payload, sending)?;
            if self.end == End::Server && !begun && self.opened.is_some() {
                break;
            }
        }
        self.give_back(sending);
        Ok(at)
    }

    /// A frame of content begins; how much of its payload was read. None if more of it has to be there first.
    fn begin_content(&mut self, head: Head, rest: &[u8]) -> Result<Option<usize>, Fault> {
        let padded = head.has(flag::PADDED);
        if padded && head.length > 0 && rest.is_empty() {
            return Ok(None);
        }
        if head.stream != STREAM || self.opened.is_none() || self.ended.is_some() {
            return Err(Fault::new(code::PROTOCOL, "content belongs to no call"));
        }
        self.window -= head.length as i64;
        if self.window < 0 {
            let why = "it sends more than there is room for";
            return Err(Fault::new(code::FLOW_CONTROL, why));
        }
        let mut read = 0;
        if padded {
            self.filling = rest.first().copied().map_or(0, usize::from);
            read = 1;
            self.owed += 1;
        }
        let Some(content) = head.length.checked_sub(read + self.filling) else {
            return Err(Fault::new(code::PROTOCOL, "a frame is all filling"));
        };
        self.content = content;
        self.last = head.has(flag::END_STREAM);
        if self.content == 0 {
            self.end_of_content();
        }
        Ok(Some(read))
    }

    fn end_of_content(&mut self) {
        if self.content + self.filling == 0 && std::mem::take(&mut self.last) {
            self.over(Ok(()));
        }
    }

    /// The other end sends nothing more.
    fn over(&mut self, how: Result<(), Status>) {
        let how = match how {
            Ok(()) if self.message.read > 0 => Err(Status::internal(
                "the stream ended in the middle of a message",
            )),
            how => how,
        };
        self.ended.get_or_insert(how);
    }

    /// A part of what the messages are in.
    fn contents<M: Message + Default>(
        &mut self,
        mut bytes: &[u8],
        arrived: &mut Arrived<M>,
    ) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let message = &mut self.message;
            if message.read < PREFIX {
                let n = (PREFIX - message.read).min(bytes.len());
                message.prefix[message.read..][..n].copy_from_slice(&bytes[..n]);
                message.read += n;
                message.held += n;
                bytes = &bytes[n..];
                if message.read < PREFIX {
                    return Ok(());
                }
                let length = length(message.prefix)?;
                if let Some(whole) = bytes.get(..length) {
                    // The usual case: it is all here.
                    message.read = 0;
                    let held = length + std::mem::take(&mut message.held);
                    arrived.push_back((decoded(whole)?, held));
                    bytes = &bytes[length..];
                    continue;
                }
                message.left = length;
            }
            let n = message.left.min(bytes.len());
            let body = &mut message.body;
            if body.capacity() - body.len() < n {
                // No more than twice what has arrived, whatever was announced.
                let more = body.len().max(GROWTH).max(n);
                body.reserve(more.min(message.left));
            }
            body.extend_from_slice(&bytes[..n]);
            self.owed += message.hold(n);
            let message = &mut self.message;
            message.left -= n;
            bytes = &bytes[n..];
            if message.left == 0 {
                message.read = 0;
                let whole = std::mem::take(&mut message.body).freeze();
                let held = std::mem::take(&mut message.held);
                arrived.push_back((decoded::<M, Bytes>(whole)?, held));
            }
        }
        Ok(())
    }

    /// A frame that is not content.
    fn frame(&mut self, head: Head, payload: &[u8], sending: &mut Sending) -> Result<(), Fault> {
        let wrong = |why| Err(Fault::new(code::PROTOCOL, why));
        match head.kind {
            kind::SETTINGS if head.has(flag::ANSWER) => Ok(()),
            kind::SETTINGS if !payload.len().is_multiple_of(6) => {
                Err(Fault::new(code::FRAME_SIZE, "settings are cut off"))
            }
            kind::SETTINGS => sending.learn(payload),
            kind::PING if payload.len() != 8 => {
                Err(Fault::new(code::FRAME_SIZE, "a ping is cut off"))
            }
            kind::PING if head.has(flag::ANSWER) => Ok(()),
            kind::PING => sending.answer_ping(payload),
            kind::WINDOW => match number(payload) {
                Some(more) => sending.has_room(head.stream, more),
                None => Err(Fault::new(code::FRAME_SIZE, "a window is cut off")),
            },
            kind::HEADERS => self.fields(head, payload, sending),
            kind::RESET if payload.len() != 4 => {
                Err(Fault::new(code::FRAME_SIZE, "a reset is cut off"))
            }
            kind::RESET if self.end == End::Server && self.opened.is_none() => {
                wrong("a call is reset that has not begun")
            }
            kind::RESET if head.stream == STREAM => {
                let reason = number(payload).unwrap_or(code::PROTOCOL);
                let status = match reason {
                    code::NONE => Ok(()),
                    code::REFUSED => Err(Status::unavailable("it takes no call now")),
                    code::CANCEL => Err(Status::cancelled("it cancelled the call")),
                    other => Err(Status::internal(format!("it reset the call: {other}"))),
                };
                self.over(status);
                Ok(())
            }
            kind::GO_AWAY => {
                // With the number of no error it lets the call go on.
                let reason = payload.get(4..).and_then(number);
                if let Some(reason) = reason.filter(|r| *r != code::NONE) {
                    let said = String::from_utf8_lossy(&payload[8..]).into_owned();
                    let why = format!("it ended the connection: {reason} {said}");
                    self.over(Err(Status::unavailable(why.trim_end())));
                }
                Ok(())
            }
            kind::PUSH | kind::CONTINUATION => wrong("a frame of a kind that was not agreed on"),
            _ => Ok(()),
        }
    }

    fn fields(&mut self, head: Head, payload: &[u8], sending: &mut Sending) -> Result<(), Fault> {
        if !head.has(flag::END_HEADERS) {
            return Err(Fault::new(code::CALM, "there are too many header fields"));
        }
        let mut payload = payload;
        if head.has(flag::PADDED) {
            let inner = payload.split_first().and_then(|(filling, rest)| {
                rest.get(..rest.len().checked_sub(usize::from(*filling))?)
            });
            let Some(inner) = inner else {
                return Err(Fault::new(code::PROTOCOL, "a frame is all filling"));
            };
            payload = inner;
        }
        if head.has(flag::PRIORITY) {
            payload = payload.get(5..).unwrap_or_default();
        }
        if head.stream != STREAM {
            return match (self.end, head.stream % 2) {
                (End::Server, 1) => sending.refuse(head.stream),
                _ => Err(Fault::new(code::PROTOCOL, "fields belong to no call")),
            };
        }
        let Some(fields) = Fields::read(payload) else {
            return Err(Fault::new(code::COMPRESSION, "header fields are malformed"));
        };
        let last = head.has(flag::END_STREAM);
        match self.end {
            End::Server if last => self.over(Ok(())),
            End::Client if last || self.opened.is_some() => {
                self.over(outcome(&fields.headers));
                return Ok(());
            }
            End::Client if fields.own("status") != Some("200") => {
                let status = fields.own("status").unwrap_or("none");
                self.over(Err(Status::unknown(format!(
                    "the status of HTTP is {status}"
                ))));
                return Ok(());
            }
            End::Client | End::Server => {}
        }
        self.opened.get_or_insert(fields);
        Ok(())
    }

    /// A message was taken that held so much of the window.
    pub(super) fn taken(&mut self, bytes: usize, sending: &mut Sending) {
        self.owed += bytes;
        self.give_back(sending);
    }

    fn give_back(&mut self, sending: &mut Sending) {
        if self.owed >= GIVE_BACK {
            self.window += self.owed as i64;
            sending.more_room(std::mem::take(&mut self.owed) as u32);
        }
    }
}

/// The length of a message, from what stands before it.
fn length([flag, length @ ..]: [u8; PREFIX]) -> Result<usize, Fault> {
    let length = u32::from_be_bytes(length) as usize;
    if flag != 0 {
        let why = "a message is compressed, which was not agreed on";
        return Err(Fault::of_message(Code::Unimplemented, why));
    }
    if length > MAX_MESSAGE_BYTES {
        let why = "a message is larger than any that this end takes";
        return Err(Fault::of_message(Code::OutOfRange, why));
    }
    Ok(length)
}

fn decoded<M: Message + Default, B: bytes::Buf>(bytes: B) -> Result<M, Fault> {
    let malformed = |_| Fault::of_message(Code::Internal, "a message is malformed");
    M::decode(bytes).map_err(malformed)
}

/// How a call ended, by its last fields.
fn outcome(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() == Code::Ok => Ok(()),
        Some(status) => Err(status),
        None => Err(Status::unknown("the call ended without a status")),
    }
}
