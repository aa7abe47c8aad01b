//! Page-based DSM: an operation, a barrier, a message, or an application of phases, on a network under a
//! technology.

use anyhow::Context;
use dosmos_model::dvsm::{
    Application, Barrier, Costs, Empty, Fault, Lock, Network, Technology, overhead_reduction,
};
use dosmos_model::memhier::Named;
use serde::Deserialize;
use serde_json::{Value, json};

use super::document::{Fields, fields, named, nothing_else, read, require, resolve, take};

/// Which operation `op` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Fault,
    Empty,
    Lock,
    Barrier,
}

/// `dvsm`: with `op`, the cost of an operation; with `phases`, the time of an application; with `bytes`, of a
/// message.
pub(super) fn answer(text: &str) -> anyhow::Result<Value> {
    let mut document = fields(text)?;
    let (network, technology) = system(&mut document)?;
    let costs = Costs::new(network.clone(), technology)?;
    if document.contains_key("phases") {
        application(document, &costs, &network)
    } else if document.contains_key("op") {
        operation(document, &costs)
    } else if document.contains_key("bytes") {
        message(document, &costs)
    } else {
        anyhow::bail!(
            "one of the fields `op` (fault, lock, barrier), `phases` (application) or `bytes` (message) is needed"
        )
    }
}

/// The application of a document and the system it runs on, for a curve over technologies.
pub(super) fn application_of(text: &str) -> anyhow::Result<(Application, Network, Technology)> {
    let mut document = fields(text)?;
    let (network, technology) = system(&mut document)?;
    anyhow::ensure!(
        document.contains_key("phases"),
        "a curve needs an application: the field `phases`"
    );
    document.remove("overhead_reduction_vs");
    Ok((read("", Value::Object(document))?, network, technology))
}

/// Takes `network` and `tech` out.
fn system(document: &mut Fields) -> anyhow::Result<(Network, Technology)> {
    let network: Named<Network> = require(document, "network")?;
    let network = resolve(network, Network::named)?;
    network.validate().context("network")?;
    let technology = take::<Named<Technology>>(document, "tech")?;
    let technology =
        technology.map_or(Ok(Technology::default()), |t| resolve(t, Technology::named))?;
    technology.validate().context("tech")?;
    Ok((network, technology))
}

fn operation(mut document: Fields, costs: &Costs) -> anyhow::Result<Value> {
    let op: Value = require(&mut document, "op")?;
    let kind = match take(&mut document, "kind")? {
        Some(kind) => kind,
        None => kind_of(&op),
    };
    let answer = match kind {
        Kind::Fault => {
            let op: Fault = read("op", op)?;
            op.validate("op.")?;
            let mut answer = named(&op.cost(costs)?)?;
            answer["prefetched"] = op.prefetched(costs).into();
            answer["service"] = op.service(costs).into();
            if let Some(most) = take(&mut document, "max_signal_handling")? {
                answer["max_dest_total"] = op.max_dest_total(costs, most)?.into();
            }
            answer
        }
        Kind::Empty => {
            let op: Empty = read("op", op)?;
            op.validate("op.")?;
            let mut answer = named(&op.cost(costs)?)?;
            answer["prefetched"] = op.prefetched(costs).into();
            answer
        }
        Kind::Lock => {
            let op: Lock = read("op", op)?;
            op.validate("op.")?;
            let mut answer = named(&op.cost(costs)?)?;
            answer["prefetched"] = op.prefetched(costs).into();
            answer
        }
        Kind::Barrier => {
            let op: Barrier = read("op", op)?;
            op.validate("op.")?;
            let procs: u32 = require(&mut document, "procs")?;
            anyhow::ensure!(procs > 0, "procs: 0 is not allowed, it must be at least 1");
            named(&op.cost(procs as usize, costs)?)?
        }
    };
    let known =
        "`network`, `tech`, `kind`, `op`, for a fault `max_signal_handling`, for a barrier `procs`";
    nothing_else(&document, known)?;
    Ok(answer)
}

/// The kinds tell themselves apart by the fields that only they have.
fn kind_of(op: &Value) -> Kind {
    if op.get("parts").is_some() {
        Kind::Fault
    } else if op.get("messages").is_some() {
        Kind::Lock
    } else if op.get("arrive_bytes").is_some() || op.get("release_bytes").is_some() {
        Kind::Barrier
    } else {
        Kind::Empty
    }
}

fn message(mut document: Fields, costs: &Costs) -> anyhow::Result<Value> {
    let bytes: f64 = require(&mut document, "bytes")?;
    anyhow::ensure!(
        bytes.is_finite() && bytes >= 0.0,
        "bytes: {bytes} is not allowed, it must be finite and at least 0"
    );
    nothing_else(&document, "`network`, `tech`, `bytes`")?;
    Ok(json!({
        "soft_total": costs.soft(bytes),
        "soft_syscall": costs.syscall(bytes),
        "wire": costs.wire(bytes),
        "hw_latency_2_messages": costs.latency(2.0),
    }))
}

fn application(mut document: Fields, costs: &Costs, network: &Network) -> anyhow::Result<Value> {
    let field = "overhead_reduction_vs";
    let versus: Option<Named<Technology>> = take(&mut document, field)?;
    let application: Application = read("", Value::Object(document))?;
    let cost = application.cost(costs)?;
    let mut answer = named(&cost)?;
    if let Some(versus) = versus {
        let versus = resolve(versus, Technology::named).context(field)?;
        versus.validate().context(field)?;
        let base = application.cost(&Costs::new(network.clone(), versus)?)?;
        answer["overhead_reduction"] = overhead_reduction(&base, &cost).into();
    }
    Ok(answer)
}
