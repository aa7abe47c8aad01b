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

/// Nobody waits awake for longer than this.
pub const LIMIT: Duration = Duration::from_micros(100);

/// Environment variable that makes every process sleep at once, if it is `off`. If it is `on`, a process may wait awake also on
/// the only processor that it has, since those that it waits for have others.
pub const ENV_SPIN: &str = "DOSMOS_SPIN";

/// If giving the processor away takes longer, somebody else has used it.
const SHARED: Duration = Duration::from_micros(5);
/// Then nobody waits awake for this time, twice as long if that happens again, and at most for the second: who gives the
/// processor away on a busy machine gets it back late.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(2), Duration::from_secs(1)];

static START: LazyLock<Instant> = LazyLock::new(Instant::now);
/// Until when (nanoseconds since [`START`]) the processor is somebody else's.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);
/// How long it is somebody else's the next time (nanoseconds).
static PAUSE: AtomicU64 = AtomicU64::new(0);

fn now() -> u64 {
    START.elapsed().as_nanos() as u64
}

fn is_allowed() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    let allowed = || match std::env::var_os(ENV_SPIN) {
        Some(v) if v == "off" => false,
        Some(v) if v == "on" => true,
        _ => std::thread::available_parallelism().is_ok_and(|n| n.get() > 1),
    };
    *ALLOWED.get_or_init(allowed) && now() >= NOT_BEFORE.load(Ordering::Relaxed)
}

/// Looks for events once; false if it is better to sleep, since somebody else needs the processor.
async fn look() -> bool {
    let before = now();
    std::thread::yield_now();
    let after = now();
    let [least, most] = BACK_OFF.map(|d| d.as_nanos() as u64);
    let pause = PAUSE.load(Ordering::Relaxed).clamp(least, most);
    if after - before > SHARED.as_nanos() as u64 {
        PAUSE.store(2 * pause, Ordering::Relaxed);
        NOT_BEFORE.store(after + pause, Ordering::Relaxed);
        return false;
    }
    // Nobody else was there: a little more trust with each look.
    PAUSE.store(pause - pause / 8, Ordering::Relaxed);
    // The runtime has nothing else to do: it asks the system for events, without waiting.
    tokio::task::yield_now().await;
    true
}

/// Waits for `future`, at first awake. On a runtime of one thread.
pub async fn awake<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    if is_allowed() {
        let until = now() + LIMIT.as_nanos() as u64;
        while now() < until {
            let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
            if let Poll::Ready(output) = polled {
                return output;
            }
            if !look().await {
                break;
            }
        }
    }
    future.await
}

/// Keeps a runtime of one thread awake for a moment after each event.
#[derive(Debug, Default)]
pub struct Spinner {
    /// Until when (nanoseconds since [`START`]).
    until: AtomicU64,
    spins: AtomicBool,
    begin: Notify,
    /// Time without an event while it was awake, in nanoseconds.
    waited: AtomicU64,
}

impl Spinner {
    /// Something happened: more is likely.
    pub fn event(&self) {
        if !is_allowed() {
            return;
        }
        let until = now() + LIMIT.as_nanos() as u64;
        self.until.store(until, Ordering::Relaxed);
        if !self.spins.load(Ordering::Relaxed) {
            self.begin.notify_one();
        }
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
            let mut until = self.until.load(Ordering::Relaxed);
            let mut before = now();
            while before < until && look().await {
                let (next, after) = (self.until.load(Ordering::Relaxed), now());
                // Otherwise an event was taken care of meanwhile.
                if next == until {
                    self.waited.fetch_add(after - before, Ordering::Relaxed);
                }
                (until, before) = (next, after);
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
