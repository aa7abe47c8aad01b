//! DOSMOS-Trace (docs/bibliography.md#dosmos-trace), figures 8 to 11: what the monitor shows of programs made to show it.

use dosmos_cli::demo;
use dosmos_client::{Run, Target};
use dosmos_plot::Block;
use dosmos_proto::ApId;
use dosmos_report as report;

use super::effort::Effort;
use crate::run::run_prepared;

struct Figure {
    heading: &'static str,
    app: &'static str,
    /// What to show of it; none: its first process.
    variable: Option<&'static str>,
    paper: &'static str,
}

const FIGURES: [Figure; 4] = [
    Figure {
        heading: "Figure 8: a bad group structure",
        app: "bad-group",
        variable: Some("table/north"),
        paper: "The paper: inter-group accesses predominate.",
    },
    Figure {
        heading: "Figure 9: a good one",
        app: "good-group",
        variable: Some("table/north"),
        paper: "The paper: no inter-group access.",
    },
    Figure {
        heading: "Figure 10: an object's history, ping-pong",
        app: "ping-pong",
        variable: Some("ball"),
        paper: "The paper: two processes take turns, each waiting for the other.",
    },
    Figure {
        heading: "Figure 11: a process's activity",
        app: "ping-pong",
        variable: None,
        paper: "The paper: the accesses of one process, variable by variable.",
    },
];

pub(super) async fn blocks(effort: Effort) -> anyhow::Result<Vec<Block>> {
    let seconds = if effort.quick { "1" } else { "3" };
    let mut blocks = Vec::new();
    for figure in FIGURES {
        let app = [figure.app, "--seconds", seconds];
        let ran = run_prepared(demo::CLUSTER, &app, |_| Ok(())).await?;
        let run = Run::open(&Target::run(ran.dir.path())).await?;
        let mut inside = vec![Block::text(figure.paper)];
        match figure.variable {
            Some(name) => inside.extend(report::of_variable(run.source(), name).await?),
            None => inside.extend(report::of_process(run.source(), ApId(0)).await?),
        }
        blocks.push(Block::Card {
            heading: figure.heading.to_owned(),
            badge: format!("dosmos demo --app {}", figure.app),
            color: dosmos_plot::Color::Faint,
            blocks: inside,
        });
    }
    Ok(blocks)
}
