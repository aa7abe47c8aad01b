//! `dosmos-bench replicas`: what a section with a write costs on variables with 0, 1 and 2 replicas, in turn in the same run, so that what
//! else the machine does meets all three alike.

use anyhow::bail;
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use serde::Deserialize;
use serde_json::json;

use crate::args::ReplicasArgs;
use crate::machine::machine;
use crate::run::{json_lines, run_on};
use crate::statistics::{Interval, interval, spread};

/// Three memory processes of one group with an application process each.
fn cluster() -> String {
    let mut text =
        "name = \"replicas\"\n[[group]]\nname = \"a\"\n[[emp]]\nname = \"emp0\"\n".to_owned();
    for i in 0..3 {
        text += &format!("[[mp]]\nname = \"mp{i}\"\ngroup = \"a\"\nemp = \"emp0\"\n");
        text += &format!("[[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n");
    }
    text
}

/// Mean time of a section in some of them in a row.
#[derive(Deserialize)]
struct Sample {
    replicas: usize,
    us: f64,
}

/// What is measured: where the owner is, and how large the object.
struct Case {
    owner: &'static str,
    rank: &'static str,
    elements: usize,
    /// By number of replicas, round by round.
    us: [Vec<f64>; 3],
}

impl Case {
    /// What this number of replicas adds, within rounds.
    fn added(&self, replicas: usize) -> Option<Interval> {
        let pairs = self.us[replicas].iter().zip(&self.us[0]);
        interval(
            &pairs
                .map(|(with, without)| with - without)
                .collect::<Vec<_>>(),
        )
    }
}

pub(crate) async fn run(args: ReplicasArgs) -> anyhow::Result<()> {
    if args.rounds < 2 || args.sections == 0 {
        bail!("--rounds must be at least 2 and --sections at least 1");
    }
    let (rounds, sections) = (args.rounds.to_string(), args.sections.to_string());
    let mut cases = Vec::new();
    for (owner, rank) in [("own memory process", "0"), ("another of the group", "1")] {
        for elements in [1, 1024, 65_536] {
            output::note(&format!("owner: {owner}, {} bytes", 8 * elements));
            let size = elements.to_string();
            let app = [
                "kept",
                "--rounds",
                &rounds,
                "--sections",
                &sections,
                "--elements",
                &size,
                "--owner",
                rank,
            ];
            let mut us = [const { Vec::new() }; 3];
            for sample in json_lines::<Sample>(&run_on(&cluster(), &app).await?)? {
                us[sample.replicas].push(sample.us);
            }
            cases.push(Case {
                owner,
                rank,
                elements,
                us,
            });
        }
    }
    print(&args, &cases)
}

fn print(args: &ReplicasArgs, cases: &[Case]) -> anyhow::Result<()> {
    let added = |case: &Case, replicas| {
        let added = case.added(replicas);
        added.map_or_else(String::new, |a| {
            format!("{:.0} [{:.0}, {:.0}]", a.mean, a.low(), a.high())
        })
    };
    if args.format == Format::Json {
        let cases: Vec<_> = cases
            .iter()
            .map(|case| {
                json!({ "owner_rank": case.rank, "bytes": 8 * case.elements, "us_by_replicas": case.us })
            })
            .collect();
        let all = json!({
            "machine": machine(), "rounds": args.rounds, "sections": args.sections, "cases": cases,
        });
        output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        return Ok(());
    }
    let heads = [
        "owner",
        "bytes",
        "none (us)",
        "1 (us)",
        "2 (us)",
        "1 adds (us)",
        "2 add (us)",
    ];
    let mut table = Table::new(&heads);
    for case in cases {
        let median = |replicas: usize| format!("{:.0}", spread(case.us[replicas].clone())[1]);
        table.row([
            case.owner.to_owned(),
            (8 * case.elements).to_string(),
            median(0),
            median(1),
            median(2),
            added(case, 1),
            added(case, 2),
        ]);
    }
    output::text(&table.render(args.format));
    output::note(&format!(
        "{} rounds of {} sections; {}",
        args.rounds,
        args.sections,
        machine()
    ));
    Ok(())
}
