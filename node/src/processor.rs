//! Processor time.

use dosmos_proto::Nanos;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

/// Processor time that all threads of this process have used; zero on a system that does not tell.
pub fn process_time() -> Nanos {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return Nanos::ZERO;
    };
    let micros = |t: nix::sys::time::TimeVal| {
        u64::try_from(t.tv_sec() * 1_000_000 + t.tv_usec()).unwrap_or(0)
    };
    Nanos(1_000 * (micros(usage.user_time()) + micros(usage.system_time())))
}

/// Processor time that this thread has used; zero on a system that does not tell.
pub fn thread_time() -> Nanos {
    let Ok(now) = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID) else {
        return Nanos::ZERO;
    };
    let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec()).unwrap_or(0);
    Nanos(seconds * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_uses_processor_time() {
        let (process, thread) = (process_time(), thread_time());
        let mut n = 1u64;
        // Until both have moved: how fast the machine is does not matter.
        while process_time() <= process || thread_time() <= thread {
            n = std::hint::black_box(n.wrapping_mul(6_364_136_223_846_793_005) + 1);
        }
        assert_ne!(n, 0);
    }
}
