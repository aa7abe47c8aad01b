//! The call on its connection: reads, writes, and looks whether the other end is there.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_stream::Stream;
use tonic::{Code, Status};

use super::fault::Fault;
use super::frame::{PREFACE, SMALLEST_MOST, setting};
use super::receiving::{Arrived, End, Receiving};
use super::sending::Sending;
use crate::token::{FIELD, Token};

/// A connection on which nothing came for this long is asked whether the other end is there.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Who does not answer for this long is gone. On a machine with much to do an answer may take seconds.
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(25);
/// The end of a connection whose other end is heard no more notices that after this long at most.
pub const GONE_AFTER: Duration = KEEP_ALIVE.saturating_add(PING_TIMEOUT);

/// What a call can be on.
pub trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Pipe for T {}

/// Bytes that are read at a time: any frame that is not content fits.
const READ: usize = 2 * SMALLEST_MOST;
/// Pieces that are written at a time.
const PIECES: usize = 8;
/// An end that has said everything waits so long for the other to hang up.
const LINGER: Duration = Duration::from_secs(1);

/// A connection, and what is read of it and written to it.
pub(super) struct Wire {
    socket: Box<dyn Pipe>,
    buffer: Box<[u8]>,
    /// What of the buffer was read from the socket and not understood yet.
    unread: std::ops::Range<usize>,
    pub(super) receiving: Receiving,
    pub(super) sending: Sending,
    /// What was written may still be on its way to the socket.
    unflushed: bool,
    alive: Alive,
    /// Why nothing more can be read, and written.
    closed: Option<Status>,
    deaf: Option<Status>,
}

/// When something was heard of the other end, and when it was asked whether it is there.
struct Alive {
    heard: Instant,
    asked: Option<Instant>,
    look: Pin<Box<Sleep>>,
}

impl Alive {
    fn new() -> Self {
        Self {
            heard: Instant::now(),
            asked: None,
            look: Box::pin(sleep(KEEP_ALIVE)),
        }
    }

    /// Whether the other end is to be asked.
    fn poll(&mut self, cx: &mut Context<'_>) -> Result<bool, Status> {
        let mut asks = false;
        while self.look.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let quiet = now - self.heard;
            if quiet >= GONE_AFTER {
                return Err(Status::unavailable("keep-alive timed out"));
            }
            let next = if quiet < KEEP_ALIVE {
                self.heard + KEEP_ALIVE
            } else {
                if self.asked.is_none_or(|asked| asked < self.heard) {
                    self.asked = Some(now);
                    asks = true;
                }
                (now + KEEP_ALIVE).min(self.heard + GONE_AFTER)
            };
            self.look.as_mut().reset(next);
        }
        Ok(asks)
    }
}

impl Wire {
    pub(super) fn new(socket: Box<dyn Pipe>, end: End, read: &[u8]) -> Self {
        let mut buffer = vec![0; READ.max(read.len())].into_boxed_slice();
        buffer[..read.len()].copy_from_slice(read);
        Self {
            socket,
            buffer,
            unread: 0..read.len(),
            receiving: Receiving::new(end),
            sending: Sending::new(),
            unflushed: false,
            alive: Alive::new(),
            closed: None,
            deaf: None,
        }
    }

    /// Writes what waits, as far as the socket takes it.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sending.waiting() > 0 {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let n = self.sending.slices(&mut slices);
            let socket = Pin::new(&mut self.socket);
            let written = ready!(socket.poll_write_vectored(cx, &slices[..n]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unflushed = true;
            self.sending.wrote(written);
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, and what that brought.
    pub(super) fn poll_read<M: Message + Default>(
        &mut self,
        cx: &mut Context<'_>,
        arrived: &mut Arrived<M>,
    ) -> Poll<Result<(), Status>> {
        if !self.unread.is_empty() && self.understand(arrived)? {
            return Poll::Ready(Ok(()));
        }
        ready!(self.fill(cx))?;
        Poll::Ready(self.understand(arrived).map(|_| ()))
    }

    /// Makes what it can of what was read; whether that was something.
    fn understand<M: Message + Default>(
        &mut self,
        arrived: &mut Arrived<M>,
    ) -> Result<bool, Status> {
        let bytes = &self.buffer[self.unread.clone()];
        match self.receiving.read(bytes, &mut self.sending, arrived) {
            Ok(read) => {
                self.unread.start += read;
                Ok(read > 0)
            }
            Err(fault) => Err(self.fail(fault)),
        }
    }

    fn fail(&mut self, fault: Fault) -> Status {
        self.sending.go_away(fault.code);
        self.unread = 0..0;
        let status = Status::from(fault);
        self.closed = Some(status.clone());
        status
    }

    /// Reads from the socket, which has something, or ends.
    fn fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        if let Some(why) = &self.closed {
            return Poll::Ready(Err(why.clone()));
        }
        if self.unread.start > 0 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        let mut free = ReadBuf::new(&mut self.buffer[self.unread.end..]);
        let why = match ready!(Pin::new(&mut self.socket).poll_read(cx, &mut free)) {
            Ok(()) if free.filled().is_empty() => Status::unavailable("it closed the connection"),
            Ok(()) => {
                self.unread.end += free.filled().len();
                self.alive.heard = Instant::now();
                return Poll::Ready(Ok(()));
            }
            Err(e) => broken(e),
        };
        self.closed = Some(why.clone());
        Poll::Ready(Err(why))
    }

    /// Writes what waits. An end that takes nothing any more may have said why: that is read.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_write(cx).map(|written| {
            if let Err(e) = written {
                self.sending.give_up();
                self.deaf.get_or_insert(broken(e));
            }
        })
    }

    /// Reads what can be read now. Ready when something was read, or nothing more can be.
    fn read<M: Message + Default>(
        &mut self,
        cx: &mut Context<'_>,
        arrived: &mut Arrived<M>,
    ) -> Poll<Result<(), Status>> {
        let read = self.poll_read(cx, arrived);
        if read.is_pending() {
            if let Some(why) = &self.deaf {
                return Poll::Ready(Err(why.clone()));
            }
            if self.alive.poll(cx)? {
                self.sending.ask();
                let _ = self.write(cx);
            }
        }
        read
    }

    /// Writes all that waits, hangs up, and then waits a moment for the other end to do so: what it has not read would be lost.
    pub(super) async fn linger(&mut self) {
        let said = async {
            poll_fn(|cx| self.poll_write(cx)).await?;
            poll_fn(|cx| Pin::new(&mut self.socket).poll_shutdown(cx)).await
        };
        let said = tokio::time::timeout(PING_TIMEOUT, said).await;
        if !matches!(said, Ok(Ok(()))) {
            return;
        }
        let until = Instant::now() + LINGER;
        let mut late = std::pin::pin!(sleep_until(until));
        poll_fn(|cx| {
            if late.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            // What comes now is nobody's.
            loop {
                self.unread = 0..0;
                if ready!(self.fill(cx)).is_err() {
                    return Poll::Ready(());
                }
            }
        })
        .await;
    }
}

fn broken(e: io::Error) -> Status {
    let mut status = Status::new(Code::Unavailable, format!("the connection broke: {e}"));
    status.set_source(std::sync::Arc::new(e));
    status
}

/// A call: messages of type `M` come in, those of the stream `S` go out, whenever it is polled.
pub struct Direct<S, M> {
    wire: Wire,
    source: Option<S>,
    arrived: Arrived<M>,
    end: End,
}

impl<S, M> std::fmt::Debug for Direct<S, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Direct")
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl<S, M, Out> Direct<S, M>
where
    S: Stream<Item = Result<Out, Status>> + Unpin,
    Out: Message,
    M: Message + Default,
{
    /// Calls `path`; the token of the run is shown with the call.
    pub(crate) fn call(
        socket: Box<dyn Pipe>,
        path: &str,
        token: Option<&Token>,
        source: S,
    ) -> Self {
        let mut wire = Wire::new(socket, End::Client, &[]);
        let sending = &mut wire.sending;
        sending.raw(PREFACE);
        sending.settings(&[(setting::PUSH, 0), (setting::ONE_CALL, 1)]);
        let shown = token.map(Token::shown);
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "dosmos"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", concat!("dosmos/", env!("CARGO_PKG_VERSION"))),
        ];
        let shown = shown.as_deref().map(|t| (FIELD, t));
        let fields = fields.into_iter().chain(shown);
        sending.fields(fields.map(|(n, v)| (n, v.as_bytes())), false);
        Self {
            wire,
            source: Some(source),
            arrived: Arrived::new(),
            end: End::Client,
        }
    }

    /// The server's end of a call that has begun.
    pub(super) fn answer(mut wire: Wire, source: S) -> Self {
        let fields = [(":status", "200"), ("content-type", "application/grpc")];
        let fields = fields.map(|(n, v)| (n, v.as_bytes()));
        wire.sending.fields(fields, false);
        Self {
            wire,
            source: Some(source),
            arrived: Arrived::new(),
            end: End::Server,
        }
    }

    /// Takes what goes out, as far as there is room for it. Whether there may be more when what waits is written.
    fn take(&mut self, cx: &mut Context<'_>) -> bool {
        while self.wire.sending.takes()
            && let Some(source) = &mut self.source
        {
            match Pin::new(source).poll_next(cx) {
                Poll::Pending => return false,
                Poll::Ready(Some(Ok(message))) => self.wire.sending.message(&message),
                Poll::Ready(Some(Err(status))) => self.say_end(&status),
                Poll::Ready(None) => self.say_end(&Status::ok("")),
            }
        }
        self.source.is_some() && self.wire.sending.waiting() > 0
    }

    /// Takes and writes what goes out, as far as possible now.
    fn send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let more = self.take(cx);
            ready!(self.wire.write(cx));
            if !more {
                return Poll::Ready(());
            }
        }
    }

    fn say_end(&mut self, status: &Status) {
        self.source = None;
        match self.end {
            End::Client => self.wire.sending.end(),
            End::Server => self.wire.sending.status(status, false),
        }
    }

    /// Takes, writes and reads. Ready when something was read, or nothing more can be.
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let _ = self.send(cx);
        self.wire.read(cx, &mut self.arrived)
    }

    /// The next message; none if the other end has ended the call well. What was polled before goes on.
    ///
    /// # Errors
    /// If the call failed, or its connection.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<M, Status>>> {
        loop {
            if let Some((message, bytes)) = self.arrived.pop_front() {
                self.wire.receiving.taken(bytes, &mut self.wire.sending);
                return Poll::Ready(Some(Ok(message)));
            }
            if let Some(how) = self.wire.receiving.ended() {
                return Poll::Ready(how.clone().err().map(Err));
            }
            if let Err(status) = ready!(self.poll_once(cx)) {
                // A status that came before the connection broke says more.
                if self.arrived.is_empty() && self.wire.receiving.ended().is_none() {
                    let _ = self.wire.write(cx);
                    return Poll::Ready(Some(Err(status)));
                }
            }
        }
    }

    /// The next message; none if the other end has ended the call well.
    ///
    /// # Errors
    /// If the call failed, or its connection.
    pub async fn next(&mut self) -> Option<Result<M, Status>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Waits until the other end has taken the call.
    ///
    /// # Errors
    /// If it refuses it, or the connection fails.
    pub async fn opened(&mut self) -> Result<(), Status> {
        poll_fn(|cx| {
            loop {
                if self.wire.receiving.opened().is_some() {
                    return Poll::Ready(Ok(()));
                }
                if let Some(how) = self.wire.receiving.ended() {
                    let ended = || Err(Status::unknown("it ended the call at once"));
                    return Poll::Ready(how.clone().and_then(|()| ended()));
                }
                if let Err(status) = ready!(self.poll_once(cx))
                    && self.wire.receiving.ended().is_none()
                {
                    return Poll::Ready(Err(status));
                }
            }
        })
        .await
    }

    /// Whether the other end ended the call: it did not just go away.
    pub fn has_ended(&self) -> bool {
        self.wire.receiving.ended().is_some()
    }

    /// Keeps the connection while nobody takes what comes: writes what goes out, answers, and receives as much as there is room for.
    /// Ends if the connection does.
    pub fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.wire.receiving.ended().is_some() {
                return Poll::Ready(());
            }
            if ready!(self.poll_once(cx)).is_err() {
                return Poll::Ready(());
            }
        }
    }

    /// Sends what is left, until the source ends, and says so.
    pub async fn finish(mut self) {
        poll_fn(|cx| {
            loop {
                self.arrived.clear();
                let _ = self.send(cx);
                let failed = matches!(self.wire.receiving.ended(), Some(Err(_)));
                if failed || self.wire.sending.is_done() {
                    return Poll::Ready(());
                }
                if ready!(self.wire.read(cx, &mut self.arrived)).is_err() {
                    return Poll::Ready(());
                }
            }
        })
        .await;
        self.wire.linger().await;
    }
}
