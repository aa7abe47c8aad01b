//! Streams of messages as they come from a connection, in pieces of any size: what is read does not depend on the cuts.
//!
//! The first byte says which messages, the second where the stream is cut; the rest is the stream.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Debug;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use dosmos_proto::LargeMessages;
use dosmos_proto::large::Carrier;
use dosmos_proto::wire::{ApReply, ApRequest, ExchangeRequest, IngestRequest, PeerMessage};
use futures::executor::block_on;
use hyper::body::{Body, Frame};
use prost::Message;
use tonic::Streaming;
use tonic::codec::Codec;
use tonic_prost::ProstCodec;

use crate::core;

/// By the first byte.
const KINDS: &[fn(&[u8], usize)] = &[
    around::<ApRequest>,
    around::<ApReply>,
    around::<PeerMessage>,
    whatever_the_cut::<IngestRequest>,
    whatever_the_cut::<ExchangeRequest>,
];

pub(crate) fn take(input: &[u8]) {
    if let [kind, cut, stream @ ..] = input {
        let cut = usize::from(*cut).max(1);
        KINDS[usize::from(*kind) % KINDS.len()](stream, cut);
    }
}

/// A body in pieces.
struct Pieces(VecDeque<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

/// The messages of a stream, as the product's connections read them, up to the first that is not one.
fn read<M: Message + Default + 'static>(stream: &[u8], cut: usize) -> Vec<M> {
    let pieces = stream.chunks(cut).map(Bytes::copy_from_slice).collect();
    let body = dosmos_proto::transport::whole(Pieces(pieces));
    let decoder = ProstCodec::<M, M>::default().decoder();
    let most = Some(dosmos_proto::MAX_MESSAGE_BYTES);
    let mut messages = Streaming::new_request(decoder, body, None, most);
    let mut read = Vec::new();
    while let Ok(Some(message)) = block_on(messages.message()) {
        read.push(message);
    }
    read
}

fn whatever_the_cut<M: Message + Default + PartialEq + Debug + 'static>(stream: &[u8], cut: usize) {
    let messages = read::<M>(stream, cut);
    assert_eq!(messages, read::<M>(stream, stream.len().max(1)));
}

/// The same of messages whose contents may be elsewhere: where nothing is, that is an error.
fn around<M: Message + Default + PartialEq + Debug + Clone + Carrier + 'static>(
    stream: &[u8],
    cut: usize,
) {
    thread_local! {
        static LARGE: LargeMessages = {
            let large = LargeMessages::default();
            large.offer(true);
            large
        };
    }
    whatever_the_cut::<M>(stream, cut);
    for mut message in read::<M>(stream, cut) {
        let elsewhere = !message.elsewhere().is_empty();
        let whole = LARGE.with(|large| large.unpack(message.clone()));
        assert_eq!(whole.is_err(), elsewhere);
    }
}

pub(crate) fn framed(message: &impl Message) -> Vec<u8> {
    let message = message.encode_to_vec();
    let mut bytes = vec![0];
    bytes.extend((message.len() as u32).to_be_bytes());
    bytes.extend(message);
    bytes
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let requests = core::requests().iter().flat_map(framed).collect();
    let peers = core::peer_messages().iter().flat_map(framed).collect();
    vec![
        [vec![0, 7], requests].concat(),
        [vec![2, 100], peers].concat(),
        [vec![3, 3], framed(&crate::columns::batch())].concat(),
    ]
}
