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
use crate::run::{Ran, run_prepared};
use crate::statistics::spread;

/// An application of the DVSM paper with its speed-up there on 8 processors: Fast Ethernet, ATM.
struct Application {
    name: &'static str,
    /// Of which size: the paper's where a run takes long enough to be measured, larger where it would not.
    size: &'static [&'static str],
    /// How much of it; with it, the same whatever the number of processes.
    amount: [&'static str; 2],
    paper: Option<(f64, f64)>,
}

impl Application {
    /// With `quick`: small, and once.
    fn command(&self, quick: bool) -> Vec<&'static str> {
        let [option, amount] = self.amount;
        let mut command = vec![self.name, option];
        if quick {
            command.push("1");
        } else {
            command.push(amount);
            command.extend(self.size);
        }
        command
    }
}

const fn application(
    name: &'static str,
    size: &'static [&'static str],
    amount: [&'static str; 2],
    paper: Option<(f64, f64)>,
) -> Application {
    Application {
        name,
        size,
        amount,
        paper,
    }
}

/// Those of the paper first.
const APPLICATIONS: [Application; 12] = [
    application(
        "sor",
        &["--rows", "2000", "--columns", "1000"],
        ["--iterations", "20"],
        Some((6.9, 6.9)),
    ),
    application(
        "is",
        &["--keys", "1048576", "--buckets", "512"],
        ["--iterations", "20"],
        Some((5.5, 5.5)),
    ),
    application(
        "barnes",
        &["--bodies", "16384", "--theta", "0.57"],
        ["--iterations", "4"],
        Some((3.6, 3.8)),
    ),
    application(
        "sphere",
        &["--rows", "384", "--columns", "768"],
        ["--iterations", "40"],
        Some((3.7, 4.0)),
    ),
    application(
        "water",
        &["--molecules", "1000"],
        ["--iterations", "40"],
        Some((3.1, 3.1)),
    ),
    application(
        "raytrace",
        &["--rows", "480", "--columns", "640"],
        ["--iterations", "2"],
        Some((5.6, 5.7)),
    ),
    application(
        "spmv",
        &["--rows", "13000", "--per-row", "50"],
        ["--iterations", "100"],
        None,
    ),
    application("workpile", &["--servers", "0"], ["--chunks", "4000"], None),
    application("fft", &["--side", "1024"], ["--iterations", "4"], None),
    application(
        "lu",
        &["--n", "1024", "--block", "64"],
        ["--iterations", "2"],
        None,
    ),
    application(
        "radix",
        &["--keys", "1048576", "--bits", "10"],
        ["--iterations", "5"],
        None,
    ),
    application(
        "edge",
        &["--rows", "1024", "--columns", "1024"],
        ["--iterations", "2"],
        None,
    ),
];

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
            let alone = longest(&breakdown_of(&run(app, &cluster(1), effort).await?).await?);
            let ran = run(app, &cluster(2), effort).await?;
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

async fn breakdown_of(ran: &Ran) -> anyhow::Result<Breakdown> {
    let run = Run::open(&Target::run(ran.dir.path())).await?;
    Ok(run.source().breakdown().await?)
}

/// Each process's phases but the first and the last: these hold starting and verifying.
fn computing(breakdown: &Breakdown) -> Vec<PhaseTimes> {
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

fn longest(breakdown: &Breakdown) -> f64 {
    let walls = computing(breakdown).into_iter().map(|p| p.wall.0);
    walls.max().unwrap_or(0) as f64 / 1e9
}

/// One group, an application process at each memory process.
fn cluster(processes: usize) -> String {
    let mut text = "name = \"speedup\"\n[defaults]\nlisten = \"unix\"\n[[group]]\nname = \"all\"\n\
         [[emp]]\nname = \"emp0\"\n"
        .to_owned();
    for i in 0..processes {
        text += &format!(
            "[[mp]]\nname = \"mp{i}\"\ngroup = \"all\"\nemp = \"emp0\"\n\
             [[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n"
        );
    }
    text
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
            Cluster::parse(&cluster(2))
                .unwrap()
                .topology
                .application_processes()
                .len(),
            2
        );
    }
}
