//! Progress of long work, and Ctrl-C: the work is told to stop, so that it leaves nothing half-written behind.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::output;

/// Time between two lines of progress.
const SHOWN_EVERY: Duration = Duration::from_millis(200);
/// Exit status after a second Ctrl-C, as shells have it.
const INTERRUPTED: i32 = 130;

/// What long work reports to.
pub(crate) struct Work {
    started: Instant,
    shown: Instant,
    interrupted: Arc<AtomicBool>,
}

impl Work {
    pub(crate) fn start() -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = interrupted.clone();
        // Not joined: it ends with the process.
        std::thread::spawn(move || watch_for_interrupts(&flag));
        Self {
            started: Instant::now(),
            shown: Instant::now(),
            interrupted,
        }
    }

    /// Shows `text` if it is time; breaks if it was asked to.
    pub(crate) fn at(&mut self, text: impl FnOnce() -> String) -> ControlFlow<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if self.shown.elapsed() >= SHOWN_EVERY {
            self.shown = Instant::now();
            output::progress(&text());
        }
        ControlFlow::Continue(())
    }

    /// How it went, as a phrase.
    pub(crate) fn rate(&self, records: u64) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        let rate = records as f64 / seconds.max(1e-9) / 1e3;
        format!("{seconds:.1} s, {rate:.0} k records/s")
    }

    pub(crate) fn done(&self, text: &str) {
        output::progress("");
        output::note(text);
    }
}

/// The first Ctrl-C asks the work to stop; the second ends it, should it be waiting for input.
fn watch_for_interrupts(flag: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return;
    };
    runtime.block_on(async {
        while tokio::signal::ctrl_c().await.is_ok() {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
        }
    });
}
