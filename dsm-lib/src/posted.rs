//! Calls that nobody waits for: what the next synchronisation says of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Error, Result};

/// With this number of them under way, the next is waited for: whoever writes faster than the memory process takes it is slowed
/// down, and not refused.
const MOST: usize = 256;

/// A call that nobody waits for.
pub(crate) trait UnderWay: Send {
    /// How it ended, or itself if it has not.
    fn outcome(self: Box<Self>) -> Result<Result<()>, Box<dyn UnderWay>>;
}

enum Posted {
    UnderWay(Box<dyn UnderWay>),
    Failed(Error),
}

impl Posted {
    fn outcome(self) -> Result<Result<()>, Self> {
        match self {
            Self::UnderWay(call) => call.outcome().map_err(Self::UnderWay),
            Self::Failed(error) => Ok(Err(error)),
        }
    }
}

/// The posted calls of a session.
#[derive(Default)]
pub(crate) struct PostedCalls {
    all: Mutex<Vec<Posted>>,
    /// Held by whoever looks at them: nobody else finds fewer than there are meanwhile, and misses an error.
    looking: Mutex<()>,
}

impl PostedCalls {
    fn lock(&self) -> MutexGuard<'_, Vec<Posted>> {
        unspoilt(&self.all)
    }

    /// Whether the next should be waited for.
    pub(crate) fn are_many(&self) -> bool {
        if self.lock().len() < MOST {
            return false;
        }
        self.look();
        self.lock().len() >= MOST
    }

    /// Keeps a call, of which [`settle`](Self::settle) tells how it ended.
    pub(crate) fn keep(&self, call: Box<dyn UnderWay>) {
        self.lock().push(Posted::UnderWay(call));
    }

    /// Forgets those that are over; the first error of them.
    pub(crate) fn settle(&self) -> Result<()> {
        let _looking = unspoilt(&self.looking);
        self.take_outcome()
    }

    /// The session is over, and so are all of them: only the first error is kept, for whoever closes it.
    pub(crate) fn end(&self) {
        let _looking = unspoilt(&self.looking);
        let failed = self.take_outcome().err().map(Posted::Failed);
        *self.lock() = failed.into_iter().collect();
    }

    /// Forgets those that are over, except for the first error.
    fn look(&self) {
        let _looking = unspoilt(&self.looking);
        let failed = self.take_outcome().err().map(Posted::Failed);
        self.lock().extend(failed);
    }

    fn take_outcome(&self) -> Result<()> {
        let all = {
            let mut all = self.lock();
            if all.is_empty() {
                return Ok(());
            }
            std::mem::take(&mut *all)
        };
        let (mut first, mut under_way) = (Ok(()), Vec::new());
        for call in all {
            match call.outcome() {
                Ok(outcome) => first = first.and(outcome),
                Err(call) => under_way.push(call),
            }
        }
        self.lock().append(&mut under_way);
        first
    }
}

/// Each step on what it guards is complete, so a panic elsewhere spoils nothing.
fn unspoilt<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may

    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use super::*;

    /// A call that failed, and takes its time to say so: until it is told to, or what tells it is gone or slow.
    struct Failed {
        looked_at: Sender<()>,
        go_on: Receiver<()>,
    }

    impl UnderWay for Failed {
        fn outcome(self: Box<Self>) -> Result<Result<()>, Box<dyn UnderWay>> {
            self.looked_at.send(()).unwrap();
            let _ = self
                .go_on
                .recv_timeout(std::time::Duration::from_millis(50));
            Ok(Err(Error::protocol(&"a write", "refused")))
        }
    }

    /// As when a session ends by a farewell: the thread that carries it looks at what was posted, and at the same time does the
    /// one that was told of the farewell.
    #[test]
    fn an_error_that_one_thread_has_in_its_hands_is_not_missed_by_another() {
        for keeps in [PostedCalls::end, PostedCalls::look] {
            let posted = PostedCalls::default();
            let ((looked_at, is_looked_at), (goes_on, go_on)) = (channel(), channel());
            posted.keep(Box::new(Failed { looked_at, go_on }));
            thread::scope(|scope| {
                scope.spawn(|| keeps(&posted));
                is_looked_at.recv().unwrap();
                let error = posted.settle().unwrap_err();
                assert!(error.to_string().contains("refused"), "{error}");
                drop(goes_on);
            });
            posted.settle().unwrap(); // it was told once
        }
    }
}
