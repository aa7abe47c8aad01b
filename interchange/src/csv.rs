//! One row per record (docs/bibliography.md#rfc-4180), with a header; times in nanoseconds since the Unix epoch.
//!
//! A name that a spreadsheet would take for a formula has a `'` before it.
//!
//! A CSV file has no place to say what is missing: see [`Csv::end`]'s caller, which says it beside the file.

use std::io::{self, Write};

use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Op, Record, Side};

use crate::escape::csv_cell;
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
            (
                r.op.name(),
                csv_cell(&variable),
                r.object.index,
                csv_cell(barrier),
            ),
            (
                csv_cell(&names.ap(r.ap)),
                csv_cell(&names.mp(r.mp)),
                csv_cell(&names.mp(r.peer)),
            ),
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

#[cfg(test)]
mod tests {
    use dosmos_proto::{
        ApId, ElementType, GroupId, Layout, MpId, Nanos, ObjectId, Placement, VarId, Variable,
        VariableSpec,
    };
    use dosmos_trace::query::Catalog;
    use dosmos_trace::record::{Flags, Origin};

    use dosmos_trace::relation::Relations;

    use super::*;
    use crate::Names;

    #[test]
    fn names_are_no_formulas() {
        let layout = Layout::new(ElementType::F64, (1, 1), (1, 1)).unwrap();
        let spec = VariableSpec::new("=cmd|' /C calc'!A0", layout).unwrap();
        let spec = spec.with_placement(Placement::RoundRobin(None));
        let variable = Variable::new(VarId(1), spec, vec![MpId(0)], GroupId(0)).unwrap();
        let catalog = Catalog {
            variables: vec![variable],
            ..Catalog::default()
        };
        let run = Run {
            names: Names::of(&catalog),
            catalog,
            start: Nanos(0),
            end: Nanos(9),
            owner_records: true,
            relations: Relations::default(),
        };
        let record = Record {
            start: Nanos(1),
            duration: Nanos(2),
            wait: Nanos(0),
            service: Nanos(0),
            op: Op::Read,
            side: Side::Requester,
            origin: Origin::Local,
            flags: Flags::default(),
            object: ObjectId::new(VarId(1), 0),
            ap: ApId(0),
            mp: MpId(0),
            peer: MpId(0),
            count: 1,
            bytes: 8,
            version: 1,
            range: (0, 1),
        };
        let mut text = Vec::new();
        let mut csv = Csv::new(&mut text);
        csv.begin(&run).unwrap();
        csv.record(&run, &record, false).unwrap();
        csv.end(&run, &Completeness::default()).unwrap();
        drop(csv);
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(",'=cmd|' /C calc'!A0,"), "{text}");
    }
}
