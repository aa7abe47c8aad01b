//! What a memory or link process counts: defined here once, used by the process itself, on the wire,
//! by its event manager and on the screen.

use serde::{Deserialize, Serialize};

use crate::time::Nanos;
use crate::wire;

/// Counters of a memory or link process since its start; those that say "now" are levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCounters {
    /// Requests served for its own application processes.
    pub requests: u64,
    /// Requests served for other memory processes.
    pub served: u64,
    /// Messages forwarded to others (link processes).
    pub forwarded: u64,
    /// Records made.
    pub recorded: u64,
    /// Records dropped because the buffer was full.
    pub dropped: u64,
    /// Accesses that the records made stand for, beyond one each.
    pub extra_recorded: u64,
    /// Accesses that the records dropped stand for, beyond one each.
    pub extra_dropped: u64,
    /// Accesses not recorded because the selection leaves them out.
    pub unselected: u64,
    /// Hand-overs of copies' meta-objects dropped because the buffer was full.
    pub lost_hand_overs: u64,
    /// Records not yet durable, in bytes, now.
    pub buffered_bytes: u64,
    /// Processor time used; none if it is not known, as of a memory process within an application process.
    pub cpu: Option<Nanos>,
    /// Of that, before it was ready to serve.
    pub started: Nanos,
    /// Of that, what it waited awake for messages while nobody else needed the processor.
    pub awake: Nanos,
    /// Copies held now.
    pub copies: u64,
    /// Objects owned now.
    pub objects: u64,
    /// Of the processor time used, what went into making and encoding records (the push of a record is
    /// timed for one in many, and scaled).
    pub monitor: Nanos,
}

impl ProcessCounters {
    /// Processor time that serving took, if it is known.
    pub fn serving(&self) -> Option<Nanos> {
        Some(self.cpu? - self.started - self.awake)
    }
}

impl From<ProcessCounters> for wire::ProcessCounters {
    fn from(c: ProcessCounters) -> Self {
        Self {
            requests: c.requests,
            served: c.served,
            forwarded: c.forwarded,
            recorded: c.recorded,
            dropped: c.dropped,
            extra_recorded: c.extra_recorded,
            extra_dropped: c.extra_dropped,
            unselected: c.unselected,
            lost_hand_overs: c.lost_hand_overs,
            buffered_bytes: c.buffered_bytes,
            cpu_ns: c.cpu.map(|t| t.0),
            started_ns: c.started.0,
            awake_ns: c.awake.0,
            copies: c.copies,
            objects: c.objects,
            monitor_ns: c.monitor.0,
        }
    }
}

impl From<wire::ProcessCounters> for ProcessCounters {
    fn from(c: wire::ProcessCounters) -> Self {
        Self {
            requests: c.requests,
            served: c.served,
            forwarded: c.forwarded,
            recorded: c.recorded,
            dropped: c.dropped,
            extra_recorded: c.extra_recorded,
            extra_dropped: c.extra_dropped,
            unselected: c.unselected,
            lost_hand_overs: c.lost_hand_overs,
            buffered_bytes: c.buffered_bytes,
            cpu: c.cpu_ns.map(Nanos),
            started: Nanos(c.started_ns),
            awake: Nanos(c.awake_ns),
            copies: c.copies,
            objects: c.objects,
            monitor: Nanos(c.monitor_ns),
        }
    }
}
