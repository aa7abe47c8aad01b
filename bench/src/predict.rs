//! `dosmos-bench predict`: example programs on real processes, their time as the models say it against the
//! time measured.
//!
//! Per program and number of processes: `dvsm`, the phase model with measured mean delays of operations
//! (the method of its paper); `counts`, the phase model from counts and message costs alone; `lopc`, the
//! general contention model with S_o, C² and S_l from the run's records, its thread time without barriers and waiting for locks
//! against the measured; `lopc_requests`, of that only the requests, without what threads do by themselves; `lopc_costs`, the whole
//! with S_l from message costs; `lopc_stretched`, that again, where processors are fewer than processes. Errors are modelled/measured − 1.
//!
//! Schema of the JSON: `machine`, `network`, `runs`, and `rows`: `program`, `processes`, `run_us` and
//! the errors, each with `median`, `min`, `max`; the error of a model that says nothing of a run is null.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use dosmos_client::{Run, Target, read_network};
use dosmos_model::inputs::{DelayModel, Measured, NetworkRecord};
use serde_json::{Value, json};

use crate::args::{NetworkArgs, PredictArgs};
use crate::machine::machine;
use crate::network;
use crate::run::run_prepared;
use crate::statistics::spread;

/// What is run unless told otherwise: kernels with barriers, with locks, and with neither.
const PROGRAMS: [&str; 7] = [
    "sor --rows 512 --columns 512 --iterations 200",
    "is --iterations 20",
    "fft --iterations 10",
    "water --iterations 10",
    "spmv --iterations 20",
    "workpile --chunks 100",
    "random --operations 2000",
];

/// Errors of one run, in the order of [`NAMES`].
type Errors = [Option<f64>; 6];

const NAMES: [&str; 6] = [
    "dvsm",
    "counts",
    "lopc",
    "lopc_requests",
    "lopc_costs",
    "lopc_stretched",
];

struct Row {
    program: String,
    processes: u32,
    run_us: Vec<f64>,
    errors: Vec<Errors>,
}

pub(crate) async fn run(args: PredictArgs) -> anyhow::Result<()> {
    if args.runs == 0 || args.processes.contains(&0) {
        bail!("--runs and --processes must be at least 1");
    }
    let record = match &args.network {
        Some(path) => read_network(path)?,
        None => network::measure(&quick()).await?.0,
    };
    let programs = match args.programs.is_empty() {
        true => PROGRAMS.map(str::to_owned).to_vec(),
        false => args.programs.clone(),
    };
    let mut rows = Vec::new();
    for program in &programs {
        for &processes in &args.processes {
            output::note(&format!("{program} on {processes}"));
            let mut row = Row {
                program: program.clone(),
                processes,
                run_us: Vec::new(),
                errors: Vec::new(),
            };
            for _ in 0..args.runs {
                let run = one_run(program, processes, &record).await?;
                row.errors.push(errors(&run)?);
                row.run_us.push(run.run_us());
            }
            rows.push(row);
        }
    }
    print(&args, &record, &rows)
}

fn quick() -> NetworkArgs {
    NetworkArgs {
        messages: 2000,
        runs: 3,
        unix: true,
        output: None,
        format: Format::Table,
        answer: None,
    }
}

/// A program on a cluster of its own: a memory process for each application process, one group.
async fn one_run(
    program: &str,
    processes: u32,
    network: &NetworkRecord,
) -> anyhow::Result<Measured> {
    let words: Vec<&str> = program.split_whitespace().collect();
    let ran = run_prepared(&cluster(processes), &words, |_| Ok(())).await;
    let ran = ran.with_context(|| program.to_owned())?;
    let run = Run::open(&Target::run(ran.dir.path())).await?;
    Ok(run.measure(network.clone()).await?)
}

fn cluster(processes: u32) -> String {
    let mut text = "name = \"predict\"\n[defaults]\nlisten = \"unix\"\n[[group]]\nname = \"all\"\n\
                    [[emp]]\nname = \"emp0\"\n"
        .to_owned();
    for i in 0..processes {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[mp]]\nname = \"mp{i}\"\ngroup = \"all\"\nemp = \"emp0\"\n[[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n"
        );
    }
    text
}

fn errors(run: &Measured) -> anyhow::Result<Errors> {
    let phases = |delays| anyhow::Ok(run.predict(delays, None)?.error);
    let contention = run.contention()?;
    let times = contention.map(|c| c.times(run.network().processors));
    // A run that saturates its owners has no steady state; the benchmark has not failed then.
    let times = times.and_then(Result::ok);
    let error = |modelled: f64, measured: f64| (measured > 0.0).then(|| modelled / measured - 1.0);
    Ok([
        Some(phases(DelayModel::Measured)?),
        Some(phases(DelayModel::None)?),
        times.and_then(|t| error(t.modelled_us, t.measured_us)),
        times.and_then(|t| error(t.modelled_us - t.work_us, t.measured_us - t.work_us)),
        times.and_then(|t| error(t.from_costs_us, t.measured_us)),
        times.and_then(|t| error(t.stretched_us, t.measured_us)),
    ])
}

fn print(args: &PredictArgs, record: &NetworkRecord, rows: &[Row]) -> anyhow::Result<()> {
    let of = |row: &Row, i: usize| -> Option<[f64; 3]> {
        let known: Vec<f64> = row.errors.iter().filter_map(|e| e[i]).collect();
        (!known.is_empty()).then(|| spread(known))
    };
    if args.format == Format::Json {
        let list: Vec<Value> = rows
            .iter()
            .map(|row| {
                let mut item = json!({ "program": row.program, "processes": row.processes });
                item["run_us"] = figure(spread(row.run_us.clone()));
                for (i, name) in NAMES.iter().enumerate() {
                    item[*name] = of(row, i).map_or(Value::Null, figure);
                }
                item
            })
            .collect();
        let all =
            json!({ "machine": machine(), "network": record, "runs": args.runs, "rows": list });
        output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        return Ok(());
    }
    let mut table = Table::new(&[
        "program",
        "processes",
        "run (ms)",
        "dvsm (%)",
        "counts (%)",
        "lopc (%)",
        "lopc requests (%)",
        "lopc costs (%)",
        "lopc stretched (%)",
    ]);
    for row in rows {
        let [least, median, most] = spread(row.run_us.clone()).map(|us| us / 1e3);
        let mut cells = vec![
            row.program.clone(),
            row.processes.to_string(),
            format!("{median:.0} ({least:.0}–{most:.0})"),
        ];
        for i in 0..NAMES.len() {
            cells.push(of(row, i).map_or("-".to_owned(), |[min, median, max]| {
                let [min, median, max] = [min, median, max].map(|e| 100.0 * e);
                format!("{median:+.1} ({min:+.1} to {max:+.1})")
            }));
        }
        table.row(cells);
    }
    output::text(&format!("{}\n\n{}", machine(), table.render(args.format)));
    Ok(())
}

fn figure([min, median, max]: [f64; 3]) -> Value {
    json!({ "median": median, "min": min, "max": max })
}
