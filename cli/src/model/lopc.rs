//! LoPC and its simulator: which function of the model answers which document.

use dosmos_model::lopc::{
    ClientServerInput, GeneralInput, HomogeneousInput, SpmvInput, client_server, general,
    general_variants, homogeneous, spmv, variants,
};
use dosmos_model::sim::{self, Distribution, LatencyModel, SimInput};
use serde::Deserialize;
use serde_json::{Value, json};

use super::document::{Fields, fields, named, parse, read, take};

/// `lopc`: the homogeneous model and its variants; with `R`, its right-hand side there; with `nonzeros`, the
/// sparse matrix–vector example.
pub(super) fn homogeneous(text: &str) -> anyhow::Result<Value> {
    let document = fields(text)?;
    if document.contains_key("R") {
        return right_hand_side(text);
    }
    if document.contains_key("nonzeros") {
        return named(&spmv::solve(&parse::<SpmvInput>(text)?)?);
    }
    let input: HomogeneousInput = parse(text)?;
    let mut answer = named(&homogeneous::solve(&input)?)?;
    answer["bound_handlers"] =
        homogeneous::contention_bound_handlers(input.c2, input.protocol_processor)?.into();
    answer["bard_schweitzer_R"] = variants::bard_schweitzer(&input)?.cycle.into();
    // The recursion has a range of validity (null outside), the model has not.
    answer["mva_R"] = json!(variants::mva(&input).ok().map(|output| output.cycle));
    Ok(answer)
}

/// A homogeneous input with an assumed cycle; P plays no part.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AtCycle {
    #[serde(rename = "R")]
    cycle: f64,
    #[serde(rename = "P", default = "two")]
    processors: u32,
    #[serde(rename = "W")]
    work: f64,
    #[serde(rename = "So")]
    handler: f64,
    #[serde(rename = "Sl")]
    latency: f64,
    #[serde(rename = "C2", default)]
    c2: f64,
    #[serde(default)]
    protocol_processor: bool,
}

fn two() -> u32 {
    2
}

fn right_hand_side(text: &str) -> anyhow::Result<Value> {
    let at: AtCycle = parse(text)?;
    let input = HomogeneousInput {
        processors: at.processors,
        work: at.work,
        handler: at.handler,
        latency: at.latency,
        c2: at.c2,
        protocol_processor: at.protocol_processor,
    };
    Ok(json!({ "F": homogeneous::cycle_rhs(&input, at.cycle)? }))
}

/// `client-server`: throughput with `Ps` servers, or without it the best number of them.
pub(super) fn client_server(text: &str) -> anyhow::Result<Value> {
    let asked = fields(text)?.contains_key("Ps");
    let input: ClientServerInput = parse(text)?;
    if !asked {
        return named(&client_server::optimum(&input)?);
    }
    let mut answer = named(&client_server::solve(&input)?)?;
    answer["mva_X"] = json!(
        client_server::mva(&input)
            .ok()
            .map(|output| output.throughput)
    );
    Ok(answer)
}

/// `general`: the general model and its variants, and what the solver did.
pub(super) fn general(text: &str) -> anyhow::Result<Value> {
    let input: GeneralInput = parse(text)?;
    let (output, stats) = general::solve_with_stats(&input)?;
    let mut answer = named(&output)?;
    answer["bard_schweitzer_R"] = json!(
        general_variants::bard_schweitzer(&input)
            .ok()
            .map(|(output, _)| output.cycle)
    );
    answer["mva_R"] = json!(
        general_variants::mva(&input)
            .ok()
            .map(|output| output.cycle)
    );
    answer["solver"] = named(&stats)?;
    Ok(answer)
}

/// What a simulation needs beyond the model of the same machine.
struct Run {
    work: Distribution,
    network: LatencyModel,
    seed: Option<u64>,
    warmup: Option<u64>,
    cycles: Option<u64>,
}

impl Run {
    /// Takes its fields out of a document.
    fn take(document: &mut Fields) -> anyhow::Result<Self> {
        Ok(Self {
            work: take(document, "work")?.unwrap_or_default(),
            network: take(document, "network")?.unwrap_or_default(),
            seed: take(document, "seed")?,
            warmup: take(document, "warmup")?,
            cycles: take(document, "cycles")?,
        })
    }

    fn of(&self, machine: SimInput) -> SimInput {
        SimInput {
            work: self.work,
            network: self.network,
            seed: self.seed.unwrap_or(machine.seed),
            warmup: self.warmup.unwrap_or(machine.warmup),
            cycles: self.cycles.unwrap_or(machine.cycles),
            ..machine
        }
    }
}

/// `simulate`: a machine given as `V`, as `P` and `Ps` (a number, or `"best"` to look for it), or as `P` alone.
pub(super) fn simulate(text: &str) -> anyhow::Result<Value> {
    let mut document = fields(text)?;
    let (mut answer, network, nodes) = if document.contains_key("V") {
        let input: SimInput = parse(text)?;
        let nodes = input.visits.len();
        (named(&sim::simulate(&input)?)?, input.network, nodes)
    } else {
        let run = Run::take(&mut document)?;
        let nodes = simulated_nodes(&document)?;
        let answer = if document.contains_key("Ps") {
            work_pile(document, &run)?
        } else {
            all_to_any(document, &run)?
        };
        (answer, run.network, nodes)
    };
    if let LatencyModel::Mesh { columns } = network {
        answer["mean_hops"] = sim::mesh_mean_hops(nodes, columns)?.into();
    }
    Ok(answer)
}

/// P, bounded, as the visit matrix has P² entries.
fn simulated_nodes(document: &Fields) -> anyhow::Result<usize> {
    const MOST: u64 = 4096;
    let nodes = document.get("P").and_then(Value::as_u64).unwrap_or(0);
    anyhow::ensure!(
        nodes <= MOST,
        "P: {nodes} is not allowed, it must be at most {MOST} to be simulated"
    );
    Ok(nodes as usize)
}

/// The homogeneous machine, and how far the model of it is off.
fn all_to_any(document: Fields, run: &Run) -> anyhow::Result<Value> {
    let input: HomogeneousInput = read("", Value::Object(document))?;
    let model = homogeneous::solve(&input)?;
    let simulated = sim::simulate(&run.of(SimInput::homogeneous(&input)))?;
    let mut answer = named(&simulated)?;
    let comparison = named(&sim::compare(&model, input.handler, &simulated))?;
    answer["model"] = json!({ "R": model.cycle });
    if let (Some(model), Value::Object(comparison)) = (answer["model"].as_object_mut(), comparison)
    {
        model.extend(comparison);
    }
    Ok(answer)
}

/// A work pile with the servers asked for, or with the best number of them.
fn work_pile(mut document: Fields, run: &Run) -> anyhow::Result<Value> {
    let search = document.get("Ps").and_then(Value::as_str) == Some("best");
    if search {
        document.remove("Ps");
    }
    let input: ClientServerInput = read("", Value::Object(document))?;
    if search {
        return named(&best_pile(&input, run)?);
    }
    input.validate()?;
    anyhow::ensure!(
        input.servers.fract() == 0.0,
        "Ps: {} is not allowed, it must be a whole number to be simulated",
        input.servers
    );
    let machine = SimInput::client_server(&input, input.servers as u32);
    let mut answer = named(&sim::simulate(&run.of(machine))?)?;
    answer["model"] = json!({ "X": client_server::solve(&input)?.throughput });
    Ok(answer)
}

/// Looks around the model's optimum, and further while the best found is at the end of where it looked.
fn best_pile(input: &ClientServerInput, run: &Run) -> anyhow::Result<sim::WorkPile> {
    const AROUND: u32 = 3;
    let optimum = client_server::optimum(input)?.best_servers;
    let most = input.processors - 1;
    let (mut from, mut to) = (
        optimum.saturating_sub(AROUND).max(1),
        (optimum + AROUND).min(most),
    );
    let look = |from, to| sim::work_pile(input, from..=to, |machine| run.of(machine));
    let mut best = look(from, to)?;
    loop {
        let next = if best.sim_best_servers == from && from > 1 {
            from = from.saturating_sub(AROUND).max(1);
            look(from, best.sim_best_servers)?
        } else if best.sim_best_servers == to && to < most {
            to = (to + AROUND).min(most);
            look(best.sim_best_servers, to)?
        } else {
            return Ok(best);
        };
        if next.sim_best_servers == best.sim_best_servers {
            return Ok(best);
        }
        best = next;
    }
}
