//! A connection to another process: over a Unix socket, over TCP, or over TCP with TLS.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
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
pub enum Connection {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over TCP with TLS.
    Tls(SecureSocket),
    /// Over a Unix socket.
    Unix(UnixSocket),
}

impl Connection {
    /// Its socket. One with TLS has none before its handshake is over.
    fn socket(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Self::Tcp(s) => Ok(s.as_fd()),
            Self::Tls(s) => s.descriptor(),
            Self::Unix(s) => Ok(s.as_fd()),
        }
    }
}

/// A connection that was dialled, whose socket is watched.
pub(crate) struct WatchedConnection {
    connection: Connection,
    watch: Watch,
}

impl WatchedConnection {
    pub(crate) fn new(connection: Connection, all: &Arc<Watched>) -> io::Result<Self> {
        let watch = Watch::begin(connection.socket()?, all)?;
        Ok(Self { connection, watch })
    }
}

/// A connection that was accepted, and who is at its other end.
pub struct Accepted {
    state: State,
    peer: Peer,
    watch: Option<Watch>,
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
            None => Self::new(Connection::Tcp(socket), Peer::Uncertified),
            Some(credentials) => {
                let (socket, peer) = SecureSocket::accept(socket, credentials);
                Self::new(Connection::Tls(socket), peer)
            }
        }
    }

    /// One over a Unix socket of this host: its ends show certificates first, if there are credentials.
    pub(crate) fn over_unix(
        socket: UnixStream,
        credentials: Option<&Credentials>,
    ) -> io::Result<Self> {
        Ok(match credentials {
            None => {
                let connection = Connection::Unix(UnixSocket::new(socket)?);
                Self::new(connection, Peer::Uncertified)
            }
            Some(credentials) => {
                let (opening, peer) = same_host::accept(socket, credentials);
                Self {
                    state: State::Opening(opening),
                    peer,
                    watch: None,
                }
            }
        })
    }

    /// Whether the other end says before its first byte that it is for one call; none if it says so later.
    ///
    /// # Errors
    /// If the connection ends first.
    pub async fn has_one_call(&mut self) -> io::Result<Option<bool>> {
        match &mut self.state {
            State::Open(Connection::Tls(socket)) => socket.has_one_call().await.map(Some),
            State::Open(Connection::Tcp(_) | Connection::Unix(_)) => Ok(None),
            State::Opening(opening) => {
                let socket = UnixSocket::new(opening.await?)?;
                self.state = State::Open(Connection::Unix(socket));
                Ok(Some(true))
            }
        }
    }

    pub(crate) fn new(connection: Connection, peer: Peer) -> Self {
        Self {
            state: State::Open(connection),
            peer,
            watch: None,
        }
    }

    /// From now on its socket is among those that are watched. After [`has_one_call`](Self::has_one_call): until then it may have none.
    ///
    /// # Errors
    /// If the system gives no more descriptors, or it has ended.
    pub fn watch(&mut self, all: &Arc<Watched>) -> io::Result<()> {
        let State::Open(connection) = &self.state else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        self.watch = Some(Watch::begin(connection.socket()?, all)?);
        Ok(())
    }

    /// Notes whether a write found room.
    fn wrote<T>(&self, result: Poll<T>) -> Poll<T> {
        match &self.watch {
            Some(watch) => watch.wrote(result),
            None => result,
        }
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

impl AsyncRead for Connection {
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

impl AsyncWrite for Connection {
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

impl AsyncRead for WatchedConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_read(cx, buf)
    }
}

impl AsyncWrite for WatchedConnection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.connection).poll_write(cx, buf);
        this.watch.wrote(written)
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.connection).poll_write_vectored(cx, bufs);
        this.watch.wrote(written)
    }
    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Over TLS, what a write has taken may wait here.
        let flushed = Pin::new(&mut this.connection).poll_flush(cx);
        this.watch.wrote(flushed)
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_shutdown(cx)
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
        let this = self.get_mut();
        let written = this.open()?.poll_write(cx, buf);
        this.wrote(written)
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = this.open()?.poll_write_vectored(cx, bufs);
        this.wrote(written)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Over TLS, what a write has taken may wait here.
        let flushed = this.open()?.poll_flush(cx);
        this.wrote(flushed)
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().open()?.poll_shutdown(cx)
    }
}
