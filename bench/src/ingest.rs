//! `dosmos-bench ingest`: how many records per second one event manager takes from many memory processes at once. The event manager is a
//! process of its own with a real store; the memory processes are streams of this process, which send batches of the size that real
//! ones send, and have no more of them under way than real ones hold. A record counts when it is on disk.

use std::time::Instant;

use anyhow::ensure;
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use dosmos_proto::transport::Address;
use dosmos_proto::wire::{self, ingest_reply};
use dosmos_proto::{
    ApId, ElementType, GroupId, Layout, MpId, Nanos, ObjectId, Token, Topology, VarId, Variable,
    VariableSpec,
};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use serde_json::json;

use crate::args::IngestArgs;
use crate::machine::machine;
use crate::manager::OfOneGroup;
use crate::statistics::spread;
use crate::store::usage::{cpu_time, disk_bytes};
use crate::stream::Stream;

/// Records of a batch, as of a real memory process that is busy.
const BATCH: usize = 8192;
/// Batches under way of one memory process: about as many as fit into what it holds of records at most.
const UNDER_WAY: u64 = 64;
/// Objects of the variable that each process has.
const OBJECTS: u32 = 64;

/// One run. The schema of `--format json`, with medians and extremes over runs.
struct Measured {
    /// Millions of records per second of time, and of processor time of the event manager.
    by_time: f64,
    by_processor: f64,
    /// Processors that the senders took.
    senders: f64,
    /// Most memory of the event manager, in MiB.
    peak: f64,
    bytes_per_record: f64,
}

pub(crate) async fn run(args: IngestArgs) -> anyhow::Result<()> {
    let batches = args.records / BATCH as u64 / u64::from(args.processes.max(1));
    ensure!(
        args.runs > 0 && args.processes > 0 && batches > 0,
        "--runs and --processes must be at least 1, --records at least {BATCH} for each process"
    );
    let mut runs = Vec::new();
    for i in 0..args.runs {
        output::note(&format!("run {} of {}", i + 1, args.runs));
        runs.push(one(args.processes, batches).await?);
    }
    print(&args, batches, &runs);
    Ok(())
}

async fn one(processes: u32, batches: u64) -> anyhow::Result<Measured> {
    let mut to = OfOneGroup::start(processes).await?;
    let (began, before) = (Instant::now(), cpu_time());
    let mut senders = tokio::task::JoinSet::new();
    for me in 0..processes {
        let sender = Sender::new(me, processes, batches)?;
        senders.spawn(sender.run(to.topology.clone(), to.address.clone(), to.token.clone()));
    }
    while let Some(sent) = senders.join_next().await {
        sent??;
    }
    let elapsed = began.elapsed().as_secs_f64();
    let sent_with = (cpu_time() - before).as_secs_f64();
    let used = to.manager.usage()?;
    to.manager.stop()?;
    let records = (u64::from(processes) * batches * BATCH as u64) as f64;
    let store = to.dir.path().join("store").join("emp0");
    Ok(Measured {
        by_time: records / elapsed / 1e6,
        by_processor: records / used.processor.as_secs_f64() / 1e6,
        senders: sent_with / elapsed,
        peak: used.peak as f64 / f64::from(1 << 20),
        bytes_per_record: disk_bytes(&store)? as f64 / records,
    })
}

/// One memory process.
struct Sender {
    me: u32,
    batches: u64,
    sequence: u64,
    /// A batch, of which all others are copies at later times.
    columns: wire::RecordColumns,
    /// From the beginning of a batch to that of the next.
    length: u64,
    variables: Vec<wire::Variable>,
}

impl Sender {
    fn new(me: u32, processes: u32, batches: u64) -> anyhow::Result<Self> {
        let records = records(me, processes);
        let end = records.last().map_or(0, |r| r.start.0);
        let begin = records.first().map_or(0, |r| r.start.0);
        Ok(Self {
            me,
            batches,
            sequence: 0,
            columns: dosmos_trace::wire::encode(&records),
            length: end - begin + 1_000,
            // Of a variable that several tell of, the first counts.
            variables: (0..processes)
                .map(variable)
                .collect::<anyhow::Result<_>>()?,
        })
    }

    async fn run(
        mut self,
        topology: Topology,
        address: Address,
        token: Token,
    ) -> anyhow::Result<()> {
        let name = format!("mp{}", self.me);
        let mut stream = Stream::open((&address, &token), name, topology).await?;
        let mut durable = 0;
        while durable < self.batches {
            while self.sequence < self.batches && self.sequence < durable + UNDER_WAY {
                stream.send(self.next());
            }
            if let Some(ingest_reply::Body::Durable(to)) = stream.reply().await? {
                durable = to;
            }
        }
        stream.end(self.batches).await
    }

    fn next(&mut self) -> wire::Batch {
        self.sequence += 1;
        let base_ns = self.columns.base_ns + (self.sequence - 1) * self.length;
        let made = self.sequence * BATCH as u64;
        wire::Batch {
            sequence: self.sequence,
            records: Some(wire::RecordColumns {
                base_ns,
                ..self.columns.clone()
            }),
            sampling: 1.0,
            counters: Some(wire::ProcessCounters {
                requests: made,
                recorded: made,
                ..Default::default()
            }),
            variables: std::mem::take(&mut self.variables),
            ..Default::default()
        }
    }
}

fn variable(id: u32) -> anyhow::Result<wire::Variable> {
    let layout = Layout::new(ElementType::F64, (OBJECTS.into(), 512), (1, 512));
    let layout = layout.map_err(|e| anyhow::anyhow!("{e}"))?;
    let spec = VariableSpec::new(format!("field.{id:02}"), layout)?;
    Ok(Variable::new(VarId(id), spec, vec![MpId(id)], GroupId(0))?.into())
}

/// A batch of process `me`, one of `processes`: four accesses in five to objects of its own, the others to those of its neighbours, with times that
/// differ.
fn records(me: u32, processes: u32) -> Vec<Record> {
    let mut random = u64::from(me) + 1;
    let mut below = move |n: u64| {
        // Xorshift: as good as needed, and the same every time.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % n
    };
    let mut now = 1_000;
    let record = |_| {
        now += 2_000 + below(3_000);
        let far = below(5) == 0;
        let first = below(448) as u32;
        let many = [1, 8, 64][below(3) as usize];
        let neighbour = (me + processes - 1 + 2 * below(2) as u32) % processes;
        let owner = if far { neighbour } else { me };
        let (duration, wait) = match far {
            true => (30_000 + below(60_000), 2_000 + below(10_000)),
            false => (4_000 + below(8_000), 0),
        };
        Record {
            start: Nanos(now),
            duration: Nanos(duration),
            wait: Nanos(wait),
            service: Nanos(500 + below(1_500)),
            op: [Op::Read, Op::Read, Op::Write][below(3) as usize],
            side: Side::Requester,
            origin: if far { Origin::Intra } else { Origin::Local },
            flags: Flags::default(),
            object: ObjectId::new(VarId(owner), below(OBJECTS.into()) as u32),
            ap: ApId(me),
            mp: MpId(me),
            peer: MpId(owner),
            count: 1,
            bytes: u64::from(many) * 8,
            version: now / 50_000,
            range: (first, first + many),
        }
    };
    (0..BATCH).map(record).collect()
}

fn print(args: &IngestArgs, batches: u64, runs: &[Measured]) {
    type Figure = (&'static str, usize, fn(&Measured) -> f64);
    let figures: [Figure; 5] = [
        ("M records/s", 2, |m| m.by_time),
        (
            "M records/s of the event manager's processor time",
            2,
            |m| m.by_processor,
        ),
        ("processors that the senders took", 2, |m| m.senders),
        ("most memory of the event manager, MiB", 0, |m| m.peak),
        ("bytes per record on disk", 1, |m| m.bytes_per_record),
    ];
    let records = u64::from(args.processes) * batches * BATCH as u64;
    let of = |f: fn(&Measured) -> f64| spread(runs.iter().map(f).collect());
    if args.format == Format::Json {
        let figures = figures.map(|(what, _, f)| {
            let s = of(f);
            json!({"what": what, "min": s[0], "median": s[1], "max": s[2]})
        });
        let answer = json!({
            "machine": machine(), "runs": args.runs, "processes": args.processes, "records": records, "figures": figures,
        });
        return output::text(&format!("{answer:#}\n"));
    }
    output::note(&format!(
        "{}; {records} records of {} memory processes, {} runs",
        machine(),
        args.processes,
        args.runs
    ));
    let mut table = Table::new(&["", "least", "median", "most"]);
    for (what, digits, f) in figures {
        let [least, median, most] = of(f).map(|x| format!("{x:.digits$}"));
        table.row([what.to_owned(), least, median, most]);
    }
    output::text(&table.render(args.format));
}
