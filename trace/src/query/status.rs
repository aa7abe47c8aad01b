//! How the processes that record are doing.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, MpId, Nanos, ProcessCounters};

use serde::{Deserialize, Serialize};

use super::Completeness;
use crate::meta::OpCounts;
use crate::record::PerOrigin;
use crate::selection::Selection;

/// State of one memory or link process, as its event manager knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Which.
    pub mp: MpId,
    /// Its stream to the event manager is up.
    pub connected: bool,
    /// What it counted.
    #[serde(flatten)]
    pub counters: ProcessCounters,
    /// Cluster time minus the process's clock, in nanoseconds.
    pub clock_offset_ns: i64,
    /// Half the round trip of the best clock sample: the offset's error bound.
    pub clock_error: Nanos,
    /// Accesses by its application processes, by origin.
    pub by_origin: PerOrigin<OpCounts>,
    /// End of its last record.
    pub last_record: Nanos,
    /// Accesses of each of its application processes.
    pub aps: Vec<ApOrigins>,
}

/// Accesses of one application process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApOrigins {
    /// Which.
    pub ap: ApId,
    /// Its accesses by origin.
    pub by_origin: PerOrigin<OpCounts>,
}

/// State of one event manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmpStatus {
    /// Its name.
    pub name: String,
    /// Its clock (cluster time).
    pub now: Nanos,
    /// Its memory processes.
    pub processes: Vec<ProcessStatus>,
    /// Records on disk.
    pub records: u64,
    /// Records received and not yet on disk.
    pub pending: u64,
    /// Size of the store.
    pub stored_bytes: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Processor time used.
    pub cpu: Nanos,
    /// Where its store is.
    pub store: String,
    /// What is wrong with it; empty if nothing.
    pub trouble: String,
    /// Secondary meta-objects handed to other event managers.
    pub exchanged_out: u64,
    /// Secondary meta-objects received from others.
    pub exchanged_in: u64,
    /// What its memory processes were last told to record; none: what their cluster file says.
    pub selection: Option<Selection>,
}

/// State of all event managers asked, and what is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// One an event manager that answered. Empty for a store nobody serves.
    pub event_managers: Vec<EmpStatus>,
    /// What is missing.
    pub completeness: Completeness,
}

impl Status {
    /// Processor time that memory and link processes spent on recording.
    pub fn monitor(&self) -> BTreeMap<MpId, Nanos> {
        let processes = self.event_managers.iter().flat_map(|e| &e.processes);
        processes.map(|p| (p.mp, p.counters.monitor)).collect()
    }
}
