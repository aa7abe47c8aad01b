//! `dosmos-bench store`: the reference workload (`dosmos_testkit::reference`) put into a trace store, and
//! into other things that keep records, on one processor.
//!
//! Each run of each method is a process of its own, so that its peak of memory is its own; runs of the
//! methods take turns. Making the records is not measured. What is: committing them all, durably, until
//! the store is closed; then, after opening it again, reading time, operation, origin and object of each. The
//! files are in the system's cache by then.

mod figures;
mod methods;
pub(super) mod usage;

use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use clap::ValueEnum;
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use serde_json::json;

use crate::args::{Method, StoreArgs};
use crate::machine::machine;
use crate::statistics::spread;
use figures::Figures;

/// A figure of a run as it is published.
struct Figure {
    name: &'static str,
    about: &'static str,
    of: fn(&Figures) -> Option<f64>,
    /// For full records, and for those of six fields.
    goals: [Option<Goal>; 2],
}

#[derive(Clone, Copy)]
enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::AtLeast(least) => format!("≥ {least}"),
        }
    }
}

fn millions_a_second(records: u64, seconds: f64) -> Option<f64> {
    Some(records as f64 / seconds / 1e6)
}

const fn both(goal: Goal) -> [Option<Goal>; 2] {
    [Some(goal), Some(goal)]
}

const FIGURES: [Figure; 9] = [
    Figure {
        name: "encoded_bytes_per_record",
        about: "bytes/record, encoded",
        of: |f| Some(f.encoded_bytes as f64 / f.records as f64),
        goals: [Some(Goal::AtMost(8.0)), Some(Goal::AtMost(5.0))],
    },
    Figure {
        name: "disk_over_encoded",
        about: "disk / encoded",
        of: |f| Some(f.disk_bytes as f64 / f.encoded_bytes as f64),
        goals: both(Goal::AtMost(1.5)),
    },
    Figure {
        name: "encode_mrecords_per_s",
        about: "encode, M records/s",
        of: |f| millions_a_second(f.records, f.encode_seconds?),
        goals: [None, None],
    },
    Figure {
        name: "write_mrecords_per_s",
        about: "encode + store, M records/s",
        of: |f| millions_a_second(f.records, f.write_seconds),
        goals: both(Goal::AtLeast(10.0)),
    },
    Figure {
        name: "write_mrecords_per_cpu_s",
        about: "the same by processor time",
        of: |f| millions_a_second(f.records, f.write_cpu_seconds),
        goals: [None, None],
    },
    Figure {
        name: "scan_mrecords_per_s",
        about: "scan, M records/s",
        of: |f| millions_a_second(f.records, f.scan_seconds),
        goals: both(Goal::AtLeast(20.0)),
    },
    Figure {
        name: "scan_mrecords_per_cpu_s",
        about: "the same by processor time",
        of: |f| millions_a_second(f.records, f.scan_cpu_seconds),
        goals: [None, None],
    },
    Figure {
        name: "write_peak_mib",
        about: "peak RSS writing, MiB",
        of: |f| Some(f.write_peak_bytes as f64 / f64::from(1 << 20)),
        goals: [None, None],
    },
    Figure {
        name: "scan_peak_mib",
        about: "peak RSS scanning, MiB",
        of: |f| Some(f.scan_peak_bytes as f64 / f64::from(1 << 20)),
        goals: [None, None],
    },
];

pub(crate) fn run(args: &StoreArgs) -> anyhow::Result<()> {
    if args.runs == 0 || args.records == 0 || args.one_key_records == 0 || args.commit == 0 {
        bail!("--runs, --records, --one-key-records and --commit must be at least 1");
    }
    if let (true, [method]) = (args.one_run, &args.method[..]) {
        let figures = methods::measure(*method, args)?;
        output::text(&(serde_json::to_string(&figures)? + "\n"));
        return Ok(());
    }
    let chosen: Vec<Method> = match &args.method[..] {
        [] => Method::value_variants().to_vec(),
        some => some.to_vec(),
    };
    let mut measured: Vec<Vec<Figures>> = vec![Vec::new(); chosen.len()];
    for run in 1..=args.runs {
        for (method, figures) in chosen.iter().zip(&mut measured) {
            output::note(&format!("run {run} of {}: {}", args.runs, name(*method)));
            figures.push(in_a_process(*method, args)?);
        }
    }
    print(args, &chosen, &measured)
}

fn name(method: Method) -> String {
    let value = method.to_possible_value();
    value.map_or_else(String::new, |v| v.get_name().to_owned())
}

fn in_a_process(method: Method, args: &StoreArgs) -> anyhow::Result<Figures> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["store", "--one-run", "--method", &name(method)]);
    for (option, value) in [
        ("--records", args.records),
        ("--one-key-records", args.one_key_records),
        ("--commit", args.commit as u64),
        ("--seed", args.seed),
    ] {
        command.arg(option).arg(value.to_string());
    }
    if let Some(dir) = &args.dir {
        command.arg("--dir").arg(dir);
    }
    let done = command.stderr(Stdio::inherit()).output()?;
    if !done.status.success() {
        bail!("the run of {} failed ({})", name(method), done.status);
    }
    serde_json::from_slice(&done.stdout).context("a run said something else than its figures")
}

fn print(args: &StoreArgs, chosen: &[Method], measured: &[Vec<Figures>]) -> anyhow::Result<()> {
    let mut table = Table::new(&["method", "figure", "median", "spread", "goal", ""]);
    let mut items = Vec::new();
    for (method, runs) in chosen.iter().zip(measured) {
        let mut item =
            json!({ "method": name(*method), "records": runs[0].records, "figures": {} });
        for figure in &FIGURES {
            let values: Vec<f64> = runs.iter().filter_map(figure.of).collect();
            if values.is_empty() {
                continue;
            }
            let [low, median, high] = spread(values);
            let goal = match method {
                Method::Chunks => figure.goals[0],
                Method::SixFields => figure.goals[1],
                Method::File | Method::OneKey => None,
            };
            item["figures"][figure.name] = json!({ "median": median, "min": low, "max": high });
            let met = goal.map_or("", |g| if g.is_met(median) { "met" } else { "NOT MET" });
            table.row([
                name(*method),
                figure.about.to_owned(),
                format!("{median:.2}"),
                format!("{low:.2}–{high:.2}"),
                goal.map_or_else(String::new, Goal::text),
                met.to_owned(),
            ]);
        }
        items.push(item);
    }
    match args.format {
        Format::Json => {
            let all = json!({ "machine": machine(), "runs": args.runs, "methods": items });
            output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        }
        format => output::text(&format!("{}\n\n{}", machine(), table.render(format))),
    }
    Ok(())
}
