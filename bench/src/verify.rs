//! `dosmos-bench verify`: the checker of the consistency contract on a run in simulated time that keeps it: each process reads
//! copies, works in sections and passes a barrier, again and again. Making the records is not measured.

use anyhow::ensure;
use dosmos_cli::output;
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, ElementType, EmpId, GroupId, GroupPath, Layout, MpId, Nanos, ObjectId, TopologyBuilder,
    VarId, Variable, VariableSpec,
};
use dosmos_trace::query::{BarrierName, Catalog, Completeness};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use dosmos_verify::{Options, State, Verifier};

use crate::args::VerifyArgs;
use crate::machine::machine;
use crate::store::usage::{Meter, one_processor, peak};

pub(crate) const SHARED: VarId = VarId(1);
pub(crate) const BARRIER: VarId = VarId(1 << 31);
/// Sections of each process between two barriers, and reads behind each.
const SECTIONS: u32 = 20;
const READS: u32 = 7;

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<()> {
    let (n, objects) = (args.processes, args.objects);
    ensure!(
        n > 0 && objects >= n,
        "at least one object for each process"
    );
    one_processor()?;
    let catalog = catalog(n, objects)?;
    let options = Options {
        races: !args.no_races,
        ..Options::default()
    };
    let mut verifier = Verifier::new(catalog, options);
    let mut versions = vec![0; objects as usize];
    let (mut operations, mut records, mut phase) = (0, 0, 0);
    let mut meter = Meter::default();
    let mut made = Vec::new();
    while operations < args.operations {
        made.clear();
        operations += make_phase(&mut made, phase, n, &mut versions);
        made.sort_by_key(|r: &Record| r.start);
        records += made.len();
        meter.measure(|| made.iter().for_each(|record| verifier.add(record)));
        phase += 1;
    }
    let verdict = meter.measure(|| verifier.finish(&Completeness::default(), false, &[]));
    ensure!(
        verdict.state == State::Consistent,
        "the run keeps the contract: {:#?}",
        verdict.violations
    );
    let (seconds, busy) = (meter.elapsed.as_secs_f64(), meter.cpu.as_secs_f64());
    output::text(&format!(
        "{operations} operations ({records} records) of {n} processes on {objects} objects: {seconds:.2} s, {busy:.2} s of one processor, \
         {:.2} M operations/s of processor time; peak of memory {} MiB\n",
        operations as f64 / busy / 1e6,
        peak()? >> 20
    ));
    output::note(&machine());
    Ok(())
}

pub(crate) fn catalog(n: u32, objects: u32) -> anyhow::Result<Catalog> {
    let layout = Layout::new(ElementType::F64, (1, u64::from(objects) * 8), (1, objects))?;
    let owners = (0..n).map(MpId).collect();
    let shared = VariableSpec::new("shared", layout)?;
    Ok(Catalog {
        topology: topology(n).build()?,
        variables: vec![Variable::new(SHARED, shared, owners, GroupId(0))?],
        barriers: vec![BarrierName {
            id: BARRIER,
            group: None,
            name: String::new(),
        }],
        ..Catalog::default()
    })
}

/// One group of `n` memory processes with an application process each.
pub(crate) fn topology(n: u32) -> TopologyBuilder {
    let mut topology = TopologyBuilder {
        name: "generated".into(),
        event_managers: vec![EventManager {
            name: "emp0".into(),
        }],
        groups: vec![Group {
            path: GroupPath::from("all"),
            parent: None,
        }],
        ..TopologyBuilder::default()
    };
    for i in 0..n {
        topology.memory_processes.push(MemoryProcess {
            name: format!("mp{i}"),
            group: GroupId(0),
            event_manager: EmpId(0),
            link: false,
        });
        topology.application_processes.push(ApplicationProcess {
            name: format!("ap{i}"),
            memory_process: MpId(i),
        });
    }
    topology
}

/// What all do up to the next barrier; how many operations that is.
pub(crate) fn make_phase(to: &mut Vec<Record>, phase: u64, n: u32, versions: &mut [u64]) -> u64 {
    let objects = versions.len() as u32;
    let length = u64::from(SECTIONS * (READS + 4)) * 1_000;
    let base = 1_000_000_000 + phase * (length + 10_000);
    let mut operations = 0;
    // In turns, so that the sections of an object do not overlap.
    for turn in 0..SECTIONS {
        for ap in 0..n {
            let mut at = base + u64::from(turn * (READS + 4)) * 1_000 + u64::from(ap);
            // Each writes objects of its own in this phase, and reads them.
            let share = objects / n;
            let index = ((ap + phase as u32) % n) * share + (turn % share);
            let object = ObjectId::new(SHARED, index);
            let version = versions[index as usize];
            let mut one = |op, version, optimized| {
                let record = record(ap, op, object, n, (at, version, optimized));
                if record.origin != Origin::Local {
                    to.push(Record {
                        start: Nanos(at + 100),
                        duration: Nanos(200),
                        side: Side::Owner,
                        ..record
                    });
                }
                to.push(record);
                at += 1_000;
                operations += 1;
            };
            one(Op::Acquire, version, false);
            one(Op::Write, version, false);
            one(Op::Release, version + 1, false);
            versions[index as usize] += 1;
            one(Op::Read, version + 1, false);
            for _ in 0..READS {
                one(Op::Read, version + 1, true);
            }
        }
    }
    for ap in 0..n {
        let object = ObjectId::new(BARRIER, phase as u32 + 1);
        let start = base + length + u64::from(ap);
        to.push(Record {
            duration: Nanos(base + length + 9_000 - start),
            peer: MpId(0),
            ..record(ap, Op::Barrier, object, n, (start, 0, false))
        });
        operations += 1;
    }
    operations
}

pub(crate) fn record(
    ap: u32,
    op: Op,
    object: ObjectId,
    n: u32,
    (at, version, copy): (u64, u64, bool),
) -> Record {
    let owner = MpId(object.index % n);
    let touches = matches!(op, Op::Read | Op::Write);
    let local = owner.0 == ap || copy || op == Op::Barrier;
    Record {
        start: Nanos(at),
        duration: Nanos(500),
        wait: Nanos(0),
        service: Nanos(0),
        op,
        side: Side::Requester,
        origin: if local { Origin::Local } else { Origin::Intra },
        flags: Flags {
            optimized: copy && owner.0 != ap,
            ..Flags::default()
        },
        object,
        ap: ApId(ap),
        mp: MpId(ap),
        peer: owner,
        count: 1,
        bytes: if touches { 64 } else { 0 },
        version,
        range: if touches { (0, 8) } else { (0, 0) },
    }
}
