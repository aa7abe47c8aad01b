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
pub(crate) struct PostedCalls(Mutex<Vec<Posted>>);

impl PostedCalls {
    /// Each step on it is complete, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, Vec<Posted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn are_there(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Whether the next should be waited for.
    pub(crate) fn are_many(&self) -> bool {
        if self.lock().len() < MOST {
            return false;
        }
        let failed = self.settle().err();
        let mut all = self.lock();
        all.extend(failed.map(Posted::Failed));
        all.len() >= MOST
    }

    /// Keeps a call, of which [`settle`](Self::settle) tells how it ended.
    pub(crate) fn keep(&self, call: Box<dyn UnderWay>) {
        self.lock().push(Posted::UnderWay(call));
    }

    /// Forgets those that are over; the first error of them.
    pub(crate) fn settle(&self) -> Result<()> {
        let all = std::mem::take(&mut *self.lock());
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

    /// The session is over, and so are all of them: only the first error is kept, for whoever closes it.
    pub(crate) fn end(&self) {
        let failed = self.settle().err().map(Posted::Failed);
        *self.lock() = failed.into_iter().collect();
    }
}
