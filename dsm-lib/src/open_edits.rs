//! The edits that a thread has open: while there are any, it may not wait for others.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static OPEN: Cell<u32> = const { Cell::new(0) };
}

/// An open edit. It stays on its thread.
#[derive(Debug)]
pub(crate) struct Open(PhantomData<*const ()>);

impl Open {
    pub(crate) fn new() -> Self {
        OPEN.set(OPEN.get() + 1);
        Self(PhantomData)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.set(OPEN.get().saturating_sub(1));
    }
}

/// Whether this thread edits an object.
pub(crate) fn is_open() -> bool {
    OPEN.get() > 0
}

/// Lets other programs of this thread run, which have edits of their own.
#[cfg(feature = "simulation")]
pub(crate) fn aside<R>(run: impl FnOnce() -> R) -> R {
    let open = OPEN.replace(0);
    let result = run();
    OPEN.set(open);
    result
}
