//! LoPC and its simulator: which function of the model answers which document.

use dosmos_model::lopc::{
    ClientServerInput, GeneralInput, HomogeneousInput, SpmvInput, client_server, general,
    general_variants, homogeneous, spmv, variants,
};
use dosmos_model::sim::{self, Distribution, LatencyModel, SimInput};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{named, parse, peek};

/// `lopc`: the homogeneous model and its variants; with `R`, its right-hand side there; with `nonzeros`, the
/// sparse matrix–vector example.
pub(super) fn homogeneous(text: &str) -> anyhow::Result<Value> {
    let tree = peek(text)?;
    if tree.get("R").is_some() {
        return right_hand_side(text);
    }
    if tree.get("nonzeros").is_some() {
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
    let asked = peek(text)?.get("Ps").is_some();
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
#[derive(Deserialize)]
struct Run {
    #[serde(default)]
    work: Distribution,
    #[serde(default)]
    network: LatencyModel,
    seed: Option<u64>,
    warmup: Option<u64>,
    cycles: Option<u64>,
}

const RUN_FIELDS: [&str; 5] = ["work", "network", "seed", "warmup", "cycles"];

/// `simulate`: a machine given as `V`, as `P` and `Ps`, or as `P` alone.
pub(super) fn simulate(text: &str) -> anyhow::Result<Value> {
    let mut tree = peek(text)?;
    if tree.get("V").is_some() {
        return named(&sim::simulate(&parse::<SimInput>(text)?)?);
    }
    let run: Run = parse(text)?;
    if let Some(fields) = tree.as_object_mut() {
        fields.retain(|name, _| !RUN_FIELDS.contains(&name.as_str()));
    }
    let machine = if tree.get("Ps").is_some() {
        let input: ClientServerInput = serde_json::from_value(tree)?;
        input.validate()?;
        anyhow::ensure!(
            input.servers.fract() == 0.0,
            "Ps: {} is not allowed, it must be a whole number to be simulated",
            input.servers
        );
        SimInput::client_server(&input, input.servers as u32)
    } else {
        let input: HomogeneousInput = serde_json::from_value(tree)?;
        input.validate()?;
        anyhow::ensure!(
            input.processors <= MAX_NODES,
            "P: {} is not allowed, it must be at most {MAX_NODES} to be simulated",
            input.processors
        );
        SimInput::homogeneous(&input)
    };
    let input = SimInput {
        work: run.work,
        network: run.network,
        seed: run.seed.unwrap_or(machine.seed),
        warmup: run.warmup.unwrap_or(machine.warmup),
        cycles: run.cycles.unwrap_or(machine.cycles),
        ..machine
    };
    named(&sim::simulate(&input)?)
}

/// V has P² entries.
const MAX_NODES: u32 = 4096;
