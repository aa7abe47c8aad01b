//! Waiting a moment before sleeping. Who waits for a message of another process, and sleeps at once, is woken when it
//! comes; that takes 30 to 40 µs where processors sleep too, longer than most requests are served in. So a thread
//! looks for events again and again for [`LIMIT`] before it sleeps; but only where nobody else needs the processor, which it sees by what
//! it takes to give it away.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Nobody waits awake for longer than this, but who is [waited for](Spinner::waited_for).
pub const LIMIT: Duration = Duration::from_micros(100);

/// Nor one that is waited for for longer than this: who shares its processor needs nothing else meanwhile.
pub const WAITED_FOR_LIMIT: Duration = Duration::from_micros(300);

/// Environment variable that makes every process sleep at once, if it is `off`. If it is `on`, a process may wait awake also on
/// the only processor that it has, since those that it waits for have others.
pub const ENV_SPIN: &str = "DOSMOS_SPIN";

/// If giving the processor away takes longer, somebody else has used it.
const SHARED: Duration = Duration::from_micros(5);
/// The same for who is [waited for](Spinner::waited_for): whoever begins to wait needs it for so long.
const SHARED_WAITED_FOR: Duration = Duration::from_micros(30);
/// If it takes less, nobody has: to ask the system takes a part of this, to run another process more.
const SWITCHED: Duration = Duration::from_micros(2);
/// If somebody else has used it, nobody waits awake for this time, twice as long if that happens again, and at most for the second: who gives the
/// processor away on a busy machine gets it back late.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(2), Duration::from_secs(1)];

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn now() -> u64 {
    START.elapsed().as_nanos() as u64
}

/// What is known of the processor: whether somebody else uses it.
#[derive(Debug)]
struct Processor {
    /// If giving it away takes longer, somebody else has used it.
    shared: Duration,
    /// Until when (nanoseconds since [`START`]) it is somebody else's.
    not_before: AtomicU64,
    /// How long it is somebody else's the next time (nanoseconds).
    pause: AtomicU64,
}

/// Usually, and while this process is [waited for](Spinner::waited_for).
static USUALLY: Processor = Processor::new(SHARED);
static WAITED_FOR: Processor = Processor::new(SHARED_WAITED_FOR);

impl Processor {
    const fn new(shared: Duration) -> Self {
        Self {
            shared,
            not_before: AtomicU64::new(0),
            pause: AtomicU64::new(0),
        }
    }

    fn is_free(&self) -> bool {
        is_allowed() && now() >= self.not_before.load(Ordering::Relaxed)
    }

    /// Looks for events once; for how long (nanoseconds) the processor was away. None if it is better to sleep, since somebody else
    /// needs it.
    async fn look(&self) -> Option<u64> {
        let before = now();
        std::thread::yield_now();
        let after = now();
        let [least, most] = BACK_OFF.map(|d| d.as_nanos() as u64);
        let pause = self.pause.load(Ordering::Relaxed).clamp(least, most);
        if after - before > self.shared.as_nanos() as u64 {
            self.pause.store(2 * pause, Ordering::Relaxed);
            self.not_before.store(after + pause, Ordering::Relaxed);
            return None;
        }
        // Nobody else was there: a little more trust with each look.
        self.pause.store(pause - pause / 8, Ordering::Relaxed);
        // The runtime has nothing else to do: it asks the system for events, without waiting.
        tokio::task::yield_now().await;
        let away = after - before;
        Some(if away > SWITCHED.as_nanos() as u64 {
            away
        } else {
            0
        })
    }
}

fn is_allowed() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    let allowed = || match std::env::var_os(ENV_SPIN) {
        Some(v) if v == "off" => false,
        Some(v) if v == "on" => true,
        _ => std::thread::available_parallelism().is_ok_and(|n| n.get() > 1),
    };
    *ALLOWED.get_or_init(allowed)
}

/// Waits for `future`, at first awake. On a runtime of one thread.
pub async fn awake<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    if USUALLY.is_free() {
        let until = now() + LIMIT.as_nanos() as u64;
        while now() < until {
            let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
            if let Poll::Ready(output) = polled {
                return output;
            }
            if USUALLY.look().await.is_none() {
                break;
            }
        }
    }
    future.await
}

/// Keeps a runtime of one thread awake for a moment after each event.
#[derive(Debug, Default)]
pub struct Spinner {
    /// When the last event was (nanoseconds since [`START`]).
    last: AtomicU64,
    /// Whoever shares the processor waits for this process.
    waited_for: AtomicBool,
    spins: AtomicBool,
    begin: Notify,
    /// Time without an event while it was awake, in nanoseconds.
    waited: AtomicU64,
}

impl Spinner {
    /// Something happened: more is likely.
    pub fn event(&self) {
        self.last.store(now(), Ordering::Relaxed);
        self.begin();
    }

    /// Says whether all for whom this process works wait for it, as far as it knows: then those with whom it shares a processor need
    /// none. So what it is given away for while they compute does not count, and it waits awake for longer.
    pub fn waited_for(&self, by_all: bool) {
        if self.waited_for.swap(by_all, Ordering::Relaxed) != by_all && by_all {
            self.begin();
        }
    }

    fn begin(&self) {
        if self.processor().is_free() && !self.spins.load(Ordering::Relaxed) {
            self.begin.notify_one();
        }
    }

    fn processor(&self) -> &'static Processor {
        match self.waited_for.load(Ordering::Relaxed) {
            true => &WAITED_FOR,
            false => &USUALLY,
        }
    }

    /// Until when it waits awake.
    fn until(&self) -> u64 {
        let limit = match self.waited_for.load(Ordering::Relaxed) {
            true => WAITED_FOR_LIMIT,
            false => LIMIT,
        };
        self.last.load(Ordering::Relaxed) + limit.as_nanos() as u64
    }

    /// How long it has kept the runtime awake without an event: processor time that nobody else needed.
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    /// Keeps the runtime awake after events, for ever.
    pub async fn run(&self) {
        loop {
            self.begin.notified().await;
            self.spins.store(true, Ordering::Relaxed);
            let mut last = self.last.load(Ordering::Relaxed);
            let mut before = now();
            while before < self.until() {
                let processor = self.processor();
                if !processor.is_free() {
                    break;
                }
                let Some(away) = processor.look().await else {
                    break;
                };
                let (next, after) = (self.last.load(Ordering::Relaxed), now());
                // Otherwise an event was taken care of meanwhile.
                if next == last {
                    let waited = (after - before).saturating_sub(away);
                    self.waited.fetch_add(waited, Ordering::Relaxed);
                }
                (last, before) = (next, after);
            }
            self.spins.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    }

    #[test]
    fn what_is_waited_for_awake_is_what_would_be_waited_for() {
        runtime().block_on(async {
            assert_eq!(awake(async { 1 }).await, 1);
            let (sender, receiver) = tokio::sync::oneshot::channel();
            tokio::spawn(async move {
                tokio::time::sleep(5 * LIMIT).await;
                sender.send(2).unwrap();
            });
            assert_eq!(awake(receiver).await.unwrap(), 2);
        });
    }

    #[test]
    fn who_is_waited_for_does_not_mind_what_was_taken_of_its_processor_before() {
        let spinner = Spinner::default();
        spinner.event();
        assert!(std::ptr::eq(spinner.processor(), &USUALLY));
        let usually = spinner.until();
        spinner.waited_for(true);
        assert!(std::ptr::eq(spinner.processor(), &WAITED_FOR));
        assert!(spinner.until() > usually);
        spinner.waited_for(false);
        assert!(std::ptr::eq(spinner.processor(), &USUALLY));
        assert_eq!(spinner.until(), usually);
    }

    #[test]
    fn a_spinner_lets_other_tasks_run_and_ends() {
        runtime().block_on(async {
            let spinner = Arc::new(Spinner::default());
            let spinning = Arc::clone(&spinner);
            let task = tokio::spawn(async move { spinning.run().await });
            for _ in 0..3 {
                spinner.event();
                tokio::task::yield_now().await;
                tokio::time::sleep(LIMIT / 4).await;
            }
            tokio::time::sleep(4 * LIMIT).await;
            while spinner.spins.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            task.abort();
        });
    }
}
