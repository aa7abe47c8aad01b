//! `dosmos-bench latency`: the time of each operation, near and far, as the program sees it.

use anyhow::bail;
use dosmos_cli::args::Format;
use dosmos_cli::demo::CLUSTER;
use dosmos_cli::output::{self, Table};
use serde::Deserialize;
use serde_json::json;

use crate::args::LatencyArgs;
use crate::machine::machine;
use crate::run::{json_lines, run_on};

/// A line of the `latency` program: one operation in one run.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    op: String,
    bytes: u64,
    count: u64,
    median_ns: u64,
    p99_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// What is taken from a line, and what it is called.
type Figure = (&'static str, fn(&Line) -> u64);

pub(crate) async fn run(args: LatencyArgs) -> anyhow::Result<()> {
    if args.runs == 0 || args.ops == 0 {
        bail!("--runs and --ops must be at least 1");
    }
    let mut runs: Vec<Vec<Line>> = Vec::new();
    for i in 0..args.runs {
        output::note(&format!("run {} of {}", i + 1, args.runs));
        runs.push(one_run(&args).await?);
    }
    let columns: [Figure; 3] = [
        ("median", |l| l.median_ns),
        ("p99", |l| l.p99_ns),
        ("min", |l| l.min_ns),
    ];
    let mut table = Table::new(&[
        "operation",
        "bytes",
        "median (µs)",
        "spread",
        "p99 (µs)",
        "spread",
        "min (µs)",
        "spread",
        "max (µs)",
    ]);
    let mut items = Vec::new();
    for (i, line) in runs[0].iter().enumerate() {
        let of = |f: fn(&Line) -> u64| {
            let mut values: Vec<u64> = runs.iter().filter_map(|r| r.get(i)).map(f).collect();
            values.sort_unstable();
            values
        };
        let mut cells = vec![line.op.replace('_', " "), line.bytes.to_string()];
        let mut item =
            json!({ "op": line.op, "bytes": line.bytes, "count": line.count, "runs": args.runs });
        for (name, f) in columns {
            let values = of(f);
            let (low, mid, high) = (
                values[0],
                values[values.len() / 2],
                values[values.len() - 1],
            );
            cells.push(micros(mid));
            cells.push(format!("{}–{}", micros(low), micros(high)));
            item[format!("{name}_ns")] = json!({ "median": mid, "min": low, "max": high });
        }
        let worst = of(|l| l.max_ns).pop().unwrap_or(0);
        cells.push(micros(worst));
        item["max_ns"] = json!(worst);
        table.row(cells);
        items.push(item);
    }
    match args.format {
        Format::Json => {
            let all = json!({ "machine": machine(), "operations": items });
            output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        }
        format => {
            output::text(&format!("{}\n\n{}", machine(), table.render(format)));
        }
    }
    Ok(())
}

fn micros(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

async fn one_run(args: &LatencyArgs) -> anyhow::Result<Vec<Line>> {
    let listen = if args.unix { "unix" } else { "127.0.0.1:0" };
    let text = CLUSTER.replacen(
        "name = \"demo\"\n",
        &format!("name = \"demo\"\n[defaults]\nlisten = \"{listen}\"\n"),
        1,
    );
    let ops = args.ops.to_string();
    let said = run_on(&text, &["latency", "--ops", &ops]).await?;
    json_lines(&said)
}
