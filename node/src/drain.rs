//! Waiting for work to finish, bounded by a grace period, or for as long as it makes progress.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

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

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work<P> {
    /// All is done.
    Done,
    /// Something is left; the value changes whenever some of it is done.
    Left(P),
    /// Something is left that nobody will do.
    Hopeless,
}

/// How waiting for work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// All was done.
    All,
    /// Nothing of it was done for as long as was allowed.
    Stalled,
    /// Nobody will do the rest.
    Hopeless,
}

/// Waits until the work is done, however long it takes, as long as some of it is done within each `stall`.
pub async fn while_progress<P: PartialEq>(
    stall: Duration,
    mut look: impl FnMut() -> Work<P>,
) -> Drained {
    let mut again = interval(LOOK_AGAIN);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last: Option<(P, Instant)> = None;
    loop {
        again.tick().await;
        match (look(), &last) {
            (Work::Done, _) => return Drained::All,
            (Work::Hopeless, _) => return Drained::Hopeless,
            (Work::Left(now), Some((before, since))) if now == *before => {
                if since.elapsed() >= stall {
                    return Drained::Stalled;
                }
            }
            (Work::Left(now), _) => last = Some((now, Instant::now())),
        }
    }
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

    #[tokio::test(start_paused = true)]
    async fn work_is_waited_for_as_long_as_it_goes_on() {
        let stall = Duration::from_secs(8);
        let begun = Instant::now();
        // A part in six seconds: all of it takes much longer than the longest stall allowed.
        let slow = || match begun.elapsed().as_secs() / 6 {
            20 => Work::Done,
            part => Work::Left(part),
        };
        assert_eq!(while_progress(stall, slow).await, Drained::All);
        assert_eq!(begun.elapsed().as_secs(), 120, "simulated time");
        // A part, and then nothing more.
        let begun = Instant::now();
        let stops = || Work::Left(begun.elapsed() > Duration::from_secs(1));
        assert_eq!(while_progress(stall, stops).await, Drained::Stalled);
        assert_eq!(begun.elapsed().as_secs(), 9, "simulated time");
        let hopeless = || Work::<()>::Hopeless;
        assert_eq!(while_progress(stall, hopeless).await, Drained::Hopeless);
    }
}
