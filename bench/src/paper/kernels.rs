//! Workload kernels (docs/bibliography.md#workload-kernels), figures 5 to 9, for our system: efficiency of unit grains beside competitors, lock kinds compared.

use dosmos_cli::args::Format;
use dosmos_plot::{Axis, Block, Chart};

use super::effort::Effort;
use crate::args::KernelsArgs;
use crate::kernels::figure::Figure;
use crate::kernels::plot::{Y, curves};
use crate::kernels::{self, sweeps};

/// A figure: its sweep, what stands on its axes.
struct Plot {
    sweep: &'static str,
    title: &'static str,
    x: &'static str,
    y: Y,
    paper: &'static str,
}

const PLOTS: [Plot; 7] = [
    Plot {
        sweep: "mad-delay",
        title: "Workload kernels, figure 5: efficiency over computing between accesses",
        x: "c (delay steps)",
        y: Y::Efficiency,
        paper: "The paper: efficiency rises with the delay, most for writes. Here an access is a message, so delays of a few \
                steps have no effect; longer ones do.",
    },
    Plot {
        sweep: "mad-words",
        title: "Workload kernels, figure 6: read contention over the size of the shared data",
        x: "M (words)",
        y: Y::Efficiency,
        paper: "The paper: more words are spread over more memory modules. Here an object of any size has one owner.",
    },
    Plot {
        sweep: "mad-warps",
        title: "Workload kernels, figure 7: words accessed at random per second, all processes",
        x: "N (competitors)",
        y: Y::Words,
        paper: "The paper: millions a second, in hardware.",
    },
    Plot {
        sweep: "sad-cs",
        title: "Workload kernels, figure 8: efficiency over computing in the section",
        x: "c_s (delay steps)",
        y: Y::Efficiency,
        paper: "The paper: longer sections lower the efficiency; MCS is best where contention is high.",
    },
    Plot {
        sweep: "sad-mixed",
        title: "Workload kernels, figure 9: accesses beside lock traffic, and lock traffic beside accesses",
        x: "N (competitors)",
        y: Y::Efficiency,
        paper: "The paper: an MCS lock disturbs others' accesses least.",
    },
    Plot {
        sweep: "sad-n",
        title: "Lock kinds: interference over competitors",
        x: "N (competitors)",
        y: Y::Interference,
        paper: "Not a figure of the paper: θ(N) of each kind of lock.",
    },
    Plot {
        sweep: "sad-latency",
        title: "Lock kinds: uncontended acquire and release",
        x: "owner of the lock: 0 local, 1 in the group, 2 in another",
        y: Y::Time,
        paper: "",
    },
];

pub(super) async fn blocks(effort: Effort) -> anyhow::Result<Vec<Block>> {
    let args = KernelsArgs {
        sweeps: Vec::new(),
        list: false,
        plot: None,
        max_n: if effort.quick { 2 } else { 7 },
        time: if effort.quick { 10 } else { 100 },
        repeats: effort.runs,
        format: Format::Table,
    };
    let all = sweeps::all(args.max_n);
    let mut blocks = Vec::new();
    for plot in &PLOTS {
        let Some(sweep) = all.iter().find(|s| s.name == plot.sweep) else {
            continue;
        };
        let figures = kernels::measure(sweep, &args).await?;
        blocks.push(Block::chart(chart(plot, &figures), plot.paper));
        blocks.push(Block::Details {
            summary: format!("{}: figures ({})", plot.title, sweep.about),
            blocks: vec![kernels::grain_table(&figures).page()],
        });
    }
    let barriers = kernels::measure_barriers(args.max_n + 1).await?;
    blocks.push(Block::text(
        "Barriers (BAD): from the last arrival to the last departure.",
    ));
    blocks.push(kernels::barrier_table(&barriers).page());
    Ok(blocks)
}

fn chart(plot: &Plot, figures: &[Figure]) -> Chart {
    let x = Axis::new(plot.x);
    let x = if plot.sweep == "mad-words" {
        x.log()
    } else {
        x
    };
    curves(plot.title, x, plot.y, plot.x.starts_with('N'), figures)
}
