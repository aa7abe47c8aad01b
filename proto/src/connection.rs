//! A connection to another process: over a Unix socket, over TCP, or over TCP with TLS.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dosmos_secure::{Credentials, Peer, SecureSocket, same_host};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tonic::transport::server::Connected;

use crate::unix::UnixSocket;
use crate::watched::{Watch, Watched};

/// A connection, accepted or dialled.
#[derive(Debug)]
pub struct Connection {
    transport: Transport,
    /// If its socket is among those that are watched.
    watch: Option<Watch>,
}

/// What it goes through.
#[derive(Debug)]
pub(crate) enum Transport {
    Tcp(TcpStream),
    /// Over TCP with TLS.
    Tls(SecureSocket),
    Unix(UnixSocket),
}

impl From<Transport> for Connection {
    fn from(transport: Transport) -> Self {
        let watch = None;
        Self { transport, watch }
    }
}

impl Connection {
    /// Whether its other end is on this host for certain.
    pub(crate) fn is_on_this_host(&self) -> bool {
        matches!(self.transport, Transport::Unix(_))
    }

    /// From now on its socket is among those that are watched. One with TLS has none before its handshake is over.
    pub(crate) fn watch(&mut self, all: &Arc<Watched>) -> io::Result<()> {
        let socket = match &self.transport {
            Transport::Tcp(s) => s.as_fd(),
            Transport::Tls(s) => s.descriptor()?,
            Transport::Unix(s) => s.as_fd(),
        };
        self.watch = Some(Watch::begin(socket, all)?);
        Ok(())
    }

    /// Notes whether a write found room.
    fn wrote<T>(&self, result: Poll<T>) -> Poll<T> {
        match &self.watch {
            Some(watch) => watch.wrote(result),
            None => result,
        }
    }
}

/// A connection that was accepted, and who is at its other end.
pub struct Accepted {
    state: State,
    peer: Peer,
}

enum State {
    Open(Connection),
    /// Its ends show who they are: [`Accepted::has_one_call`] waits for that.
    Opening(same_host::Opening),
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Accepted");
        match &self.state {
            State::Open(connection) => out.field("connection", connection),
            State::Opening(_) => out.field("connection", &"opening"),
        };
        out.field("peer", &self.peer).finish()
    }
}

impl Accepted {
    /// One over TCP: with TLS, if there are credentials.
    pub fn over_tcp(socket: TcpStream, credentials: Option<&Credentials>) -> Self {
        match credentials {
            None => Self::new(Transport::Tcp(socket), Peer::Uncertified),
            Some(credentials) => {
                let (socket, peer) = SecureSocket::accept(socket, credentials);
                Self::new(Transport::Tls(socket), peer)
            }
        }
    }

    /// One over a Unix socket of this host: its ends show certificates first, if there are credentials.
    pub(crate) fn over_unix(
        socket: UnixStream,
        credentials: Option<&Credentials>,
    ) -> io::Result<Self> {
        Ok(match credentials {
            None => Self::new(Transport::Unix(UnixSocket::new(socket)?), Peer::Uncertified),
            Some(credentials) => {
                let (opening, peer) = same_host::accept(socket, credentials);
                let state = State::Opening(opening);
                Self { state, peer }
            }
        })
    }

    /// Whether the other end says before its first byte that it is for one call; none if it says so later.
    ///
    /// # Errors
    /// If the connection ends first.
    pub async fn has_one_call(&mut self) -> io::Result<Option<bool>> {
        match &mut self.state {
            State::Open(connection) => match &mut connection.transport {
                Transport::Tls(socket) => socket.has_one_call().await.map(Some),
                Transport::Tcp(_) | Transport::Unix(_) => Ok(None),
            },
            State::Opening(opening) => {
                let transport = Transport::Unix(UnixSocket::new(opening.await?)?);
                self.state = State::Open(transport.into());
                Ok(Some(true))
            }
        }
    }

    fn new(transport: Transport, peer: Peer) -> Self {
        let state = State::Open(transport.into());
        Self { state, peer }
    }

    /// From now on its socket is among those that are watched. After [`has_one_call`](Self::has_one_call): until then it may have none.
    ///
    /// # Errors
    /// If the system gives no more descriptors, or it has ended.
    pub fn watch(&mut self, all: &Arc<Watched>) -> io::Result<()> {
        self.open()?.get_mut().watch(all)
    }

    fn open(&mut self) -> io::Result<Pin<&mut Connection>> {
        match &mut self.state {
            State::Open(connection) => Ok(Pin::new(connection)),
            State::Opening(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Connected for Accepted {
    type ConnectInfo = Peer;
    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(s) => Pin::new(s).poll_read(cx, buf),
            Self::Tls(s) => Pin::new(s).poll_read(cx, buf),
            Self::Unix(s) => Pin::new(s).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(s) => Pin::new(s).poll_write(cx, buf),
            Self::Tls(s) => Pin::new(s).poll_write(cx, buf),
            Self::Unix(s) => Pin::new(s).poll_write(cx, buf),
        }
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(s) => Pin::new(s).poll_write_vectored(cx, bufs),
            Self::Tls(s) => Pin::new(s).poll_write_vectored(cx, bufs),
            Self::Unix(s) => Pin::new(s).poll_write_vectored(cx, bufs),
        }
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(s) => Pin::new(s).poll_flush(cx),
            Self::Tls(s) => Pin::new(s).poll_flush(cx),
            Self::Unix(s) => Pin::new(s).poll_flush(cx),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(s) => Pin::new(s).poll_shutdown(cx),
            Self::Tls(s) => Pin::new(s).poll_shutdown(cx),
            Self::Unix(s) => Pin::new(s).poll_shutdown(cx),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.transport).poll_write(cx, buf);
        this.wrote(written)
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.transport).poll_write_vectored(cx, bufs);
        this.wrote(written)
    }
    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Over TLS, what a write has taken may wait here.
        let flushed = Pin::new(&mut this.transport).poll_flush(cx);
        this.wrote(flushed)
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().open()?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().open()?.poll_write(cx, buf)
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().open()?.poll_write_vectored(cx, bufs)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().open()?.poll_flush(cx)
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().open()?.poll_shutdown(cx)
    }
}
