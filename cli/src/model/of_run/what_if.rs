//! `--what-if`: from keys and values to a change.

use std::path::Path;

use anyhow::{Context, bail};
use dosmos_model::inputs::{Change, Placement};
use dosmos_proto::{MpId, Placement as Owners, Topology};
use dosmos_trace::query::Catalog;

use crate::config::Cluster;

const KEYS: &str = "speed, benefit, protocol, prefetch, cold, locks, interface, switch, bandwidth, signal, \
                    groups, procs, processors";

/// The change; none if nothing is asked for.
pub(super) fn parse(asked: &[String], catalog: &Catalog) -> anyhow::Result<Option<Change>> {
    let mut change = Change::default();
    for item in asked {
        let (key, value) = item
            .split_once('=')
            .with_context(|| format!("--what-if {item}: KEY=VALUE is expected; keys are {KEYS}"))?;
        set(&mut change, key.trim(), value.trim(), catalog)
            .with_context(|| format!("--what-if {item}"))?;
    }
    change.technology.validate().context("--what-if")?;
    Ok((!asked.is_empty()).then_some(change))
}

fn set(change: &mut Change, key: &str, value: &str, catalog: &Catalog) -> anyhow::Result<()> {
    let number = || value.parse::<f64>().context("a number is expected");
    let count = || match value.parse::<u32>() {
        Ok(n) if n > 0 => Ok(n),
        _ => bail!("expected a whole number, at least 1"),
    };
    let technology = &mut change.technology;
    match key {
        "speed" => technology.speed = number()?,
        "benefit" => technology.system_benefit = number()?,
        "protocol" => technology.protocol = number()?,
        "prefetch" => technology.prefetch_fault = number()?,
        "cold" => technology.prefetch_empty = number()?,
        "locks" => technology.prefetch_lock = number()?,
        "interface" => technology.interface_us = Some(number()?),
        "switch" => technology.switch_us = Some(number()?),
        "bandwidth" => technology.bandwidth_mbps = Some(number()?),
        "signal" => technology.signal_us = Some(number()?),
        "procs" => change.processes = Some(count()?),
        "processors" => change.processors = Some(count()? as usize),
        "groups" => {
            let cluster = Cluster::read(Path::new(value))?;
            change.placement = Some(placement(&cluster, catalog));
        }
        _ => bail!("unknown key {key}; keys are {KEYS}"),
    }
    Ok(())
}

/// A cluster file as a place to imagine a run in.
pub(crate) fn placement(cluster: &Cluster, catalog: &Catalog) -> Placement {
    let topology = &cluster.topology;
    let moved = cluster.overrides.iter().filter_map(|o| {
        let variable = catalog.variable(&o.name)?;
        let owners = owners(o.placement.as_ref()?, topology)?;
        Some((variable.id(), owners))
    });
    Placement {
        topology: topology.clone(),
        moved: moved.collect(),
        objects: Default::default(),
    }
}

/// The owners that a placement names; none where they follow from the program or from a hash.
fn owners(placement: &Owners, topology: &Topology) -> Option<Vec<MpId>> {
    match placement {
        Owners::Explicit(names) => names
            .as_slice()
            .iter()
            .map(|name| topology.find_mp(name))
            .collect(),
        Owners::RoundRobin(group) => {
            let group = match group {
                Some(path) => Some(topology.find_group(path)?),
                None => None,
            };
            Some(topology.owners_in(group).collect())
        }
        Owners::Creator | Owners::ByName => None,
    }
}
