//! `dosmos store`: inspects, verifies and compacts trace stores.
//!
//! JSON: one object per command, with the keys of the structures here; sizes in bytes, times in nanoseconds
//! since the Unix epoch.

use std::path::Path;
use std::process::ExitCode;

use dosmos_proto::Nanos;
use dosmos_trace::query::{Catalog, Completeness, TimeRange};
use dosmos_trace::store::{Manifest, Removed, StoreError, StoreSource, compact};
use serde::Serialize;

use crate::args::{Format, StoreArgs, StoreCommand};
use crate::output::{self, Cell, Column, Table};

/// What `info` says.
#[derive(Serialize)]
struct Info {
    event_manager: String,
    run: String,
    processes: usize,
    /// Where the event manager that writes it answers; none if nobody does.
    in_use_at: Option<String>,
    /// None of a store in use.
    contents: Option<Contents>,
    removed: Removed,
}

#[derive(Serialize)]
struct Contents {
    records: u64,
    variables: usize,
    extent: Option<TimeRange>,
    chunks: u64,
    encoded_bytes: u64,
    disk_bytes: u64,
    /// How the times of each memory process's records were corrected.
    clocks: Vec<Clock>,
    completeness: Completeness,
}

/// What the store says of the clock of a memory process.
#[derive(Serialize)]
struct Clock {
    memory_process: String,
    /// Added to its clock at last.
    offset_ns: i64,
    drift_ppb: i64,
    /// The most that a time of its records is off; none: nothing is known of its clock.
    error: Option<Nanos>,
}

impl Clock {
    fn text(&self) -> String {
        let Some(error) = self.error else {
            return "not related to the event manager's".to_owned();
        };
        let sign = if self.offset_ns < 0 { "−" } else { "+" };
        let offset = Nanos(self.offset_ns.unsigned_abs());
        let drift = self.drift_ppb as f64 / 1e3;
        format!("{sign}{offset}, {drift:+.1} ppm, at most {error} off")
    }
}

/// What `verify` says.
#[derive(Serialize)]
struct Verdict {
    whole: bool,
    chunks: u64,
    records: u64,
    events: u64,
    damaged: u64,
    notes: Vec<String>,
}

/// What `compact` says.
#[derive(Serialize)]
struct Compaction {
    records: u64,
    chunks_before: u64,
    chunks: u64,
    disk_bytes_before: u64,
    disk_bytes: u64,
}

pub(crate) fn run(command: &StoreCommand) -> anyhow::Result<ExitCode> {
    match command {
        StoreCommand::Info(args) => info(args),
        StoreCommand::Verify(args) => verify(args),
        StoreCommand::Compact(args) => compacted(args),
    }
}

fn info(args: &StoreArgs) -> anyhow::Result<ExitCode> {
    let manifest = Manifest::read(&args.store)?;
    let (in_use_at, contents) = match StoreSource::open(&args.store) {
        Ok(source) => (None, Some(contents(&source))),
        Err(StoreError::InUse { address, .. }) => (Some(address), None),
        Err(e) => return Err(e.into()),
    };
    let topology = &manifest.identity.topology;
    let info = Info {
        event_manager: manifest.identity.event_manager.clone(),
        run: topology.name().to_owned(),
        processes: topology.memory_processes().len() + topology.application_processes().len(),
        in_use_at,
        contents,
        removed: manifest.removed,
    };
    show(args.format, &info, |table| {
        let mut row = |what: &str, value: Cell| table.row([Cell::from(what), value]);
        row("event manager", info.event_manager.clone().into());
        row("run", info.run.clone().into());
        row("processes", info.processes.to_string().into());
        if let Some(address) = &info.in_use_at {
            row(
                "in use, query",
                format!("the event manager at {address}").into(),
            );
        }
        if let Some(c) = &info.contents {
            let per_record = c.encoded_bytes as f64 / c.records.max(1) as f64;
            row("records", c.records.to_string().into());
            row("variables", c.variables.to_string().into());
            row("seconds", seconds(c.extent));
            row("chunks", c.chunks.to_string().into());
            row(
                "bytes, encoded",
                Cell::two(
                    format!("{} ({per_record:.1} per record)", c.encoded_bytes),
                    c.encoded_bytes.to_string(),
                ),
            );
            row("bytes, on disk", c.disk_bytes.to_string().into());
            for clock in &c.clocks {
                row(
                    &format!("clock of {}", clock.memory_process),
                    clock.text().into(),
                );
            }
        }
        row("records removed", info.removed.records.to_string().into());
    })?;
    for line in info.contents.iter().flat_map(|c| c.completeness.reasons()) {
        output::note(&format!("incomplete: {line}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn contents(source: &StoreSource) -> Contents {
    let catalog = source.view().catalog();
    let usage = source.view().usage();
    Contents {
        records: usage.records,
        variables: catalog.variables.len(),
        extent: catalog.extent,
        chunks: usage.chunks,
        encoded_bytes: usage.encoded,
        disk_bytes: usage.bytes,
        clocks: clocks(&catalog),
        completeness: catalog.completeness,
    }
}

fn clocks(catalog: &Catalog) -> Vec<Clock> {
    let clocks = catalog.clocks.iter();
    let clocks = clocks.map(|c| Clock {
        memory_process: catalog.topology.mp_name(c.mp),
        offset_ns: c.offset_ns,
        drift_ppb: c.drift_ppb,
        error: c.error,
    });
    clocks.collect()
}

fn seconds(extent: Option<TimeRange>) -> Cell {
    let length = extent.map(|e| format!("{:.3}", e.length().as_secs_f64()));
    length.into()
}

fn verify(args: &StoreArgs) -> anyhow::Result<ExitCode> {
    let found = StoreSource::open(&args.store)?.verify();
    let verdict = Verdict {
        whole: found.damaged == 0,
        chunks: found.chunks,
        records: found.records,
        events: found.events,
        damaged: found.damaged,
        notes: found.notes,
    };
    show(args.format, &verdict, |table| {
        let state = if verdict.whole { "intact" } else { "DAMAGED" };
        table.row(["state".to_owned(), state.to_owned()]);
        for (what, number) in [
            ("chunks", verdict.chunks),
            ("records", verdict.records),
            ("events", verdict.events),
            ("damaged", verdict.damaged),
        ] {
            table.row([what.to_owned(), number.to_string()]);
        }
        for note in &verdict.notes {
            table.row([String::new(), note.clone()]);
        }
    })?;
    Ok(ExitCode::from(u8::from(!verdict.whole)))
}

fn compacted(args: &StoreArgs) -> anyhow::Result<ExitCode> {
    let done = compact(Path::new(&args.store))?;
    let done = Compaction {
        records: done.records,
        chunks_before: done.chunks.0,
        chunks: done.chunks.1,
        disk_bytes_before: done.bytes.0,
        disk_bytes: done.bytes.1,
    };
    show(args.format, &done, |table| {
        table.row(["records".to_owned(), done.records.to_string()]);
        let change = |before: u64, after: u64| format!("{before} → {after}");
        table.row(["chunks".to_owned(), change(done.chunks_before, done.chunks)]);
        let bytes = change(done.disk_bytes_before, done.disk_bytes);
        table.row(["bytes, on disk".to_owned(), bytes]);
    })?;
    Ok(ExitCode::SUCCESS)
}

fn show<T: Serialize>(
    format: Format,
    answer: &T,
    rows: impl FnOnce(&mut Table),
) -> anyhow::Result<()> {
    match format {
        Format::Json => output::text(&(serde_json::to_string_pretty(answer)? + "\n")),
        format => {
            let mut table = Table::of([Column::named("", "quantity"), Column::plain("value")]);
            rows(&mut table);
            output::text(&table.render(format));
        }
    }
    Ok(())
}
