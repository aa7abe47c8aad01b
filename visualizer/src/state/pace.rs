//! How the rates of processes went recently, as sparklines show it.

use std::collections::{BTreeMap, VecDeque};

use dosmos_proto::{ApId, MpId};

/// Rates kept of each process.
const KEPT: usize = 40;

/// A process whose rate is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paced {
    /// A memory process, with all accesses of its application processes.
    Mp(MpId),
    /// An application process.
    Ap(ApId),
}

/// Rates of accesses per second, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Paces {
    of: BTreeMap<Paced, VecDeque<f64>>,
}

impl Paces {
    /// Takes the rate of a process now.
    pub(super) fn take(&mut self, process: Paced, rate: f64) {
        let rates = self.of.entry(process).or_default();
        rates.push_back(rate);
        while rates.len() > KEPT {
            rates.pop_front();
        }
    }

    /// The rates of some processes together, the oldest first.
    pub fn sum(&self, processes: impl IntoIterator<Item = Paced>) -> Vec<f64> {
        let mut sum: Vec<f64> = Vec::new();
        for rates in processes.into_iter().filter_map(|p| self.of.get(&p)) {
            // Aligned at the newest.
            let missing = rates.len().saturating_sub(sum.len());
            sum.splice(0..0, std::iter::repeat_n(0.0, missing));
            let from = sum.len() - rates.len();
            for (sum, rate) in sum[from..].iter_mut().zip(rates) {
                *sum += rate;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_added_from_the_newest_on() {
        let mut paces = Paces::default();
        let (a, b) = (Paced::Ap(ApId(0)), Paced::Ap(ApId(1)));
        for rate in [1.0, 2.0, 3.0] {
            paces.take(a, rate);
        }
        paces.take(b, 10.0);
        assert_eq!(paces.sum([a, b]), [1.0, 2.0, 13.0]);
        assert_eq!(paces.sum([b, a]), [1.0, 2.0, 13.0]);
        assert!(paces.sum([Paced::Mp(MpId(0))]).is_empty());
        (0..100).for_each(|_| paces.take(a, 0.0));
        assert_eq!(paces.sum([a]).len(), KEPT);
    }
}
