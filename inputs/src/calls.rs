//! Connections of one call, as the bytes that the other end sends: what is read does not depend on the cuts.
//!
//! The first byte says which end reads, the second where the bytes are cut; the rest is what comes.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use dosmos_proto::direct::{APPLICATION, Direct, First, PEER, first};
use dosmos_proto::transport::Dialled;
use dosmos_proto::wire::{ApReply, ApRequest, PeerMessage};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};
use tokio_stream::{Empty, empty};
use tonic::Status;

use crate::core;
use crate::frames::framed;

/// Brings bytes in pieces, and takes whatever is written.
#[derive(Debug)]
struct Pieces {
    bytes: Vec<u8>,
    at: usize,
    cut: usize,
}

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = &self.bytes[self.at..];
        let n = left.len().min(self.cut).min(buf.remaining());
        buf.put_slice(&left[..n]);
        self.at += n;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(data.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

type Nothing<Out> = Empty<Result<Out, Status>>;

/// The messages that came, and whether the call was ended well.
type Came<M> = (Vec<M>, bool);

async fn all<Out, M>(mut call: Direct<Nothing<Out>, M>) -> Came<M>
where
    Out: Message,
    M: Message + Default,
{
    let mut came = Vec::new();
    loop {
        match call.next().await {
            Some(Ok(message)) => came.push(message),
            Some(Err(_)) => return (came, false),
            None => return (came, true),
        }
    }
}

async fn at_client<Out, M>(pieces: Pieces) -> Came<M>
where
    Out: Message,
    M: Message + Default,
{
    let call: Direct<Nothing<Out>, M> = Dialled::over(pieces, None).call(PEER, empty());
    all(call).await
}

async fn at_server<Out, M>(pieces: Pieces) -> Came<M>
where
    Out: Message,
    M: Message + Default,
{
    let before = pieces.bytes.clone();
    match first(pieces, None).await {
        Ok(First::Call(call)) => all(call.accept::<Nothing<Out>, _, _>(empty())).await,
        Ok(First::Other(mut handed)) => {
            let mut after = Vec::new();
            tokio::io::AsyncReadExt::read_to_end(&mut handed, &mut after)
                .await
                .unwrap();
            assert!(before == after, "what is somebody else's is whole");
            (Vec::new(), true)
        }
        Err(_) => (Vec::new(), false),
    }
}

fn whatever_the_cut<M, F>(bytes: &[u8], cut: usize, read: impl Fn(Pieces) -> F)
where
    M: PartialEq + Debug,
    F: Future<Output = Came<M>>,
{
    thread_local! {
        static RUNTIME: Runtime = Builder::new_current_thread().enable_time().build().unwrap();
    }
    let came = [cut, bytes.len().max(1)].map(|cut| {
        let pieces = Pieces {
            bytes: bytes.to_vec(),
            at: 0,
            cut,
        };
        RUNTIME.with(|runtime| runtime.block_on(read(pieces)))
    });
    assert_eq!(came[0], came[1]);
}

pub(crate) fn take(input: &[u8]) {
    let [kind, cut, bytes @ ..] = input else {
        return;
    };
    let cut = usize::from(*cut).max(1);
    match kind % 3 {
        0 => whatever_the_cut(bytes, cut, at_server::<ApReply, ApRequest>),
        1 => whatever_the_cut(bytes, cut, at_client::<ApRequest, ApReply>),
        _ => whatever_the_cut(bytes, cut, at_client::<PeerMessage, PeerMessage>),
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [vec![text.len() as u8], text.as_bytes().to_vec()].concat();
    [vec![0x10], text(name), text(value)].concat()
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let requests = core::requests().iter().flat_map(framed).collect::<Vec<_>>();
    let peers = core::peer_messages()
        .iter()
        .flat_map(framed)
        .collect::<Vec<_>>();
    let settings = frame(4, 0, 0, &[0xd0, 0x5a, 0, 0, 0, 1, 0, 4, 0, 1, 0, 0]);
    let called = [field(":method", "POST"), field(":path", APPLICATION)].concat();
    let answered = [field(":status", "200"), vec![0x5f, 2, b'a', b'/']].concat();
    let ended = [field("grpc-status", "3"), field("grpc-message", "no%20")].concat();
    let contents = |messages: &[u8]| -> Vec<u8> {
        let cut = messages.len() / 3 + 1;
        messages
            .chunks(cut)
            .flat_map(|part| frame(0, 0, 1, part))
            .collect()
    };
    vec![
        [
            vec![0, 50],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            settings.clone(),
            frame(1, 4, 1, &called),
            contents(&requests),
            frame(6, 0, 0, &[7; 8]),
            frame(0, 9, 1, &[3, 1, 1, 1]),
        ]
        .concat(),
        [
            vec![2, 9],
            settings.clone(),
            frame(4, 1, 0, &[]),
            frame(1, 4, 1, &answered),
            contents(&peers),
            frame(8, 0, 0, &[0, 0, 1, 0]),
            frame(1, 5, 1, &ended),
        ]
        .concat(),
        // Found once: reset before it began, which was an end or an error depending on the cuts.
        [
            vec![0, 51],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            settings,
            frame(1, 4, 257, &called),
            frame(3, 0, 1, &[0; 88]),
            frame(1, 0, 1, &[]),
        ]
        .concat(),
    ]
}
