//! One row per record (docs/bibliography.md#rfc-4180), with a header; times in nanoseconds since the Unix epoch.
//!
//! A CSV file has no place to say what is missing: see [`Csv::end`]'s caller, which says it beside the file.

use std::io::{self, Write};

use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Op, Record, Side};

use crate::{Export, Run};

/// The columns.
pub const COLUMNS: [&str; 24] = [
    "start_ns",
    "duration_ns",
    "wait_ns",
    "service_ns",
    "op",
    "variable",
    "object",
    "barrier",
    "ap",
    "mp",
    "owner",
    "origin",
    "optimized",
    "bytes",
    "version",
    "first",
    "end",
    "side",
    "sampled",
    "failed",
    "waiting",
    "pending",
    "in_process",
    "count",
];

/// Writes CSV.
pub struct Csv<W: Write> {
    out: csv::Writer<W>,
}

impl<W: Write> Csv<W> {
    /// Writes to `out`, which need not be buffered.
    pub fn new(out: W) -> Self {
        let out = csv::WriterBuilder::new()
            .buffer_capacity(1 << 16)
            .from_writer(out);
        Self { out }
    }
}

impl<W: Write> Export for Csv<W> {
    fn begin(&mut self, _: &Run) -> io::Result<()> {
        Ok(self.out.write_record(COLUMNS)?)
    }

    fn record(&mut self, run: &Run, r: &Record, pending: bool) -> io::Result<()> {
        let names = &run.names;
        let is_barrier = r.op == Op::Barrier;
        let (variable, barrier) = match is_barrier {
            true => ("".into(), names.barrier(r.object.var).0),
            false => (names.variable(r.object.var), ""),
        };
        let side = match r.side {
            Side::Requester => "requester",
            Side::Owner => "owner",
        };
        let flag = |on: bool| if on { "true" } else { "false" };
        Ok(self.out.serialize((
            (r.start.0, r.duration.0, r.wait.0, r.service.0),
            (r.op.name(), &*variable, r.object.index, barrier),
            (&*names.ap(r.ap), &*names.mp(r.mp), &*names.mp(r.peer)),
            (
                r.origin.name(),
                flag(r.flags.optimized),
                r.bytes,
                r.version,
                r.range,
            ),
            (
                side,
                flag(r.flags.sampled),
                flag(r.flags.failed),
                flag(r.flags.waiting),
            ),
            (flag(pending), flag(r.flags.in_process), r.count),
        ))?)
    }

    fn end(&mut self, _: &Run, _: &Completeness) -> io::Result<()> {
        self.out.flush()
    }
}
