//! `dosmos-bench interchange`: how fast traces are exported to each format, and imported, on the reference workload.
//!
//! A store is built first, which is not measured. Files are in the system's cache; an import is durable when
//! it ends.

use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use dosmos_cli::args::{ExportFormat, Format};
use dosmos_cli::export::{Sink, exporter};
use dosmos_cli::output::{self, Table};
use dosmos_interchange::jsonl::{self, BadLines};
use dosmos_interchange::otf2;
use dosmos_trace::query::Filter;
use dosmos_trace::store::StoreSource;
use serde_json::json;

use crate::args::InterchangeArgs;
use crate::machine::machine;
use crate::query;
use crate::statistics::spread;
use crate::store::usage::Meter;

/// One run of one way.
#[derive(Clone, Copy, Default)]
struct Figures {
    seconds: f64,
    cpu_seconds: f64,
    /// Size of the file, or of the store made.
    bytes: u64,
}

/// What is measured: an export, or the import of the JSONL that was exported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Export(ExportFormat),
    Import,
    /// The import of the OTF2 archive.
    ImportOtf2,
}

impl Way {
    fn name(self) -> String {
        match self {
            Self::Import => "import jsonl".to_owned(),
            Self::ImportOtf2 => "import otf2".to_owned(),
            Self::Export(format) => format!("export {}", file_name(format)),
        }
    }
}

pub(crate) fn run(args: &InterchangeArgs) -> anyhow::Result<()> {
    if args.runs == 0 || args.records == 0 {
        bail!("--runs and --records must be at least 1");
    }
    let place = match &args.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let place = place.context("no place for the store")?;
    let path = place.path().join("store");
    query::build(&path, args.records, args.seed)?;
    let store = [StoreSource::open(&path)?];
    let formats = ExportFormat::value_variants().iter();
    let built_in = formats.filter(|f| **f != ExportFormat::Parquet || cfg!(feature = "parquet"));
    let exports = built_in.map(|f| Way::Export(*f));
    let ways: Vec<Way> = exports.chain([Way::Import, Way::ImportOtf2]).collect();
    let mut measured = vec![Vec::new(); ways.len()];
    for run in 1..=args.runs {
        output::note(&format!("run {run} of {}", args.runs));
        for (way, figures) in ways.iter().zip(&mut measured) {
            figures.push(match way {
                Way::Export(format) => export(&store, *format, place.path(), args.records)?,
                Way::Import => import(args.records, &place.path().join("imported"), |to| {
                    let from = place.path().join(file_name(ExportFormat::Jsonl));
                    let input = BufReader::with_capacity(1 << 16, File::open(from)?);
                    let go_on = |_| ControlFlow::Continue(());
                    Ok(jsonl::import(input, to, BadLines::Refuse, go_on)?.records)
                })?,
                Way::ImportOtf2 => import(args.records, &place.path().join("imported"), |to| {
                    let from = place.path().join(file_name(ExportFormat::Otf2));
                    let go_on = |_| ControlFlow::Continue(());
                    Ok(otf2::import(&from, to, go_on)?.records)
                })?,
            });
        }
    }
    print(args, &ways, &measured)
}

fn file_name(format: ExportFormat) -> String {
    let value = format.to_possible_value();
    value.map_or_else(String::new, |v| v.get_name().to_owned())
}

fn export(
    store: &[StoreSource],
    format: ExportFormat,
    place: &Path,
    records: u64,
) -> anyhow::Result<Figures> {
    let path = place.join(file_name(format));
    let all = Filter {
        everything: true,
        ..Filter::default()
    };
    let mut meter = Meter::default();
    let exported = meter.measure(|| {
        let sink = match format.is_directory() {
            true => {
                let _ = std::fs::remove_dir_all(&path); // Of the run before, if any.
                std::fs::create_dir(&path)?;
                Sink::Directory(path.clone())
            }
            false => Sink::File(Box::new(File::create(&path)?)),
        };
        let mut to = exporter(format, sink)?;
        let exported =
            dosmos_interchange::export(store, &all, &mut *to, |_| ControlFlow::Continue(()))?;
        anyhow::Ok(exported)
    })?;
    ensure!(
        exported.records == records,
        "{} records were exported",
        exported.records
    );
    Ok(Figures {
        seconds: meter.elapsed.as_secs_f64(),
        cpu_seconds: meter.cpu.as_secs_f64(),
        bytes: match path.is_dir() {
            true => size_of(&path)?,
            false => path.metadata()?.len(),
        },
    })
}

/// Measures an import to `to`, which says how many records it made.
fn import(
    records: u64,
    to: &Path,
    import: impl FnOnce(&Path) -> anyhow::Result<u64>,
) -> anyhow::Result<Figures> {
    let mut meter = Meter::default();
    let imported = meter.measure(|| import(to))?;
    ensure!(imported == records, "{imported} records were imported");
    let bytes = size_of(to)?;
    std::fs::remove_dir_all(to)?;
    Ok(Figures {
        seconds: meter.elapsed.as_secs_f64(),
        cpu_seconds: meter.cpu.as_secs_f64(),
        bytes,
    })
}

/// Bytes of all files below `dir`.
fn size_of(dir: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => size_of(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}

fn print(args: &InterchangeArgs, ways: &[Way], measured: &[Vec<Figures>]) -> anyhow::Result<()> {
    let headers = [
        "way",
        "k records/s",
        "spread",
        "by processor time",
        "bytes/record",
    ];
    let mut table = Table::new(&headers);
    let mut items = Vec::new();
    let records = args.records as f64;
    for (way, runs) in ways.iter().zip(measured) {
        let rate =
            |of: fn(&Figures) -> f64| spread(runs.iter().map(|f| records / of(f) / 1e3).collect());
        let ([least, median, most], cpu) = (rate(|f| f.seconds), rate(|f| f.cpu_seconds));
        let bytes = runs.last().map_or(0, |f| f.bytes) as f64 / records;
        table.row([
            way.name(),
            format!("{median:.0}"),
            format!("{least:.0}–{most:.0}"),
            format!("{:.0}", cpu[1]),
            format!("{bytes:.1}"),
        ]);
        items.push(json!({
            "way": way.name(),
            "krecords_per_s": { "least": least, "median": median, "most": most },
            "krecords_per_cpu_s": { "least": cpu[0], "median": cpu[1], "most": cpu[2] },
            "bytes_per_record": bytes,
        }));
    }
    if args.format == Format::Json {
        let all = json!({
            "machine": machine(),
            "records": args.records,
            "runs": args.runs,
            "ways": items,
        });
        output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        return Ok(());
    }
    output::text(&table.render(args.format));
    output::note(&format!(
        "{} records, {} runs; {}",
        args.records,
        args.runs,
        machine()
    ));
    Ok(())
}
