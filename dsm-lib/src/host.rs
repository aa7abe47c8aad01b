//! What stands for the threads and the clock of a session that is simulated.

use dosmos_proto::Nanos;

/// Carries a session in place of threads, a socket and a clock.
pub trait Host: Send + Sync {
    /// The time, by the clock of this process.
    fn now(&self) -> Nanos;
    /// Returns when the session may have changed.
    fn wait(&self);
}
