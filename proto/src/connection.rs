//! A connection to another process: over a Unix socket, over TCP, or over TCP with TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use dosmos_secure::{Credentials, Peer, SecureSocket};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::Connected;

use crate::unix::UnixSocket;

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

/// A connection that was accepted, and who is at its other end.
#[derive(Debug)]
pub struct Accepted {
    connection: Connection,
    peer: Peer,
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

    /// Whether the other end says before its first byte that it is for one call; none if it says so later.
    ///
    /// # Errors
    /// If the connection ends first.
    pub async fn has_one_call(&mut self) -> io::Result<Option<bool>> {
        Ok(match &mut self.connection {
            Connection::Tls(socket) => Some(socket.has_one_call().await?),
            Connection::Tcp(_) | Connection::Unix(_) => None,
        })
    }

    pub(crate) fn new(connection: Connection, peer: Peer) -> Self {
        Self { connection, peer }
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

impl AsyncRead for Accepted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_read(cx, buf)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().connection).poll_write(cx, buf)
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().connection).poll_write_vectored(cx, bufs)
    }
    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_flush(cx)
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_shutdown(cx)
    }
}
