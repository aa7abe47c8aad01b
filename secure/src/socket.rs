//! A connection over TLS.
//!
//! An accepted one makes its handshake when it is first used, so one that is slow at it keeps no other waiting. A dialled one
//! is handed out when the other end has accepted it: in TLS 1.3 whoever dials has finished before its certificate is looked at.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsStream;
use tracing::info;

use crate::credentials::{Credentials, ONE_CALL};
use crate::error::explain;
use crate::handshake;
use crate::peer::{Certified, Peer};
use crate::plain::{begins_with_tls, turn_away};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

type Opening = Pin<Box<dyn Future<Output = io::Result<TlsStream<TcpStream>>> + Send>>;

/// A connection over TLS, accepted or dialled.
pub struct SecureSocket(State);

enum State {
    /// Its handshake goes on.
    Opening(Opening),
    Open(Box<TlsStream<TcpStream>>),
    /// Its handshake failed, which was said once.
    Failed,
}

impl fmt::Debug for SecureSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Opening(_) => "SecureSocket(opening)",
            State::Open(_) => "SecureSocket(open)",
            State::Failed => "SecureSocket(failed)",
        })
    }
}

impl SecureSocket {
    /// Takes a connection that was accepted; what its other end shows is known before the first byte comes.
    pub fn accept(socket: TcpStream, credentials: &Credentials) -> (Self, Peer) {
        let certified = Certified::default();
        let opening = accept(socket, credentials.clone(), certified.clone());
        (
            Self(State::Opening(Box::pin(opening))),
            Peer::Certified(certified),
        )
    }

    /// Secures a connection that was dialled, for one call or for anything. The other end has to be `expected`, if that is known. It speaks
    /// first.
    ///
    /// # Errors
    /// If it is not, or one end does not accept the other.
    pub async fn dial(
        socket: TcpStream,
        credentials: &Credentials,
        expected: Option<&str>,
        one_call: bool,
    ) -> io::Result<Self> {
        let mut stream = handshake::dial(socket, credentials, expected, one_call).await?;
        // The first that the other end says, or why it does not accept us.
        let first = match &mut stream {
            TlsStream::Client(stream) => stream.fill_buf().await.map(<[u8]>::len),
            TlsStream::Server(_) => Ok(0),
        };
        match first {
            Ok(0) => Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "the other end closed the connection",
            )),
            Ok(_) => Ok(Self(State::Open(Box::new(stream)))),
            Err(e) => Err(explain(e)),
        }
    }

    /// As [`dial`](Self::dial), for another end that says nothing before it is asked: if it does not accept us, the first
    /// reading says so.
    ///
    /// # Errors
    /// If it is not accepted.
    pub async fn dial_silent(socket: TcpStream, credentials: &Credentials) -> io::Result<Self> {
        let stream = handshake::connect(socket, credentials, false).await?;
        Ok(Self(State::Open(Box::new(stream))))
    }

    /// Waits until the handshake is over. Whether the other end dialled for one call.
    ///
    /// # Errors
    /// If it failed.
    pub async fn has_one_call(&mut self) -> io::Result<bool> {
        let stream = poll_fn(|cx| self.poll_open(cx).map_ok(|_| ())).await;
        stream?;
        Ok(match &self.0 {
            State::Open(stream) => stream.get_ref().1.alpn_protocol() == Some(ONE_CALL),
            State::Opening(_) | State::Failed => false,
        })
    }

    /// The socket below, once the handshake is over.
    pub fn tcp(&self) -> Option<&TcpStream> {
        match &self.0 {
            State::Open(stream) => Some(stream.get_ref().0),
            State::Opening(_) | State::Failed => None,
        }
    }

    /// The descriptor of that socket.
    ///
    /// # Errors
    /// If the handshake is not over.
    pub fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        let tcp = self.tcp().ok_or(ErrorKind::NotConnected)?;
        Ok(tcp.as_fd())
    }

    /// The connection, after its handshake.
    fn poll_open(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Pin<&mut TlsStream<TcpStream>>>> {
        if let State::Opening(opening) = &mut self.0 {
            self.0 = match ready!(opening.as_mut().poll(cx)) {
                Ok(stream) => State::Open(Box::new(stream)),
                Err(e) => {
                    self.0 = State::Failed;
                    return Poll::Ready(Err(e));
                }
            };
        }
        match &mut self.0 {
            State::Open(stream) => Poll::Ready(Ok(Pin::new(stream))),
            State::Opening(_) | State::Failed => Poll::Ready(Err(ErrorKind::NotConnected.into())),
        }
    }
}

async fn accept(
    socket: TcpStream,
    credentials: Credentials,
    certified: Certified,
) -> io::Result<TlsStream<TcpStream>> {
    let from = socket.peer_addr();
    let handshake = timeout(HANDSHAKE, shake_hands(socket, &credentials, &certified)).await;
    let done = handshake.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
    if let (Err(e), Ok(from)) = (&done, from) {
        info!("a connection from {from} is refused: {e}");
    }
    done
}

async fn shake_hands(
    socket: TcpStream,
    credentials: &Credentials,
    certified: &Certified,
) -> io::Result<TlsStream<TcpStream>> {
    if !begins_with_tls(&socket).await? {
        turn_away(socket).await?;
        return Err(io::Error::other("it does not use TLS"));
    }
    handshake::accept(socket, credentials, certified).await
}

impl AsyncRead for SecureSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = ready!(self.poll_open(cx))?;
        match ready!(stream.poll_read(cx, buf)) {
            // A process that is killed says no farewell. Frames and calls have ends of their own, so nothing is
            // taken for whole that is not.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            read => Poll::Ready(read.map_err(explain)),
        }
    }
}

impl AsyncWrite for SecureSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx))?.poll_write(cx, buf)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx))?.poll_write_vectored(cx, bufs)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_open(cx))?.poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.0 {
            State::Open(_) => ready!(self.poll_open(cx))?.poll_shutdown(cx),
            State::Opening(_) | State::Failed => Poll::Ready(Ok(())),
        }
    }
}
