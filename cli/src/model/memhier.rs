//! The memory hierarchy: time per instruction, what to buy, and the locality of a trace.

use dosmos_model::memhier::fit::{FitInput, fit};
use dosmos_model::memhier::{
    ChoiceInput, Locality, Machine, Mode, choose, estimate, estimates, locality, stack_distances,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::document::{Fields, fields, named, parse, read, require, take};

/// `memhier`: a machine, or a configuration of the paper, in all modes of queueing or in the one asked for; with
/// `tau`, the queueing formula alone; with `x`, the locality law alone; with `procs` alone, the barrier term.
pub(super) fn time(text: &str) -> anyhow::Result<Value> {
    let document = fields(text)?;
    if document.contains_key("tau") {
        return response(text);
    }
    if document.contains_key("x") {
        return law(text);
    }
    if document.len() == 1 && document.contains_key("procs") {
        let procs: u32 = require(&mut document.clone(), "procs")?;
        return Ok(json!({ "harmonic_tail": locality::harmonic_tail(procs) }));
    }
    let (machine, mode) = machine(document)?;
    match mode {
        Some(mode) => named(&estimate(&machine, mode)?),
        None => named(&estimates(&machine)?),
    }
}

/// A machine given by its fields, or by `config` and the fields that differ.
fn machine(mut document: Fields) -> anyhow::Result<(Machine, Option<Mode>)> {
    let mode = take(&mut document, "mode")?;
    let Some(config) = take::<String>(&mut document, "config")? else {
        return Ok((read("", Value::Object(document))?, mode));
    };
    // The program is the document's; any name would do here.
    let mut whole = named(&Machine::configuration(&config, "FFT")?)?;
    anyhow::ensure!(
        document.contains_key("program"),
        "missing field `program`, which {config} runs"
    );
    for (name, value) in document {
        whole[name.as_str()] = value;
    }
    Ok((read("", whole)?, mode))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    tau: f64,
    #[serde(rename = "Lam")]
    lambda: f64,
    #[serde(rename = "C2", default)]
    c2: f64,
}

fn response(text: &str) -> anyhow::Result<Value> {
    let queue: Queue = parse(text)?;
    Ok(json!({ "response": locality::response(queue.tau, queue.lambda, queue.c2)? }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LawAt {
    x: f64,
    alpha: f64,
    beta: f64,
    #[serde(default = "one")]
    procs: f64,
}

fn one() -> f64 {
    1.0
}

fn law(text: &str) -> anyhow::Result<Value> {
    let LawAt {
        x,
        alpha,
        beta,
        procs,
    } = parse(text)?;
    let law = Locality { alpha, beta };
    law.validate("")?;
    anyhow::ensure!(
        x >= 0.0,
        "x: {x} is not allowed, it must be finite and at least 0"
    );
    anyhow::ensure!(
        procs > 0.0,
        "procs: {procs} is not allowed, it must be finite and greater than 0"
    );
    Ok(json!({ "tail": law.tail(x, procs), "cdf": law.cdf(x, procs), "pdf": law.pdf(x, procs) }))
}

/// `cluster`: the fastest for a budget; with `existing`, the best upgrade.
pub(super) fn cluster(text: &str) -> anyhow::Result<Value> {
    named(&choose(&parse::<ChoiceInput>(text)?)?)
}

/// `fit`: α and β; of a trace on request also its stack distances, and the hits of LRU stores.
pub(super) fn locality(text: &str) -> anyhow::Result<Value> {
    let mut document = fields(text)?;
    let list: bool = take(&mut document, "distances")?.unwrap_or(false);
    let sizes: Option<Vec<u64>> = take(&mut document, "lru_sizes")?;
    let input: FitInput = read("", Value::Object(document.clone()))?;
    if !list && sizes.is_none() {
        return named(&fit(&input)?);
    }
    anyhow::ensure!(
        !input.trace.is_empty(),
        "distances and lru_sizes: need a `trace`"
    );
    let distances = stack_distances(&input.trace);
    // A trace may be too short for a fit and have distances all the same.
    let mut answer = match fit(&input) {
        Ok(output) => named(&output)?,
        Err(e) => json!({ "alpha": null, "beta": null, "no_fit": e.to_string() }),
    };
    if let Some(sizes) = sizes {
        let hits = |size: &u64| distances.iter().flatten().filter(|d| *d < size).count();
        let by_size: Map<String, Value> = sizes
            .iter()
            .map(|size| (size.to_string(), hits(size).into()))
            .collect();
        answer["lru_hits_by_size"] = by_size.into();
    }
    if list {
        // −1 for a first reference.
        answer["distances"] = distances
            .iter()
            .map(|d| d.map_or(json!(-1), |d| json!(d)))
            .collect();
    }
    Ok(answer)
}
