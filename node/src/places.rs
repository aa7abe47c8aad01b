//! A connection that takes one of a bounded number of places, and gives it back when it ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use nix::sys::resource::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tonic::transport::server::Connected;

/// Connections where the system does not say how many files may be open.
const USUAL: usize = 768;

/// How many connections a process accepts: three quarters of the files that it may open, so that its stores, logs and own
/// connections always find one.
pub(crate) fn most_connections() -> usize {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, _)) => usize::try_from(soft / 4 * 3)
            .unwrap_or(USUAL)
            .clamp(1, 1 << 20),
        Err(_) => USUAL,
    }
}

/// A connection with its place.
#[derive(Debug)]
pub(crate) struct Placed<C> {
    connection: C,
    _place: OwnedSemaphorePermit,
}

impl<C> Placed<C> {
    pub(crate) fn new(connection: C, place: OwnedSemaphorePermit) -> Self {
        Self {
            connection,
            _place: place,
        }
    }
}

impl<C> Placed<C> {
    pub(crate) fn connection(&mut self) -> &mut C {
        &mut self.connection
    }
}

impl<C: Connected> Connected for Placed<C> {
    type ConnectInfo = C::ConnectInfo;
    fn connect_info(&self) -> C::ConnectInfo {
        self.connection.connect_info()
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Placed<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buf)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Placed<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, data)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(cx, data)
    }
    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
}
