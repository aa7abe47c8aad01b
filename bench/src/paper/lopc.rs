//! LoPC (docs/bibliography.md#lopc): the contention model beside the event-driven simulator (figures 5 to 8 and 10).

use dosmos_model::lopc::{
    ClientServerInput, HomogeneousInput, SpmvInput, client_server, homogeneous, spmv,
};
use dosmos_model::sim::{Distribution, SimInput, simulate};
use dosmos_plot::{Axis, Block, Chart, Color, Mark, Table};

use super::effort::Effort;

/// Figures 6 and 7.
const P: u32 = 32;
const HANDLER: f64 = 200.0;
const LATENCY: f64 = 6.0;

pub(super) fn blocks(effort: Effort) -> anyhow::Result<Vec<Block>> {
    let mut blocks = vec![variance()?];
    blocks.extend(cycles(effort)?);
    blocks.push(matrix_vector()?);
    blocks.extend(work_pile(effort)?);
    Ok(blocks)
}

/// Figure 5: the share of the cycle that is contention, over C².
fn variance() -> anyhow::Result<Block> {
    let mut chart = Chart::new(
        "LoPC, figure 5: fraction of time lost to contention (P = 32, S_l = 6, W = 1000)",
        Axis::new("C² of the handler time").range(0.0, 2.0),
        Axis::new("contention / R").from_zero(),
    );
    for (i, handler) in [64.0, 128.0, 256.0, 512.0, 1024.0].into_iter().enumerate() {
        let mut line = Vec::new();
        for step in 0..=20 {
            let c2 = f64::from(step) / 10.0;
            let out = homogeneous::solve(&HomogeneousInput {
                c2,
                handler,
                work: 1000.0,
                ..machine()
            })?;
            line.push((c2, out.contention / out.cycle));
        }
        chart = chart.line(format!("S_o = {handler}"), Color::Series(i), line);
    }
    Ok(Block::chart(
        chart,
        "As in the paper, contention grows with the variance and most where handlers are long.",
    ))
}

fn machine() -> HomogeneousInput {
    HomogeneousInput {
        processors: P,
        work: 0.0,
        handler: HANDLER,
        latency: LATENCY,
        c2: 0.0,
        protocol_processor: false,
    }
}

/// Figures 6 and 7: R and its contention over W; model, bounds, simulation.
fn cycles(effort: Effort) -> anyhow::Result<Vec<Block>> {
    let bound = homogeneous::contention_bound_handlers(0.0, false)?;
    let (mut model, mut low, mut high, mut seen) = (vec![], vec![], vec![], vec![]);
    let (mut contention, mut seen_contention) = (vec![], vec![]);
    let mut table = Table::new([
        "W",
        "R (LoPC)",
        "R (simulated)",
        "error",
        "contention error",
        "LogP falls short",
    ]);
    for w in [
        0.0, 2.0, 8.0, 32.0, 128.0, 256.0, 512.0, 1000.0, 1500.0, 2048.0,
    ] {
        let input = HomogeneousInput {
            work: w,
            ..machine()
        };
        let out = homogeneous::solve(&input)?;
        let simulated = simulate(&simulation(SimInput::homogeneous(&input), effort))?;
        let x = w;
        model.push((x, out.cycle));
        low.push((x, out.logp_cycle));
        high.push((x, out.logp_cycle - 2.0 * HANDLER + bound * HANDLER));
        seen.push((x, simulated.cycle));
        contention.push((x, out.contention));
        seen_contention.push((x, simulated.cycle - out.logp_cycle));
        let percent = |a: f64, b: f64| format!("{:+.1} %", 100.0 * (a / b - 1.0));
        table.row([
            format!("{w:.0}"),
            format!("{:.1}", out.cycle),
            format!("{:.1}", simulated.cycle),
            percent(out.cycle, simulated.cycle),
            percent(out.contention, simulated.cycle - out.logp_cycle),
            format!("{:.1} %", 100.0 * (1.0 - out.logp_cycle / simulated.cycle)),
        ]);
    }
    let of_work = || Axis::new("W (cycles)");
    let figure_6 = Chart::new(
        "LoPC, figure 6: cycle R over work W (P = 32, S_o = 200, S_l = 6, C² = 0)",
        of_work(),
        Axis::new("R (cycles)").from_zero(),
    )
    .line("LoPC", Color::Series(0), model)
    .dashed("bounds (9)", Color::Series(7), low)
    .dashed("", Color::Series(7), high)
    .marks("simulated", Color::Series(1), Mark::Dot, seen);
    let figure_7 = Chart::new(
        "LoPC, figure 7: contention in a cycle",
        of_work(),
        Axis::new("cycles").from_zero(),
    )
    .line("LoPC", Color::Series(0), contention)
    .marks("simulated", Color::Series(1), Mark::Dot, seen_contention);
    Ok(vec![
        Block::chart(figure_6, ""),
        Block::chart(
            figure_7,
            "The paper: R at most 7 % high and contention 17 % high at W = 0; LogP 37 % low at W = 0, 13 % at W = 1000.",
        ),
        Block::Table(table),
    ])
}

fn simulation(input: SimInput, effort: Effort) -> SimInput {
    let (warmup, cycles) = if effort.quick {
        (500, 5_000)
    } else {
        (2_000, 100_000)
    };
    SimInput {
        warmup,
        cycles,
        ..input
    }
}

/// Figure 8: where the time of the sparse matrix–vector product goes, a non-zero.
fn matrix_vector() -> anyhow::Result<Block> {
    let sizes = [2, 4, 8, 16, 32];
    let mut parts: [Vec<f64>; 4] = Default::default();
    for p in sizes {
        let out = spmv::solve(&SpmvInput::alewife(p))?;
        let c = out.components;
        let share = f64::from(p - 1) / f64::from(p);
        let free = [out.work, 2.0 * 6.0, 2.0 * 145.0, c.contention];
        for (part, cycles) in parts.iter_mut().zip(free) {
            part.push(cycles * share);
        }
    }
    let names = ["work", "network", "handlers", "contention"];
    let series: Vec<_> = names
        .iter()
        .zip(parts)
        .enumerate()
        .map(|(i, (name, part))| ((*name).to_owned(), Color::Series(i), part))
        .collect();
    let x = Axis::new("processors").categories(sizes.map(|p| p.to_string()));
    let chart = Chart::new(
        "LoPC, figure 8: sparse matrix–vector product, cycles per non-zero of a node",
        x,
        Axis::new("cycles").from_zero(),
    )
    .stacked(&series);
    Ok(Block::chart(
        chart,
        "LoPC only: the paper's other bars are measurements of the Alewife machine (+14 % at P = 2, +9 % at 32), which cannot be repeated.",
    ))
}

/// Figure 10: throughput over the number of servers.
fn work_pile(effort: Effort) -> anyhow::Result<Vec<Block>> {
    let mut chart = Chart::new(
        "LoPC, figure 10: client–server throughput (P = 32, S_o = 131)",
        Axis::new("servers P_s").range(0.0, 32.0),
        Axis::new("X (requests a cycle)").from_zero(),
    );
    let mut table = Table::new([
        "W",
        "P_s* (18)",
        "X* (LoPC)",
        "best X simulated",
        "at P_s",
        "error",
    ]);
    for (i, work) in [250.0, 1000.0, 4000.0].into_iter().enumerate() {
        let input = ClientServerInput {
            processors: P,
            servers: 1.0,
            work,
            handler: 131.0,
            latency: LATENCY,
            c2: 0.0,
        };
        let (mut line, mut seen) = (Vec::new(), Vec::new());
        for servers in 1..P {
            let at = f64::from(servers);
            let out = client_server::solve(&ClientServerInput {
                servers: at,
                ..input
            })?;
            line.push((at, out.throughput));
            let mut pile = simulation(SimInput::client_server(&input, servers), effort);
            // Chunks of work differ: the model holds for any distribution.
            pile.work = Distribution::Exponential;
            seen.push((at, simulate(&pile)?.throughput));
        }
        let best = seen
            .iter()
            .copied()
            .fold((0.0, 0.0), |best, p| if p.1 > best.1 { p } else { best });
        let optimum = client_server::optimum(&input)?;
        table.row([
            format!("{work:.0}"),
            format!("{:.2}", optimum.servers),
            format!("{:.5}", optimum.throughput),
            format!("{:.5}", best.1),
            format!("{:.0}", best.0),
            format!("{:+.1} %", 100.0 * (optimum.throughput / best.1 - 1.0)),
        ]);
        chart = chart
            .line(format!("LoPC, W = {work}"), Color::Series(i), line)
            .marks("", Color::Series(i), Mark::Dot, seen)
            .marks(
                "",
                Color::Series(i),
                Mark::Square,
                vec![(optimum.servers, optimum.throughput)],
            );
    }
    Ok(vec![
        Block::chart(
            chart,
            "Lines: LoPC; dots: simulated; squares: the optimum of (18). The paper: at most 3 % off at the optimum.",
        ),
        Block::Table(table),
    ])
}
