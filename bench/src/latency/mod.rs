//! `dosmos-bench latency`: the time of each operation, near and far, as the program sees it, beside the [floors] of the same
//! run; on processors that sleep when they have nothing to do, and on processors that are kept awake.

mod awake;
mod child;
mod floors;
mod line;
mod tls;

use anyhow::bail;
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use serde_json::json;

use crate::args::LatencyArgs;
use crate::machine::machine;
use crate::statistics::spread;
use line::{Line, barrier_of_many, micros, operations};

/// What is taken from a line, and what it is called.
type Figure = (&'static str, fn(&Line) -> u64);

const FIGURES: [Figure; 3] = [
    ("median", |l| l.median_ns),
    ("p99", |l| l.p99_ns),
    ("min", |l| l.min_ns),
];

/// What Redis calls an operation that takes messages.
fn in_redis(op: &str) -> Option<&'static str> {
    let (_, what) = op.split_once('_')?;
    match what {
        "acquire_release" => Some("redis_set_nx_del"),
        "write" => Some("redis_set"),
        "read" | "copy_read" => Some("redis_get"),
        _ => None,
    }
}

/// What was measured of all operations, run by run.
struct Measured {
    /// How the processors were.
    processors: &'static str,
    runs: Vec<Vec<Line>>,
}

pub(crate) async fn run(args: LatencyArgs) -> anyhow::Result<()> {
    if let Some(address) = &args.echo {
        return floors::answer(address);
    }
    if args.keep_awake {
        awake::spin();
    }
    if args.runs == 0 || args.ops == 0 {
        bail!("--runs and --ops must be at least 1");
    }
    if args.tls {
        return tls::run(&args).await;
    }
    let mut all = ["idle", "awake"].map(|processors| Measured {
        processors,
        runs: Vec::new(),
    });
    for i in 0..args.runs {
        for measured in &mut all {
            let processors = measured.processors;
            output::note(&format!("run {} of {}, {processors}", i + 1, args.runs));
            let spinners = match processors {
                "awake" => awake::keep_awake()?,
                _ => Vec::new(),
            };
            measured.runs.push(one_run(&args).await?);
            drop(spinners);
        }
    }
    match args.format {
        Format::Json => {
            let of = |m: &Measured| (m.processors.to_owned(), json!(items(m)));
            let operations: serde_json::Map<_, _> = all.iter().map(of).collect();
            let all = json!({ "machine": machine(), "operations": operations });
            output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        }
        format => {
            let mut text = machine();
            for measured in &all {
                let table = table(measured).render(format);
                text += &format!(
                    "\n\nProcessors {}:\n\n{}",
                    measured.processors,
                    table.trim_end()
                );
            }
            output::text(&(text + "\n"));
        }
    }
    Ok(())
}

impl Measured {
    /// A figure of an operation over the runs: least, median, greatest.
    fn of(&self, op: &str, figure: fn(&Line) -> u64) -> [f64; 3] {
        let lines = self.runs.iter().flatten().filter(|l| l.op == op);
        spread(lines.map(|l| figure(l) as f64).collect())
    }

    /// The ratio of the medians of two operations in the same run, over the runs.
    fn ratio(&self, op: &str, floor: &str) -> [f64; 3] {
        let median = |run: &[Line], op: &str| {
            let line = run.iter().find(|l| l.op == op);
            line.map(|l| l.median_ns as f64)
        };
        let ratios = self.runs.iter().filter_map(|run| {
            let floor = median(run, floor).filter(|f| *f > 0.0)?;
            Some(median(run, op)? / floor)
        });
        spread(ratios.collect())
    }
}

fn items(measured: &Measured) -> Vec<serde_json::Value> {
    let of = |line: &Line| {
        let op = line.op.as_str();
        let mut item = json!({
            "op": op, "bytes": line.bytes, "count": line.count, "runs": measured.runs.len(),
            "max_ns": measured.of(op, |l| l.max_ns)[2],
        });
        let [low, median, high] = measured.ratio(op, "stream_echo");
        item["over_stream_echo"] = json!({ "median": median, "min": low, "max": high });
        if let Some(of) = in_redis(op) {
            let [low, median, high] = measured.ratio(op, of);
            item["over_redis"] = json!({ "of": of, "median": median, "min": low, "max": high });
        }
        for (name, figure) in FIGURES {
            let [low, median, high] = measured.of(op, figure);
            item[format!("{name}_ns")] = json!({ "median": median, "min": low, "max": high });
        }
        item
    };
    measured.runs[0].iter().map(of).collect()
}

fn table(measured: &Measured) -> Table {
    let mut table = Table::new(&[
        "operation",
        "bytes",
        "median (µs)",
        "spread",
        "p99 (µs)",
        "min (µs)",
        "max (µs)",
        "over stream echo",
        "over Redis",
    ]);
    for line in &measured.runs[0] {
        let op = line.op.as_str();
        let [median, p99, min] = FIGURES.map(|(_, figure)| measured.of(op, figure));
        let ratio = |floor: &str| match measured.ratio(op, floor) {
            [_, median, _] if median.is_nan() || op == floor => "-".to_owned(),
            [low, median, high] => format!("{median:.2} [{low:.2}–{high:.2}]"),
        };
        table.row([
            op.replace('_', " "),
            line.bytes.to_string(),
            micros(median[1]),
            format!("{}–{}", micros(median[0]), micros(median[2])),
            micros(p99[1]),
            micros(min[1]),
            micros(measured.of(op, |l| l.max_ns)[2]),
            ratio("stream_echo"),
            in_redis(op).map_or_else(|| "-".to_owned(), ratio),
        ]);
    }
    table
}

async fn one_run(args: &LatencyArgs) -> anyhow::Result<Vec<Line>> {
    let mut lines = floors::measure(args.unix, args.ops).await?;
    let listen = if args.unix { "unix" } else { "127.0.0.1:0" };
    lines.extend(operations(listen, "", args.ops).await?);
    lines.extend(barrier_of_many(listen, args.ops).await?);
    Ok(lines)
}
