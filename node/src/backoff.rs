//! How long to wait before the next attempt: twice as long after each failure, up to a bound, and never
//! the same for all, so that processes that lost the same peer do not dial it in step.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The bounds of the pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// Longest pause after the first failure.
    pub first: Duration,
    /// Longest pause after any failure.
    pub most: Duration,
}

/// The pauses of one connection.
#[derive(Debug)]
pub struct Backoff {
    pauses: Pauses,
    next: Duration,
    random: StdRng,
}

impl Backoff {
    /// Begins with the shortest pause; `seed` decides how the pauses vary.
    pub fn new(pauses: Pauses, seed: u64) -> Self {
        Self {
            next: pauses.first.min(pauses.most),
            pauses,
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// The pause before the next attempt: between half of what is due and all of it.
    pub fn pause(&mut self) -> Duration {
        let due = self.next;
        self.next = (due * 2).min(self.pauses.most);
        due.mul_f64(self.random.random_range(0.5..=1.0))
    }

    /// A connection held: the next failure is a first one again.
    pub fn reset(&mut self) {
        self.next = self.pauses.first.min(self.pauses.most);
    }

    /// How long a connection has to hold for [`reset`](Self::reset): one that is accepted and broken off
    /// again and again is as bad as one that is refused.
    pub fn proof(&self) -> Duration {
        self.pauses.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES: Pauses = Pauses {
        first: Duration::from_millis(50),
        most: Duration::from_secs(1),
    };

    #[test]
    fn pauses_double_up_to_the_bound_and_vary() {
        let mut backoff = Backoff::new(PAUSES, 7);
        let mut due = PAUSES.first;
        for _ in 0..10 {
            let pause = backoff.pause();
            assert!(due / 2 <= pause && pause <= due, "{pause:?} of {due:?}");
            due = (due * 2).min(PAUSES.most);
        }
        backoff.reset();
        assert!(backoff.pause() <= PAUSES.first);
        let pauses = |seed| {
            let mut b = Backoff::new(PAUSES, seed);
            [b.pause(), b.pause(), b.pause()]
        };
        assert_eq!(pauses(1), pauses(1));
        assert_ne!(pauses(1), pauses(2), "two processes do not dial in step");
    }
}
