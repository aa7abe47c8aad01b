//! A Unix socket that wakes its process when there is something to read, and when there is room for what waits to be written.
//!
//! A Unix socket tells each reading by the other end to whoever waits for room in it, whether there was room before or not. The
//! runtime's own type always waits for room, so every message wakes its sender a second time. This one waits for room only when
//! there was none.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// A connected Unix socket.
#[derive(Debug)]
pub struct UnixSocket {
    socket: AsyncFd<UnixStream>,
    /// The same socket, while something waits for room in it.
    room: Option<AsyncFd<OwnedFd>>,
}

#[expect(
    deprecated,
    reason = "it trusts the type to keep its descriptor open, which these do; what replaces it is unsafe"
)]
fn told_of<F: AsFd + AsRawFd>(socket: F, interest: Interest) -> io::Result<AsyncFd<F>> {
    AsyncFd::with_interest(socket, interest)
}

impl UnixSocket {
    pub(crate) fn new(socket: tokio::net::UnixStream) -> io::Result<Self> {
        Ok(Self {
            socket: told_of(socket.into_std()?, Interest::READABLE)?,
            room: None,
        })
    }

    fn poll_with(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&mut &UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            // Whoever waits for room is told of it first.
            let mut waited = match &self.room {
                Some(room) => Some(ready!(room.poll_write_ready(cx))?),
                None => None,
            };
            match write(&mut self.socket.get_ref()) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => match &mut waited {
                    Some(guard) => guard.clear_ready(),
                    None => {
                        let same = self.socket.get_ref().as_fd().try_clone_to_owned()?;
                        self.room = Some(told_of(same, Interest::WRITABLE)?);
                    }
                },
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                written => {
                    self.room = None;
                    return Poll::Ready(written);
                }
            }
        }
    }
}

impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

impl AsyncRead for UnixSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            let room = buf.initialize_unfilled();
            let whole = room.len();
            match self.socket.get_ref().read(room) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => guard.clear_ready(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Poll::Ready(Err(e)),
                Ok(read) => {
                    // Less than there was room for: that was all, and whatever comes is told again.
                    if 0 < read && read < whole {
                        guard.clear_ready();
                    }
                    buf.advance(read);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for UnixSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |socket| socket.write(buf))
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |socket| socket.write_vectored(bufs))
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.get_ref().shutdown(std::net::Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn pair() -> (UnixSocket, UnixSocket) {
        let (a, b) = tokio::net::UnixStream::pair().unwrap();
        (UnixSocket::new(a).unwrap(), UnixSocket::new(b).unwrap())
    }

    #[tokio::test]
    async fn what_is_written_is_read_also_beyond_what_the_socket_holds() {
        let (mut a, mut b) = pair();
        let sent: Vec<u8> = (0..3_000_000_u32).map(|i| (i / 7) as u8).collect();
        let expected = sent.clone();
        let writing = tokio::spawn(async move {
            a.write_all(&sent).await.unwrap();
            assert!(a.room.is_none(), "all that waited was written");
            a.shutdown().await.unwrap();
        });
        let mut read = Vec::new();
        b.read_to_end(&mut read).await.unwrap();
        writing.await.unwrap();
        assert!(read == expected);
    }

    /// Of what the system tells this process of a socket: the events of `epoll`, as `/proc` has them.
    fn events_of(socket: &UnixSocket) -> Vec<u32> {
        let number = socket.as_fd().as_raw_fd().to_string();
        let events = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["tfd:", descriptor, "events:", events, ..] if descriptor == number => {
                    Some(u32::from_str_radix(events, 16).unwrap())
                }
                _ => None,
            }
        };
        let descriptors = std::fs::read_dir("/proc/self/fdinfo").unwrap();
        // Others come and go meanwhile.
        let infos = descriptors.filter_map(|d| std::fs::read_to_string(d.ok()?.path()).ok());
        let of_info = |info: String| info.lines().filter_map(events).collect::<Vec<_>>();
        infos.flat_map(of_info).collect()
    }

    #[tokio::test]
    async fn who_has_nothing_to_write_is_told_of_what_arrives_and_not_of_room() {
        const ARRIVED: u32 = 1; // EPOLLIN
        const ROOM: u32 = 4; // EPOLLOUT
        let (mut a, _b) = pair();
        a.write_all(b"one").await.unwrap();
        let events = events_of(&a);
        assert!(!events.is_empty());
        for events in events {
            assert_eq!(events & (ARRIVED | ROOM), ARRIVED);
        }
    }

    #[tokio::test]
    async fn the_end_of_the_other_is_seen() {
        let (mut a, b) = pair();
        drop(b);
        assert_eq!(a.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(a.write_all(&[0; 8]).await.is_err());
    }
}
