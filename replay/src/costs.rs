//! What messages cost.

use dosmos_model::inputs::NetworkRecord;

use crate::ids::Time;

/// Costs of messages, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Costs {
    /// Processor time of one end of a message.
    pub end_ns: f64,
    /// The same for each byte of content.
    pub end_ns_per_byte: f64,
    /// Processor time of a memory process to serve an operation, beside the messages.
    pub serve_ns: f64,
    /// On the way between an application process and its memory process, nobody's processor taken: wake-ups, wire.
    pub near_ns: f64,
    /// The same between two memory processes of a group.
    pub far_ns: f64,
    /// The same where one of them is a link process.
    pub link_ns: f64,
    /// On the way of each byte of content between memory processes, in all.
    pub way_ns_per_byte: f64,
    /// Processors of the machine.
    pub processors: usize,
}

/// What the core of a memory process takes for an operation (docs/benchmarks.md#instructions-per-operation: some
/// thousand instructions).
const SERVE_NS: f64 = 2_000.0;

/// What software takes in a running program, where other processes have had the processor and its caches in between, over
/// what it takes in a tight loop, as microbenchmarks measure it. The processor time of whole runs of five programs
/// (docs/models.md#costs) says 2.8 to 4.6.
const IN_A_RUN: f64 = 3.0;

impl Costs {
    /// Those of a machine, as `dosmos-bench network` measured it.
    pub fn of(record: &NetworkRecord) -> Self {
        // Of small messages it is the message that counts, of large ones the content.
        let segments = &record.network.segments;
        let end_us = segments.first().map_or(4.0, |s| s.total_us[0]);
        let per_byte = segments.last().map_or(0.0, |s| s.total_us[1]);
        let way = record.network.interface_us * 2.0 + record.network.switch_us;
        let near = (record.hop.read_us[0] - 4.0 * end_us) / 2.0;
        Self {
            end_ns: 1e3 * end_us * IN_A_RUN,
            end_ns_per_byte: 1e3 * per_byte,
            serve_ns: SERVE_NS * IN_A_RUN,
            near_ns: 1e3 * near.max(0.0),
            far_ns: 1e3 * way,
            link_ns: 1e3 * way,
            way_ns_per_byte: 0.0,
            processors: record.processors.max(1),
        }
    }

    /// Processor time of one end of a message with that much content.
    pub(crate) fn end(&self, bytes: u32) -> Time {
        self.end_ns + self.end_ns_per_byte * f64::from(bytes)
    }

    /// The same costs with software that takes `share` of the time.
    pub(crate) fn with_software(&self, share: f64) -> Self {
        Self {
            end_ns: self.end_ns * share,
            end_ns_per_byte: self.end_ns_per_byte * share,
            serve_ns: self.serve_ns * share,
            near_ns: self.near_ns * share,
            far_ns: self.far_ns * share,
            link_ns: self.link_ns * share,
            way_ns_per_byte: self.way_ns_per_byte * share,
            processors: self.processors,
        }
    }
}
