//! When something counts as wrong. Defaults are those of the design (§9); every value can be set from
//! a file.

use serde::{Deserialize, Serialize};

/// Thresholds of all detectors. Fractions are of 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// Bottleneck: mean number of application processes waiting for the object (Little: Σ wait / window).
    pub bottleneck_waiting: f64,
    /// Bottleneck, ping-pong, false sharing: time lost, as a fraction of process time.
    pub time_lost: f64,
    /// Ping-pong: hand-overs seen at least.
    pub ping_pong_hand_overs: u64,
    /// Ping-pong: fraction of hand-overs that return to the holder before last.
    pub ping_pong_returns: f64,
    /// Ping-pong: more application processes than this are a crowd, not a ping-pong.
    pub ping_pong_processes: usize,
    /// No sharing: accesses seen at least.
    pub no_sharing_accesses: u64,
    /// Policy mismatch: fraction of the messages that the other policy would save.
    pub policy_messages: f64,
    /// Bad group, misplaced owner: fraction of the access cost that the better assignment saves.
    pub assignment_gain: f64,
    /// Bad group, misplaced owner, policy mismatch, no sharing: time lost below which nothing is said.
    pub worth_saying: f64,
    /// Imbalance: (max − mean) / max of busy time.
    pub imbalance: f64,
    /// Findings whose data is less complete than this are withheld.
    pub completeness: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            bottleneck_waiting: 1.0,
            time_lost: 0.05,
            ping_pong_hand_overs: 20,
            ping_pong_returns: 0.5,
            ping_pong_processes: 4,
            no_sharing_accesses: 100,
            policy_messages: 0.25,
            assignment_gain: 0.10,
            worth_saying: 0.01,
            imbalance: 0.20,
            completeness: 0.5,
        }
    }
}
