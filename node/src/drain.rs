//! Waiting for work to finish, bounded by a grace period.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, timeout};

/// How often a condition that nothing announces is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Waits until `done` holds, at most `grace`. Whether it came to hold.
pub async fn until(grace: Duration, mut done: impl FnMut() -> bool) -> bool {
    let finished = async {
        let mut look = interval(LOOK_AGAIN);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !done() {
            look.tick().await;
        }
    };
    timeout(grace, finished).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ends_when_done_or_when_the_grace_is_over() {
        let mut looks = 0;
        let third = || {
            looks += 1;
            looks == 3
        };
        assert!(until(Duration::from_secs(1), third).await);
        assert!(!until(Duration::from_secs(1), || false).await);
    }
}
