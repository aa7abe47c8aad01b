//! `dosmos runs`: the runs of a folder, and which of them to remove.

mod prune;

use std::path::PathBuf;
use std::process::ExitCode;

use dosmos_client::{RUNS, RunEntry, RunFigures, runs, text};
use serde_json::json;

use crate::args::{Format, RunsArgs};
use crate::output::{self, Cell, Column, Table};

pub(crate) async fn run(args: RunsArgs) -> anyhow::Result<ExitCode> {
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from(RUNS));
    let found = runs(&folder)?;
    if found.is_empty() {
        output::note(&format!("no runs in {}", folder.display()));
    }
    if args.prune {
        return prune::prune(&folder, &args, &found);
    }
    let mut listed = Vec::new();
    for entry in &found {
        listed.push(Listed::of(entry).await);
    }
    match args.format {
        Format::Json => {
            let items: Vec<_> = listed.iter().map(Listed::json).collect();
            let json = json!({ "runs": items });
            output::text(&(serde_json::to_string_pretty(&json)? + "\n"));
        }
        format if listed.is_empty() && format == Format::Table => {}
        format => output::text(&table(&listed).render(format)),
    }
    Ok(ExitCode::SUCCESS)
}

/// A run, and what its stores tell of it.
struct Listed<'a> {
    entry: &'a RunEntry,
    bytes: u64,
    figures: RunFigures,
}

impl<'a> Listed<'a> {
    async fn of(entry: &'a RunEntry) -> Self {
        // A run that goes on is not disturbed.
        let figures = match entry.running {
            true => RunFigures::default(),
            false => entry.figures().await.unwrap_or_else(|e| RunFigures {
                efficiency: None,
                lacking: vec![text::with_causes(&e)],
            }),
        };
        Self {
            entry,
            bytes: entry.bytes(),
            figures,
        }
    }

    /// Whether its records are those of a whole run; if not, the first reason.
    fn state(&self) -> String {
        match (self.entry.running, self.figures.lacking.as_slice()) {
            (true, _) => "running".to_owned(),
            (false, []) => "complete".to_owned(),
            (false, [reason]) => reason.clone(),
            (false, [first, rest @ ..]) => format!("{first} (and {} more)", rest.len()),
        }
    }

    fn processes(&self) -> Option<u64> {
        let metadata = self.entry.launch.metadata();
        metadata.map(|m| m.ranks.len() as u64)
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "name": self.entry.name, "path": self.entry.path, "running": self.entry.running,
            "program": self.entry.launch.program(), "started_ns": self.entry.started,
            "length_ns": self.entry.length, "processes": self.processes(),
            "efficiency": self.figures.efficiency, "bytes": self.bytes,
            "complete": !self.entry.running && self.figures.lacking.is_empty(),
            "lacking": self.figures.lacking, "run": self.entry.launch.metadata(),
        })
    }
}

fn table(listed: &[Listed<'_>]) -> Table {
    let mut table = Table::of([
        Column::plain("run"),
        Column::plain("program"),
        Column::named("started", "started_ns"),
        Column::time("length"),
        Column::plain("processes"),
        Column::plain("efficiency"),
        Column::named("size", "bytes"),
        Column::plain("state"),
    ]);
    for run in listed {
        let entry = run.entry;
        table.row([
            entry.name.as_str().into(),
            entry.launch.program().into(),
            Cell::two(text::local_time(entry.started), entry.started.0.to_string()),
            entry.length.into(),
            run.processes().into(),
            run.figures.efficiency.map(Cell::share).into(),
            Cell::two(text::bytes(run.bytes), run.bytes.to_string()),
            run.state().into(),
        ]);
    }
    table
}
