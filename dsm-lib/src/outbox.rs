//! Requests on their way to the session's task.
//!
//! Who adds one wakes nobody: to wake the task from outside its runtime is a system call, and one more for the runtime to look
//! why. Threads that drive the runtime [tell](Outbox::tell) the task when they begin, from inside; see
//! [`driver`](crate::driver).

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::Stream;

use crate::haste::Outbound;

/// Where requests are added.
#[derive(Clone, Default)]
pub(crate) struct Outbox(Arc<Mutex<Queue>>);

/// Where the session's task takes them from.
pub(crate) struct Requests(Outbox);

#[derive(Default)]
struct Queue {
    requests: VecDeque<Outbound>,
    /// The task was not told of some.
    untold: bool,
    /// It waits for one.
    taker: Option<Waker>,
    /// It takes no more.
    over: bool,
}

impl Outbox {
    /// The other end. There is one task that takes them.
    pub(crate) fn requests(&self) -> Requests {
        Requests(self.clone())
    }

    /// Each step on it is complete, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request, of which the task is to be told. When the task has ended, nothing becomes of it.
    pub(crate) fn push(&self, request: Outbound) {
        let mut queue = self.lock();
        if !queue.over {
            queue.requests.push_back(request);
            queue.untold = true;
        }
    }

    /// Wakes the task if it was not told of all.
    pub(crate) fn tell(&self) {
        let mut queue = self.lock();
        let untold = std::mem::take(&mut queue.untold);
        let taker = queue.taker.take_if(|_| untold);
        drop(queue);
        taker.into_iter().for_each(Waker::wake);
    }
}

impl Requests {
    /// The next one, if there is one.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn try_next(&mut self) -> Option<Outbound> {
        self.0.lock().requests.pop_front()
    }
}

impl Stream for Requests {
    type Item = Outbound;
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Outbound>> {
        let mut queue = self.0.lock();
        if let Some(request) = queue.requests.pop_front() {
            return Poll::Ready(Some(request));
        }
        queue.untold = false;
        if !queue
            .taker
            .as_ref()
            .is_some_and(|t| t.will_wake(cx.waker()))
        {
            queue.taker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.over = true;
        let left = std::mem::take(&mut queue.requests);
        drop(queue);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use dosmos_proto::wire::ApRequest;
    use futures::StreamExt;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn request(id: u64) -> Outbound {
        let request = ApRequest {
            id,
            ..ApRequest::default()
        };
        request.into()
    }

    #[test]
    fn the_task_is_woken_when_it_is_told_and_only_if_something_was_added() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let woken = || count.0.load(Ordering::Relaxed);
        let outbox = Outbox::default();
        let mut requests = outbox.requests();
        let mut next = || {
            let polled = requests.poll_next_unpin(&mut Context::from_waker(&waker));
            polled.map(|next| next.map(|o| o.take().id))
        };
        assert_eq!(next(), Poll::Pending);
        outbox.tell();
        assert_eq!(woken(), 0, "nothing was added");
        outbox.push(request(1));
        outbox.push(request(2));
        assert_eq!(woken(), 0, "it was not told");
        outbox.tell();
        outbox.tell();
        assert_eq!(woken(), 1);
        assert_eq!(next(), Poll::Ready(Some(1)));
        assert_eq!(next(), Poll::Ready(Some(2)));
        assert_eq!(next(), Poll::Pending);
        outbox.push(request(3));
        assert_eq!(next(), Poll::Ready(Some(3)), "it looked by itself");
        assert_eq!(next(), Poll::Pending);
        outbox.tell();
        assert_eq!(woken(), 1, "it has seen all");
    }

    #[test]
    fn nothing_is_kept_that_nobody_will_take() {
        let outbox = Outbox::default();
        let mut requests = outbox.requests();
        outbox.push(request(1));
        assert_eq!(requests.try_next().map(|o| o.take().id), Some(1));
        outbox.push(request(2));
        drop(requests);
        outbox.push(request(3));
        outbox.tell();
        assert!(outbox.lock().requests.is_empty());
    }
}
