//! `dosmos-bench paper`: the experiments of the papers this system follows, repeated; each figure or table of a
//! paper beside ours, on one page.
//!
//! One module an experiment, which gives blocks of the page. A paper's numbers stand here as printed in it.

mod applications;
mod diagrams;
mod effort;
mod intrusion;
mod kernels;
mod lopc;
mod memory;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use dosmos_cli::output;
use dosmos_plot::{Block, Page};

use crate::args::PaperArgs;
use crate::machine::machine;
use effort::Effort;

/// An experiment: what it is called, what it repeats.
struct Experiment {
    name: &'static str,
    heading: &'static str,
}

const EXPERIMENTS: [Experiment; 7] = [
    Experiment {
        name: "intrusion",
        heading: "What monitoring costs (DOSMOS-Trace, tables 1 and 2)",
    },
    Experiment {
        name: "diagrams",
        heading: "Access histograms and histories (DOSMOS-Trace, figures 8 to 11)",
    },
    Experiment {
        name: "breakdown",
        heading: "Where the time goes (DVSM, figure 1)",
    },
    Experiment {
        name: "speedup",
        heading: "Speed-up (DVSM, table 1)",
    },
    Experiment {
        name: "lopc",
        heading: "Contention: LoPC against simulation (figures 5 to 8 and 10)",
    },
    Experiment {
        name: "memory",
        heading: "Memory hierarchies (figures 2 to 4)",
    },
    Experiment {
        name: "kernels",
        heading: "Workload kernels (figures 5 to 9)",
    },
];

pub(crate) async fn run(args: PaperArgs) -> anyhow::Result<()> {
    if args.list {
        for e in &EXPERIMENTS {
            output::text(&format!("{:10} {}\n", e.name, e.heading));
        }
        return Ok(());
    }
    let known = |name: &String| EXPERIMENTS.iter().any(|e| e.name == name);
    if let Some(unknown) = args.experiments.iter().find(|n| !known(n)) {
        bail!("there is no experiment {unknown}; `dosmos-bench paper --list` names them");
    }
    if args.runs == 0 {
        bail!("--runs must be at least 1");
    }
    let effort = Effort {
        runs: if args.quick { 1 } else { args.runs },
        quick: args.quick,
    };
    let chosen = |e: &&Experiment| {
        args.experiments.is_empty() || args.experiments.iter().any(|n| n == e.name)
    };
    let mut page = Page::new("The papers' experiments, repeated", machine());
    for experiment in EXPERIMENTS.iter().filter(chosen) {
        output::note(&format!("{}: {}", experiment.name, experiment.heading));
        let started = Instant::now();
        let mut blocks = blocks(experiment.name, effort)
            .await
            .with_context(|| format!("experiment {}", experiment.name))?;
        let took = started.elapsed().as_secs();
        let command = format!("dosmos-bench paper {}", experiment.name);
        blocks.push(Block::text(format!("Measured by: {command} ({took} s)")));
        page.section(experiment.heading, blocks);
    }
    write(&args.output, &page.html())?;
    if let Some(file) = &args.markdown {
        write_markdown(file, &page)?;
    }
    Ok(())
}

async fn blocks(name: &str, effort: Effort) -> anyhow::Result<Vec<Block>> {
    match name {
        "intrusion" => intrusion::blocks(effort).await,
        "diagrams" => diagrams::blocks(effort).await,
        "breakdown" => applications::breakdown(effort).await,
        "speedup" => applications::speedup(effort).await,
        "lopc" => lopc::blocks(effort),
        "memory" => memory::blocks(),
        _ => kernels::blocks(effort).await,
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    output::note(&format!("wrote {}", path.display()));
    Ok(())
}

/// The same page as Markdown, its pictures as files in a directory beside it, named as it.
fn write_markdown(file: &Path, page: &Page) -> anyhow::Result<()> {
    let pictures = file.with_extension("");
    std::fs::create_dir_all(&pictures)
        .with_context(|| format!("cannot make {}", pictures.display()))?;
    let folder = pictures.file_name().unwrap_or_default().to_string_lossy();
    let mut failed = None;
    let text = page.markdown(|number, svg| {
        let name = format!("{number:02}.svg");
        if let Err(e) = std::fs::write(pictures.join(&name), svg) {
            failed.get_or_insert(e);
        }
        format!("{folder}/{name}")
    });
    if let Some(e) = failed {
        return Err(e).with_context(|| format!("cannot write to {}", pictures.display()));
    }
    write(file, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What needs no measuring gives pictures; all of them can be drawn.
    #[test]
    fn the_models_experiments_make_a_page_and_markdown() {
        let effort = Effort {
            runs: 1,
            quick: true,
        };
        let mut page = Page::new("test", "");
        page.section("lopc", lopc::blocks(effort).unwrap());
        page.section("memory", memory::blocks().unwrap());
        let html = page.html();
        assert!(html.matches("<svg").count() >= 8, "{}", html.len());
        assert!(!html.contains("there is no point to draw"));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("experiments.md");
        write_markdown(&file, &page).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let pictures = std::fs::read_dir(dir.path().join("experiments")).unwrap();
        assert_eq!(text.matches("](experiments/").count(), pictures.count());
    }
}
