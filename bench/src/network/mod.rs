//! `dosmos-bench network`: what messages cost between two processes of this machine, over the transport
//! of the memory processes; the network record of the DVSM model.
//!
//! Schema of the JSON: `dosmos_model::inputs::NetworkRecord` (`machine`, `processors`, `network`, `hop`, `carried_us`),
//! and beside it `transport`, `messages`, `runs` and `samples` (per size: `bytes` and median, least and
//! greatest of `one_way_us`, `software_us`, `system_us`).

mod behind;
mod peer;

use std::time::Duration;

use anyhow::{Context, bail};
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use dosmos_model::inputs::{Hop, MessageSample, NetworkRecord, network_of};
use dosmos_proto::Nanos;
use dosmos_proto::transport::Address;
use dosmos_testkit::SlowLink;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::NetworkArgs;
use crate::machine::machine;
use crate::run::{json_lines, run_on};
use crate::statistics::spread;
pub(crate) use behind::Behind;
pub(crate) use peer::Link;

/// Sizes of messages, in bytes.
const SIZES: [usize; 10] = [
    0, 64, 256, 1024, 4096, 16_384, 65_536, 131_072, 262_144, 1_048_576,
];
/// Messages before those that count.
const WARM_UP: u32 = 200;
/// Sizes of an application process's reads and writes, in elements of 8 bytes.
const ELEMENTS: [usize; 4] = [1, 128, 1024, 8192];

pub(crate) async fn run(args: NetworkArgs) -> anyhow::Result<()> {
    if let Some(address) = &args.answer {
        return peer::answer(address).await;
    }
    if args.runs == 0 || args.messages == 0 {
        bail!("--runs and --messages must be at least 1");
    }
    let (record, sizes) = measure(&args, None).await?;
    let document = document(&args, &record, &sizes)?;
    let text = serde_json::to_string_pretty(&document)? + "\n";
    if let Some(path) = &args.output {
        std::fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    match args.format {
        Format::Json => output::text(&text),
        format => output::text(&tables(&record, &sizes, format)),
    }
    Ok(())
}

/// The network record, and the samples of each size by run; of links that are longer by `delay`, if one is given.
pub(super) async fn measure(
    args: &NetworkArgs,
    delay: Option<Duration>,
) -> anyhow::Result<(NetworkRecord, Vec<Vec<MessageSample>>)> {
    let mut sizes: Vec<Vec<MessageSample>> = vec![Vec::new(); SIZES.len()];
    let mut hops: Vec<Vec<Line>> = Vec::new();
    let mut carried = Vec::new();
    for i in 0..args.runs {
        output::note(&format!("run {} of {}", i + 1, args.runs));
        let (samples, carried_us) = one_run(args, delay).await?;
        for (all, sample) in sizes.iter_mut().zip(samples) {
            all.push(sample);
        }
        carried.push(carried_us);
        hops.push(hop_run(args, delay).await?);
    }
    let medians: Vec<MessageSample> = sizes.iter().map(|s| median_of(s)).collect();
    let record = NetworkRecord {
        machine: machine(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        network: network_of(&medians)?,
        hop: Hop {
            read_us: hop_line(&hops, "local_read"),
            write_us: hop_line(&hops, "local_write"),
        },
        carried_us: [0, 1]
            .map(|i| spread(carried.iter().map(|line: &[f64; 2]| line[i]).collect())[1]),
    };
    Ok((record, sizes))
}

/// Messages of each size between two processes, and the processor time in µs that what lies between took for one of that many bytes.
async fn one_run(
    args: &NetworkArgs,
    delay: Option<Duration>,
) -> anyhow::Result<(Vec<MessageSample>, [f64; 2])> {
    let scratch = tempfile::tempdir()?;
    let socket = scratch.path().join("echo.sock");
    let slow = delay
        .map(|delay| SlowLink::to(&socket, delay))
        .transpose()?;
    let address = match args.unix {
        true => Address::Unix(socket),
        false => Address::Tcp("127.0.0.1:0".to_owned()),
    };
    let through = slow
        .as_ref()
        .map(|link| Address::Tcp(link.address().to_string()));
    let mut link = Link::open(&address, through.as_ref()).await?;
    // The link's threads are of this process.
    let between = || {
        slow.as_ref()
            .map_or(0.0, |l| l.processor().as_secs_f64() * 1e6)
    };
    let mut carried = Vec::new();
    let mut samples = Vec::new();
    for bytes in SIZES {
        link.measure(bytes, WARM_UP.min(args.messages)).await?;
        // Large messages take long: fewer of them tell as much.
        let messages = (args.messages / (1 + bytes as u32 / 65_536)).max(1);
        let before = between();
        let measured = link.measure(bytes, messages).await?;
        let between = between() - before;
        carried.push((bytes as f64, between / (2.0 * f64::from(messages))));
        // There and back are two messages of two ends each.
        let ends = 4.0 * f64::from(messages);
        samples.push(MessageSample {
            bytes: bytes as f64,
            one_way_us: micros(measured.round_trip) / 2.0,
            software_us: (micros(measured.cpu.all) - between).max(0.0) / ends,
            system_us: (micros(measured.cpu.system) - between).max(0.0) / ends,
        });
    }
    let carried_us = dosmos_model::inputs::network::line(carried.into_iter());
    Ok((samples, carried_us))
}

/// A line of the `latency` program.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    op: String,
    bytes: u64,
    median_ns: u64,
}

const CLUSTER: &str = r#"
name = "bench-network"
[recording]
mode = "off"
[[group]]
name = "g"
[[emp]]
name = "emp0"
[[mp]]
name = "mp0"
group = "g"
emp = "emp0"
[[ap]]
name = "ap0"
mp = "mp0"
"#;

/// Reads and writes of each size by an application process of a cluster of its own.
async fn hop_run(args: &NetworkArgs, delay: Option<Duration>) -> anyhow::Result<Vec<Line>> {
    let listen = match args.unix {
        true => "[defaults]\nlisten = \"unix\"\n[recording]",
        false => "[defaults]\nlisten = \"127.0.0.1:0\"\n[recording]",
    };
    let mut cluster = CLUSTER.replacen("[recording]", listen, 1);
    let slow = delay.map(|delay| Behind::links(delay, 1)).transpose()?;
    if let Some(slow) = &slow {
        cluster = slow.cluster(&cluster);
    }
    let ops = args.messages.to_string();
    let mut lines = Vec::new();
    for elements in ELEMENTS {
        let elements = elements.to_string();
        let app = [
            "latency",
            "--at",
            "local",
            "--ops",
            &ops,
            "--elements",
            &elements,
        ];
        lines.extend(json_lines::<Line>(&run_on(&cluster, &app).await?)?);
    }
    Ok(lines)
}

/// Time over bytes of an operation: the line through the medians over the runs.
fn hop_line(runs: &[Vec<Line>], op: &str) -> [f64; 2] {
    let points = ELEMENTS.iter().map(|&elements| {
        let bytes = 8 * elements as u64;
        let of_size = |l: &&Line| l.op == op && l.bytes == bytes;
        let times = runs.iter().flat_map(|run| run.iter().filter(of_size));
        let [_, median, _] = spread(times.map(|l| micros(Nanos(l.median_ns))).collect());
        (bytes as f64, median)
    });
    dosmos_model::inputs::network::line(points.filter(|(_, time)| time.is_finite()))
}

type Figure = (&'static str, fn(&MessageSample) -> f64);

const FIGURES: [Figure; 3] = [
    ("one_way_us", |s| s.one_way_us),
    ("software_us", |s| s.software_us),
    ("system_us", |s| s.system_us),
];

fn median_of(samples: &[MessageSample]) -> MessageSample {
    let median = |of: fn(&MessageSample) -> f64| spread(samples.iter().map(of).collect())[1];
    MessageSample {
        bytes: samples.first().map_or(0.0, |s| s.bytes),
        one_way_us: median(FIGURES[0].1),
        software_us: median(FIGURES[1].1),
        system_us: median(FIGURES[2].1),
    }
}

fn document(
    args: &NetworkArgs,
    record: &NetworkRecord,
    sizes: &[Vec<MessageSample>],
) -> anyhow::Result<Value> {
    let samples: Vec<Value> = SIZES
        .iter()
        .zip(sizes)
        .map(|(bytes, runs)| {
            let mut item = json!({ "bytes": bytes });
            for (name, of) in FIGURES {
                let [min, median, max] = spread(runs.iter().map(of).collect());
                item[name] = json!({ "median": median, "min": min, "max": max });
            }
            item
        })
        .collect();
    let mut document = serde_json::to_value(record)?;
    document["transport"] = json!(if args.unix { "unix" } else { "tcp" });
    document["messages"] = json!(args.messages);
    document["runs"] = json!(args.runs);
    document["samples"] = json!(samples);
    Ok(document)
}

fn tables(record: &NetworkRecord, sizes: &[Vec<MessageSample>], format: Format) -> String {
    let mut table = Table::new(&[
        "bytes",
        "one way (µs)",
        "spread",
        "software of one end (µs)",
        "spread",
        "of it system (µs)",
        "spread",
    ]);
    for (bytes, runs) in SIZES.iter().zip(sizes) {
        let mut cells = vec![bytes.to_string()];
        for (_, of) in FIGURES {
            let [min, median, max] = spread(runs.iter().map(of).collect());
            cells.push(format!("{median:.1}"));
            cells.push(format!("{min:.1}–{max:.1}"));
        }
        table.row(cells);
    }
    let mut fitted = Table::new(&["cost", "µs", "µs per KiB"]);
    let mut add = |name: &str, [a, b]: [f64; 2]| {
        fitted.row([
            name.to_owned(),
            format!("{a:.2}"),
            format!("{:.3}", b * 1024.0),
        ]);
    };
    for segment in &record.network.segments {
        let name = segment.max_size.map_or_else(
            || "software of one end, larger".to_owned(),
            |most| format!("software of one end, up to {most} bytes"),
        );
        add(&name, segment.total_us);
    }
    add(
        "interface (two a message)",
        [record.network.interface_us, 0.0],
    );
    add("wire", [0.0, record.network.wire_us_per_byte]);
    add("read of the own memory process", record.hop.read_us);
    add("write to the own memory process", record.hop.write_us);
    format!(
        "{}\n\n{}\n{}",
        record.machine,
        table.render(format),
        fitted.render(format)
    )
}

fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}
