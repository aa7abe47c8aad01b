//! When something counts as wrong. Defaults are in docs/design/monitoring.md#findings; every value can be set
//! from a file.

use serde::{Deserialize, Serialize};

/// Thresholds of all detectors. Fractions are of 1. *Process time*: length of the window × active application
/// processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// Bottleneck: mean number of application processes waiting for the object (Little: Σ wait / window).
    pub bottleneck_waiting: f64,
    /// Bottleneck in bursts: mean number of application processes waiting for the object while any waits.
    pub bottleneck_queue: f64,
    /// Bottleneck, ping-pong, false sharing, imbalance: time lost, as a fraction of the time of the processes involved.
    pub time_lost: f64,
    /// Ping-pong, false sharing: hand-overs (changes of writer) seen at least.
    pub ping_pong_hand_overs: u64,
    /// Ping-pong: fraction of hand-overs that return to the holder before last.
    pub ping_pong_returns: f64,
    /// Ping-pong: more application processes than this are a crowd, not a ping-pong.
    pub ping_pong_processes: usize,
    /// Ping-pong: fraction of the time between grant and release that is not spent in accesses to the object, at most;
    /// beyond it others wait for the work, not for the object's way.
    pub ping_pong_work: f64,
    /// No sharing, bad group, misplaced owner: accesses seen at least. Policy mismatch: messages. What is seen less
    /// often is how a program starts or ends.
    pub least_accesses: u64,
    /// False sharing: at most this fraction of the reads may be of elements that another process wrote.
    pub false_sharing_reads: f64,
    /// Policy mismatch: fraction of the messages that the other policy would save.
    pub policy_messages: f64,
    /// Bad group, misplaced owner: fraction of the access cost that the better assignment saves.
    pub assignment_gain: f64,
    /// No sharing, and what holds in a part of the run: time lost, as a fraction of process time, below which nothing is said.
    pub negligible_loss: f64,
    /// Bad group, misplaced owner, crowded owner, policy mismatch, whose advice is a change of the cluster file: the same; and
    /// what that change must save of the run by a replay, where there is one.
    pub patch_gain: f64,
    /// The same kinds: time lost, as a fraction of the time of the processes involved, from which on it is told however
    /// many others there are.
    pub their_loss: f64,
    /// Imbalance: (max − mean) / max of the processes' busy time in all phases together.
    pub imbalance: f64,
    /// Imbalance in turns: the same of single phases, summed; more, since chance makes somebody last in each.
    pub imbalance_in_turns: f64,
    /// Imbalance: phases seen at least; one is a start or an end, no distribution of work.
    pub imbalance_phases: u64,
    /// Crowded owner: fraction of the cost of all accesses from other memory processes.
    pub crowded_share: f64,
    /// Crowded owner: fraction of what is saved that one new owner would save, at most; otherwise objects are misplaced.
    pub crowded_target: f64,
    /// Fine-grained access: mean number of accesses in a sequence, at least.
    pub batch_length: f64,
    /// Barrier overhead: openings seen at least.
    pub barrier_openings: u64,
    /// Barrier overhead: fraction of the time of the processes that pass.
    pub barrier_overhead: f64,
    /// Polling: times that processes waited so, at least.
    pub polling_waits: u64,
    /// Slow process: as many times longer than the others it is without a processor, at least.
    pub slow_times: f64,
    /// An efficiency of this or more is good: what is lost is not named.
    pub efficiency: f64,
    /// Findings whose data is less complete than this are withheld.
    pub completeness: f64,
    /// Against a baseline, a finding is worse if it costs more by this fraction of what it cost (and by
    /// `negligible_loss`).
    pub worse: f64,
}

/// A threshold that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidThreshold {
    /// Not between 0 and 1.
    #[error("{key} = {value}: it is a fraction, 0 to 1")]
    NotAFraction {
        /// The threshold.
        key: &'static str,
        /// Its value.
        value: f64,
    },
    /// Less than 0, or not finite.
    #[error("{key} = {value}: it must be 0 or more")]
    Negative {
        /// The threshold.
        key: &'static str,
        /// Its value.
        value: f64,
    },
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            bottleneck_waiting: 1.0,
            bottleneck_queue: 1.5,
            time_lost: 0.05,
            ping_pong_hand_overs: 20,
            ping_pong_returns: 0.5,
            ping_pong_processes: 4,
            ping_pong_work: 0.5,
            least_accesses: 100,
            false_sharing_reads: 0.1,
            policy_messages: 0.25,
            assignment_gain: 0.10,
            negligible_loss: 0.01,
            patch_gain: 0.02,
            their_loss: 0.10,
            imbalance: 0.20,
            imbalance_in_turns: 0.30,
            imbalance_phases: 3,
            crowded_share: 0.5,
            crowded_target: 0.7,
            batch_length: 8.0,
            barrier_openings: 20,
            barrier_overhead: 0.2,
            polling_waits: 5,
            slow_times: 3.0,
            efficiency: 0.8,
            completeness: 0.5,
            worse: 0.25,
        }
    }
}

impl Thresholds {
    /// Whether every value means something.
    ///
    /// # Errors
    /// Names the first that does not, and what it may be.
    pub fn check(&self) -> Result<(), InvalidThreshold> {
        let fractions = [
            ("time_lost", self.time_lost),
            ("ping_pong_returns", self.ping_pong_returns),
            ("ping_pong_work", self.ping_pong_work),
            ("false_sharing_reads", self.false_sharing_reads),
            ("policy_messages", self.policy_messages),
            ("assignment_gain", self.assignment_gain),
            ("negligible_loss", self.negligible_loss),
            ("patch_gain", self.patch_gain),
            ("their_loss", self.their_loss),
            ("imbalance", self.imbalance),
            ("imbalance_in_turns", self.imbalance_in_turns),
            ("crowded_share", self.crowded_share),
            ("crowded_target", self.crowded_target),
            ("barrier_overhead", self.barrier_overhead),
            ("efficiency", self.efficiency),
            ("completeness", self.completeness),
        ];
        for (key, value) in fractions {
            if !(0.0..=1.0).contains(&value) {
                return Err(InvalidThreshold::NotAFraction { key, value });
            }
        }
        for (key, value) in [
            ("bottleneck_waiting", self.bottleneck_waiting),
            ("bottleneck_queue", self.bottleneck_queue),
            ("batch_length", self.batch_length),
            ("slow_times", self.slow_times),
            ("worse", self.worse),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(InvalidThreshold::Negative { key, value });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_make_sense_and_nonsense_is_named() {
        assert_eq!(Thresholds::default().check(), Ok(()));
        let bad = Thresholds {
            imbalance: 20.0,
            ..Thresholds::default()
        };
        assert!(
            bad.check()
                .unwrap_err()
                .to_string()
                .starts_with("imbalance = 20")
        );
        let bad = Thresholds {
            worse: f64::NAN,
            ..Thresholds::default()
        };
        assert!(bad.check().unwrap_err().to_string().starts_with("worse"));
    }
}
