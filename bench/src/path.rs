//! `dosmos-bench path`: the critical path of a run in simulated time: each process reads and works in sections of its own, all
//! work in sections of one object in turn and meet at a barrier, again and again. Making the records is not measured.

use anyhow::{Context, ensure};
use dosmos_analysis::PathBuilder;
use dosmos_cli::output;
use dosmos_proto::{Nanos, ObjectId};
use dosmos_trace::query::Breakdown;
use dosmos_trace::record::{Op, Record};

use crate::args::PathArgs;
use crate::machine::machine;
use crate::store::usage::{Meter, one_processor, peak};
use crate::verify::{BARRIER, SHARED, catalog, record};

/// Sections of each process in objects of its own between two barriers, and reads behind each.
const SECTIONS: u64 = 5;
const READS: u64 = 7;
/// An operation takes half of this, nanoseconds.
const STEP: u64 = 1_000;

pub(super) fn run(args: &PathArgs) -> anyhow::Result<()> {
    one_processor()?;
    output::text(&measured(args)?);
    output::note(&machine());
    Ok(())
}

fn measured(args: &PathArgs) -> anyhow::Result<String> {
    let n = args.processes;
    ensure!(n > 0, "at least one process");
    // The last object is everybody's.
    let catalog = catalog(n, n + 1)?;
    let mut builder = PathBuilder::new(&catalog);
    let (mut records, mut phase) = (0, 0);
    let mut meter = Meter::default();
    let mut made = Vec::new();
    while records < args.records {
        made.clear();
        make_phase(&mut made, phase, n);
        made.sort_by_key(|r: &Record| r.start);
        records += made.len() as u64;
        meter.measure(|| made.iter().for_each(|record| builder.add(record)));
        phase += 1;
    }
    let (path, delays) = meter.measure(|| builder.finish(&catalog, &Breakdown::default()));
    let path = path.context("there is a path")?;
    let parts: u64 = path.parts.iter().map(|p| p.time_ns).sum();
    ensure!(parts == path.length_ns, "the parts are the path");
    let (seconds, busy) = (meter.elapsed.as_secs_f64(), meter.cpu.as_secs_f64());
    Ok(format!(
        "{records} records of {n} processes: {seconds:.2} s, {busy:.2} s of one processor, {:.2} M records/s of processor time; \
         peak of memory {} MiB\n{}\n{}\n",
        records as f64 / busy / 1e6,
        peak()? >> 20,
        path.summary,
        delays.first().map_or("no delay", |d| d.text.as_str()),
    ))
}

/// What all do up to the next barrier.
fn make_phase(to: &mut Vec<Record>, phase: u64, n: u32) {
    let own = SECTIONS * (READS + 3) * STEP;
    let length = own + u64::from(n) * STEP + 10 * STEP;
    let base = 1_000_000_000 + phase * length;
    for ap in 0..n {
        let mut at = base + u64::from(ap);
        let mut one = |op| {
            let object = ObjectId::new(SHARED, ap);
            to.push(record(ap, op, object, n, (at, phase, false)));
            at += STEP;
        };
        for _ in 0..SECTIONS {
            one(Op::Acquire);
            one(Op::Write);
            one(Op::Release);
            (0..READS).for_each(|_| one(Op::Read));
        }
        // All want it at once, and have it one after the other.
        let shared = ObjectId::new(SHARED, n);
        let granted = base + own + u64::from(ap + 1) * STEP;
        to.push(Record {
            duration: Nanos(granted - at),
            wait: Nanos(granted - at),
            ..record(ap, Op::Acquire, shared, n, (at, phase, false))
        });
        let release = granted + STEP / 4;
        to.push(record(ap, Op::Release, shared, n, (release, phase, false)));
        let arrives = release + STEP;
        to.push(Record {
            duration: Nanos(base + length - arrives),
            ..record(
                ap,
                Op::Barrier,
                ObjectId::new(BARRIER, phase as u32 + 1),
                n,
                (arrives, 0, false),
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_wait_for_the_one_that_has_the_lock_last() {
        let (records, processes) = (10_000, 4);
        let said = measured(&PathArgs { records, processes }).unwrap();
        let last = "ap3 was waited for by 3 others at barrier";
        assert!(said.contains(last) && said.contains("held by"), "{said}");
    }
}
