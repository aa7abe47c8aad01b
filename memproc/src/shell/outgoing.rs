//! Messages that wait to be taken by the link to a peer, or by the session of an application process, with a bound.
//!
//! A peer that takes less than it is sent is waited for where that can do no harm: application processes are not listened
//! to while much waits ([`Lines`]). Messages of other memory processes are always taken, so two processes never
//! wait for each other. If even so too much waits, or a peer takes nothing for too long, the link is given up: what waits
//! is dropped, and the loss of a link ends every operation that depends on it with an error. So it is with the replies to an
//! application process: while much waits, nobody listens to this one.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dosmos_proto::Nanos;
use dosmos_proto::wire::PeerMessage;
use prost::Message;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_stream::Stream;
use tonic::Status;

/// How much may wait for one peer or application process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Above this, application processes are not listened to.
    pub(super) slow: Waiting,
    /// Above this, the link is given up.
    pub(super) most: Waiting,
    /// Whoever takes nothing for so long is given up.
    pub(super) silence: Nanos,
}

/// Messages that wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

/// What may wait for a peer.
pub(super) const BOUNDS: Bounds = Bounds {
    slow: Waiting {
        messages: 1 << 16,
        bytes: 64 << 20,
    },
    most: Waiting {
        messages: 1 << 20,
        bytes: 4 << 30,
    },
    silence: Nanos::from_millis(60_000),
};

/// What may wait for an application process: one that is stopped is waited for as long as its connection is kept (30 s).
pub(super) const REPLIES: Bounds = Bounds {
    slow: Waiting {
        messages: 8192,
        ..BOUNDS.slow
    },
    silence: Nanos::MAX,
    ..BOUNDS
};

/// News of copies wait so long for other messages.
pub(super) const NEWS: Duration = Duration::from_micros(500);

/// Acknowledgements that nobody waits for. What is told next of the same object is acknowledged at once, and takes them along.
pub(super) const DONE: Duration = Duration::from_millis(2);

/// Replies that nobody waits for: to send one by itself takes its receiver from its work. What synchronises takes them along.
pub(super) const POSTED: Duration = Duration::from_millis(20);

/// Why a link is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it does not take what it is sent: {messages} messages of {bytes} bytes wait, for {waited}"
)]
pub(super) struct Stuck {
    messages: usize,
    bytes: usize,
    waited: Nanos,
}

#[derive(Debug)]
struct Inner<M> {
    queue: VecDeque<(M, usize)>,
    bytes: usize,
    /// Messages taken so far.
    taken: u64,
    /// The messages up to this one (all that ever were taken count) are to be taken at once; those behind may wait for company.
    hurry: u64,
    /// Until then.
    company: Option<Instant>,
    /// How many had been taken when they were counted, and when that was.
    counted: (u64, Nanos),
    waker: Option<Waker>,
    /// It is counted as slow.
    slow: bool,
    /// It is counted as due.
    due: bool,
    /// It let others go first, and has taken nothing since.
    let_go_first: bool,
    /// Nothing more will be sent.
    ended: bool,
    given_up: Option<Stuck>,
    /// The other end was told so.
    told: bool,
}

impl<M> Default for Inner<M> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
            taken: 0,
            hurry: 0,
            company: None,
            counted: (0, Nanos::ZERO),
            waker: None,
            slow: false,
            due: false,
            let_go_first: false,
            ended: false,
            given_up: None,
            told: false,
        }
    }
}

impl<M> Inner<M> {
    fn exceeds(&self, bound: Waiting) -> bool {
        self.queue.len() > bound.messages || self.bytes > bound.bytes
    }

    fn stuck(&self, waited: Nanos) -> Stuck {
        Stuck {
            messages: self.queue.len(),
            bytes: self.bytes,
            waited,
        }
    }

    /// All that waits is to be taken at once.
    fn hurry(&mut self) {
        self.hurry = self.taken + self.queue.len() as u64;
        self.company = None;
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A count of lines: of those that are slow, or of those that have messages which are due.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Arc<AtomicUsize>);

impl Lines {
    /// Whether there is one.
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// One more, or one less.
    fn count(&self, one_is: bool) {
        match one_is {
            true => self.0.fetch_add(1, Ordering::Relaxed),
            false => self.0.fetch_sub(1, Ordering::Relaxed),
        };
    }
}

/// Which of the messages that are due at the same time go first. Replies to application processes wait until the tasks of peers
/// had a turn: whoever gets a reply goes on, often on the processor from which the others would be told.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// These; the line is counted while it has some that nobody took.
    First(Lines),
    /// Those, then these.
    After(Lines),
    /// Either.
    Any,
}

#[derive(Debug)]
struct Line<M> {
    inner: Mutex<Inner<M>>,
    bounds: Bounds,
    /// Those whose other end takes less than it is sent: nothing should be added that can wait elsewhere.
    slow_lines: Lines,
    order: Order,
    /// It was given up.
    over: Notify,
}

impl<M> Line<M> {
    fn lock(&self) -> MutexGuard<'_, Inner<M>> {
        // Nothing here panics while it holds the lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts it among the slow ones while it is one.
    fn judge(&self, inner: &mut Inner<M>) {
        let slow = inner.exceeds(self.bounds.slow);
        if slow != inner.slow {
            inner.slow = slow;
            self.slow_lines.count(slow);
        }
        if let Order::First(lines) = &self.order {
            let due = !inner.queue.is_empty() && inner.taken < inner.hurry;
            if due != inner.due {
                inner.due = due;
                lines.count(due);
            }
        }
    }

    /// Whether others have messages that go first, and had no turn yet.
    fn lets_go_first(&self, inner: &mut Inner<M>) -> bool {
        let Order::After(lines) = &self.order else {
            return false;
        };
        let lets = !inner.queue.is_empty() && !inner.let_go_first && lines.any();
        inner.let_go_first = lets;
        lets
    }
}

impl<M> Drop for Line<M> {
    fn drop(&mut self) {
        let (slow, due) = {
            let inner = self.lock();
            (inner.slow, inner.due)
        };
        if slow {
            self.slow_lines.count(false);
        }
        if let Order::First(lines) = &self.order
            && due
        {
            lines.count(false);
        }
    }
}

/// The end that sends. When it is dropped, what waits can still be taken.
#[derive(Debug)]
pub(super) struct Outgoing<M = PeerMessage>(Arc<Line<M>>);

/// The end that the connection takes messages from.
#[derive(Debug)]
pub(super) struct Taken<M = PeerMessage> {
    line: Arc<Line<M>>,
    /// Until what waits for company has waited long enough.
    timer: Option<Pin<Box<Sleep>>>,
}

/// Tells that the line was given up.
#[derive(Debug)]
pub(super) struct Over<M = PeerMessage>(Arc<Line<M>>);

/// A line for the messages to one peer or application process.
pub(super) fn line<M>(bounds: Bounds, slow_lines: &Lines, order: Order) -> (Outgoing<M>, Taken<M>) {
    let line = Arc::new(Line {
        inner: Mutex::default(),
        bounds,
        slow_lines: slow_lines.clone(),
        order,
        over: Notify::new(),
    });
    let taken = Taken {
        line: Arc::clone(&line),
        timer: None,
    };
    (Outgoing(line), taken)
}

impl<M: Message> Outgoing<M> {
    /// One more message; an error if so much waits that the link has to be given up.
    pub(super) fn send(&self, message: M) -> Result<(), Stuck> {
        self.push(message, None)
    }

    /// As [`send`](Self::send), but the message may wait for others for so long: every message that is taken alone wakes a
    /// process.
    pub(super) fn send_within(&self, time: Duration, message: M) -> Result<(), Stuck> {
        self.push(message, Some(time))
    }

    fn push(&self, message: M, within: Option<Duration>) -> Result<(), Stuck> {
        let bytes = message.encoded_len();
        let mut inner = self.0.lock();
        if inner.given_up.is_some() {
            return Ok(());
        }
        inner.bytes += bytes;
        inner.queue.push_back((message, bytes));
        match within {
            None => inner.hurry(),
            Some(time) => {
                let until = Instant::now() + time;
                inner.company = Some(inner.company.map_or(until, |earlier| earlier.min(until)));
            }
        }
        self.0.judge(&mut inner);
        inner.wake();
        match inner.exceeds(self.0.bounds.most) {
            true => Err(inner.stuck(Nanos::ZERO)),
            false => Ok(()),
        }
    }
}

impl<M> Outgoing<M> {
    /// Somebody waits for what was sent.
    pub(super) fn hurry(&self) {
        let mut inner = self.0.lock();
        inner.hurry();
        self.0.judge(&mut inner);
        inner.wake();
    }

    /// To be called again and again: an error if the peer has taken nothing for too long.
    pub(super) fn check(&self, now: Nanos) -> Result<(), Stuck> {
        let mut inner = self.0.lock();
        let (taken, since) = inner.counted;
        if inner.queue.is_empty() || taken != inner.taken || since == Nanos::ZERO {
            inner.counted = (inner.taken, now);
            return Ok(());
        }
        let waited = now - since;
        match waited >= self.0.bounds.silence {
            true => Err(inner.stuck(waited)),
            false => Ok(()),
        }
    }

    /// Gives the line up: what waits is dropped.
    pub(super) fn give_up(&self, why: Stuck) {
        let mut inner = self.0.lock();
        inner.queue = VecDeque::new();
        inner.bytes = 0;
        inner.given_up = Some(why);
        self.0.judge(&mut inner);
        inner.wake();
        self.0.over.notify_one();
    }

    /// What tells that it was given up.
    pub(super) fn over(&self) -> Over<M> {
        Over(Arc::clone(&self.0))
    }
}

impl<M> Drop for Outgoing<M> {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.ended = true;
        inner.wake();
    }
}

impl<M> Over<M> {
    /// Waits until the line is given up.
    pub(super) async fn wait(&self) -> Stuck {
        loop {
            if let Some(why) = self.0.lock().given_up {
                return why;
            }
            self.0.over.notified().await;
        }
    }
}

impl<M> Stream for Taken<M> {
    type Item = Result<M, Status>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { line, timer } = &mut *self;
        let mut inner = line.lock();
        if let Some(until) = inner.company.filter(|_| inner.taken >= inner.hurry) {
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if timer.deadline() != until {
                timer.as_mut().reset(until);
            }
            if timer.as_mut().poll(cx).is_pending() && !inner.ended {
                inner.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            inner.hurry();
        }
        if line.lets_go_first(&mut inner) {
            // Their tasks were woken before.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some((message, bytes)) = inner.queue.pop_front() {
            inner.bytes -= bytes;
            inner.taken += 1;
            line.judge(&mut inner);
            return Poll::Ready(Some(Ok(message)));
        }
        if let Some(why) = inner.given_up
            && !std::mem::replace(&mut inner.told, true)
        {
            let why = Status::resource_exhausted(why.to_string());
            return Poll::Ready(Some(Err(why)));
        }
        if inner.ended || inner.given_up.is_some() {
            return Poll::Ready(None);
        }
        inner.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dosmos_proto::wire::{PeerReadDone, WriteDone, peer_message::Body};
    use tokio_stream::StreamExt;

    use super::*;

    const SMALL: Bounds = Bounds {
        slow: Waiting {
            messages: 2,
            bytes: 1000,
        },
        most: Waiting {
            messages: 4,
            bytes: 2000,
        },
        silence: Nanos(10),
    };

    fn small() -> PeerMessage {
        PeerMessage {
            body: Some(Body::WriteDone(WriteDone::default())),
            ..PeerMessage::default()
        }
    }

    #[tokio::test]
    async fn a_peer_that_takes_less_than_it_is_sent_is_slow_and_then_given_up() {
        let slow = Lines::default();
        let (outgoing, mut taken) = line(SMALL, &slow, Order::Any);
        for _ in 0..3 {
            outgoing.send(small()).unwrap();
        }
        assert!(slow.any());
        taken.next().await.unwrap().unwrap();
        assert!(!slow.any());
        outgoing.send(small()).unwrap();
        outgoing.send(small()).unwrap();
        let why = outgoing.send(small()).unwrap_err();
        assert!(why.to_string().contains("5 messages of"), "{why}");
        outgoing.give_up(why);
        assert_eq!(outgoing.over().wait().await, why);
        assert!(!slow.any());
        let told = taken.next().await.unwrap().unwrap_err();
        assert_eq!(told.message(), why.to_string());
        assert!(taken.next().await.is_none(), "what waited is dropped");
    }

    #[tokio::test]
    async fn content_counts_too() {
        let slow = Lines::default();
        let (outgoing, taken) = line(SMALL, &slow, Order::Any);
        let mut large = small();
        let data = Bytes::from(vec![0; 1500]);
        large.body = Some(Body::ReadDone(PeerReadDone {
            data,
            ..Default::default()
        }));
        outgoing.send(large.clone()).unwrap();
        assert!(slow.any());
        assert!(outgoing.send(large).is_err());
        drop((outgoing, taken));
        assert!(!slow.any(), "a link that is gone is not slow");
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up_and_one_that_takes_little_is_not() {
        let (outgoing, mut taken) = line(SMALL, &Lines::default(), Order::Any);
        outgoing.check(Nanos(1)).unwrap();
        outgoing.check(Nanos(100)).unwrap();
        outgoing.send(small()).unwrap();
        outgoing.send(small()).unwrap();
        outgoing.check(Nanos(105)).unwrap();
        taken.next().await.unwrap().unwrap();
        outgoing.check(Nanos(112)).unwrap();
        outgoing.check(Nanos(121)).unwrap();
        assert!(outgoing.check(Nanos(122)).is_err());
    }

    #[tokio::test]
    async fn what_is_in_no_hurry_waits_for_others_but_not_for_long() {
        let (outgoing, mut taken) = line(REPLIES, &Lines::default(), Order::Any);
        outgoing.send_within(NEWS, small()).unwrap();
        let mut next = std::pin::pin!(taken.next());
        let waker = Waker::noop();
        let mut cx = Context::from_waker(waker);
        assert!(next.as_mut().poll(&mut cx).is_pending());
        outgoing.send(small()).unwrap();
        assert!(next.as_mut().poll(&mut cx).is_ready());
        let mut next = std::pin::pin!(taken.next());
        assert!(next.as_mut().poll(&mut cx).is_ready());

        outgoing.send_within(NEWS, small()).unwrap();
        let mut next = std::pin::pin!(taken.next());
        assert!(next.as_mut().poll(&mut cx).is_pending());
        outgoing.hurry();
        assert!(next.as_mut().poll(&mut cx).is_ready());

        // The one that is in less of a hurry goes with the other.
        let long = Duration::from_secs(3600);
        outgoing.send_within(long, small()).unwrap();
        outgoing.send_within(NEWS, small()).unwrap();
        outgoing.send_within(long, small()).unwrap();
        for _ in 0..3 {
            taken.next().await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_due_to_peers_is_taken_before_replies() {
        let due = Lines::default();
        let first = Order::First(due.clone());
        let (peer, mut to_peer) = line(BOUNDS, &Lines::default(), first);
        let after = Order::After(due.clone());
        let (session, mut to_session) = line(REPLIES, &Lines::default(), after);
        let mut cx = Context::from_waker(Waker::noop());
        let mut is_taken = |taken: &mut Taken| Pin::new(taken).poll_next(&mut cx).is_ready();

        peer.send(small()).unwrap();
        session.send(small()).unwrap();
        assert!(!is_taken(&mut to_session));
        assert!(is_taken(&mut to_peer));
        assert!(!due.any());
        assert!(is_taken(&mut to_session));

        // A peer that takes nothing is not waited for.
        peer.send(small()).unwrap();
        session.send(small()).unwrap();
        assert!(!is_taken(&mut to_session));
        assert!(is_taken(&mut to_session));
        drop((peer, to_peer));
        assert!(!due.any(), "a link that is gone has nothing due");

        // What waits for company is not due.
        let first = Order::First(due.clone());
        let (peer, _to_peer) = line::<PeerMessage>(BOUNDS, &Lines::default(), first);
        peer.send_within(POSTED, small()).unwrap();
        session.send(small()).unwrap();
        assert!(is_taken(&mut to_session));
        peer.hurry();
        session.send(small()).unwrap();
        assert!(!is_taken(&mut to_session));
    }

    #[tokio::test]
    async fn what_was_sent_before_the_end_is_taken() {
        let (outgoing, mut taken) = line(SMALL, &Lines::default(), Order::Any);
        outgoing.send(small()).unwrap();
        drop(outgoing);
        assert!(taken.next().await.is_some());
        assert!(taken.next().await.is_none());
    }
}
