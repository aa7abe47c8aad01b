//! The socket of a connection, for a thread that waits beside the runtime that drives it.
//!
//! Nobody has to drive a runtime while its connection is quiet. A thread that waits for the socket itself sees when there
//! is something to do, and holds nothing meanwhile that another thread would have to wait for.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Connection;

/// What there is to know about the socket of a connection.
#[derive(Debug, Default)]
pub struct Watched {
    socket: Mutex<Option<Arc<OwnedFd>>>,
    blocked: AtomicBool,
}

impl Watched {
    /// The socket, from when the connection is made until it ends.
    pub fn socket(&self) -> Option<Arc<OwnedFd>> {
        self.lock().clone()
    }

    /// Whether something waits to be written to the socket, which had no room.
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection whose socket is watched.
pub(crate) struct WatchedConnection {
    connection: Connection,
    socket: Arc<OwnedFd>,
    watched: Arc<Watched>,
}

impl WatchedConnection {
    pub(crate) fn new(connection: Connection, watched: Arc<Watched>) -> io::Result<Self> {
        let socket = match &connection {
            Connection::Tcp(s) => s.as_fd().try_clone_to_owned()?,
            Connection::Tls(s) => s.descriptor()?.try_clone_to_owned()?,
            Connection::Unix(s) => s.as_fd().try_clone_to_owned()?,
        };
        let socket = Arc::new(socket);
        *watched.lock() = Some(socket.clone());
        Ok(Self {
            connection,
            socket,
            watched,
        })
    }

    /// Notes whether a write found room.
    fn wrote<T>(&self, result: Poll<T>) -> Poll<T> {
        let blocked = result.is_pending();
        self.watched.blocked.store(blocked, Ordering::Relaxed);
        result
    }
}

impl Drop for WatchedConnection {
    fn drop(&mut self) {
        let mut watched = self.watched.lock();
        if watched
            .as_ref()
            .is_some_and(|s| Arc::ptr_eq(s, &self.socket))
        {
            *watched = None;
        }
        // The other end sees it although somebody still has the socket, and so does who waits for it. It may have ended before.
        let _ = SockRef::from(&*self.socket).shutdown(Shutdown::Both);
    }
}

impl AsyncRead for WatchedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buf)
    }
}

impl AsyncWrite for WatchedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write(cx, buf);
        self.wrote(written)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write_vectored(cx, bufs);
        self.wrote(written)
    }
    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Over TLS, what a write has taken may wait here.
        let flushed = Pin::new(&mut self.connection).poll_flush(cx);
        self.wrote(flushed)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}
