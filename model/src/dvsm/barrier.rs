//! A barrier: last arrival, merging of write notices, releases, work after it.

use serde::{Deserialize, Serialize};

use super::costs::Costs;
use crate::error::{ModelError, finite_result, non_negative};

/// A barrier as measured; sizes in bytes, times in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// Bytes of an arrival message.
    pub arrive_bytes: f64,
    /// Bytes of a release message.
    pub release_bytes: f64,
    /// Extra system call time of the last arrival.
    #[serde(default)]
    pub extra_arrive: f64,
    /// Extra system call time of one release.
    #[serde(default)]
    pub extra_release: f64,
    /// Merging of write notices.
    #[serde(default)]
    pub merge: f64,
    /// Work after the barrier, by processor; its mean counts.
    #[serde(default)]
    pub post: Vec<f64>,
    /// Signal delivery at the manager.
    #[serde(default = "default_signal")]
    pub signal: f64,
}

fn default_signal() -> f64 {
    40.0
}

/// Cost of a barrier, the same for every processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BarrierCost {
    /// (1) 2 soft(up) + extra + wire(up) + latency(1) + signal.
    pub arrive: f64,
    /// (2) Merging of write notices.
    pub merge: f64,
    /// (3) (P−1)(soft(down) + extra) + wire(down) + latency(1) + soft(down).
    pub release: f64,
    /// (4) Mean work after the barrier.
    pub post: f64,
    /// The sum.
    pub total: f64,
}

impl Barrier {
    /// Checks every field; `at` is put before their names.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the field.
    pub fn validate(&self, at: &str) -> Result<(), ModelError> {
        for (name, value) in [
            ("arrive_bytes", self.arrive_bytes),
            ("release_bytes", self.release_bytes),
            ("extra_arrive", self.extra_arrive),
            ("extra_release", self.extra_release),
            ("merge", self.merge),
            ("signal", self.signal),
        ] {
            non_negative(&format!("{at}{name}"), value)?;
        }
        for (i, &value) in self.post.iter().enumerate() {
            non_negative(&format!("{at}post[{i}]"), value)?;
        }
        Ok(())
    }

    /// Cost among `procs` processors. The paper does not spell out (1) and (3); the formulas are
    /// this project's. A barrier of one processor costs nothing.
    ///
    /// # Errors
    /// As [`Barrier::validate`].
    pub fn cost(&self, procs: usize, costs: &Costs) -> Result<BarrierCost, ModelError> {
        self.validate("")?;
        let cost = self.checked_cost(procs, costs);
        finite_result("total", cost.total)?;
        Ok(cost)
    }

    pub(super) fn checked_cost(&self, procs: usize, costs: &Costs) -> BarrierCost {
        if procs < 2 {
            return BarrierCost {
                arrive: 0.0,
                merge: 0.0,
                release: 0.0,
                post: 0.0,
                total: 0.0,
            };
        }
        let (up, down) = (self.arrive_bytes, self.release_bytes);
        let arrive = 2.0 * costs.soft(up)
            + costs.extra(self.extra_arrive)
            + costs.wire(up)
            + costs.latency(1.0)
            + costs.signal(self.signal);
        let release = (procs - 1) as f64 * (costs.soft(down) + costs.extra(self.extra_release))
            + costs.wire(down)
            + costs.latency(1.0)
            + costs.soft(down);
        let merge = costs.dsm(self.merge);
        let mean_post = self.post.iter().sum::<f64>() / self.post.len().max(1) as f64;
        let post = costs.dsm(mean_post);
        BarrierCost {
            arrive,
            merge,
            release,
            post,
            total: arrive + merge + release + post,
        }
    }
}
