//! Who drives the session's I/O: its own thread, or a thread that blocks until its reply comes.
//!
//! A reply that travels from the I/O thread to the one that waits for it costs two thread switches
//! more than the network does, so a thread that blocks takes the runtime and drives it itself (tokio
//! lets several threads block on one current-thread runtime; one of them drives). The I/O thread
//! stands by meanwhile, and takes over when nobody has blocked for a while, or at once when calls are
//! under way that nobody blocks on.
//!
//! Guarantee: while the session lasts, somebody drives, or begins to within [`STAND_BY`]; at once if a
//! call is under way. So the stream is served while the program computes.

use std::cell::Cell;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dosmos_proto::spin;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Notify;

/// How long after the last blocking call the I/O thread takes over, if nothing is under way.
const STAND_BY: Duration = Duration::from_millis(2);

/// The same while objects are delegated to this process, which others may ask for.
const ATTENTIVE: Duration = Duration::from_micros(200);

thread_local! {
    /// This thread drives a session: it must not wait for one.
    static DRIVING: Cell<bool> = const { Cell::new(false) };
    /// This thread is about to block, so what it submits needs no other thread's attention.
    static ABOUT_TO_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread carries a session, or runs in a task of one.
pub(crate) fn is_driving() -> bool {
    DRIVING.get()
}

/// Runs `submit`, whose caller blocks right afterwards on what it submits.
pub(crate) fn about_to_block<R>(submit: impl FnOnce() -> R) -> R {
    let before = ABOUT_TO_BLOCK.replace(true);
    let result = submit();
    ABOUT_TO_BLOCK.set(before);
    result
}

/// The runtime of a session and whose turn it is to drive it.
pub(crate) struct Drive {
    runtime: Mutex<Option<Arc<Runtime>>>,
    turn: Mutex<Turn>,
    /// The I/O thread, standing by, should look again.
    changed: Condvar,
    /// The I/O thread, driving, should let a blocking thread drive.
    let_go: Notify,
    /// Objects are delegated to this process.
    attentive: AtomicBool,
}

#[derive(Default)]
struct Turn {
    io_drives: bool,
    /// Threads that block, one of which drives unless the I/O thread does.
    callers: usize,
    /// When the last of them was done.
    last: Option<Instant>,
    /// Something is under way that no thread blocks on.
    urgent: bool,
    over: bool,
}

impl Drive {
    pub(crate) fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Mutex::new(Some(Arc::new(runtime))),
            turn: Mutex::new(Turn::default()),
            changed: Condvar::new(),
            let_go: Notify::new(),
            attentive: AtomicBool::new(false),
        })
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runtime(&self) -> Option<Arc<Runtime>> {
        let runtime = self.runtime.lock();
        runtime.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The I/O thread's life: drives whenever nobody else does, until [`finish`](Self::finish).
    /// `session` is what there is to do.
    pub(crate) fn carry(&self, session: impl Future<Output = ()> + Send + 'static) {
        let Some(runtime) = self.runtime() else {
            return;
        };
        DRIVING.set(true);
        drop(runtime.spawn(session));
        while self.wait_for_turn() {
            runtime.block_on(async {
                while !self.should_let_go() {
                    self.let_go.notified().await;
                }
            });
        }
        let last = self.runtime.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner).take();
        retire(runtime);
        last.into_iter().for_each(retire);
    }

    /// Stands by until it is the I/O thread's turn; false if the session is over.
    fn wait_for_turn(&self) -> bool {
        let mut turn = self.turn();
        turn.io_drives = false;
        loop {
            let stand_by = match self.attentive.load(Ordering::Relaxed) {
                true => ATTENTIVE,
                false => STAND_BY,
            };
            let rested = turn.last.is_none_or(|at| at.elapsed() >= stand_by);
            if turn.over {
                return false;
            }
            if turn.callers == 0 && (turn.urgent || rested) {
                turn.urgent = false;
                turn.io_drives = true;
                return true;
            }
            let waited = self.changed.wait_timeout(turn, stand_by);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn should_let_go(&self) -> bool {
        let turn = self.turn();
        turn.over || turn.callers > 0
    }

    /// Objects are delegated to this process: others may ask for them at any time.
    pub(crate) fn be_attentive(&self) {
        self.attentive.store(true, Ordering::Relaxed);
    }

    /// The session is over.
    pub(crate) fn finish(&self) {
        self.turn().over = true;
        self.changed.notify_one();
        self.let_go.notify_one();
    }

    /// Something was submitted: sees to it that somebody sends it, if its submitter will not.
    pub(crate) fn submitted(&self) {
        if !ABOUT_TO_BLOCK.get() {
            self.attend();
        }
    }

    /// Something is under way that no thread drives for.
    pub(crate) fn attend(&self) {
        let mut turn = self.turn();
        if !turn.io_drives {
            turn.urgent = true;
            self.changed.notify_one();
        }
    }

    /// Drives until `future` is done; none if this thread cannot. `more` tells whether something
    /// else is under way then.
    pub(crate) fn drive<F: Future>(
        &self,
        future: F,
        more: impl FnOnce() -> bool,
    ) -> Option<F::Output> {
        // Within a runtime of the program's, blocking on another is forbidden.
        if Handle::try_current().is_ok() {
            return None;
        }
        let runtime = self.runtime()?;
        let asked = {
            let mut turn = self.turn();
            turn.callers += 1;
            turn.io_drives
        };
        if asked {
            self.let_go.notify_one();
        }
        let _caller = Caller(self);
        DRIVING.set(true);
        let output = runtime.block_on(spin::awake(future));
        DRIVING.set(false);
        retire(runtime);
        if more() {
            self.turn().urgent = true;
        }
        Some(output)
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let last = self.runtime.get_mut();
        let last = last.unwrap_or_else(PoisonError::into_inner).take();
        last.into_iter().for_each(retire);
    }
}

/// A thread that blocks.
struct Caller<'a>(&'a Drive);

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        DRIVING.set(false);
        let mut turn = self.0.turn();
        turn.callers -= 1;
        turn.last = Some(Instant::now());
        if turn.callers == 0 && turn.urgent {
            self.0.changed.notify_one();
        }
    }
}

/// Gives up a share of the runtime. The last one ends it, in a way that is allowed anywhere.
fn retire(runtime: Arc<Runtime>) {
    if let Some(runtime) = Arc::into_inner(runtime) {
        runtime.shutdown_background();
    }
}
