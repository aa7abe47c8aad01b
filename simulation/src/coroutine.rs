//! Programs with the real library, each on a stack of its own, of which one at a time runs, when the scheduler says so.
//!
//! A program runs until it waits: for a reply ([`Host::wait`], called by the library) or for time to pass
//! ([`Seat::pause`]). All programs of a run are on the thread of its scheduler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dosmos_proto::Nanos;
use dsm_lib::hosted::{Host, Line};
use generator::{Generator, Gn};

/// Size of the stack of a program, in words.
const STACK: usize = (1 << 20) / size_of::<usize>();

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

/// What a program waits for when it has run, or the words of its panic.
type Step = Result<Wish, String>;

/// Where a program and the scheduler meet.
#[derive(Default)]
pub(crate) struct Seat {
    line: Mutex<Option<Line>>,
    /// The program's clock, and true time.
    now: AtomicU64,
    true_time: AtomicU64,
    dead: AtomicBool,
}

impl Seat {
    fn line(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program's side: the scheduler goes on, until it runs this program again.
    fn give_up(&self, wish: Wish) {
        if !self.is_dead() {
            #[expect(deprecated, reason = "a scope cannot be handed through the library")]
            generator::yield_with(Step::Ok(wish));
        }
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
        *self.line() = Some(line);
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
pub(crate) struct Coroutine {
    seat: Arc<Seat>,
    program: Generator<'static, (), Step>,
    wish: Wish,
}

impl Coroutine {
    /// A program that has not begun.
    pub(crate) fn new(program: impl FnOnce(Arc<Seat>) + Send + 'static) -> Self {
        let seat = Arc::new(Seat::default());
        let its = Arc::clone(&seat);
        let program = Gn::new_opt(STACK, move || {
            let ended = catch_unwind(AssertUnwindSafe(|| program(its)));
            ended.map(|()| Wish::Nothing).map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                text.unwrap_or_default()
            })
        });
        Self {
            seat,
            program,
            wish: Wish::Time(0),
        }
    }

    /// Lets the program run until it waits.
    pub(crate) fn run(&mut self, now: Nanos, true_time: u64) -> Step {
        self.seat.now.store(now.0, Ordering::Relaxed);
        self.seat.true_time.store(true_time, Ordering::Relaxed);
        let step = self.program.resume().unwrap_or(Ok(Wish::Nothing));
        self.wish = *step.as_ref().unwrap_or(&Wish::Nothing);
        step
    }

    /// What it waits for.
    pub(crate) fn wish(&self) -> Wish {
        self.wish
    }

    /// Works on its session, if it has begun one.
    pub(crate) fn on_line<R>(&self, now: Nanos, work: impl FnOnce(&mut Line) -> R) -> Option<R> {
        self.seat.now.store(now.0, Ordering::Relaxed);
        let mut line = self.seat.line().take()?;
        let result = work(&mut line);
        *self.seat.line() = Some(line);
        Some(result)
    }

    /// Its session, if it has begun one, is over: whoever wants another begins it.
    pub(crate) fn lose_line(&self, now: Nanos, why: &str) {
        self.seat.now.store(now.0, Ordering::Relaxed);
        let line = self.seat.line().take();
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
    }
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        if self.wish == Wish::Nothing {
            *self.seat.line() = None;
        } else {
            self.kill();
        }
    }
}
