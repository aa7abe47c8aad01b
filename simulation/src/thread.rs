//! Programs with the real library, each on a thread of its own, of which one at a time runs, when the scheduler says so.
//!
//! A program runs until it waits: for a reply ([`Host::wait`], called by the library) or for time to pass
//! ([`Seat::pause`]). So a run does not depend on how the system schedules threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use dosmos_proto::Nanos;
use dsm_lib::hosted::{Host, Line};

/// What a program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A reply.
    Reply,
    /// This much time.
    Time(u64),
    /// Nothing: it is over.
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Scheduler,
    Program,
}

struct Table {
    turn: Turn,
    wish: Wish,
    line: Option<Line>,
    /// Words of a panic of the program.
    panic: Option<String>,
}

/// Where a program and the scheduler meet.
pub(crate) struct Seat {
    table: Mutex<Table>,
    changed: Condvar,
    /// The program's clock, and true time.
    now: AtomicU64,
    true_time: AtomicU64,
    dead: AtomicBool,
}

impl Seat {
    fn new() -> Self {
        let table = Table {
            turn: Turn::Scheduler,
            wish: Wish::Time(0),
            line: None,
            panic: None,
        };
        Self {
            table: Mutex::new(table),
            changed: Condvar::new(),
            now: AtomicU64::new(0),
            true_time: AtomicU64::new(0),
            dead: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for(&self, turn: Turn) -> MutexGuard<'_, Table> {
        let table = self.changed.wait_while(self.lock(), |t| t.turn != turn);
        table.unwrap_or_else(PoisonError::into_inner)
    }

    /// The program's side: gives the turn up until the scheduler gives it back.
    fn give_up(&self, wish: Wish) {
        if self.is_dead() {
            return;
        }
        {
            let mut table = self.lock();
            table.wish = wish;
            table.turn = Turn::Scheduler;
        }
        self.changed.notify_one();
        drop(self.wait_for(Turn::Program));
    }

    /// Lets time pass.
    pub(crate) fn pause(&self, time: u64) {
        self.give_up(Wish::Time(time));
    }

    /// A session begins.
    pub(crate) fn carry(&self, line: Line) {
        if self.is_dead() {
            line.lose("the process was killed");
        }
        self.lock().line = Some(line);
    }

    /// The process was killed: what its program does now does not count.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// True time.
    pub(crate) fn true_time(&self) -> u64 {
        self.true_time.load(Ordering::Relaxed)
    }
}

impl Host for Seat {
    fn now(&self) -> Nanos {
        Nanos(self.now.load(Ordering::Relaxed))
    }

    fn wait(&self) {
        self.give_up(Wish::Reply);
    }
}

/// The scheduler's side of a program.
pub(crate) struct Thread {
    seat: Arc<Seat>,
    handle: Option<JoinHandle<()>>,
    wish: Wish,
}

impl Thread {
    /// A program that has not begun.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub(crate) fn new(
        name: &str,
        program: impl FnOnce(Arc<Seat>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let seat = Arc::new(Seat::new());
        let its = Arc::clone(&seat);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(1 << 20);
        let handle = thread.spawn(move || {
            drop(its.wait_for(Turn::Program));
            let ended = catch_unwind(AssertUnwindSafe(|| program(Arc::clone(&its))));
            let words = ended.err().map(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                text.unwrap_or_default()
            });
            let mut table = its.lock();
            table.panic = words;
            table.wish = Wish::Nothing;
            table.turn = Turn::Scheduler;
            drop(table);
            its.changed.notify_one();
        })?;
        Ok(Self {
            seat,
            handle: Some(handle),
            wish: Wish::Time(0),
        })
    }

    /// Lets the program run until it waits. What it waits for then, or the words of its panic.
    pub(crate) fn run(&mut self, now: Nanos, true_time: u64) -> Result<Wish, String> {
        self.seat.now.store(now.0, Ordering::Relaxed);
        self.seat.true_time.store(true_time, Ordering::Relaxed);
        self.seat.lock().turn = Turn::Program;
        self.seat.changed.notify_one();
        let mut table = self.seat.wait_for(Turn::Scheduler);
        self.wish = table.wish;
        table.panic.take().map_or(Ok(self.wish), Err)
    }

    /// What it waits for.
    pub(crate) fn wish(&self) -> Wish {
        self.wish
    }

    /// Works on its session, if it has begun one.
    pub(crate) fn on_line<R>(&self, now: Nanos, work: impl FnOnce(&mut Line) -> R) -> Option<R> {
        self.seat.now.store(now.0, Ordering::Relaxed);
        let mut line = self.seat.lock().line.take()?;
        let result = work(&mut line);
        self.seat.lock().line = Some(line);
        Some(result)
    }

    /// Its session, if it has begun one, is over: whoever wants another begins it.
    pub(crate) fn lose_line(&self, now: Nanos, why: &str) {
        self.seat.now.store(now.0, Ordering::Relaxed);
        let line = self.seat.lock().line.take();
        line.inspect(|line| line.lose(why));
    }

    /// The process is killed: the program runs to its end without effect.
    pub(crate) fn kill(&mut self) {
        self.seat.dead.store(true, Ordering::Relaxed);
        let now = Nanos(self.seat.now.load(Ordering::Relaxed));
        self.lose_line(now, "the process was killed");
        while self.wish != Wish::Nothing {
            // What a killed process would have panicked of does not matter.
            let _ = self.run(now, self.seat.true_time());
        }
        self.join();
    }

    fn join(&mut self) {
        if let Some(handle) = self.handle.take() {
            // Panics are caught in it.
            let _ = handle.join();
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.wish == Wish::Nothing {
            self.seat.lock().line = None;
            self.join();
        } else {
            self.kill();
        }
    }
}
