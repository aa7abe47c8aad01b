//! `dosmos-bench predict`: a run is recorded, replayed under other conditions, and then really run under them. Nothing of
//! the second run is known to the prediction.
//!
//! | case | recorded | predicted and measured |
//! |---|---|---|
//! | `processors` | all processors of the machine | one |
//! | `groups` | one group | two, with link processes between |
//! | `together` | two groups | one |
//! | `four`, `eight` | two processes | four, and eight |
//! | `half` | four processes | two |
//! | `size` | the program | on more data; how much more work and content that is: [`sizes`] |
//! | `tcp` | Unix sockets | TCP: costs of messages by microbenchmark of both |
//! | `slow` | Unix sockets | every link [250 µs](runs::DELAY) longer, by a proxy that the processes advertise; costs as for `tcp` |
//!
//! With `--keep DIR` the runs are kept, and with `--kept DIR` predicted again, by another version of the replay, say.
//!
//! Other owners and policies are those of `dosmos-bench cures`. Runs alternate, and so does their order. The error is
//! predicted / measured − 1, in each round. What a replay cannot say (it does not come to an end, as records are missing) is an error of
//! that row, and listed.
//!
//! Schema of the JSON: `machine`, `runs`, `unix`, `tcp` and `slow` (network records), `work` (of case `size`, by program), `rows`: `program`, `case`, `measured_us`, `before_us`,
//! `predicted_us`, `errors` (a list each, by round), `failed`; and `summary`: `failed` (rows), and `rounds`, `medians` and `again`, of each of which the absolute
//! errors have `count`, `median`, `within_10` and `within_25`. `again` is what one run after says of another one: the noise of the measurement.

mod programs;
mod runs;
mod sizes;

use anyhow::Context;
use dosmos_cli::args::Format;
use dosmos_cli::config::Cluster;
use dosmos_cli::output::{self, Table};
use dosmos_replay::{Calibrated, Change, Costs, Scale};
use serde::Serialize;
use serde_json::json;

use crate::args::{Case, PredictArgs};
use crate::machine::machine;
use crate::network::Behind;
use crate::run::one_group;
use crate::statistics::spread;
use programs::{PROCESSES, PROGRAMS};
use runs::{DELAY, Place, Records, Runs};

impl Case {
    const ALL: [Self; 9] = [
        Self::Processors,
        Self::Groups,
        Self::Together,
        Self::Tcp,
        Self::Slow,
        Self::Four,
        Self::Eight,
        Self::Half,
        Self::Size,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Processors => "processors",
            Self::Groups => "groups",
            Self::Together => "together",
            Self::Tcp => "tcp",
            Self::Slow => "slow",
            Self::Four => "four",
            Self::Eight => "eight",
            Self::Half => "half",
            Self::Size => "size",
        }
    }

    /// The cluster files before and after.
    fn clusters(self) -> [String; 2] {
        let one = || one_group(PROCESSES, true);
        match self {
            Self::Processors | Self::Size | Self::Slow => [one(), one()],
            Self::Four => [one_group(2, true), one()],
            Self::Eight => [one_group(2, true), one_group(8, true)],
            Self::Half => [one(), one_group(2, true)],
            Self::Groups => [one(), two_groups()],
            Self::Together => [two_groups(), one()],
            Self::Tcp => [one(), over_tcp(&one())],
        }
    }

    /// The processors that the run after may use; none: all.
    fn processors(self) -> Option<usize> {
        (self == Self::Processors).then_some(1)
    }

    /// The program with its arguments before and after; none if the case is not one of this program.
    fn programs(self, program: &str) -> Option<[String; 2]> {
        let after = match self {
            Self::Size => sizes::on_more(program)?,
            _ => program.to_owned(),
        };
        Some([program.to_owned(), after])
    }

    /// Another number of processes, or more data.
    fn scale(self, program: &str, records: &Records) -> anyhow::Result<Option<Scale>> {
        let processes = |count| {
            Some(Scale {
                processes: Some(count),
                ..Scale::default()
            })
        };
        Ok(match self {
            Self::Four => processes(4),
            Self::Eight => processes(8),
            Self::Half => processes(2),
            Self::Size => Some(sizes::scale(program, &records.work)?),
            Self::Processors | Self::Groups | Self::Together | Self::Tcp | Self::Slow => None,
        })
    }

    fn change(self) -> anyhow::Result<Change> {
        let mut change = Change {
            processors: self.processors(),
            ..Change::default()
        };
        if matches!(self, Self::Groups | Self::Together) {
            let [_, after] = self.clusters();
            change.topology = Some(parsed(&after)?.topology);
        }
        Ok(change)
    }
}

/// A cluster of Unix sockets over TCP.
fn over_tcp(cluster: &str) -> String {
    cluster.replace("listen = \"unix\"", "listen = \"127.0.0.1:0\"")
}

fn parsed(cluster: &str) -> anyhow::Result<Cluster> {
    Cluster::parse(cluster).map_err(|e| anyhow::anyhow!(e.join("\n")))
}

/// The processes of [`one_group`], two and two of them in a group.
fn two_groups() -> String {
    let mut text = one_group(PROCESSES, true).replace(
        "[[group]]\nname = \"all\"\n",
        "[[group]]\nname = \"north\"\n[[group]]\nname = \"south\"\n",
    );
    for i in 0..PROCESSES {
        let group = if i < PROCESSES / 2 { "north" } else { "south" };
        text = text.replacen("group = \"all\"", &format!("group = \"{group}\""), 1);
    }
    text
}

#[derive(Debug, Serialize)]
struct Row {
    program: String,
    case: Case,
    before_us: Vec<f64>,
    predicted_us: Vec<f64>,
    measured_us: Vec<f64>,
    errors: Vec<f64>,
    failed: Option<String>,
}

pub(crate) async fn run(args: PredictArgs) -> anyhow::Result<()> {
    anyhow::ensure!(args.runs > 0, "--runs must be at least 1");
    let runs = Runs::of(&args)?;
    let cases = match args.cases.is_empty() {
        true => Case::ALL.to_vec(),
        false => args.cases.clone(),
    };
    let programs = match args.programs.is_empty() {
        true => PROGRAMS.map(str::to_owned).to_vec(),
        false => args.programs.clone(),
    };
    let on_more: &[String] = match cases.contains(&Case::Size) {
        true => &programs,
        false => &[],
    };
    let records = runs.records(on_more).await?;
    let mut rows = Vec::new();
    for program in &programs {
        for &case in &cases {
            let Some(programs) = case.programs(program) else {
                continue;
            };
            output::note(&format!("{program}: {}", case.name()));
            let mut row = Row {
                program: program.clone(),
                case,
                before_us: Vec::new(),
                predicted_us: Vec::new(),
                measured_us: Vec::new(),
                errors: Vec::new(),
                failed: None,
            };
            for round in 0..args.runs {
                if let Err(e) = row.measure(&runs, &records, &programs, round).await {
                    output::note(&format!("{program}: {}: {e:#}", case.name()));
                    row.failed = Some(format!("{e:#}"));
                }
            }
            rows.push(row);
        }
    }
    print(&args, &records, &rows)
}

impl Row {
    /// One round: a run before, what it predicts, and a run after; the other way round in every second one.
    async fn measure(
        &mut self,
        runs: &Runs,
        records: &Records,
        [program, other]: &[String; 2],
        round: usize,
    ) -> anyhow::Result<()> {
        let [before, mut after] = self.case.clusters();
        let slow = match self.case {
            Case::Slow => Some(Behind::links(DELAY, PROCESSES)?),
            _ => None,
        };
        if let Some(slow) = &slow {
            after = slow.cluster(&after);
        }
        let place = |program, after| Place {
            program,
            case: self.case,
            round,
            after,
        };
        let run_before = runs.run(place(program, false), &before, None);
        let run_after = runs.run(place(other, true), &after, self.case.processors());
        let (run, after) = match round % 2 == 1 {
            true => {
                let after = run_after.await?;
                (run_before.await?, after)
            }
            false => (run_before.await?, run_after.await?),
        };
        let here = &records.unix;
        let there = match self.case {
            Case::Tcp => &records.tcp,
            Case::Slow => &records.slow,
            _ => here,
        };
        let measured = after.measured().0 as f64 / 1e3;
        let before = run.measured().0 as f64 / 1e3;
        let mut replay = Calibrated::new(run, &Costs::of(here)).context("the replay has no end")?;
        if let Some(scale) = self.case.scale(program, records)? {
            let scaled = replay.scaled(&scale);
            replay = scaled
                .context("no law says what another number of processes would do in this cluster")?;
        }
        let predicted = replay.expected(&self.case.change()?, here, there);
        let predicted = predicted
            .context("the replay after the change has no end")?
            .0 as f64
            / 1e3;
        self.before_us.push(before);
        self.predicted_us.push(predicted);
        self.measured_us.push(measured);
        self.errors.push(predicted / measured - 1.0);
        Ok(())
    }
}

/// Of absolute errors: how many, the median, and the shares within 10 % and 25 %.
#[derive(Debug, PartialEq, Serialize)]
struct Errors {
    count: usize,
    median: f64,
    within_10: f64,
    within_25: f64,
}

impl Errors {
    fn of(errors: impl Iterator<Item = f64>) -> Self {
        let errors: Vec<f64> = errors.map(f64::abs).collect();
        let within = |most: f64| {
            let near = errors.iter().filter(|e| **e <= most).count();
            near as f64 / errors.len().max(1) as f64
        };
        Self {
            count: errors.len(),
            median: spread(errors.clone())[1],
            within_10: within(0.10),
            within_25: within(0.25),
        }
    }

    fn text(&self) -> String {
        let [median, within_10, within_25] =
            [self.median, self.within_10, self.within_25].map(|f| 100.0 * f);
        format!(
            "median absolute error {median:.1} %, within 10 %: {within_10:.0} %, within 25 %: {within_25:.0} %"
        )
    }
}

/// How well some rows were predicted.
#[derive(Debug, Serialize)]
struct Summary {
    failed: usize,
    /// In each round.
    rounds: Errors,
    /// The median of what was predicted, and of what was measured, of all rounds of a row.
    medians: Errors,
    /// One run after in place of another one of the same row: the noise of the measurement.
    again: Errors,
}

impl Summary {
    fn of<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Self {
        let measured = rows.clone().filter(|r| !r.errors.is_empty());
        let median = |of: &[f64]| spread(of.to_vec())[1];
        let medians = measured.map(|r| median(&r.predicted_us) / median(&r.measured_us) - 1.0);
        Self {
            failed: rows.clone().filter(|r| r.failed.is_some()).count(),
            rounds: Errors::of(rows.clone().flat_map(|r| r.errors.iter().copied())),
            medians: Errors::of(medians),
            again: Errors::of(rows.flat_map(|r| again(&r.measured_us))),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} of {} rounds", self.rounds.text(), self.rounds.count);
        if self.again.count > 0 {
            let (medians, again) = (&self.medians, &self.again);
            text += &format!(
                "; {} of {} medians; a run after by another one: {}",
                medians.text(),
                medians.count,
                again.text()
            );
        }
        text + &format!("; {} rows with a failure", self.failed)
    }
}

/// How far each measurement is off each other one.
fn again(measured: &[f64]) -> Vec<f64> {
    let numbered = || measured.iter().enumerate();
    let pairs = numbered().flat_map(|a| numbered().map(move |b| (a, b)));
    let others = pairs.filter(|((a, _), (b, _))| a != b);
    others.map(|((_, a), (_, b))| a / b - 1.0).collect()
}

fn print(args: &PredictArgs, records: &Records, rows: &[Row]) -> anyhow::Result<()> {
    let all = Summary::of(rows.iter());
    if args.format == Format::Json {
        let all = json!({ "machine": machine(), "runs": args.runs, "unix": records.unix, "tcp": records.tcp, "slow": records.slow,
            "work": records.work,             "rows": rows, "summary": all });
        output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        return Ok(());
    }
    let mut table = Table::new(&[
        "program",
        "case",
        "before (ms)",
        "predicted (ms)",
        "measured (ms)",
        "error (%)",
    ]);
    for row in rows {
        let ms = |of: &[f64]| format!("{:.0}", spread(of.to_vec())[1] / 1e3);
        let [least, median, most] = spread(row.errors.clone()).map(|e| 100.0 * e);
        let error = match &row.failed {
            Some(why) if row.errors.is_empty() => why.clone(),
            _ => format!("{median:+.1} ({least:+.1} to {most:+.1})"),
        };
        table.row([
            row.program.clone(),
            row.case.name().to_owned(),
            ms(&row.before_us),
            ms(&row.predicted_us),
            ms(&row.measured_us),
            error,
        ]);
    }
    let mut text = format!("{}\n\n{}\n", machine(), table.render(args.format));
    let tried = Case::ALL.into_iter();
    let tried = tried.filter(|case| rows.iter().any(|r| r.case == *case));
    let cases = tried.map(|case| {
        (
            case.name(),
            Summary::of(rows.iter().filter(|r| r.case == case)),
        )
    });
    for (name, s) in cases.chain([("all", all)]) {
        text += &format!("{name}: {}\n", s.text());
    }
    output::text(&text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dosmos_proto::transport::Address;

    use super::*;

    #[test]
    fn clusters_differ_as_the_cases_say() {
        for case in Case::ALL {
            let [before, after] = case.clusters().map(|c| parsed(&c).unwrap());
            let groups = [&before, &after].map(|c| c.topology.groups().len());
            let expected = match case {
                Case::Groups => [1, 2],
                Case::Together => [2, 1],
                _ => [1, 1],
            };
            assert_eq!(groups, expected, "{case:?}");
            let processes = [before, after].map(|c| c.topology.application_processes().len());
            let expected = match case {
                Case::Four => [2, 4],
                Case::Eight => [2, 8],
                Case::Half => [4, 2],
                _ => [PROCESSES, PROCESSES],
            };
            assert_eq!(processes, expected, "{case:?}");
        }
    }

    #[test]
    fn the_summary_tells_rounds_medians_and_repetitions() {
        let row = |predicted: &[f64], measured: &[f64]| Row {
            program: "p".to_owned(),
            case: Case::Tcp,
            before_us: Vec::new(),
            predicted_us: predicted.to_vec(),
            measured_us: measured.to_vec(),
            errors: predicted
                .iter()
                .zip(measured)
                .map(|(p, m)| p / m - 1.0)
                .collect(),
            failed: None,
        };
        let mut rows = [
            row(&[95.0, 120.0, 140.0], &[100.0, 100.0, 200.0]),
            row(&[60.0], &[40.0]),
            row(&[], &[]),
        ];
        rows[1].failed = Some("no end".to_owned());
        let all = Summary::of(rows.iter());
        assert_eq!(all.failed, 1);
        // -5, 20, -30 and 50 %.
        assert_eq!(
            all.rounds,
            Errors {
                count: 4,
                median: 0.25,
                within_10: 0.25,
                within_25: 0.5
            }
        );
        // 120 for 100, 60 for 40.
        assert_eq!(
            all.medians,
            Errors {
                count: 2,
                median: 0.35,
                within_10: 0.0,
                within_25: 0.5
            }
        );
        // By pairs of 100, 100 and 200.
        assert_eq!(
            again(&rows[0].measured_us),
            [0.0, -0.5, 0.0, -0.5, 1.0, 1.0]
        );
        assert_eq!(all.again.count, 6);
        let text = all.text();
        assert!(
            text.contains(
                "median absolute error 25.0 %, within 10 %: 25 %, within 25 %: 50 % of 4 rounds;"
            ),
            "{text}"
        );
        assert!(text.ends_with("; 1 rows with a failure"), "{text}");
        // One round of each says nothing of the noise.
        let once = Summary::of(rows[1..].iter()).text();
        assert!(!once.contains("by another one"), "{once}");
    }

    #[test]
    fn a_case_is_of_the_sockets_that_it_names() {
        for case in Case::ALL {
            let [before, after] = case.clusters();
            for (text, tcp) in [(before, false), (after, case == Case::Tcp)] {
                let cluster = parsed(&text).unwrap();
                for mp in cluster.topology.memory_processes() {
                    let at = cluster.bind_address(&mp.name, Path::new("/run"));
                    // Link processes that the file does not name are where all are by default.
                    assert_eq!(
                        matches!(at, Address::Tcp(_)),
                        tcp,
                        "{case:?}: {} at {at}",
                        mp.name
                    );
                }
            }
        }
    }

    #[test]
    fn who_is_behind_a_slow_link_is_reached_through_it_only() {
        let slow = Behind::links(DELAY, PROCESSES).unwrap();
        let cluster = parsed(&slow.cluster(&one_group(PROCESSES, true))).unwrap();
        let book = cluster.address_book(None);
        for mp in cluster.topology.memory_processes() {
            assert!(
                matches!(book.resolve(&mp.name), Some(Address::Tcp(_))),
                "{}",
                mp.name
            );
        }
    }
}
