//! Large contents go between two processes of one host around their connection, in shared memory ([`dosmos_shm`]):
//! the message says where its contents are.
//!
//! Each end of a connection has an inbox of its own. It is named in the greeting of whoever reached the other over a Unix
//! socket, and in the answer of the other. Where an inbox is not found (another host, another container, no such file
//! system) or is full, contents stay in their messages.
//!
//! Guarantees: the order of messages is that of the connection; how much was sent and not taken yet is bounded.

use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use dosmos_shm::{Inbox, Outbox, Sent};
pub use dosmos_shm::{LARGE, are_zeros, copy_of, room_for, sweep, zeroed, zeros};

use crate::error::Malformed;
use crate::whole::MAX_MESSAGE_BYTES;
use crate::wire::ap_reply::Body as Reply;
use crate::wire::ap_request::Body as Request;
use crate::wire::object_access::Kind;
use crate::wire::peer_message::Body as Peer;
use crate::wire::{ApReply, ApRequest, ObjectAccess, OutOfBand, PeerMessage};

/// A message whose contents may be elsewhere.
pub trait Carrier {
    /// Shows its fields of bytes, always the same in the same order.
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Bytes));
    /// Where contents are that are elsewhere.
    fn elsewhere(&mut self) -> &mut Vec<OutOfBand>;
}

impl Carrier for ApRequest {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Bytes)) {
        if let Some(Request::Access(access)) = &mut self.body {
            of_access(access, visit);
        }
        let parts = self.returns.iter_mut().flat_map(|r| &mut r.parts);
        parts.for_each(|part| visit(&mut part.data));
    }
    fn elsewhere(&mut self) -> &mut Vec<OutOfBand> {
        &mut self.out_of_band
    }
}

impl Carrier for ApReply {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Bytes)) {
        match &mut self.body {
            Some(Reply::Read(done)) => visit(&mut done.data),
            Some(Reply::Granted(granted)) => granted.value.iter_mut().for_each(visit),
            Some(Reply::Update(update)) => visit(&mut update.data),
            _ => {}
        }
    }
    fn elsewhere(&mut self) -> &mut Vec<OutOfBand> {
        &mut self.out_of_band
    }
}

impl Carrier for PeerMessage {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Bytes)) {
        match &mut self.body {
            Some(Peer::Access(peer)) => {
                if let Some(access) = &mut peer.access {
                    of_access(access, visit);
                }
            }
            Some(Peer::ReadDone(done)) => visit(&mut done.data),
            Some(Peer::Update(update)) => visit(&mut update.data),
            Some(Peer::Granted(granted)) => granted.value.iter_mut().for_each(visit),
            _ => {}
        }
    }
    fn elsewhere(&mut self) -> &mut Vec<OutOfBand> {
        &mut self.out_of_band
    }
}

fn of_access(access: &mut ObjectAccess, visit: &mut dyn FnMut(&mut Bytes)) {
    match &mut access.kind {
        Some(Kind::Write(write)) => visit(&mut write.data),
        Some(Kind::Release(release)) => {
            if let Some(write) = &mut release.write {
                visit(&mut write.data);
            }
        }
        _ => {}
    }
}

/// How the large contents of one connection go: both ways, as far as its ends have agreed.
#[derive(Debug, Default)]
pub struct LargeMessages {
    inbox: OnceLock<Option<Inbox>>,
    outbox: Mutex<Option<Outbox>>,
    /// What comes is not read here, mostly, but goes out again as it is.
    hands_on: bool,
}

impl LargeMessages {
    /// For a process that hands contents on.
    pub fn handing_on() -> Self {
        Self {
            hands_on: true,
            ..Self::default()
        }
    }

    /// The inbox to name in the greeting of who dialled; empty if there is none, or the other end may be on another host.
    pub fn offer(&self, is_on_this_host: bool) -> String {
        match is_on_this_host {
            true => self.name(),
            false => String::new(),
        }
    }

    /// The inbox to name in the answer to a greeting that named `theirs`; empty if there is none.
    pub fn answer(&self, theirs: &str) -> String {
        self.accept(theirs);
        match theirs.is_empty() {
            true => String::new(),
            false => self.name(),
        }
    }

    /// The other end takes large contents in the inbox `theirs`, unless that is empty.
    pub fn accept(&self, theirs: &str) {
        let outbox = Outbox::open(theirs);
        *self.outbox.lock().unwrap_or_else(PoisonError::into_inner) = outbox;
    }

    fn name(&self) -> String {
        let inbox = self.inbox.get_or_init(Inbox::create).as_ref();
        inbox.map_or_else(String::new, |i| i.name().to_owned())
    }

    /// The message to send in the place of `message`: its large contents are in files, if the other end takes that.
    pub fn pack<M: Carrier>(&self, mut message: M) -> M {
        let mut packed = Vec::new();
        let mut field = 0;
        message.contents(&mut |content| {
            if content.len() >= LARGE {
                let mut outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
                // If there is no room, or no receiver any more, the connection takes it.
                if let Ok(length) = u32::try_from(content.len())
                    && let Some(Ok(sent)) = outbox.as_mut().map(|o| o.put(content))
                {
                    content.clear();
                    let at = OutOfBand {
                        field,
                        length,
                        ..OutOfBand::default()
                    };
                    packed.push(match sent {
                        Sent::File { number, offset } => OutOfBand {
                            number,
                            offset,
                            ..at
                        },
                        Sent::InRing(number) => OutOfBand {
                            number,
                            in_ring: true,
                            ..at
                        },
                        Sent::Zeros => OutOfBand { zeros: true, ..at },
                    });
                }
            }
            field += 1;
        });
        if !packed.is_empty() {
            *message.elsewhere() = packed;
        }
        message
    }

    /// The message with all its contents.
    ///
    /// # Errors
    /// If it says that something is in a file that is not there or holds something else.
    pub fn unpack<M: Carrier>(&self, mut message: M) -> Result<M, Malformed> {
        let elsewhere = std::mem::take(message.elsewhere());
        let wrong = |why: String| Malformed::new("out_of_band", why);
        for at in elsewhere {
            let inbox = self.inbox.get().and_then(Option::as_ref);
            let inbox = inbox.ok_or_else(|| wrong("this process takes none".into()))?;
            if at.zeros && at.length as usize > MAX_MESSAGE_BYTES {
                // Nothing that is there bounds it.
                return Err(wrong(format!("{} zeros are too many", at.length)));
            }
            let (sent, what) = match (at.zeros, at.in_ring) {
                (true, _) => (Sent::Zeros, "zeros"),
                (false, true) => (Sent::InRing(at.number), "place"),
                (false, false) => {
                    let (number, offset) = (at.number, at.offset);
                    (Sent::File { number, offset }, "file")
                }
            };
            let bytes = inbox.take(sent, at.length as usize, !self.hands_on);
            let bytes = bytes.map_err(|e| wrong(format!("{what} {}: {e}", at.number)))?;
            let (mut field, mut bytes) = (0, Some(bytes));
            message.contents(&mut |content| {
                if field == at.field && content.is_empty() {
                    *content = bytes.take().unwrap_or_default();
                }
                field += 1;
            });
            if bytes.is_some() {
                return Err(wrong(format!("there is no empty field {}", at.field)));
            }
        }
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::wire::{Part, ReadDone, Return, Write};

    /// Bytes of a content that is mapped.
    const MAPPED: usize = 80 << 10;

    fn reply(bytes: usize) -> ApReply {
        reply_of((0..bytes).map(|i| i as u8).collect())
    }

    fn reply_of(data: Vec<u8>) -> ApReply {
        let data = data.into();
        ApReply {
            id: 3,
            body: Some(Reply::Read(ReadDone {
                data,
                ..ReadDone::default()
            })),
            ..ApReply::default()
        }
    }

    fn at(number: u64, length: u32) -> ApReply {
        let mut message = reply(0);
        message.out_of_band.push(OutOfBand {
            field: 0,
            number,
            length,
            ..OutOfBand::default()
        });
        message
    }

    /// Two ends that have greeted.
    fn connected() -> (LargeMessages, LargeMessages) {
        let (dialled, accepted) = (LargeMessages::default(), LargeMessages::default());
        let theirs = dialled.offer(true);
        assert!(!theirs.is_empty(), "no files in memory");
        dialled.accept(&accepted.answer(&theirs));
        (dialled, accepted)
    }

    #[test]
    fn large_contents_go_around_both_ways_and_small_ones_do_not() {
        let (dialled, accepted) = connected();
        let small = reply(100);
        assert_eq!(accepted.pack(small.clone()), small);
        let sent = accepted.pack(reply(LARGE));
        assert!(sent.encoded_len() < 40, "{sent:?}");
        assert_eq!(dialled.unpack(sent).unwrap(), reply(LARGE));
        let back = dialled.pack(reply(3 * LARGE));
        assert_eq!(accepted.unpack(back).unwrap(), reply(3 * LARGE));
    }

    #[test]
    fn of_several_contents_each_comes_back_to_its_place() {
        let (dialled, accepted) = connected();
        let part = |length: usize| Part {
            first: length as u32,
            data: vec![length as u8; length].into(),
        };
        let returned = Return {
            parts: vec![part(LARGE + 1), part(3), part(LARGE + 2)],
            ..Return::default()
        };
        let write = Write {
            data: vec![9; LARGE].into(),
            ..Write::default()
        };
        let message = ApRequest {
            body: Some(Request::Access(ObjectAccess {
                object: 1,
                kind: Some(Kind::Write(write)),
            })),
            returns: vec![returned],
            ..ApRequest::default()
        };
        let sent = dialled.pack(message.clone());
        assert_eq!(sent.out_of_band.len(), 3);
        assert_eq!(accepted.unpack(sent).unwrap(), message);
    }

    #[test]
    fn over_tcp_and_with_a_stranger_everything_goes_through_the_connection() {
        let dialled = LargeMessages::default();
        assert_eq!(dialled.offer(false), "");
        let accepted = LargeMessages::default();
        assert_eq!(accepted.answer(""), "");
        for inbox in ["0123456789abcdef", "../../../../etc", "/etc", ""] {
            accepted.accept(inbox);
            assert!(accepted.pack(reply(LARGE)) == reply(LARGE));
        }
    }

    #[test]
    fn what_is_not_there_or_something_else_is_refused_with_the_reason() {
        let (dialled, accepted) = connected();
        let said = |m| match dialled.unpack::<ApReply>(m) {
            Ok(_) => panic!("it was taken"),
            Err(why) => why.to_string(),
        };
        assert!(said(at(9, 4)).contains("file 9"));
        let mut sent = accepted.pack(reply(LARGE));
        sent.out_of_band[0].length += 1;
        assert!(said(sent).contains("it has not 16385 bytes"));
        let mut sent = accepted.pack(reply(MAPPED));
        sent.out_of_band[0].offset = 4097;
        assert!(said(sent).contains("it has not 81920 bytes from byte 4097 on"));
        let mut sent = accepted.pack(reply(MAPPED));
        sent.out_of_band[0].offset = u64::MAX;
        said(sent);
        let mut sent = accepted.pack(reply(LARGE));
        sent.out_of_band[0].field = 1;
        assert!(said(sent).contains("no empty field 1"));
        assert!(LargeMessages::default().unpack(at(0, 1)).is_err());
    }

    #[test]
    fn no_more_zeros_are_believed_than_a_message_has_bytes() {
        let large = LargeMessages::default();
        large.offer(true);
        let zeros = |length: usize| {
            let mut message = at(0, length as u32);
            message.out_of_band[0].zeros = true;
            large.unpack(message)
        };
        assert!(zeros(MAPPED).unwrap() == reply_of(vec![0; MAPPED]));
        let error = zeros(MAX_MESSAGE_BYTES + 1).unwrap_err().to_string();
        assert!(error.contains("zeros are too many"), "{error}");
    }

    #[test]
    fn without_the_receiver_the_connection_takes_the_message() {
        let (dialled, accepted) = connected();
        drop(dialled);
        assert!(accepted.pack(reply(LARGE)) == reply(LARGE));
    }
}
