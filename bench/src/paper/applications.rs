//! DVSM (docs/bibliography.md#dvsm), figure 1 and table 1: where the applications' time goes, and what more processes gain.

use anyhow::Context;
use dosmos_cli::demo;
use dosmos_client::{Run, Target};
use dosmos_model::inputs::{Change, DelayModel, NetworkRecord};
use dosmos_plot::{Block, Table};
use dosmos_proto::PhaseTimes;
use dosmos_report as report;
use dosmos_trace::query::Breakdown;

use super::effort::Effort;
use crate::applications::{APPLICATIONS, Application};
use crate::breakdown::{breakdown_of, computing};
use crate::run::{Ran, one_group, run_prepared};
use crate::statistics::spread;

/// Figure 1.
pub(super) async fn breakdown(effort: Effort) -> anyhow::Result<Vec<Block>> {
    let mut bars = Vec::new();
    for app in &APPLICATIONS {
        let breakdown = breakdown_of(&run(app, demo::CLUSTER, effort).await?).await?;
        let mut all: Option<PhaseTimes> = None;
        for process in computing(&breakdown) {
            match &mut all {
                Some(all) => all.join(&process),
                None => all = Some(process),
            }
        }
        bars.push((app.name.to_owned(), all.context("nobody computed")?));
    }
    let chart = report::breakdown(
        "DVSM, figure 1: execution time by component, 4 processes",
        &bars,
    );
    Ok(vec![Block::chart(
        chart,
        "All processes together, between their first and last barrier. Four processes and their memory processes share the \
         machine's cores: the time that the paper calls SIGIO is in *service* here: the time in which other processes had the processor. The \
         paper: busy time is 40 % (Water) to nearly all (SOR); locks take much time in IS, Sphere and Water, faults in Barnes.",
    )])
}

/// Processes that the model is asked for.
const MODELLED: [u32; 2] = [4, 8];

/// Table 1.
pub(super) async fn speedup(effort: Effort) -> anyhow::Result<Vec<Block>> {
    let mut table = Table::new([
        "application",
        "size",
        "1 process (s)",
        "2 processes (s)",
        "speed-up",
        "spread",
        "4, modelled",
        "8, modelled",
        "paper, 8, Ethernet",
        "paper, 8, ATM",
    ]);
    for app in &APPLICATIONS {
        let mut seconds: [Vec<f64>; 2] = Default::default();
        let mut modelled: [Vec<f64>; 2] = Default::default();
        for _ in 0..effort.runs {
            let alone =
                longest(&breakdown_of(&run(app, &one_group(1, true), effort).await?).await?);
            let ran = run(app, &one_group(2, true), effort).await?;
            let together = longest(&breakdown_of(&ran).await?);
            for (processes, gains) in MODELLED.into_iter().zip(&mut modelled) {
                gains.push(alone / (together * changed(&ran, processes).await?));
            }
            seconds[0].push(alone);
            seconds[1].push(together);
        }
        let gains = seconds[0]
            .iter()
            .zip(&seconds[1])
            .map(|(one, two)| one / two);
        let [low, gain, high] = spread(gains.collect());
        let [one, two] = seconds.map(|s| spread(s)[1]);
        let [four, eight] = modelled.map(|m| format!("{:.2}", spread(m)[1]));
        let printed = |value: Option<f64>| value.map_or("–".to_owned(), |v| v.to_string());
        table.row([
            app.name.to_owned(),
            app.command(effort.quick)[1..].join(" "),
            format!("{one:.3}"),
            format!("{two:.3}"),
            format!("{gain:.2}"),
            format!("{low:.2}–{high:.2}"),
            four,
            eight,
            printed(app.paper.map(|p| p.0)),
            printed(app.paper.map(|p| p.1)),
        ]);
    }
    Ok(vec![
        Block::text(
            "Time between the first and last barrier, in one group with a memory process for each process. With two processes, \
             four operating-system processes share two cores. Modelled: the phase model on the run with two processes, changed to \
             4 or 8 processes on as many processors (dosmos model predict --what-if procs=8,processors=8): the computation is \
             divided, each process makes as many operations as before.",
        ),
        Block::Table(table),
    ])
}

/// What the modelled time of a run becomes with other numbers of processes and processors, as a factor.
async fn changed(ran: &Ran, processes: u32) -> anyhow::Result<f64> {
    let run = Run::open(&Target::run(ran.dir.path())).await?;
    let measured = run.measure(NetworkRecord::typical()).await?;
    let change = Change {
        processes: Some(processes),
        processors: Some(processes as usize),
        ..Change::default()
    };
    let prediction = measured.predict(DelayModel::Measured, Some(&change))?;
    Ok(1.0 - prediction.gain.unwrap_or(0.0))
}

async fn run(app: &Application, cluster: &str, effort: Effort) -> anyhow::Result<Ran> {
    run_prepared(cluster, &app.command(effort.quick), |_| Ok(()))
        .await
        .context(app.name)
}

fn longest(breakdown: &Breakdown) -> f64 {
    let walls = computing(breakdown).into_iter().map(|p| p.wall.0);
    walls.max().unwrap_or(0) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_cli::config::Cluster;

    #[test]
    fn every_application_exists_and_takes_its_arguments() {
        for app in &APPLICATIONS {
            let found = dosmos_examples::catalog()
                .iter()
                .find(|a| a.name == app.name);
            let found = found.unwrap_or_else(|| panic!("{}", app.name));
            for quick in [true, false] {
                let command: Vec<String> =
                    app.command(quick).iter().map(ToString::to_string).collect();
                assert!(found.accepts(&command[1..]), "{}", app.name);
            }
        }
        assert_eq!(
            Cluster::parse(&one_group(2, true))
                .unwrap()
                .topology
                .application_processes()
                .len(),
            2
        );
    }
}
