//! What some processes lose between barriers, all lose that wait for them: how much shorter the phases would be.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos};

/// Phases kept at most; beyond it every second one is given up, again and again.
const KEPT: usize = 512;

/// How long each process took from one opening of a barrier to its next arrival, of evenly spaced phases. Each is
/// measured on one clock, and the size does not grow with the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Arrivals {
    kept: Vec<Vec<(ApId, Nanos)>>,
    /// One phase in 2^halved is kept.
    halved: u32,
    seen: u64,
}

impl Arrivals {
    /// One phase: how long each process took.
    pub(super) fn add(&mut self, phase: impl Iterator<Item = (ApId, Nanos)>) {
        if self.seen.is_multiple_of(1 << self.halved) {
            if self.kept.len() >= KEPT {
                let mut place = 0;
                self.kept.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.halved += 1;
            }
            if self.seen.is_multiple_of(1 << self.halved) {
                self.kept.push(phase.collect());
            }
        }
        self.seen += 1;
    }

    /// Nanoseconds by which all phases together would be shorter if these processes lost so much less (nanoseconds,
    /// in all phases together and evenly; negative: more). At least 0.
    pub(super) fn shorter(&self, saved: &BTreeMap<ApId, f64>) -> f64 {
        let each = 1.0 / self.seen.max(1) as f64;
        let gained = |phase: &Vec<(ApId, Nanos)>| {
            let longest = |less: &dyn Fn(ApId) -> f64| {
                let times = phase.iter().map(|(ap, time)| time.0 as f64 - less(*ap));
                times.fold(0.0, f64::max)
            };
            longest(&|_| 0.0) - longest(&|ap| saved.get(&ap).copied().unwrap_or(0.0) * each)
        };
        let sum: f64 = self.kept.iter().map(gained).sum();
        (sum * self.seen as f64 / self.kept.len().max(1) as f64).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: ApId = ApId(0);
    const OTHER: ApId = ApId(1);

    fn after(phases: u64) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for _ in 0..phases {
            arrivals.add([(SLOW, Nanos(100)), (OTHER, Nanos(80))].into_iter());
        }
        arrivals
    }

    #[test]
    fn phases_shrink_as_far_as_the_next_process_lets_them() {
        for phases in [1, 3, 512, 513, 5_000] {
            let arrivals = after(phases);
            assert!(arrivals.kept.len() <= KEPT);
            let n = phases as f64;
            let shorter = |saved: &[(ApId, f64)]| {
                let saved = saved.iter().map(|(ap, each)| (*ap, each * n));
                (arrivals.shorter(&saved.collect()) / n).round()
            };
            assert_eq!(shorter(&[(SLOW, 10.0)]), 10.0);
            assert_eq!(shorter(&[(SLOW, 50.0)]), 20.0);
            assert_eq!(shorter(&[(OTHER, 50.0)]), 0.0);
            assert_eq!(shorter(&[(SLOW, 50.0), (OTHER, 10.0)]), 30.0);
            // The one gains less than the other loses.
            assert_eq!(shorter(&[(SLOW, 50.0), (OTHER, -15.0)]), 5.0);
        }
        assert_eq!(Arrivals::default().shorter(&BTreeMap::new()), 0.0);
    }
}
