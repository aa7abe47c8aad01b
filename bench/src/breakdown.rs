//! Where the time of a run on a cluster went.

use dosmos_client::{Run, Target};
use dosmos_proto::{Component, PhaseTimes};
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

/// Length of a run, µs: from when the last process had declared what it uses until the last one ended, as the model of
/// a run has it (`Measured::run_us`). None if no process said anything.
pub(crate) fn length_us(breakdown: &Breakdown) -> Option<f64> {
    let processes = breakdown.by_process();
    let began = |p: &PhaseTimes| p.start + p.spent.time(Component::Other);
    let begin = processes.iter().map(began).max()?;
    let end = processes.iter().map(PhaseTimes::end).max()?;
    Some((end - begin).0 as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use dosmos_proto::{ApId, Nanos};

    use super::*;

    #[test]
    fn a_run_begins_with_the_last_process_and_ends_with_the_last() {
        let process = |ap, start, starting, wall| {
            let mut times = PhaseTimes {
                ap: ApId(ap),
                start: Nanos(start),
                wall: Nanos(wall),
                ..PhaseTimes::default()
            };
            times.spent.add(Component::Other, Nanos(starting), 0);
            times
        };
        let breakdown = Breakdown {
            phases: vec![
                process(0, 1_000, 2_000, 9_000),
                process(1, 4_000, 1_000, 3_000),
            ],
            ..Breakdown::default()
        };
        assert_eq!(length_us(&breakdown), Some(5.0));
        assert_eq!(length_us(&Breakdown::default()), None);
    }
}
