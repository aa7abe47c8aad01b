//! Where the time of a run on a cluster went.

use dosmos_client::{Run, Target};
use dosmos_proto::PhaseTimes;
use dosmos_trace::query::Breakdown;

use crate::run::Ran;

/// Where the time of a run went.
pub(crate) async fn breakdown_of(ran: &Ran) -> anyhow::Result<Breakdown> {
    let run = Run::open(&Target::run(ran.dir.path())).await?;
    Ok(run.source().breakdown().await?)
}

/// Each process's phases but the first and the last: these hold starting and verifying.
pub(crate) fn computing(breakdown: &Breakdown) -> Vec<PhaseTimes> {
    let mut processes: Vec<PhaseTimes> = Vec::new();
    for whole in breakdown.by_process() {
        let phases: Vec<&PhaseTimes> = breakdown.of(whole.ap).collect();
        let Some(inner) = phases.get(1..phases.len().saturating_sub(1)) else {
            continue;
        };
        let mut inner = inner.iter();
        if let Some(first) = inner.next() {
            let mut sum = **first;
            inner.for_each(|p| sum.join(p));
            processes.push(sum);
        }
    }
    processes
}
