//! Locks that are made of shared words, as those who take them see them.

use std::fmt::Debug;
use std::time::Duration;

use dosmos_proto::LockKind;

use crate::Result;

/// The locks of the objects of a variable, of another kind than the owner's queue.
pub(crate) trait LockWords: Debug + Send + Sync {
    /// Which kind.
    fn kind(&self) -> LockKind;

    /// Blocks until this process has object `index`.
    fn acquire(&self, index: usize, deadline: Duration) -> Result<()>;

    /// Publishes what was written and lets the next process in. After a failure it can be repeated.
    fn release(&self, index: usize, deadline: Duration) -> Result<()>;
}
