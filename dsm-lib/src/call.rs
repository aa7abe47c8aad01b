//! An operation under way: a future that works on any executor, or on none.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use dosmos_proto::Nanos;
use dosmos_proto::wire::ap_reply::Body as Reply;
use futures::channel::oneshot;

use crate::driver::{about_to_block, is_driving};
use crate::haste::{Found, Haste};
use crate::operation::Operation;
use crate::posted::UnderWay;
use crate::shared::{Arrived, Shared, Submitted};
use crate::{Error, Result, open_edits};

type Decode<T> = Box<dyn FnOnce(&Operation, Result<Reply>) -> Result<T> + Send>;

/// An operation that has been sent and is not yet over.
///
/// The request is on its way when the call is made, so several calls can be under way at once:
///
/// ```no_run
/// # fn f(dsm: &dsm_lib::Dsm) -> dsm_lib::Result<()> {
/// # let grid = dsm.matrix::<f64>("grid", 8, 8).split_rows(2).declare()?;
/// let (above, below) = (grid.object(0)?.read_async(), grid.object(1)?.read_async());
/// let (above, below) = (above.wait()?, below.wait()?); // one round trip, not two
/// # Ok(()) }
/// ```
///
/// A `Call` is a future that needs no particular executor; [`wait`](Self::wait) blocks the thread
/// instead. Dropping it does not take the request back, except that a lock granted to a dropped
/// acquire is released at once.
#[must_use = "an operation is over only when its call has been awaited"]
pub struct Call<T> {
    step: Step<T>,
}

enum Step<T> {
    /// Never sent: wrong before it began.
    Failed(Error),
    /// Over before it could be waited for.
    Done(Box<T>), // boxed, so that a call can be moved whatever T is
    Sent(Sent<T>),
    Over,
}

struct Sent<T> {
    operation: Operation,
    answer: Answer,
    decode: Decode<T>,
    /// It synchronises: its end is also that of posted calls, whose errors are its own. Not if it was posted itself.
    settles: bool,
}

impl<T> Call<T> {
    pub(crate) fn failed(error: Error) -> Self {
        Self {
            step: Step::Failed(error),
        }
    }

    pub(crate) fn done(result: Result<T>) -> Self {
        match result {
            Ok(value) => Self {
                step: Step::Done(Box::new(value)),
            },
            Err(error) => Self::failed(error),
        }
    }

    /// Over if it is `done`, else what `send` makes.
    #[inline]
    pub(crate) fn done_or(done: Option<T>, send: impl FnOnce() -> Self) -> Self {
        match done {
            Some(value) => Self::done(Ok(value)),
            None => send(),
        }
    }

    pub(crate) fn sent(
        operation: Operation,
        answer: Answer,
        settles: bool,
        decode: impl FnOnce(&Operation, Reply) -> Result<T> + Send + 'static,
    ) -> Self {
        let decode = |operation: &Operation, outcome: Result<Reply>| decode(operation, outcome?);
        Self {
            step: Step::Sent(Sent {
                operation,
                answer,
                decode: Box::new(decode),
                settles,
            }),
        }
    }

    /// Whether it is a message.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(self.step, Step::Sent(_))
    }

    /// The same call with something done at its end; not done if the call is dropped before.
    pub(crate) fn then(self, f: impl FnOnce(Result<T>) -> Result<T> + Send + 'static) -> Self
    where
        T: 'static,
    {
        match self.step {
            Step::Failed(error) => Self::done(f(Err(error))),
            Step::Done(value) => Self::done(f(Ok(*value))),
            Step::Sent(sent) => {
                let decode = sent.decode;
                let decode: Decode<T> =
                    Box::new(move |operation, outcome| f(decode(operation, outcome)));
                Self {
                    step: Step::Sent(Sent { decode, ..sent }),
                }
            }
            Step::Over => self,
        }
    }

    /// Blocks this thread until the operation is over.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn wait(self) -> Result<T> {
        match self.step {
            Step::Failed(error) => Err(error),
            Step::Done(value) => Ok(*value),
            Step::Sent(sent) => sent.wait(),
            // Polled to its end before.
            Step::Over => Err(Error::protocol(&"a call", "it was over already")),
        }
    }
}

impl Call<()> {
    /// Does not wait for the operation, unless very many such are under way. If it fails, its error is that of this process's
    /// next barrier, release or publication:
    ///
    /// ```no_run
    /// # fn f(dsm: &dsm_lib::Dsm, edge: &dsm_lib::Object<f64>, values: &[f64]) -> dsm_lib::Result<()> {
    /// edge.write_async(values).post()?;
    /// dsm.barrier()?; // one round trip, and all see the values
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If it has failed already.
    pub fn post(self) -> Result<()> {
        let Step::Sent(mut sent) = self.step else {
            return self.wait();
        };
        let shared = sent.answer.shared.clone();
        let may_wait = !is_driving() && !open_edits::is_open();
        if may_wait && shared.posted.are_many() {
            return sent.wait();
        }
        sent.answer.leave(false);
        match Box::new(sent).outcome() {
            Ok(outcome) => outcome,
            Err(sent) => {
                shared.posted.keep(sent);
                Ok(())
            }
        }
    }
}

impl<T> Sent<T> {
    fn wait(mut self) -> Result<T> {
        let outcome = self.answer.wait();
        self.finish(outcome)
    }

    fn finish(self, outcome: Result<Reply>) -> Result<T> {
        let result = (self.decode)(&self.operation, outcome);
        if !self.settles {
            return result;
        }
        let settled = self.answer.shared.posted.settle();
        result.and_then(|value| settled.map(|()| value))
    }
}

impl UnderWay for Sent<()> {
    fn outcome(mut self: Box<Self>) -> Result<Result<()>, Box<dyn UnderWay>> {
        match self.answer.try_take() {
            Some(reply) => Ok((self.decode)(&self.operation, reply)),
            None => Err(self),
        }
    }
}

impl<T> Future for Call<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        match std::mem::replace(&mut self.step, Step::Over) {
            Step::Failed(error) => Poll::Ready(Err(error)),
            Step::Done(value) => Poll::Ready(Ok(*value)),
            Step::Sent(mut sent) => match Pin::new(&mut sent.answer).poll(context) {
                Poll::Pending => {
                    let carrier = &sent.answer.shared.carrier;
                    carrier.wait_on_executor();
                    if sent.answer.want() {
                        carrier.attend();
                    }
                    self.step = Step::Sent(sent);
                    Poll::Pending
                }
                Poll::Ready(outcome) => Poll::Ready(sent.finish(outcome)),
            },
            // Finished; nothing will wake the caller, as with any future polled after its end.
            Step::Over => Poll::Pending,
        }
    }
}

/// Makes a call and blocks until it is over.
pub(crate) fn blocking<T>(make: impl FnOnce() -> Call<T>) -> Result<T> {
    about_to_block(make).wait()
}

/// What is `done`, else as [`blocking`].
#[inline]
pub(crate) fn done_or_blocking<T>(done: Option<T>, make: impl FnOnce() -> Call<T>) -> Result<T> {
    match done {
        Some(value) => Ok(value),
        None => blocking(make),
    }
}

/// Where the reply to one request arrives. Dropped before that, it takes the request back if it waits
/// for others (an acquire, an arrival at a barrier), and a lock that was granted does not stay with
/// nobody.
pub(crate) struct Answer {
    operation: Operation,
    /// None if the request was not sent.
    pub(crate) id: Option<u64>,
    receiver: oneshot::Receiver<Arrived>,
    shared: Arc<Shared>,
    /// What sending the request took.
    pub(crate) sending: Nanos,
    /// The program waits for it.
    entered: bool,
    /// The time that it took the program is counted.
    left: bool,
    /// For the reply to a request that is in no hurry.
    pub(crate) haste: Option<Haste>,
}

impl Answer {
    pub(crate) fn new(operation: Operation, submitted: Submitted, shared: Arc<Shared>) -> Self {
        let Submitted {
            id,
            receiver,
            sending,
            haste,
        } = submitted;
        Self {
            operation,
            id,
            receiver,
            shared,
            sending,
            entered: false,
            left: false,
            haste,
        }
    }

    fn wait(&mut self) -> Result<Reply> {
        if open_edits::is_open() {
            return Err(Error::EditOpen {
                what: self.operation.to_string(),
            });
        }
        let mut unconcerned = Context::from_waker(Waker::noop());
        if let Poll::Ready(outcome) = Pin::new(&mut *self).poll(&mut unconcerned) {
            return outcome;
        }
        if is_driving() {
            return Err(Error::WouldDeadlock {
                what: self.operation.to_string(),
            });
        }
        self.want();
        let shared = self.shared.clone();
        match shared.carrier.drive(&mut *self) {
            Some(outcome) => outcome,
            None => {
                shared.carrier.wait_on_executor();
                shared.carrier.attend();
                block_on(self)
            }
        }
    }

    /// Somebody waits from now on; whether something has to be sent for that.
    fn want(&self) -> bool {
        let found = self.haste.as_ref().and_then(Haste::want);
        if let Some(Found::Sent) = found {
            self.shared.hurry();
        }
        found.is_some()
    }

    /// The reply, if it is there.
    fn try_take(&mut self) -> Option<Result<Reply>> {
        let answer = self.receiver.try_recv().transpose()?;
        Some(self.arrived(answer))
    }

    fn arrived(&mut self, answer: Result<Arrived, oneshot::Canceled>) -> Result<Reply> {
        let arrived = answer.unwrap_or_else(|oneshot::Canceled| Arrived {
            outcome: Err(Error::Lost {
                what: self.operation.to_string(),
                why: "the session ended".into(),
            }),
            remote: false,
        });
        self.leave(arrived.remote);
        arrived.outcome
    }

    /// The program has done with it.
    fn leave(&mut self, remote: bool) {
        let entered = std::mem::take(&mut self.entered);
        if !std::mem::replace(&mut self.left, true) {
            self.shared
                .leave(&self.operation, remote, self.sending, entered);
        }
    }
}

impl Future for Answer {
    type Output = Result<Reply>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Reply>> {
        let Poll::Ready(answer) = Pin::new(&mut self.receiver).poll(context) else {
            if !self.entered {
                self.entered = true;
                self.shared.enter();
            }
            return Poll::Pending;
        };
        Poll::Ready(self.arrived(answer))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // From here on the sender gets back what it sends, and gives the lock back itself.
        self.receiver.close();
        if self.entered {
            self.leave(false);
        }
        match self.receiver.try_recv() {
            Ok(Some(Arrived {
                outcome: Ok(Reply::Granted(grant)),
                ..
            })) => self.shared.give_back(&self.operation, grant.epoch),
            Ok(Some(_)) => {}
            Ok(None) | Err(oneshot::Canceled) => {
                if let Some(id) = self.id {
                    self.shared.cancel(id);
                }
            }
        }
    }
}

/// Wakes a thread that waits in [`block_on`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static THIS_THREAD: Waker = Waker::from(Arc::new(Unpark(std::thread::current())));
}

/// Blocks the thread until the future is done. Unlike `futures::executor::block_on` it does not panic
/// when this thread is already inside an executor: it blocks that executor, as any blocking call does.
fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    THIS_THREAD.with(|waker| {
        let mut context = Context::from_waker(waker);
        loop {
            match Pin::new(&mut future).poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => std::thread::park(),
            }
        }
    })
}
