//! `dosmos-bench intrusion`: what monitoring costs the program that suffers most from it (docs/bibliography.md#dosmos-trace, section 8, tables 1
//! and 2), in the paper's four configurations:
//!
//! 1. no monitoring, 2. an event manager beside each memory process, 3. one for all beside one of them,
//! 4. one for all on a processor of its own.
//!
//! The paper had four workstations. Here everything but the event manager of 4 shares the first processor,
//! so that only there monitoring has a processor to itself.

use anyhow::{Context, bail};
use dosmos_cli::args::Format;
use dosmos_cli::launch::Running;
use dosmos_cli::output::{self, Table};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::json;

use crate::args::IntrusionArgs;
use crate::machine::machine;
use crate::run::{json_lines, run_prepared};
use crate::statistics::spread;

/// Computing time over access time (table 2); 0 is table 1.
const RATIOS: [u64; 4] = [0, 1, 2, 3];

/// Table 1 of the paper, seconds.
const PAPER: [f64; 4] = [21.90, 40.00, 48.20, 28.30];

const ABOUT: [&str; 4] = [
    "no monitoring",
    "an event manager each",
    "one event manager",
    "one, own processor",
];

#[derive(Deserialize)]
struct Line {
    seconds: f64,
}

pub(crate) async fn run(args: IntrusionArgs) -> anyhow::Result<()> {
    if args.runs == 0 || args.rounds == 0 {
        bail!("--runs and --rounds must be at least 1");
    }
    let measured = measure(&args).await?;
    match args.format {
        Format::Json => {
            let all =
                json!({ "machine": machine(), "rounds": args.rounds, "rows": items(&measured) });
            output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        }
        format => {
            let table = table(&measured).render(format);
            output::text(&format!("{}\n\n{table}", machine()));
        }
    }
    Ok(())
}

/// Seconds of each run, by ratio and configuration.
pub(super) type Measured = Vec<[Vec<f64>; 4]>;

/// Measures; everything runs on the first processor meanwhile.
pub(super) async fn measure(args: &IntrusionArgs) -> anyhow::Result<Measured> {
    let _affinity = Affinity::first_processor()?;
    let mut measured: Measured = RATIOS.iter().map(|_| Default::default()).collect();
    // A first run without monitoring tells how long a round takes, and so how long to compute.
    let alone = one_run(0, args.rounds, 0).await?;
    let round_us = alone * 1e6 / args.rounds as f64;
    for run in 0..args.runs {
        for (row, ratio) in measured.iter_mut().zip(RATIOS) {
            output::note(&format!("run {} of {}, R = {ratio}", run + 1, args.runs));
            // Four processes share a processor: each computes a quarter of the time.
            let compute = (round_us * ratio as f64 / 4.0).round() as u64;
            for (configuration, seconds) in row.iter_mut().enumerate() {
                seconds.push(one_run(configuration, args.rounds, compute).await?);
            }
        }
    }
    Ok(measured)
}

async fn one_run(configuration: usize, rounds: u64, compute_us: u64) -> anyhow::Result<f64> {
    let (rounds, compute) = (rounds.to_string(), compute_us.to_string());
    let app = ["exclusive", "--rounds", &rounds, "--compute", &compute];
    let apart = |running: &Running| {
        if configuration == 3 {
            running.emp_pids().try_for_each(|pid| pin(pid, 1))?;
        }
        Ok(())
    };
    let said = run_prepared(&cluster(configuration), &app, apart)
        .await?
        .said;
    let lines: Vec<Line> = json_lines(&said)?;
    let line = lines.first().context("the program said nothing")?;
    Ok(line.seconds)
}

/// Four memory processes with an application process each, in one group.
fn cluster(configuration: usize) -> String {
    let emps = if configuration == 1 { 4 } else { 1 };
    let mode = if configuration == 0 { "off" } else { "events" };
    let mut text = format!(
        "name = \"intrusion\"\n[defaults]\nlisten = \"unix\"\n[recording]\nmode = \"{mode}\"\n\
         [[group]]\nname = \"all\"\n"
    );
    for i in 0..emps {
        text += &format!("[[emp]]\nname = \"emp{i}\"\n");
    }
    for i in 0..4 {
        let emp = i % emps;
        text += &format!(
            "[[mp]]\nname = \"mp{i}\"\ngroup = \"all\"\nemp = \"emp{emp}\"\n\
             [[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n"
        );
    }
    text
}

/// Keeps this process, and those it starts from now on, on the first processor until dropped.
struct Affinity(CpuSet);

impl Affinity {
    fn first_processor() -> anyhow::Result<Self> {
        let this = Pid::from_raw(0);
        let before = sched_getaffinity(this).context("which processors may this process use?")?;
        if !before.is_set(0)? || !before.is_set(1)? {
            bail!("this benchmark needs processors 0 and 1");
        }
        set(this, 0)?;
        Ok(Self(before))
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        // Only a convenience for what comes after.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.0);
    }
}

fn set(task: Pid, processor: usize) -> anyhow::Result<()> {
    let mut only = CpuSet::new();
    only.set(processor)?;
    sched_setaffinity(task, &only).with_context(|| format!("cannot move task {task}"))
}

/// Moves a process with all its threads to a processor.
fn pin(pid: u32, processor: usize) -> anyhow::Result<()> {
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.file_name().to_string_lossy().parse()?;
        set(Pid::from_raw(task), processor)?;
    }
    Ok(())
}

fn overhead(row: &[Vec<f64>; 4], configuration: usize) -> [f64; 3] {
    // Ratios within a run, in which the machine was as busy for one as for the other.
    let pairs = row[configuration].iter().zip(&row[0]);
    spread(pairs.map(|(s, alone)| 100.0 * (s / alone - 1.0)).collect())
}

fn paper(ratio: u64, configuration: usize) -> f64 {
    100.0
        * ((PAPER[configuration] + ratio as f64 * PAPER[0]) / ((1 + ratio) as f64 * PAPER[0]) - 1.0)
}

pub(super) fn table(measured: &Measured) -> Table {
    let mut table = Table::new(&[
        "R",
        "configuration",
        "seconds",
        "spread",
        "overhead (%)",
        "spread",
        "paper (%)",
    ]);
    for (row, ratio) in measured.iter().zip(RATIOS) {
        for (configuration, about) in ABOUT.iter().enumerate() {
            let [least, seconds, most] = spread(row[configuration].clone());
            let [low, more, high] = overhead(row, configuration);
            table.row([
                ratio.to_string(),
                format!("{} {about}", configuration + 1),
                format!("{seconds:.3}"),
                format!("{least:.3}–{most:.3}"),
                format!("{more:.0}"),
                format!("{low:.0}–{high:.0}"),
                format!("{:.0}", paper(ratio, configuration)),
            ]);
        }
    }
    table
}

fn items(measured: &Measured) -> Vec<serde_json::Value> {
    let rows = measured.iter().zip(RATIOS);
    rows.flat_map(|(row, ratio)| {
        (0..ABOUT.len()).map(move |configuration| {
            let [low, more, high] = overhead(row, configuration);
            json!({
                "ratio": ratio, "configuration": configuration + 1,
                "seconds": row[configuration],
                "overhead_percent": { "median": more, "min": low, "max": high },
                "paper_overhead_percent": paper(ratio, configuration),
            })
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_cli::config::Cluster;

    #[test]
    fn the_papers_percentages_come_out() {
        let table_1 = [0, 1, 2, 3].map(|c| paper(0, c).round());
        assert_eq!(table_1, [0.0, 83.0, 120.0, 29.0]);
        let table_2: Vec<[f64; 3]> = (1..=3)
            .map(|r| [1, 2, 3].map(|c| paper(r, c).round()))
            .collect();
        assert_eq!(
            table_2,
            [[41.0, 60.0, 15.0], [28.0, 40.0, 10.0], [21.0, 30.0, 7.0]]
        );
    }

    #[test]
    fn every_configuration_is_a_cluster() {
        for configuration in 0..4 {
            let cluster = Cluster::parse(&cluster(configuration)).unwrap();
            let emps = cluster.topology.event_managers().len();
            assert_eq!(emps, if configuration == 1 { 4 } else { 1 });
        }
    }
}
