//! Curves around the point that a document describes, for `--plot`.

use anyhow::Context;
use dosmos_model::dvsm::{Costs, Technology};
use dosmos_model::lopc::{ClientServerInput, HomogeneousInput, client_server, homogeneous};
use dosmos_plot::{Axis, Chart, Color, Mark};

use super::document::{fields, parse};
use super::dvsm;

/// Points of a curve.
const STEPS: u32 = 200;

/// R over W between its bounds: L, the cycle without contention, and the bound (9).
pub(super) fn cycle_over_work(text: &str) -> anyhow::Result<String> {
    let document = fields(text)?;
    anyhow::ensure!(
        !document.contains_key("R") && !document.contains_key("nonzeros"),
        "--plot: R over W needs a document of P, W, So, Sl"
    );
    let input: HomogeneousInput = parse(text)?;
    let here = homogeneous::solve(&input)?;
    let bound = homogeneous::contention_bound_handlers(input.c2, input.protocol_processor)?;
    let most = (2.0 * input.work).max(10.0 * input.handler + 2.0 * input.latency);
    let (mut cycle, mut least, mut greatest) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..=STEPS {
        let work = most * f64::from(i) / f64::from(STEPS);
        let at = HomogeneousInput { work, ..input };
        // Without work, handlers and latency there is no cycle.
        let Ok(output) = homogeneous::solve(&at) else {
            continue;
        };
        cycle.push((work, output.cycle));
        least.push((work, output.logp_cycle));
        greatest.push((work, work + 2.0 * input.latency + bound * input.handler));
    }
    let title = format!(
        "LoPC: S_o = {}, S_l = {}, C² = {}, {}",
        input.handler,
        input.latency,
        input.c2,
        machine(input.protocol_processor)
    );
    let (x, y) = (
        Axis::new("work between requests W").from_zero(),
        Axis::new("cycle R").from_zero(),
    );
    let chart = Chart::new(title, x, y)
        .dashed(
            format!("W + 2 S_l + {bound:.3} S_o"),
            Color::Series(1),
            greatest,
        )
        .line("R", Color::Series(0), cycle)
        .dashed("without contention (LogP)", Color::Series(2), least)
        .marks(
            "asked",
            Color::Text,
            Mark::Dot,
            vec![(input.work, here.cycle)],
        );
    Ok(chart.svg()?)
}

fn machine(protocol_processor: bool) -> &'static str {
    if protocol_processor {
        "protocol processors"
    } else {
        "interrupts"
    }
}

/// X over P_s under the limits of servers and of clients, with the optimum.
pub(super) fn throughput_over_servers(text: &str) -> anyhow::Result<String> {
    let asked = fields(text)?.contains_key("Ps");
    let input: ClientServerInput = parse(text)?;
    let best = client_server::optimum(&input)?;
    let top = 1.25 * best.throughput;
    let nodes = f64::from(input.processors);
    let points = (input.processors - 1).min(STEPS);
    let (mut x, mut by_servers, mut by_clients) = (Vec::new(), Vec::new(), Vec::new());
    let free = input.work + 2.0 * input.latency + 2.0 * input.handler;
    for i in 0..points {
        // Whole numbers where there are few of them.
        let share = f64::from(i) / f64::from((points - 1).max(1));
        let servers = 1.0 + share * (nodes - 2.0);
        x.push((servers, with(&input, servers)?));
        for (limit, line) in [
            (servers / input.handler, &mut by_servers),
            ((nodes - servers) / free, &mut by_clients),
        ] {
            if limit <= top {
                line.push((servers, limit));
            }
        }
    }
    let title = format!(
        "Work pile: P = {}, W = {}, S_o = {}, S_l = {}, C² = {}",
        input.processors, input.work, input.handler, input.latency, input.c2
    );
    let mut chart = Chart::new(
        title,
        Axis::new("servers P_s"),
        Axis::new("throughput X").from_zero(),
    )
    .dashed("servers' limit P_s/S_o", Color::Series(1), by_servers)
    .dashed("clients' limit P_c/R_logp", Color::Series(2), by_clients)
    .line("X", Color::Series(0), x)
    .marks(
        format!("best: {} servers", best.best_servers),
        Color::Text,
        Mark::Star,
        vec![(f64::from(best.best_servers), best.best_throughput)],
    );
    if asked {
        let here = vec![(input.servers, with(&input, input.servers)?)];
        chart = chart.marks("asked", Color::Text, Mark::Dot, here);
    }
    Ok(chart.svg()?)
}

fn with(input: &ClientServerInput, servers: f64) -> anyhow::Result<f64> {
    let input = ClientServerInput { servers, ..*input };
    Ok(client_server::solve(&input)?.throughput)
}

/// Efficiency over processor speed, for system software that gains all, half or nothing of it.
pub(super) fn efficiency_over_speed(text: &str) -> anyhow::Result<String> {
    let (application, network, technology) = dvsm::application_of(text).context("--plot")?;
    let efficiency = |speed: f64, system_benefit: f64| -> anyhow::Result<f64> {
        let technology = Technology {
            speed,
            system_benefit,
            ..technology
        };
        let costs = Costs::new(network.clone(), technology)?;
        Ok(application.cost(&costs)?.efficiency)
    };
    let title = if application.name.is_empty() {
        "DVSM application".to_owned()
    } else {
        application.name.clone()
    };
    let (x, y) = (
        Axis::new("processor speed (factor)").log(),
        Axis::new("efficiency").from_zero(),
    );
    let mut chart = Chart::new(title, x, y);
    for (i, (benefit, label)) in [(1.0, "b = 1"), (0.5, "b = 0.5"), (0.0, "b = 0")]
        .into_iter()
        .enumerate()
    {
        let points: anyhow::Result<Vec<(f64, f64)>> = (-8..=32)
            .map(|quarter| f64::from(quarter) / 4.0)
            .map(|power| Ok((power.exp2(), efficiency(power.exp2(), benefit)?)))
            .collect();
        chart = chart.line(label, Color::Series(i), points?);
    }
    let here = (
        technology.speed,
        efficiency(technology.speed, technology.system_benefit)?,
    );
    Ok(chart
        .marks("asked", Color::Text, Mark::Dot, vec![here])
        .svg()?)
}
