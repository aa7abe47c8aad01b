//! What TLS costs an operation: pairs of runs over TCP, one with TLS and one without, in changing order.

use std::path::Path;

use dosmos_authority::{Folder, Request, Validity};
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use dosmos_secure::files::{CA, CERTIFICATE, KEY};
use dosmos_secure::{Identity, Role};
use serde_json::json;

use super::line::{Line, micros, operations};
use crate::args::LatencyArgs;
use crate::machine::machine;
use crate::statistics::spread;

const LISTEN: &str = "127.0.0.1:0";

/// The two runs of a pair.
struct Pair {
    plain: Vec<Line>,
    tls: Vec<Line>,
}

pub(super) async fn run(args: &LatencyArgs) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let tls = certificates(scratch.path())?;
    let mut pairs = Vec::new();
    for i in 0..args.runs {
        output::note(&format!("pair {} of {}", i + 1, args.runs));
        let (mut plain, mut with_tls) = (Vec::new(), Vec::new());
        for second in [false, true] {
            match (i % 2 == 0) == second {
                true => with_tls = operations(LISTEN, &tls, args.ops).await?,
                false => plain = operations(LISTEN, "", args.ops).await?,
            }
        }
        pairs.push(Pair {
            plain,
            tls: with_tls,
        });
    }
    let text = match args.format {
        Format::Json => {
            let items: Vec<_> = names(&pairs).map(|op| item(&pairs, op)).collect();
            let all = json!({ "machine": machine(), "pairs": pairs.len(), "operations": items });
            serde_json::to_string_pretty(&all)?
        }
        format => format!(
            "{}\n\n{}",
            machine(),
            table(&pairs).render(format).trim_end()
        ),
    };
    output::text(&(text + "\n"));
    Ok(())
}

/// One certificate for all processes of the demo's cluster, and the part of its file that names it.
fn certificates(folder: &Path) -> anyhow::Result<String> {
    let cluster = "demo";
    let authority = Folder::create(folder, cluster, Validity::days(2))?;
    let identities = Role::ALL.map(|role| Identity::new(cluster, role, "*"));
    let request = Request {
        identities: identities.into_iter().collect::<Result<_, _>>()?,
        hosts: Vec::new(),
        validity: Validity::days(1),
    };
    let made = authority.issue("all", &request)?;
    let [ca, certificate, key] = [CA, CERTIFICATE, KEY].map(|name| json!(made.join(name)));
    Ok(format!(
        "\n[tls]\nca = {ca}\ncertificate = {certificate}\nkey = {key}\n"
    ))
}

fn names(pairs: &[Pair]) -> impl Iterator<Item = &str> {
    let first = pairs.iter().take(1);
    first.flat_map(|pair| pair.plain.iter().map(|line| line.op.as_str()))
}

fn median(lines: &[Line], op: &str) -> Option<f64> {
    let line = lines.iter().find(|l| l.op == op)?;
    Some(line.median_ns as f64)
}

/// Medians without TLS and with, and their ratio pair by pair: least, median, greatest.
fn figures(pairs: &[Pair], op: &str) -> [[f64; 3]; 3] {
    let plain = pairs.iter().filter_map(|p| median(&p.plain, op));
    let tls = pairs.iter().filter_map(|p| median(&p.tls, op));
    let ratio = pairs.iter().filter_map(|p| {
        let plain = median(&p.plain, op).filter(|m| *m > 0.0)?;
        Some(median(&p.tls, op)? / plain)
    });
    [plain.collect(), tls.collect(), ratio.collect()].map(spread)
}

fn item(pairs: &[Pair], op: &str) -> serde_json::Value {
    let [plain, tls, ratio] = figures(pairs, op)
        .map(|[low, median, high]| json!({ "median": median, "min": low, "max": high }));
    json!({ "op": op, "plain_ns": plain, "tls_ns": tls, "ratio": ratio })
}

fn table(pairs: &[Pair]) -> Table {
    let mut table = Table::new(&[
        "operation",
        "TCP (µs)",
        "spread",
        "TLS (µs)",
        "spread",
        "TLS over TCP",
    ]);
    for op in names(pairs) {
        let [plain, tls, ratio] = figures(pairs, op);
        let range = |f: [f64; 3]| format!("{}–{}", micros(f[0]), micros(f[2]));
        table.row([
            op.replace('_', " "),
            micros(plain[1]),
            range(plain),
            micros(tls[1]),
            range(tls),
            format!("{:.2} [{:.2}–{:.2}]", ratio[1], ratio[0], ratio[2]),
        ]);
    }
    table
}
