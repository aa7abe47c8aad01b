//! Who drives the session's I/O: the thread that blocks for a reply, or one that stands beside.
//!
//! A reply that travels from an I/O thread to the one that waits for it costs two thread switches more than the network
//! does, and so does a request on its way out. So the program's threads drive the session themselves: one that blocks
//! drives until its reply is there, one that only submits drives until its request is written. Nobody holds the
//! runtime longer than it has something to do with it (tokio lets several threads block on one current-thread runtime; one of
//! them drives).
//!
//! Beside them, the I/O thread waits for the session's socket (see [`watched`](dosmos_proto::watched)), and drives for a moment
//! when something has arrived while the program computes. While the program's threads drive often it does not look.
//!
//! Guarantee: while the session lasts, what arrives is served within [`STAND_BY`] and [`LOOK`]; at once for a program that
//! waits for calls on an executor of its own, or that reads one thing again and again ([`look`](Driver::look)).

use std::cell::Cell;
use std::future::Future;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dosmos_proto::spin;
use dosmos_proto::watched::Watched;
use nix::poll::{PollFd, PollFlags, ppoll};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Notify;

use crate::outbox::Outbox;

/// How long after the last blocking call the I/O thread begins to wait for the socket.
const STAND_BY: Duration = Duration::from_millis(2);

/// The same while objects are delegated to this process, which others may ask for.
const ATTENTIVE: Duration = Duration::from_micros(200);

/// The I/O thread lets the session look at its deadlines so often, and at what is not sent yet.
const LOOK: Duration = Duration::from_millis(2);

/// While there is no connection yet it drives for so long at a time.
const DIALLING: Duration = Duration::from_millis(1);

thread_local! {
    /// This thread drives a session: it must not wait for one.
    static DRIVING: Cell<bool> = const { Cell::new(false) };
    /// This thread is about to block, so what it submits is sent then.
    static ABOUT_TO_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread carries a session, or runs in a task of one.
pub(crate) fn is_driving() -> bool {
    DRIVING.get()
}

/// Whether this thread may leave what it submits to what it does next: it is going to drive then.
pub(crate) fn drives_later() -> bool {
    !ABOUT_TO_BLOCK.get() && can_drive()
}

/// Runs `submit`, whose caller blocks right afterwards on what it submits.
pub(crate) fn about_to_block<R>(submit: impl FnOnce() -> R) -> R {
    with(true, submit)
}

/// Lets other programs of this thread run, none of which is about to block.
#[cfg(feature = "simulation")]
pub(crate) fn aside<R>(run: impl FnOnce() -> R) -> R {
    with(false, run)
}

fn with<R>(about_to_block: bool, run: impl FnOnce() -> R) -> R {
    let before = ABOUT_TO_BLOCK.replace(about_to_block);
    let result = run();
    ABOUT_TO_BLOCK.set(before);
    result
}

/// The life of a memory process within this process.
pub(crate) type Life = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The runtime of a session and whose turn it is to drive it.
pub(crate) struct Driver {
    runtime: Mutex<Option<Arc<Runtime>>>,
    /// What is to be sent. Who drives tells the session's task of it from within the runtime, where that takes no system call.
    outbox: Outbox,
    turn: Mutex<Turn>,
    /// The session's connection; those of the memory process, if it is within this process.
    pub(crate) watched: Arc<Watched>,
    /// The memory process is within this process.
    within: bool,
    bell: Bell,
    /// The I/O thread, dialling, should let another thread drive.
    let_go: Notify,
    /// Objects are delegated to this process.
    attentive: AtomicBool,
    /// The program waits for calls on an executor of its own.
    on_executor: AtomicBool,
}

#[derive(Default)]
struct Turn {
    /// Threads that drive.
    callers: usize,
    /// When the last of them was done.
    last: Option<Instant>,
    /// Something was submitted while another thread was driving, which may be done before it is sent.
    unsent: bool,
    over: bool,
}

impl Turn {
    /// This thread drives now, perhaps not alone.
    fn begin(&mut self) {
        self.callers += 1;
        if self.callers == 1 {
            // It is sent now.
            self.unsent = false;
        }
    }
}

/// How long the I/O thread stands by: longer while the program drives again and again.
#[derive(Default)]
struct Rest {
    last: Option<Instant>,
    stand_by: Duration,
}

impl Rest {
    fn after(&mut self, last: Option<Instant>, attentive: bool) -> Duration {
        let drove = std::mem::replace(&mut self.last, last) != last;
        self.stand_by = match (attentive, drove) {
            (true, true) => (2 * self.stand_by).clamp(ATTENTIVE, STAND_BY),
            (true, false) => ATTENTIVE,
            (false, _) => STAND_BY,
        };
        self.stand_by
    }
}

/// What the I/O thread does next.
enum Next {
    /// Nobody has dialled yet.
    Dial,
    /// Others drive, or did a moment ago.
    StandBy(Duration),
    /// It waits for the socket.
    Watch,
    End,
}

impl Driver {
    pub(crate) fn new(outbox: Outbox, within: bool) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Mutex::new(Some(Arc::new(runtime))),
            outbox,
            turn: Mutex::new(Turn::default()),
            watched: Arc::default(),
            within,
            bell: Bell::new()?,
            let_go: Notify::new(),
            attentive: AtomicBool::new(within),
            on_executor: AtomicBool::new(false),
        })
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runtime(&self) -> Option<Arc<Runtime>> {
        let runtime = self.runtime.lock();
        runtime.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The I/O thread's life: drives whenever there is something to do and nobody else drives, until
    /// [`finish`](Self::finish). `session` is what there is to do; beside it, and after it to its end, `life`: that of a memory process
    /// within this process.
    pub(crate) fn carry(
        &self,
        session: impl Future<Output = ()> + Send + 'static,
        life: Option<Life>,
    ) {
        let Some(runtime) = self.runtime() else {
            return;
        };
        DRIVING.set(true);
        let life = life.map(|life| runtime.spawn(life));
        drop(runtime.spawn(session));
        let mut rest = Rest::default();
        loop {
            match self.next(&mut rest) {
                Next::Dial => runtime.block_on(async {
                    self.outbox.tell();
                    // Whatever comes first.
                    let _ = tokio::time::timeout(DIALLING, self.let_go.notified()).await;
                }),
                Next::StandBy(rest) => {
                    if self.bell.wait(None, rest) || self.turn().unsent {
                        self.sweep(&runtime);
                    }
                }
                Next::Watch => {
                    self.bell.wait(Some(&self.watched), LOOK);
                    self.sweep(&runtime);
                }
                Next::End => break,
            }
        }
        if let Some(life) = life {
            let _ = runtime.block_on(life);
        }
        let last = self.runtime.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner).take();
        retire(runtime);
        last.into_iter().for_each(retire);
    }

    /// There is no connection yet.
    fn is_dialling(&self) -> bool {
        !self.within && !self.watched.any()
    }

    fn next(&self, rest: &mut Rest) -> Next {
        let turn = self.turn();
        let stand_by = rest.after(turn.last, self.attentive.load(Ordering::Relaxed));
        let rested = turn
            .last
            .map_or(Duration::ZERO, |at| stand_by.saturating_sub(at.elapsed()));
        if turn.over {
            Next::End
        } else if turn.callers > 0 {
            Next::StandBy(stand_by)
        } else if self.is_dialling() {
            Next::Dial
        } else if rested.is_zero() || self.on_executor.load(Ordering::Relaxed) {
            Next::Watch
        } else {
            Next::StandBy(rested)
        }
    }

    /// Objects are delegated to this process: others may ask for them at any time.
    pub(crate) fn be_attentive(&self) {
        self.attentive.store(true, Ordering::Relaxed);
    }

    /// The program waits for a call without blocking: nobody drives meanwhile.
    pub(crate) fn wait_on_executor(&self) {
        if !DRIVING.get() && !self.on_executor.swap(true, Ordering::Relaxed) {
            self.bell.ring();
        }
    }

    /// The session is over.
    pub(crate) fn finish(&self) {
        self.turn().over = true;
        self.bell.ring();
        self.let_go.notify_one();
    }

    /// Something was submitted: sees to it that it is sent, if its submitter will not.
    pub(crate) fn submitted(&self) {
        if !ABOUT_TO_BLOCK.get() {
            self.attend();
        }
    }

    /// Something was submitted that may wait for what this thread does next; it is sent in a moment even so.
    pub(crate) fn submitted_for_soon(&self) {
        let mut turn = self.turn();
        turn.unsent = true;
        if turn.callers > 0 {
            // It may wait for long.
            self.outbox.tell();
        }
    }

    /// Something is to be sent that no thread drives for: sends it.
    pub(crate) fn attend(&self) {
        let mut turn = self.turn();
        if turn.callers > 0 {
            turn.unsent = true;
            self.outbox.tell();
        } else if can_drive() && !self.is_dialling() {
            turn.begin();
            drop(turn);
            let caller = Caller(self);
            self.send();
            drop(caller);
        } else {
            drop(turn);
            self.bell.ring();
        }
    }

    /// Sends what was submitted.
    fn send(&self) {
        let Some(runtime) = self.runtime() else {
            return;
        };
        DRIVING.set(true);
        runtime.block_on(async {
            self.outbox.tell();
            tokio::task::yield_now().await;
        });
        DRIVING.set(false);
        retire(runtime);
    }

    /// This thread waits for something that others are to change, and reads what it has of it again and again: sees to what has
    /// arrived, and lets others have the processor.
    pub(crate) fn look(&self) {
        if can_drive() && !self.is_dialling() {
            if let Some(runtime) = self.runtime() {
                DRIVING.set(true);
                self.sweep(&runtime);
                DRIVING.set(false);
                retire(runtime);
            }
            std::thread::yield_now();
        }
    }

    /// Lets every task that has something to do have its turn, unless somebody drives.
    fn sweep(&self, runtime: &Runtime) {
        {
            let mut turn = self.turn();
            if turn.callers > 0 {
                return self.outbox.tell();
            }
            turn.begin();
        }
        let sweep = || {
            runtime.block_on(async {
                self.outbox.tell();
                // What has arrived is read, then taken, then answered.
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
            });
        };
        sweep();
        self.end(sweep);
    }

    /// Drives until `future` is done; none if this thread cannot.
    pub(crate) fn drive<F: Future>(&self, future: F) -> Option<F::Output> {
        if Handle::try_current().is_ok() {
            return None;
        }
        let runtime = self.runtime()?;
        self.turn().begin();
        if self.is_dialling() {
            self.let_go.notify_one();
        }
        let caller = Caller(self);
        DRIVING.set(true);
        let output = runtime.block_on(async {
            self.outbox.tell();
            spin::awake(future).await
        });
        retire(runtime);
        drop(caller);
        Some(output)
    }

    /// This thread has driven. What was submitted meanwhile is sent by whoever still drives, or by `send`.
    fn end(&self, send: impl Fn()) {
        loop {
            let mut turn = self.turn();
            if turn.callers > 1 || !std::mem::take(&mut turn.unsent) {
                turn.callers -= 1;
                return;
            }
            drop(turn);
            send();
        }
    }
}

/// Whether this thread may drive: within a runtime of the program's, blocking on another is forbidden, and so it is for one
/// that drives.
fn can_drive() -> bool {
    !is_driving() && Handle::try_current().is_err()
}

impl Drop for Driver {
    fn drop(&mut self) {
        let last = self.runtime.get_mut();
        let last = last.unwrap_or_else(PoisonError::into_inner).take();
        last.into_iter().for_each(retire);
    }
}

/// A thread of the program's that drives; has driven when it is dropped, also by a panic.
struct Caller<'a>(&'a Driver);

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        DRIVING.set(false);
        self.0.end(|| self.0.send());
        self.0.turn().last = Some(Instant::now());
        if self.0.on_executor.load(Ordering::Relaxed) || self.0.watched.is_blocked() {
            self.0.bell.ring();
        }
    }
}

/// Gives up a share of the runtime. The last one ends it, in a way that is allowed anywhere.
fn retire(runtime: Arc<Runtime>) {
    if let Some(runtime) = Arc::into_inner(runtime) {
        runtime.shutdown_background();
    }
}

/// What the I/O thread is woken by.
struct Bell {
    rung: AtomicBool,
    reader: PipeReader,
    writer: PipeWriter,
}

impl Bell {
    fn new() -> std::io::Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        Ok(Self {
            rung: AtomicBool::new(false),
            reader,
            writer,
        })
    }

    fn ring(&self) {
        // At most one byte is in the pipe.
        if !self.rung.swap(true, Ordering::AcqRel) {
            // It cannot fail: the reader is here too.
            let _ = (&self.writer).write_all(&[0]);
        }
    }

    /// Waits until it is rung, a socket has something, or has room for what waits, or the time is over. Whether it was rung.
    fn wait(&self, watched: Option<&Watched>, timeout: Duration) -> bool {
        let sockets = watched.map(Watched::sockets).unwrap_or_default();
        let mut fds = vec![PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)];
        fds.extend(sockets.iter().map(|socket| {
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, socket.is_blocked());
            PollFd::new(socket.as_fd(), flags)
        }));
        pause(&mut fds, timeout);
        let rung = fds[0].any() == Some(true);
        if rung {
            // Before it is emptied, so that it is rung at most once too often.
            self.rung.store(false, Ordering::Release);
            let _ = (&self.reader).read(&mut [0]);
        }
        rung
    }
}

/// Waits for one of `fds`.
fn pause(fds: &mut [PollFd<'_>], timeout: Duration) {
    // A signal ends it early, which does no harm.
    let _ = ppoll(fds, Some(timeout.into()), None);
}
