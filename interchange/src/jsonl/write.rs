//! Writing the format.

use std::io::{self, Write};

use chrono::{DateTime, SecondsFormat, Utc};
use dosmos_proto::{MpId, Nanos, Variable};
use dosmos_trace::meta;
use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Op, Record};

use super::line::{self, Line};
use crate::{Export, Names, Run};

/// Writes JSONL.
pub struct Jsonl<W: Write> {
    out: W,
}

impl<W: Write> Jsonl<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// What has been written.
    pub(crate) fn into_inner(self) -> W {
        self.out
    }

    fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Export for Jsonl<W> {
    fn begin(&mut self, run: &Run) -> io::Result<()> {
        let topology = &run.catalog.topology;
        let start = rfc3339(run.start);
        self.line(&Line::Run(line::Run {
            name: topology.name().into(),
            start: Some(start.as_str().into()),
            end_ns: Some(run.since_start(run.end)),
            owner_records: run.owner_records,
        }))?;
        for group in topology.groups() {
            self.line(&Line::Group(line::Group {
                path: group.path.as_str().into(),
            }))?;
        }
        for (mp, its) in (0u32..).map(MpId).zip(topology.memory_processes()) {
            let clock = run.catalog.clocks.iter().find(|c| c.mp == mp);
            self.line(&Line::Mp(line::Mp {
                name: its.name.as_str().into(),
                group: run.names.group(its.group).into(),
                link: its.link,
                clock: clock.map(|c| line::Clock {
                    event_manager: Some(line::Text(topology.emp_name(its.event_manager).into())),
                    offset_ns: c.offset_ns,
                    drift_ppb: c.drift_ppb,
                    error_ns: c.error.map(|e| e.0),
                }),
            }))?;
        }
        for ap in topology.application_processes() {
            let group = topology.mp(ap.memory_process).map(|mp| mp.group);
            self.line(&Line::Ap(line::Ap {
                name: ap.name.as_str().into(),
                mp: run.names.mp(ap.memory_process).into(),
                group: group.map(|g| run.names.group(g).into()),
            }))?;
        }
        for variable in &run.catalog.variables {
            self.line(&Line::Variable(Box::new(of_variable(&run.names, variable))))?;
        }
        for barrier in &run.catalog.barriers {
            self.line(&Line::Barrier(line::Barrier {
                name: barrier.name.as_str().into(),
                group: barrier.group.map(|g| run.names.group(g).into()),
            }))?;
        }
        Ok(())
    }

    fn record(&mut self, run: &Run, record: &Record, pending: bool) -> io::Result<()> {
        self.line(&Line::Record(of_record(run, record, pending)))
    }

    fn hand_over(&mut self, run: &Run, hand_over: &meta::HandOver) -> io::Result<()> {
        self.line(&Line::HandOver(line::HandOver {
            var: run.names.variable(hand_over.object.var).into(),
            object: hand_over.object.index,
            mp: run.names.mp(hand_over.copy_at).into(),
            dropped: hand_over.dropped,
        }))
    }

    fn end(&mut self, _: &Run, lacking: &Completeness) -> io::Result<()> {
        self.line(&Line::Completeness(lacking.clone()))?;
        self.out.flush()
    }
}

fn of_variable<'a>(names: &'a Names, variable: &'a Variable) -> line::Variable<'a> {
    let layout = variable.spec().layout();
    let mut owners: Vec<line::Text<'a>> = variable
        .owners()
        .iter()
        .map(|&mp| names.mp(mp).into())
        .collect();
    let owner = match owners.len() {
        1 => line::Owner::One(owners.remove(0)),
        _ => line::Owner::Each(owners),
    };
    let (row_parts, column_parts) = layout.parts();
    line::Variable {
        name: variable.spec().name().into(),
        objects: Some(layout.objects()),
        owner,
        group: Some(names.group(variable.group()).into()),
        bytes: Some(layout.total_bytes()),
        policy: variable.spec().policy(),
        lock: variable.spec().lock(),
        cache: variable.spec().cache(),
        replicas: variable.spec().replicas(),
        layout: Some(line::Layout {
            element: layout.element(),
            rows: layout.rows(),
            columns: layout.columns(),
            row_parts,
            column_parts,
        }),
    }
}

fn of_record<'a>(run: &'a Run, r: &Record, pending: bool) -> line::Record<'a> {
    let names = &run.names;
    let (mut var, mut barrier, mut barrier_group) = (None, None, None);
    if r.op == Op::Barrier {
        let (name, group) = names.barrier(r.object.var);
        barrier = Some(name.into());
        barrier_group = group.map(Into::into);
    } else {
        var = Some(names.variable(r.object.var).into());
    }
    line::Record {
        t_ns: run.since_start(r.start),
        dur_ns: r.duration.0,
        wait_ns: r.wait.0,
        service_ns: r.service.0,
        op: r.op,
        var,
        object: Some(r.object.index),
        barrier,
        barrier_group,
        ap: names.ap(r.ap).into(),
        mp: Some(names.mp(r.mp).into()),
        owner: Some(names.mp(r.peer).into()),
        origin: Some(r.origin),
        optimized: r.flags.optimized,
        in_process: r.flags.in_process,
        atomic: r.flags.atomic,
        first: r.flags.first,
        own_clock: r.flags.own_clock,
        ahead: r.flags.ahead,
        posted: r.flags.posted,
        count: r.count,
        bytes: r.bytes,
        version: r.version,
        range: (r.range != (0, 0)).then_some(r.range),
        side: r.side,
        sampled: r.flags.sampled,
        failed: r.flags.failed,
        waiting: r.flags.waiting && !pending,
        pending,
    }
}

/// An instant as RFC 3339 has it.
pub(crate) fn rfc3339(at: Nanos) -> String {
    let (seconds, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
    // Every such number of seconds is a date: the year 2554 at most.
    let time = DateTime::<Utc>::from_timestamp(seconds as i64, nanos as u32).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
