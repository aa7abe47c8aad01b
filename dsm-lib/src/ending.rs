//! SIGTERM, by which dosmos and launchers end programs, where the memory process is within the program: it hands its records over
//! before the program ends of the signal. A second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use signal_hook::{consts::SIGTERM, flag, low_level};

/// How often it looks whether the program was asked to end.
const LOOK: Duration = Duration::from_millis(5);

/// As long as this is there, SIGTERM ends nothing by itself.
pub(crate) struct Ending {
    asked: Arc<AtomicBool>,
    /// The signal ends the program, as always.
    at_once: Arc<AtomicBool>,
}

impl Ending {
    pub(crate) fn listen() -> Self {
        let ending = Self {
            asked: Arc::default(),
            at_once: Arc::default(),
        };
        let default = flag::register_conditional_default(SIGTERM, Arc::clone(&ending.at_once));
        let asked = default.and_then(|_| flag::register(SIGTERM, Arc::clone(&ending.asked)));
        if let Err(error) = asked {
            tracing::warn!("the last records are lost if SIGTERM ends this program: {error}");
        }
        ending
    }

    /// Completes when the program was asked to end.
    pub(crate) async fn asked(&self) {
        while !self.asked.load(Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
        self.at_once.store(true, Relaxed);
    }
}

impl Drop for Ending {
    /// The memory process has ended: so does the program, if it was asked to.
    fn drop(&mut self) {
        self.at_once.store(true, Relaxed);
        if self.asked.load(Relaxed) {
            // It cannot fail for this signal.
            let _ = low_level::emulate_default_handler(SIGTERM);
        }
    }
}
