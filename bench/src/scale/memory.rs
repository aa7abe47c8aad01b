//! How much memory one more of something takes: what is resident with many of them, less what was before, by their number.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use dosmos_cli::output;
use dosmos_proto::wire::ingest_reply;
use dosmos_proto::{
    ApId, ElementType, EmpId, GroupId, Layout, MpId, Nanos, ObjectId, VarId, Variable,
    VariableSpec, wire,
};
use dosmos_trace::meta::MetaState;
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use dosmos_trace::store::StoreSource;
use serde::Serialize;

use crate::args::ScaleArgs;
use crate::core_pair::Pair;
use crate::manager::OfOneGroup;
use crate::store::usage::resident_of;
use crate::stream::Stream;
use crate::{query, verify};

/// Records of a chunk.
const CHUNK: u64 = 8192;

#[derive(Debug, Serialize)]
pub(super) struct Size {
    pub(super) what: &'static str,
    pub(super) number: u32,
    pub(super) bytes_each: f64,
}

/// All of them, each in a process of its own.
pub(super) fn all(args: &ScaleArgs) -> anyhow::Result<Vec<Size>> {
    let objects = args.objects;
    let parts = [
        (
            "objects",
            "object of 8 bytes at its owner, read once",
            objects,
        ),
        (
            "copies",
            "copy of such an object: at its owner and where it is kept, beside the object",
            objects,
        ),
        (
            "meta-objects",
            "primary meta-object at an event manager",
            objects,
        ),
        (
            "chunks",
            "chunk of an open store (8,192 records)",
            args.chunks,
        ),
        (
            "connections",
            "memory process that reports to an event manager",
            args.processes,
        ),
    ];
    let mut sizes: Vec<Size> = Vec::new();
    for (part, what, number) in parts {
        output::note(&format!("memory: {part}"));
        let mut bytes_each = in_a_process(part, args)? / f64::from(number);
        if part == "copies" {
            bytes_each -= sizes.first().map_or(0.0, |objects| objects.bytes_each);
        }
        sizes.push(Size {
            what,
            number,
            bytes_each,
        });
    }
    Ok(sizes)
}

fn in_a_process(part: &str, args: &ScaleArgs) -> anyhow::Result<f64> {
    let output = Command::new(std::env::current_exe()?)
        .args(["scale", "--part", part])
        .args(["--objects", &args.objects.to_string()])
        .args(["--processes", &args.processes.to_string()])
        .args(["--chunks", &args.chunks.to_string()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{part}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let bytes = said.trim().parse();
    bytes.with_context(|| format!("{part}: {said:?} is not a number"))
}

/// How much more memory is in use with one of them, in bytes, in this process (or of the event manager that it starts).
pub(super) async fn here(part: &str, args: &ScaleArgs) -> anyhow::Result<f64> {
    let objects = args.objects;
    match part {
        "objects" => grows(|| Pair::with_objects(0, objects, 0)),
        "copies" => grows(|| Pair::with_objects(1, objects, 0)),
        "meta-objects" => grows(|| meta_objects(objects)),
        "chunks" => {
            let dir = tempfile::tempdir()?;
            query::build(dir.path(), u64::from(args.chunks) * CHUNK, 1)?;
            // What building took is given back to nobody: another process opens the store.
            let output = Command::new(std::env::current_exe()?)
                .args(["scale", "--part"])
                .arg(format!("store:{}", dir.path().display()))
                .output()?;
            let said = String::from_utf8_lossy(&output.stdout);
            said.trim().parse().with_context(|| format!("{said:?}"))
        }
        "connections" => connections(args.processes).await,
        store => {
            let path = store.strip_prefix("store:").context("no such part")?;
            grows(|| Ok(StoreSource::open(Path::new(path))?))
        }
    }
}

fn grows<T>(make: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<f64> {
    let this = Path::new("/proc/self");
    let before = resident_of(this)?;
    let made = make()?;
    let after = resident_of(this)?;
    drop(black_box(made));
    Ok(after as f64 - before as f64)
}

fn record(object: ObjectId) -> Record {
    Record {
        start: Nanos(1_000),
        duration: Nanos(1_000),
        wait: Nanos(0),
        service: Nanos(500),
        op: Op::Read,
        side: Side::Requester,
        origin: Origin::Local,
        flags: Flags::default(),
        object,
        ap: ApId(0),
        mp: MpId(0),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: 0,
        range: (0, 1),
    }
}

/// The fold of an event manager, with one record of each object.
fn meta_objects(objects: u32) -> anyhow::Result<MetaState> {
    let topology = verify::topology(2).build()?;
    let mut meta = MetaState::new(topology, EmpId(0));
    meta.declare(&variable(objects)?);
    for index in 0..objects {
        meta.apply(&record(ObjectId::new(VarId(0), index)));
    }
    Ok(meta)
}

fn variable(objects: u32) -> anyhow::Result<Variable> {
    let layout = Layout::new(ElementType::U64, (1, objects.into()), (1, objects))?;
    let spec = VariableSpec::new("x", layout)?;
    Ok(Variable::new(VarId(0), spec, vec![MpId(0)], GroupId(0))?)
}

/// A real event manager, before and after each memory process has told it of a record.
async fn connections(processes: u32) -> anyhow::Result<f64> {
    let mut to = OfOneGroup::start(processes).await?;
    let place = to.manager.place();
    let before = resident_of(&place)?;
    let mut streams = Vec::new();
    for me in 0..processes {
        let at = (&to.address, &to.token);
        let mut stream = Stream::open(at, format!("mp{me}"), to.topology.clone()).await?;
        stream.send(wire::Batch {
            sequence: 1,
            records: Some(dosmos_trace::wire::encode(&[Record {
                ap: ApId(me),
                mp: MpId(me),
                ..record(ObjectId::new(VarId(0), 0))
            }])),
            sampling: 1.0,
            variables: vec![variable(1)?.into()],
            ..Default::default()
        });
        while !matches!(
            stream.reply().await?,
            Some(ingest_reply::Body::Durable(1..))
        ) {}
        streams.push(stream);
    }
    let after = resident_of(&place)?;
    for stream in streams {
        stream.end(1).await?;
    }
    to.manager.stop()?;
    Ok(after as f64 - before as f64)
}
