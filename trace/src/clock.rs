//! How the times of records were corrected, as it is stored with them (docs/design/monitoring.md#clocks).

use dosmos_proto::clock::ClockEstimate;
use dosmos_proto::{MpId, Nanos, Topology};
use serde::{Deserialize, Serialize};

/// By what the times of a memory process's records are corrected from here on, and the most that any of them is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// What is known of its clock.
    pub by: ClockEstimate,
    /// The bound; [`Nanos::MAX`]: nothing is known of the clock, and the times are as it has them.
    pub error: Nanos,
}

/// A time by the clock of a memory process, and what it was corrected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Corrected {
    /// By its clock.
    pub local: Nanos,
    /// In the store.
    pub to: Nanos,
}

impl Correction {
    /// The same, which takes the place of `before`: the bound is that of all records so far.
    #[must_use]
    pub fn after(self, before: Option<&Self>) -> Self {
        let error = before.map_or(self.error, |b| b.error.max(self.error));
        Self { error, ..self }
    }
}

/// What is known of the clock of a memory process, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessClock {
    /// Which.
    pub mp: MpId,
    /// Cluster time minus its clock, at last, in nanoseconds.
    pub offset_ns: i64,
    /// How much that grows, in nanoseconds per second, at last.
    pub drift_ppb: i64,
    /// The most that a time of its records is off; none: nothing is known of its clock.
    pub error: Option<Nanos>,
}

impl ProcessClock {
    /// What a correction of its records comes to.
    pub fn new(mp: MpId, corrected: &Correction) -> Self {
        Self {
            mp,
            offset_ns: corrected.by.offset_ns,
            drift_ppb: corrected.by.drift_ppb,
            error: Some(corrected.error).filter(|&e| e < Nanos::MAX),
        }
    }

    /// The same as the correction of everything that a store holds of it.
    pub fn correction(&self) -> Correction {
        let by = ClockEstimate {
            offset_ns: self.offset_ns,
            drift_ppb: self.drift_ppb,
            ..ClockEstimate::default()
        };
        Correction {
            by,
            error: self.error.unwrap_or(Nanos::MAX),
        }
    }

    /// Two starts of a process, or what two stores say of one: the later counts, with the bound of both.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        let error = self.error.zip(before.error).map(|(a, b)| a.max(b));
        Self { error, ..self }
    }
}

/// How far the times of two memory processes can be apart, as their stores have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// By at most this much: they have one clock, or both relate to one event manager's.
    AtMost(Nanos),
    /// Nobody knows: they relate to different clocks, or nothing is known of one of them.
    Unknown,
    /// Nobody said: the records were not made by memory processes of a run, or by none that says.
    Unsaid,
}

/// How far the times of memory processes `a` and `b` can be apart, by what is known of all `clocks`.
pub fn apart(clocks: &[ProcessClock], topology: &Topology, a: MpId, b: MpId) -> Apart {
    if a == b {
        return Apart::AtMost(Nanos::ZERO);
    }
    let manager = |mp: MpId| topology.mp(mp).map(|its| its.event_manager);
    if manager(a) != manager(b) {
        return Apart::Unknown;
    }
    let of = |mp: MpId| clocks.iter().find(|c| c.mp == mp);
    match (of(a), of(b)) {
        (Some(a), Some(b)) => match a.error.zip(b.error) {
            Some((a, b)) => Apart::AtMost(a + b),
            None => Apart::Unknown,
        },
        _ => Apart::Unsaid,
    }
}
