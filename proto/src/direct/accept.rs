//! The server's side: which connections have one call, and the call itself.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use prost::Message;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_stream::Stream;
use tonic::Status;
use tonic::codegen::http::HeaderMap;
use tonic::transport::server::Connected;

use super::frame::{HEAD, Head, PREFACE, kind, setting, settings};
use super::io::{Direct, Pipe, Wire};
use super::receiving::{Arrived, End};

/// The first settings of a client are not longer.
const SETTINGS: usize = 1024;

/// What a connection begins with.
#[derive(Debug)]
pub enum First<C> {
    /// One call, which is served here.
    Call(Box<Call>),
    /// Anything else, which is somebody else's; nothing of it is missing.
    Other(Replayed<C>),
}

/// Reads the beginning of a connection, up to what says what it is, unless that is `known`; of a call, all that comes before its messages.
///
/// # Errors
/// If the connection breaks, or is not what it begins as.
pub async fn first<C: Pipe + 'static>(
    mut socket: C,
    known: Option<bool>,
) -> Result<First<C>, Status> {
    let mut read = Vec::with_capacity(256);
    let has_one_call = loop {
        if let Some(decided) = known.or_else(|| has_one_call(&read)) {
            break decided;
        }
        let mut chunk = [0; 256];
        let n = socket.read(&mut chunk).await;
        let n = n.map_err(|e| Status::unavailable(format!("the connection broke: {e}")))?;
        if n == 0 {
            break false;
        }
        read.extend_from_slice(&chunk[..n]);
    };
    if !has_one_call {
        return Ok(First::Other(Replayed {
            read,
            at: 0,
            socket,
        }));
    }
    let mut wire = Wire::new(Box::new(socket), End::Server, &read);
    wire.sending.settings(&[(setting::MOST_STREAMS, 1)]);
    let mut nothing = Arrived::<()>::new();
    poll_fn(|cx| {
        while wire.receiving.opened().is_none() && wire.receiving.ended().is_none() {
            let _ = wire.poll_write(cx)?;
            std::task::ready!(wire.poll_read(cx, &mut nothing))?;
        }
        Poll::Ready(Ok::<(), Status>(()))
    })
    .await?;
    let fields = wire.receiving.opened();
    let path = fields.and_then(|f| f.own("path")).unwrap_or_default();
    let path = path.to_owned();
    let headers = fields.map(|f| f.headers.clone()).unwrap_or_default();
    let call = Call {
        wire,
        path,
        headers,
    };
    Ok(First::Call(Box::new(call)))
}

/// Whether a connection that begins with `read` has one call; none if that is too little to tell.
fn has_one_call(read: &[u8]) -> Option<bool> {
    let preface = read.len().min(PREFACE.len());
    if read[..preface] != PREFACE[..preface] {
        return Some(false);
    }
    let (head, payload) = read.get(PREFACE.len()..)?.split_first_chunk::<HEAD>()?;
    let head = Head::read(head);
    if head.kind != kind::SETTINGS || head.length > SETTINGS {
        return Some(false);
    }
    let payload = payload.get(..head.length)?;
    Some(settings(payload).any(|(number, _)| number == setting::ONE_CALL))
}

/// A call that nobody has taken yet.
pub struct Call {
    wire: Wire,
    path: String,
    headers: HeaderMap,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Call {
    /// What is called: `/PACKAGE.SERVICE/METHOD`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What the caller shows.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Takes the call: what comes from `source` goes to the caller.
    pub fn accept<S, Out, M>(self, source: S) -> Direct<S, M>
    where
        S: Stream<Item = Result<Out, Status>> + Unpin,
        Out: Message,
        M: Message + Default,
    {
        Direct::answer(self.wire, source)
    }

    /// Refuses the call.
    pub async fn refuse(mut self, status: &Status) {
        self.wire.sending.status(status, true);
        self.wire.linger().await;
    }
}

/// A connection of which something was read already, which is read again.
#[derive(Debug)]
pub struct Replayed<C> {
    read: Vec<u8>,
    at: usize,
    socket: C,
}

impl<C: Connected> Connected for Replayed<C> {
    type ConnectInfo = C::ConnectInfo;
    fn connect_info(&self) -> C::ConnectInfo {
        self.socket.connect_info()
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Replayed<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let left = &this.read[this.at..];
        if left.is_empty() {
            return Pin::new(&mut this.socket).poll_read(cx, buf);
        }
        let n = left.len().min(buf.remaining());
        buf.put_slice(&left[..n]);
        this.at += n;
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Replayed<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, data)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, data)
    }
    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
