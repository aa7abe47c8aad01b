//! The body of a call, whose large messages are passed on only when they are there as a whole.
//!
//! A gRPC message has its length before it, and the decoder reserves that much memory as soon as it has read the length:
//! five bytes would reserve as much as the largest message has. Here the memory of a message grows with what arrived of it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body as HttpBody, Frame};
use tonic::Status;
use tonic::body::Body;

/// Largest message either side accepts, in bytes. An object must fit, so it also bounds objects.
pub const MAX_MESSAGE_BYTES: usize = 80 << 20;

/// A flag and a length.
const HEADER: usize = 5;
/// A message up to this size is passed on as it comes: reserving it at once costs little.
const FREE: usize = 1 << 20;

/// A body with that guarantee.
pub fn whole<B>(body: B) -> Body
where
    B: HttpBody<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.is_end_stream() {
        return Body::new(body);
    }
    Body::new(Whole {
        body,
        messages: Messages::default(),
        ready: None,
    })
}

struct Whole<B> {
    body: B,
    messages: Messages,
    /// To be passed on behind what was.
    ready: Option<Bytes>,
}

impl<B> HttpBody for Whole<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some(data) = this.ready.take() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(e)) => return Poll::Ready(Some(Err(Status::from_error(e.into())))),
                None if this.messages.held.is_empty() => return Poll::Ready(None),
                None => {
                    this.messages = Messages::default();
                    let why = "the stream ended in the middle of a message";
                    return Poll::Ready(Some(Err(Status::internal(why))));
                }
            };
            match frame.into_data() {
                Ok(data) => {
                    let (now, later) = this.messages.take(data);
                    this.ready = later;
                    if let Some(now) = now {
                        return Poll::Ready(Some(Ok(Frame::data(now))));
                    }
                }
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_none() && self.messages.held.is_empty() && self.body.is_end_stream()
    }
}

/// Where in its messages a stream is.
#[derive(Debug, Default)]
struct Messages {
    at: At,
    /// The beginning of a large message, with at least a byte of its header.
    held: BytesMut,
}

#[derive(Clone, Copy, Debug)]
enum At {
    /// In a header: how many bytes of it were read, and the length so far.
    Header { read: usize, length: usize },
    /// In a message of which so much is to come, and whether it is held.
    Message { left: usize, held: bool },
}

impl Default for At {
    fn default() -> Self {
        Self::Header { read: 0, length: 0 }
    }
}

impl Messages {
    /// What may be passed on when `data` arrived: before what is held, and what was held with all behind it.
    fn take(&mut self, mut data: Bytes) -> (Option<Bytes>, Option<Bytes>) {
        let mut passed = None;
        let mut released = BytesMut::new();
        let mut at = 0;
        while at < data.len() {
            match self.at {
                At::Header { read, length } => {
                    let byte = data[at];
                    let length = if read == 0 {
                        0
                    } else {
                        length << 8 | usize::from(byte)
                    };
                    if read + 1 < HEADER {
                        self.at = At::Header {
                            read: read + 1,
                            length,
                        };
                    } else {
                        // Beyond the largest message it is refused at once.
                        let held = length > FREE && length <= MAX_MESSAGE_BYTES;
                        if held {
                            // Without the last byte of the header its length is not known.
                            let before = data.split_to(at);
                            at = 0;
                            pass(&mut passed, &mut released, before);
                        }
                        self.at = Self::message(length, held);
                    }
                    at += 1;
                }
                At::Message { left, held } => {
                    let n = left.min(data.len() - at);
                    at += n;
                    self.at = Self::message(left - n, held);
                    if held && left == n {
                        self.held.extend_from_slice(&data.split_to(at));
                        at = 0;
                        released.unsplit(std::mem::take(&mut self.held));
                    }
                }
            }
        }
        if let At::Message { held: true, .. } = self.at {
            self.held.extend_from_slice(&data);
        } else {
            pass(&mut passed, &mut released, data);
        }
        let released = (!released.is_empty()).then(|| released.freeze());
        (passed.filter(|p| !p.is_empty()), released)
    }

    fn message(left: usize, held: bool) -> At {
        match left {
            0 => At::default(),
            left => At::Message { left, held },
        }
    }
}

/// Puts `data` behind what is passed on already.
fn pass(passed: &mut Option<Bytes>, released: &mut BytesMut, data: Bytes) {
    if released.is_empty() && passed.is_none() {
        *passed = Some(data);
    } else {
        released.extend_from_slice(&data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((length as u32).to_be_bytes());
        bytes.extend((0..length).map(|i| (i % 251) as u8));
        bytes
    }

    fn passed(messages: &mut Messages, data: &[u8]) -> Vec<u8> {
        let (now, later) = messages.take(Bytes::copy_from_slice(data));
        [now, later].into_iter().flatten().flatten().collect()
    }

    #[test]
    fn a_large_message_is_passed_on_as_a_whole_and_takes_no_memory_before() {
        let mut messages = Messages::default();
        let large = message(64 << 20);
        // The last byte of the length is not passed on, so nobody knows it.
        assert_eq!(passed(&mut messages, &large[..5]), large[..4]);
        assert!(messages.held.capacity() < 1024);
        assert_eq!(passed(&mut messages, &large[5..1000]), []);
        assert!(messages.held.capacity() < 4096);
        assert!(passed(&mut messages, &large[1000..]) == large[4..]);
        assert!(messages.held.is_empty());
    }

    #[test]
    fn what_arrives_is_what_is_passed_on_however_it_is_cut() {
        let sizes = [0, 1, 7, FREE, FREE + 1, 0, FREE + 2, 3, 2 << 20];
        let all: Vec<u8> = sizes.iter().flat_map(|n| message(*n)).collect();
        for cut in [1, 2, 3, 5, 1000, FREE - 1, FREE + 6, 2 << 20, all.len()] {
            // Each byte by itself would take long.
            let cut = cut.max(if cut < 4 { all.len() / 50_000 + cut } else { 1 });
            let mut messages = Messages::default();
            let mut out = Vec::new();
            for chunk in all.chunks(cut) {
                out.extend(passed(&mut messages, chunk));
            }
            assert!(out == all, "cut every {cut}");
            assert!(messages.held.is_empty());
        }
    }

    #[test]
    fn what_is_larger_than_any_message_is_passed_on_to_be_refused() {
        let mut messages = Messages::default();
        let header = [0, 0xff, 0xff, 0xff, 0xff, 1, 2];
        assert_eq!(passed(&mut messages, &header), header);
    }
}
