//! What accesses cost, as measured in the run, and what they would cost from elsewhere.

use dosmos_proto::CopyPolicy;
use dosmos_trace::meta::OpCounts;
use dosmos_trace::record::Origin;

use super::MpUse;

/// Mean cost of one access by origin, in nanoseconds, waiting for locks and copies excluded.
///
/// Operations are not told apart: what an access costs is its way, and on a busy machine means of few accesses
/// of one operation say more about the moment than about the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    sums: [(u64, u64); 3], // (time, count) by origin
}

/// What an inter-group access is assumed to cost, as a multiple of an intra-group one, and that of a
/// local one, where the run has no access to measure it by. One more process on the way each.
const FARTHER: f64 = 2.0;

impl Costs {
    /// `n` accesses that together took `nanos`.
    pub(super) fn add(&mut self, origin: Origin, nanos: u64, n: u64) {
        let slot = &mut self.sums[origin as usize - 1];
        slot.0 += nanos;
        slot.1 += n;
    }

    /// Mean cost of an access from `origin`, never less than from nearer. Where none was seen: that of the
    /// nearest origin seen, a factor of two a step; 1 if nothing was seen.
    pub fn mean(&self, origin: Origin) -> f64 {
        let at = origin as usize - 1;
        let seen = |o: usize| {
            let (time, count) = self.sums[o];
            (count > 0).then(|| time as f64 / count as f64)
        };
        let nearer = (0..=at).filter_map(seen).reduce(f64::max);
        match (seen(at), nearer) {
            (Some(_), Some(cost)) => cost,
            (_, Some(cost)) => {
                let nearest = (0..at).rev().find(|&o| seen(o).is_some()).unwrap_or(at);
                cost * FARTHER.powi((at - nearest) as i32)
            }
            (_, None) => (at + 1..3)
                .find_map(|o| Some(seen(o)? / FARTHER.powi((o - at) as i32)))
                .unwrap_or(1.0),
        }
    }

    /// Cost of these operations, each from `origin`, in nanoseconds.
    pub fn of(&self, counts: &OpCounts, origin: Origin) -> f64 {
        counts.total() as f64 * self.mean(origin)
    }

    /// Cost of these operations from an owner in the same group, where of the reads only the fraction `fetching`
    /// goes to the owner and the rest is served from a copy.
    pub fn with_copies(&self, counts: &OpCounts, fetching: f64) -> f64 {
        let copied = counts.reads as f64 * (1.0 - fetching);
        (counts.total() as f64 - copied) * self.mean(Origin::Intra)
            + copied * self.mean(Origin::Local)
    }
}

impl MpUse {
    /// All accesses that a memory process served, by operation.
    pub fn counts(&self) -> OpCounts {
        let mut counts = self.fetched;
        counts.reads += self.optimized;
        counts
    }

    /// Fraction of the reads that would go to an owner in the same group: one per version under *invalidate*,
    /// one in all under *update*.
    pub fn fetching(&self, policy: CopyPolicy) -> f64 {
        let fetches = match policy {
            CopyPolicy::Invalidate => self.versions_read + self.refetched,
            CopyPolicy::Update => 1 + self.refetched,
        };
        let reads = self.fetched.reads + self.optimized;
        (fetches as f64 / reads.max(1) as f64).min(1.0)
    }

    /// What its accesses would cost if the owner were at `origin`, in nanoseconds.
    pub fn cost(&self, costs: &Costs, origin: Origin, policy: CopyPolicy) -> f64 {
        match origin {
            Origin::Intra => costs.with_copies(&self.counts(), self.fetching(policy)),
            origin => costs.of(&self.counts(), origin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_is_taken_from_the_nearest_and_farther_never_costs_less() {
        let mut costs = Costs::default();
        assert_eq!(costs.mean(Origin::Inter), 1.0);
        costs.add(Origin::Inter, 400, 1);
        assert_eq!(costs.mean(Origin::Local), 100.0);
        costs.add(Origin::Local, 10, 1);
        assert_eq!(costs.mean(Origin::Intra), 20.0);
        costs.add(Origin::Intra, 600, 1);
        assert_eq!(costs.mean(Origin::Inter), 600.0);
        let mut near = Costs::default();
        near.add(Origin::Local, 10, 1);
        assert_eq!(near.mean(Origin::Inter), 40.0);
    }

    #[test]
    fn reads_in_the_group_go_to_the_owner_once_a_version() {
        let mut costs = Costs::default();
        costs.add(Origin::Intra, 100, 1);
        costs.add(Origin::Local, 10, 1);
        let mut used = MpUse::default();
        used.fetched.reads = 10;
        used.versions_read = 2;
        let cost = |policy| used.cost(&costs, Origin::Intra, policy).round();
        assert_eq!(cost(CopyPolicy::Invalidate), 2.0 * 100.0 + 8.0 * 10.0);
        assert_eq!(cost(CopyPolicy::Update), 100.0 + 9.0 * 10.0);
    }
}
