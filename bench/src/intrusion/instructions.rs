//! The instructions of a run's processes, in user space, under valgrind: counters of the processor are seldom to be had on virtual machines.
//!
//! What a round takes is the difference of two runs, one of which has more rounds, divided by that: starting and ending is in
//! both. Under valgrind all takes fifty times as long, so what happens at times happens more often per round than it does otherwise: batches
//! of records wait as much longer for that reason. Event managers are left out: most of what they do then happens at times. Waiting awake is
//! switched off: it would be counted.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use dosmos_cli::output::{self, Table};
use serde_json::json;

use crate::statistics::{Interval, interval, spread};

/// Rounds of each process.
const ROUNDS: [u64; 2] = [50, 150];

/// Processes that take rounds.
const PROCESSES: u64 = 4;

/// The monitored configuration: one event manager.
const CONFIGURATION: usize = 2;

/// Whose instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Instructions {
    application: f64,
    memory: f64,
    managers: f64,
}

impl Instructions {
    /// Adds those of a process with this command line.
    fn add(&mut self, command: &str, count: f64) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let name = words.iter().skip_while(|w| **w != "--name").nth(1);
        match words.get(1) {
            Some(&"app") => self.application += count,
            Some(&"node") if name.is_some_and(|n| n.starts_with("emp")) => self.managers += count,
            Some(&"node") => self.memory += count,
            // Who starts and watches the others.
            _ => {}
        }
    }

    fn per_round(&self, fewer: &Self) -> Self {
        let rounds = ((ROUNDS[1] - ROUNDS[0]) * PROCESSES) as f64;
        Self {
            application: (self.application - fewer.application) / rounds,
            memory: (self.memory - fewer.memory) / rounds,
            managers: (self.managers - fewer.managers) / rounds,
        }
    }
}

/// Instructions per round, without and with monitoring, in pairs.
pub(super) struct Counted(Vec<[Instructions; 2]>);

/// Counts in as many pairs.
pub(super) fn count(pairs: usize) -> anyhow::Result<Counted> {
    let mut counted = Vec::new();
    for pair in 0..pairs {
        output::note(&format!("instructions, pair {} of {pairs}", pair + 1));
        let per_round = |configuration| -> anyhow::Result<Instructions> {
            let [fewer, more] = ROUNDS.map(|rounds| collected(configuration, rounds));
            Ok(more?.per_round(&fewer?))
        };
        counted.push([per_round(0)?, per_round(CONFIGURATION)?]);
    }
    Ok(Counted(counted))
}

/// Instructions of all processes of a run.
fn collected(configuration: usize, rounds: u64) -> anyhow::Result<Instructions> {
    let logs = tempfile::tempdir().context("a folder for what valgrind says")?;
    let said = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--trace-children=yes")
        .arg(format!("--log-file={}/%p", logs.path().display()))
        .arg(std::env::current_exe()?)
        .args(["intrusion", "--once", &configuration.to_string()])
        .args(["--rounds", &rounds.to_string()])
        .env("DOSMOS_SPIN", "off")
        .env("DOSMOS_BATCH_AGE", "2500")
        .output()
        .context("cannot start valgrind; install it (Debian: valgrind)")?;
    ensure!(
        said.status.success(),
        "a run failed under valgrind:\n{}",
        String::from_utf8_lossy(&said.stderr)
    );
    let mut all = Instructions::default();
    for file in std::fs::read_dir(logs.path())? {
        let (command, count) = of_process(&file?.path())?;
        all.add(&command, count);
    }
    ensure!(
        all.application > 0.0 && all.memory > 0.0 && all.managers > 0.0,
        "valgrind counted nothing of some processes: {all:?}"
    );
    Ok(all)
}

/// The command line of a process and its instructions; none counted if it became another one before it ended.
fn of_process(log: &Path) -> anyhow::Result<(String, f64)> {
    let text = std::fs::read_to_string(log)?;
    let after = |what: &str| text.lines().rev().find_map(|l| l.split_once(what));
    let command = after("Command: ").map(|(_, command)| command.trim().to_owned());
    let count = after("Collected : ").map_or(Ok(0), |(_, count)| count.trim().parse());
    let count: u64 = count.with_context(|| format!("valgrind said in {}", log.display()))?;
    Ok((command.unwrap_or_default(), count as f64))
}

/// One of the figures.
type Figure = fn(&Instructions) -> f64;

/// Of whom, and which of the figures.
const ROWS: [(&str, Figure); 3] = [
    ("application processes", |i| i.application),
    ("memory processes", |i| i.memory),
    ("both", |i| i.application + i.memory),
];

impl Counted {
    /// What monitoring adds, as a fraction of what application and memory processes take without.
    fn added(&self, of: Figure) -> Option<Interval> {
        let whole = |i: &Instructions| i.application + i.memory;
        let added = self
            .0
            .iter()
            .map(|[off, on]| (of(on) - of(off)) / whole(off));
        interval(&added.collect::<Vec<_>>())
    }

    fn median(&self, of: Figure, on: usize) -> f64 {
        spread(self.0.iter().map(|pair| of(&pair[on])).collect())[1]
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(&[
            "instructions per round of",
            "off",
            "on",
            "added, of both without (%)",
        ]);
        for (who, of) in ROWS {
            let added = Interval::percent(self.added(of));
            let count = |on| format!("{:.0}", self.median(of, on));
            table.row([who.to_owned(), count(0), count(1), added]);
        }
        table
    }

    pub(super) fn items(&self) -> Vec<serde_json::Value> {
        let item = |(who, of): (&str, Figure)| {
            json!({
                "of": who, "off": self.median(of, 0), "on": self.median(of, 1),
                "added_percent_of_both": self.added(of).map(Interval::percent_item),
            })
        };
        ROWS.map(item).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_apart_by_whose_they_are() {
        let mut all = Instructions::default();
        all.add("/x/dosmos-bench intrusion --once 2", 1.0);
        all.add(
            "/x/dosmos-bench node --stdin-is-parent --name emp0 --cluster c",
            2.0,
        );
        all.add(
            "/x/dosmos-bench node --stdin-is-parent --name mp0 --cluster c",
            4.0,
        );
        all.add(
            "/x/dosmos-bench node --stdin-is-parent --name mp1 --cluster c",
            8.0,
        );
        all.add(
            "/x/dosmos-bench supervise -- /x/dosmos-bench app exclusive",
            16.0,
        );
        all.add("/x/dosmos-bench app exclusive --rounds 50", 32.0);
        let expected = Instructions {
            application: 32.0,
            memory: 12.0,
            managers: 2.0,
        };
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_added_is_of_what_both_take_without() {
        let round = |application, memory, managers| Instructions {
            application,
            memory,
            managers,
        };
        let pair = [round(60.0, 140.0, 10.0), round(60.0, 150.0, 40.0)];
        let counted = Counted(vec![pair, pair]);
        let added = ROWS.map(|(_, of)| counted.added(of).unwrap().mean);
        assert_eq!(added, [0.0, 0.05, 0.05]);
        let fewer = round(100.0, 100.0, 100.0);
        let more = round(100.0 + 400.0, 100.0 + 800.0, 100.0);
        assert_eq!(more.per_round(&fewer), round(1.0, 2.0, 0.0));
    }
}
