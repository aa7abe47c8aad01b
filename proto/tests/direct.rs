//! Calls that have a connection of their own: with each other, with the library at either end, and with other connections.

#![allow(clippy::unwrap_used)] // a test may

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use dosmos_proto::Token;
use dosmos_proto::direct::{Call, Direct, First, PEER, Pipe, first};
use dosmos_proto::transport::{self, Dialled, Listener};
use dosmos_proto::wire::memory_client::MemoryClient;
use dosmos_proto::wire::memory_server::{Memory, MemoryServer};
use dosmos_proto::wire::peer_message::Body;
use dosmos_proto::wire::{ApReply, ApRequest, PeerMessage, PeerReadDone};
use dosmos_testseeds::{Random, seed};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Request, Response, Status, Streaming};

type Messages<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;
type Link = Direct<Messages<PeerMessage>, PeerMessage>;

fn message(number: u64, bytes: usize) -> PeerMessage {
    let data: Vec<u8> = (0..bytes).map(|i| (i as u64 * 31 + number) as u8).collect();
    PeerMessage {
        call: number,
        body: Some(Body::ReadDone(PeerReadDone {
            data: Bytes::from(data),
            ..PeerReadDone::default()
        })),
        ..PeerMessage::default()
    }
}

/// Messages that are sent one by one.
fn line() -> (
    UnboundedSender<Result<PeerMessage, Status>>,
    Messages<PeerMessage>,
) {
    let (sender, queue) = unbounded_channel();
    (sender, Box::pin(UnboundedReceiverStream::new(queue)))
}

fn of(messages: Vec<PeerMessage>) -> Messages<PeerMessage> {
    Box::pin(tokio_stream::iter(messages).map(Ok))
}

fn never() -> Messages<PeerMessage> {
    Box::pin(tokio_stream::pending())
}

async fn call_of<C: Pipe + std::fmt::Debug + 'static>(socket: C) -> Box<Call> {
    match first(socket, None).await.unwrap() {
        First::Call(call) => call,
        First::Other(_) => panic!("it is a call"),
    }
}

/// Both ends of a call over `sockets`.
async fn both<C: Pipe + std::fmt::Debug + 'static>(
    sockets: (C, C),
    to_server: Messages<PeerMessage>,
    to_client: Messages<PeerMessage>,
) -> (Link, Link) {
    let mut client: Link = Dialled::over(sockets.0, None).call(PEER, to_server);
    let server = async {
        let call = call_of(sockets.1).await;
        assert_eq!(call.path(), PEER);
        call.accept(to_client)
    };
    let (opened, server) = tokio::join!(client.opened(), async {
        let mut server: Link = server.await;
        // The client hears of it when it is polled.
        std::future::poll_fn(|cx| {
            let _ = server.poll_idle(cx);
            Poll::Ready(())
        })
        .await;
        server
    });
    opened.unwrap();
    (client, server)
}

/// A connection that takes and gives as many bytes at a time as somebody likes.
struct Uneven {
    socket: DuplexStream,
    random: Random,
}

impl std::fmt::Debug for Uneven {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Uneven")
    }
}

impl Uneven {
    fn pair(seed: u64, room: usize) -> (Self, Self) {
        let (a, b) = duplex(room);
        let end = |socket, seed| Self {
            socket,
            random: Random::new(seed),
        };
        (end(a, seed), end(b, seed + 1))
    }

    fn some(&mut self, most: usize) -> usize {
        let few = self.random.below(40) as usize + 1;
        let many = self.random.below(100_000) as usize + 1;
        most.min(if self.random.below(4) == 0 { few } else { many })
    }
}

impl AsyncRead for Uneven {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let some = self.some(buf.remaining());
        let mut part = buf.take(some);
        let read = Pin::new(&mut self.socket).poll_read(cx, &mut part);
        let filled = part.filled().len();
        buf.advance(filled);
        read
    }
}

impl AsyncWrite for Uneven {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let some = self.some(data.len());
        Pin::new(&mut self.socket).poll_write(cx, &data[..some])
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

async fn collect(link: &mut Link) -> (Vec<PeerMessage>, Option<Status>) {
    let mut all = Vec::new();
    while let Some(next) = link.next().await {
        match next {
            Ok(message) => all.push(message),
            Err(status) => return (all, Some(status)),
        }
    }
    (all, None)
}

#[tokio::test]
async fn what_is_sent_arrives_whatever_the_sizes_and_the_cuts() {
    let from = seed();
    for round in 0..40 {
        let mut random = Random::new(from + round);
        let mut messages = || -> Vec<PeerMessage> {
            (0..random.below(30))
                .map(|n| {
                    let most = [1, 100, 100, 20_000, 70_000, 300_000][random.below(6) as usize];
                    message(n, random.below(most) as usize)
                })
                .collect()
        };
        let (up, down) = (messages(), messages());
        let room = 1 << (12 + round % 8);
        let sockets = Uneven::pair(from + 1000 * round, room);
        let (mut client, mut server) = both(sockets, of(up.clone()), of(down.clone())).await;
        let ((at_client, how), (at_server, ended)) = tokio::join!(
            async {
                let got = collect(&mut client).await;
                // A client that has heard the end has said everything before it goes.
                client.finish().await;
                got
            },
            async {
                let got = collect(&mut server).await;
                server.finish().await;
                got
            }
        );
        assert!(how.is_none() && ended.is_none(), "{how:?} {ended:?}");
        assert!(at_client == down, "seed {from}, round {round}");
        assert!(at_server == up, "seed {from}, round {round}");
    }
}

#[tokio::test]
async fn a_message_larger_than_every_window_arrives_both_ways_at_a_time() {
    let large = message(7, 70 << 20);
    let (up, down) = (of(vec![large.clone()]), of(vec![large.clone()]));
    let (mut client, mut server) = both(duplex(1 << 16), up, down).await;
    let (a, b) = tokio::join!(client.next(), server.next());
    assert!(a.unwrap().unwrap() == large && b.unwrap().unwrap() == large);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_takes_is_bounded() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    let endless = tokio_stream::iter(0..).map(move |n| {
        counted.fetch_add(100_000, Ordering::Relaxed);
        Ok(message(n, 100_000))
    });
    let (mut client, mut server) = both(duplex(1 << 16), Box::pin(endless), never()).await;
    // Nothing of it is taken at the server, which keeps its connection.
    let mut last = 0;
    loop {
        let both = async {
            tokio::join!(
                tokio::time::timeout(QUIET, client.next()),
                tokio::time::timeout(QUIET, std::future::poll_fn(|cx| server.poll_idle(cx))),
            )
        };
        let (client, server) = both.await;
        assert!(client.is_err() && server.is_err(), "neither ends");
        let now = taken.load(Ordering::Relaxed);
        if now == last {
            break;
        }
        last = now;
    }
    assert!((16 << 20..18 << 20).contains(&last), "{last} bytes");
    // And when it is taken, it goes on.
    tokio::join!(
        async {
            for n in 0..400 {
                let next = server.next().await.unwrap().unwrap();
                assert_eq!(next.call, n);
            }
            drop(server);
        },
        client.next()
    );
}

#[tokio::test(start_paused = true)]
async fn a_quiet_connection_lasts_and_a_dead_one_does_not() {
    let (mut client, mut server) = both(duplex(1 << 16), never(), never()).await;
    let hour = Duration::from_secs(3600);
    let (a, b) = tokio::join!(
        tokio::time::timeout(hour, client.next()),
        tokio::time::timeout(hour, std::future::poll_fn(|cx| server.poll_idle(cx)))
    );
    assert!(a.is_err() && b.is_err(), "both answer");

    // A server that is stopped reads nothing.
    let begun = tokio::time::Instant::now();
    let status = client.next().await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("keep-alive"), "{status}");
    let waited = begun.elapsed();
    assert!(
        (25..=35).contains(&waited.as_secs()),
        "{waited:?} of the time that stands still"
    );
}

#[tokio::test]
async fn who_ends_says_how_and_what_was_sent_before_arrives() {
    for (end, expected) in [
        (None, None),
        (
            Some(Status::resource_exhausted(
                "it is late: 5 % is \u{e4}n error\n",
            )),
            Some(Code::ResourceExhausted),
        ),
    ] {
        let (sender, queue) = line();
        let (mut client, server) = both(duplex(1 << 16), never(), queue).await;
        for n in 0..50 {
            sender.send(Ok(message(n, 10_000))).unwrap();
        }
        if let Some(end) = &end {
            sender.send(Err(end.clone())).unwrap();
        }
        drop(sender);
        let ((got, how), ()) = tokio::join!(
            async {
                let got = collect(&mut client).await;
                drop(client);
                got
            },
            server.finish()
        );
        assert_eq!(got.len(), 50);
        assert_eq!(how.as_ref().map(Status::code), expected);
        assert_eq!(
            how.map(|s| s.message().to_owned()),
            end.map(|s| s.message().to_owned())
        );
    }
}

#[tokio::test]
async fn who_has_said_everything_still_hears_as_much_as_comes() {
    let large: Vec<_> = (0..3).map(|n| message(n, 20 << 20)).collect();
    let (mut client, server) = both(duplex(1 << 16), of(Vec::new()), of(large.clone())).await;
    let ((got, how), ()) = tokio::join!(
        async {
            let got = collect(&mut client).await;
            drop(client);
            got
        },
        server.finish()
    );
    assert!(how.is_none() && got == large, "{how:?}");
}

#[tokio::test]
async fn a_call_that_is_refused_says_why_and_one_that_breaks_off_is_an_error() {
    let (near, far) = duplex(1 << 16);
    let mut client: Link = Dialled::over(near, None).call("/dosmos.v1.Memory/Other", never());
    let (opened, ()) = tokio::join!(client.opened(), async {
        let call = call_of(far).await;
        assert!(call.headers().get("authorization").is_none());
        call.refuse(&Status::unimplemented("nothing here")).await;
    });
    let status = opened.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unimplemented, "nothing here")
    );

    let (mut client, server) = both(duplex(1 << 16), never(), never()).await;
    drop(server);
    let status = client.next().await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// What the server's end says of what comes after a good beginning.
async fn after(bytes: &[u8]) -> (Vec<PeerMessage>, Option<Status>) {
    let (mut server, _answers) = begun_with(bytes).await;
    collect(&mut server).await
}

/// The server's end of a call that has begun well, and to which `bytes` come; and where its answers go, which nobody reads.
async fn begun_with(bytes: &[u8]) -> (Link, DuplexStream) {
    let (near, mut far) = duplex(1 << 26);
    let link: Link = Dialled::over(near, None).call(PEER, never());
    let mut client = link;
    let beginning = async {
        let mut read = vec![0; 4096];
        // The client writes its beginning when it is polled.
        let n = tokio::select! {
            n = far.read(&mut read) => n.unwrap(),
            _ = client.next() => panic!("nobody answers"),
        };
        read.truncate(n);
        read
    };
    let beginning = beginning.await;
    // The server's answers find room for a while.
    let (reader, mut far) = tokio::io::simplex(1 << 26);
    let (writer, answers) = duplex(4096);
    let begun = async {
        far.write_all(&beginning).await.unwrap();
        far.write_all(bytes).await.unwrap();
        far.shutdown().await.unwrap();
    };
    let socket = tokio::io::join(reader, writer);
    let (call, ()) = tokio::join!(call_of(socket), begun);
    (call.accept(never()), answers)
}

#[tokio::test]
async fn what_does_not_belong_ends_with_an_error_and_what_came_before_counts() {
    let mut content = vec![0, 0, 0, 0, 2, 0x18, 5];
    let good = frame(0, 0, 1, &content);
    content[0] = 1;
    let many_pings: Vec<u8> = (0..100_000).flat_map(|_| frame(6, 0, 0, &[1; 8])).collect();
    let cases: [(&str, Vec<u8>, Code, &str); 12] = [
        ("cut off", good[..12].to_vec(), Code::Unavailable, "closed"),
        (
            "compressed",
            frame(0, 0, 1, &content),
            Code::Unimplemented,
            "compressed",
        ),
        (
            "too large",
            frame(0, 0, 1, &[0, 0xff, 0, 0, 0]),
            Code::OutOfRange,
            "larger",
        ),
        (
            "malformed",
            frame(0, 0, 1, &[0, 0, 0, 0, 1, 0xff]),
            Code::Internal,
            "malformed",
        ),
        (
            "ended in a message",
            frame(0, 1, 1, &[0, 0, 0, 0, 9]),
            Code::Internal,
            "middle",
        ),
        (
            "another stream",
            frame(0, 0, 3, &[0]),
            Code::Internal,
            "no call",
        ),
        (
            "a frame of 16 MiB",
            vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1],
            Code::Internal,
            "too large",
        ),
        (
            "filling",
            frame(0, 8, 1, &[9, 0]),
            Code::Internal,
            "filling",
        ),
        (
            "a window of nothing",
            frame(8, 0, 0, &[0; 4]),
            Code::Internal,
            "window",
        ),
        (
            "reset",
            frame(3, 0, 1, &[0, 0, 0, 8]),
            Code::Cancelled,
            "cancelled",
        ),
        (
            "a long reset",
            frame(3, 0, 1, &[0; 88]),
            Code::Internal,
            "cut off",
        ),
        ("pings", many_pings, Code::Internal, "does not read"),
    ];
    for (what, bytes, code, word) in cases {
        let (got, how) = after(&[good.clone(), bytes].concat()).await;
        assert_eq!(got.len(), 1, "{what}");
        let how = how.unwrap_or_else(|| panic!("{what}: no error"));
        assert_eq!(how.code(), code, "{what}: {how}");
        assert!(how.message().contains(word), "{what}: {how}");
    }
    // Unknown frames and filling are passed over, a second call is refused, and the first goes on.
    let harmless = [
        frame(200, 7, 9, &[1, 2, 3]),
        frame(2, 0, 1, &[0; 5]),
        frame(0, 8, 1, &[2, 0, 0, 0, 0, 2, 0x18, 5, 9, 9]),
        frame(1, 4 | 1, 3, &[0x83]),
        frame(0, 1, 1, &[]),
    ];
    let (got, how) = after(&[good.clone(), harmless.concat()].concat()).await;
    assert_eq!(got.len(), 2);
    assert!(how.is_none(), "{how:?}");
}

#[tokio::test]
async fn a_call_that_is_reset_before_it_begins_is_none_whatever_the_cuts() {
    let settings = frame(4, 0, 0, &[0xd0, 0x5a, 0, 0, 0, 1]);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let reset = frame(3, 0, 1, &[0; 4]);
    let malformed = frame(1, 0, 1, &[]);
    for more in [vec![], malformed] {
        let (near, mut far) = duplex(1 << 16);
        let bytes = [preface.clone(), settings.clone(), reset.clone(), more].concat();
        far.write_all(&bytes).await.unwrap();
        let why = first(near, None).await.unwrap_err();
        assert!(why.to_string().contains("has not begun"), "{why}");
    }
}

#[tokio::test]
async fn who_sends_more_than_there_is_room_for_is_not_listened_to() {
    // Messages of 1 MiB, of which nobody takes one.
    let message = [vec![0, 0, 15, 255, 251], field_of((1 << 20) - 5)].concat();
    let frames: Vec<u8> = (0..20).flat_map(|_| frame(0, 0, 1, &message)).collect();
    let (mut server, _answers) = begun_with(&frames).await;
    std::future::poll_fn(|cx| server.poll_idle(cx)).await;
    let (got, how) = collect(&mut server).await;
    assert_eq!(got.len(), 16, "those for which there is room");
    let how = how.unwrap();
    assert!(
        how.message().contains("more than there is room for"),
        "{how}"
    );
}

/// A message of this length: one field that nobody knows.
fn field_of(bytes: usize) -> Vec<u8> {
    // Field 1,000, a length of three bytes, and what fills the rest.
    let content = bytes - 5;
    let length = [0, 7, 14].map(|shift| (content >> shift & 0x7f) as u8);
    let head = [0xc2, 0x3e, length[0] | 0x80, length[1] | 0x80, length[2]];
    [head.to_vec(), vec![0; content]].concat()
}

/// Sends everything back.
struct Echo;

#[tonic::async_trait]
impl Memory for Echo {
    type ApplicationStream = Messages<ApReply>;
    async fn application(
        &self,
        _: Request<Streaming<ApRequest>>,
    ) -> Result<Response<Self::ApplicationStream>, Status> {
        Err(Status::permission_denied("not this one, \u{fc}ber all"))
    }
    type PeerStream = Messages<PeerMessage>;
    async fn peer(
        &self,
        request: Request<Streaming<PeerMessage>>,
    ) -> Result<Response<Self::PeerStream>, Status> {
        Ok(Response::new(Box::pin(request.into_inner())))
    }
}

/// A server of the library; its address and its token.
async fn library() -> (transport::Address, Token) {
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = listener.address().clone();
    let token = Token::generate().unwrap();
    let most = dosmos_proto::MAX_MESSAGE_BYTES;
    let service = MemoryServer::new(Echo)
        .max_decoding_message_size(most)
        .max_encoding_message_size(most);
    let server = transport::server(token.clone()).add_service(service);
    tokio::spawn(server.serve_with_incoming(listener));
    (address, token)
}

/// Time stands still while anybody has something to do.
const QUIET: Duration = Duration::from_millis(50);

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_client_calls_any_server_of_grpc() {
    let (address, token) = library().await;
    let sent: Vec<_> = [0, 5, 100_000, 3, 40 << 20, 70_000, 1]
        .into_iter()
        .zip(0..)
        .map(|(bytes, n)| message(n, bytes))
        .collect();
    let dialled = transport::dial(&address, Some(&token), SOON, None).await;
    let mut link: Link = dialled.unwrap().call(PEER, of(sent.clone()));
    link.opened().await.unwrap();
    let (got, how) = collect(&mut link).await;
    assert!(how.is_none(), "{how:?}");
    assert!(got == sent);

    let foreign = Token::generate().unwrap();
    for (token, path, code) in [
        (&foreign, PEER, Code::Unauthenticated),
        (
            &token,
            dosmos_proto::direct::APPLICATION,
            Code::PermissionDenied,
        ),
        (&token, "/dosmos.v1.Memory/Nothing", Code::Unimplemented),
    ] {
        let dialled = transport::dial(&address, Some(token), SOON, None).await;
        let mut link: Link = dialled.unwrap().call(path, never());
        let status = link.opened().await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
    }
}

#[tokio::test]
async fn what_is_not_one_call_is_handed_on_untouched() {
    let (near, far) = duplex(1 << 16);
    let (queue, connections) = unbounded_channel();
    tokio::spawn(
        tonic::transport::Server::builder()
            .add_service(MemoryServer::new(Echo))
            .serve_with_incoming(UnboundedReceiverStream::new(connections)),
    );
    tokio::spawn(async move {
        match first(far, None).await.unwrap() {
            First::Other(connection) => queue.send(Ok::<_, io::Error>(connection)).unwrap(),
            First::Call(_) => panic!("the library does not say so"),
        }
        std::future::pending::<()>().await;
    });
    let mut near = Some(near);
    let channel = tonic::transport::Endpoint::from_static("http://any.invalid")
        .connect_with_connector(tower::service_fn(move |_| {
            let socket = near.take().map(hyper_util::rt::TokioIo::new);
            async { socket.ok_or_else(|| io::Error::other("once")) }
        }))
        .await
        .unwrap();
    let sent = tokio_stream::iter((0..5).map(|n| message(n, 10)));
    let answer = MemoryClient::new(channel).peer(sent).await.unwrap();
    assert_eq!(answer.into_inner().collect::<Vec<_>>().await.len(), 5);

    // And so is what is nothing of the kind.
    for text in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"PRI * HTTP",
        b"",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x06\0\0\0\0\0",
    ] {
        let (mut near, far) = duplex(1 << 16);
        near.write_all(text).await.unwrap();
        near.shutdown().await.unwrap();
        let First::Other(mut handed) = first(far, None).await.unwrap() else {
            panic!("{text:?} was taken for a call");
        };
        let mut read = Vec::new();
        handed.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, text);
    }
}
