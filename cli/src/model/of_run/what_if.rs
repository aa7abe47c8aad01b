//! `--what-if`: from keys and values to a change.

use std::path::Path;

use anyhow::{Context, bail};
use dosmos_memproc::ALL_VARIABLES;
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
    let moved = catalog.variables.iter().filter_map(|variable| {
        let of = |name: &str| cluster.overrides.iter().find(|o| o.name == name);
        let said = |name: &str| of(name)?.placement.as_ref();
        // What is said of the variable itself comes first.
        let said = said(variable.spec().name()).or_else(|| said(ALL_VARIABLES));
        Some((variable.id(), owners(said?, topology)?))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may

    use dosmos_proto::{ElementType, GroupId, Layout, VarId, Variable, VariableSpec};

    use super::*;

    const CLUSTER: &str = "\
        name = \"t\"\n[[group]]\nname = \"ocean\"\n[[emp]]\nname = \"emp0\"\n\
        [[mp]]\nname = \"mp0\"\ngroup = \"ocean\"\nemp = \"emp0\"\n\
        [[mp]]\nname = \"mp1\"\ngroup = \"ocean\"\nemp = \"emp0\"\n\
        [[ap]]\nname = \"ap0\"\nmp = \"mp0\"\n";

    #[test]
    fn what_a_cluster_file_says_of_all_variables_moves_those_of_which_it_says_nothing_else() {
        let layout = Layout::new(ElementType::F64, (1, 4), (1, 1)).unwrap();
        let variable = |(id, name): (u32, &str)| {
            let spec = VariableSpec::new(name, layout).unwrap();
            Variable::new(VarId(id), spec, vec![MpId(0)], GroupId(0)).unwrap()
        };
        let catalog = Catalog {
            variables: [(1, "x"), (2, "y")].map(variable).into(),
            ..Catalog::default()
        };
        let moved = |said: &str| {
            let cluster = Cluster::parse(&format!("{CLUSTER}{said}")).unwrap();
            let moved = placement(&cluster, &catalog).moved;
            moved.into_iter().map(|(id, to)| (id.0, to[0].0)).collect()
        };
        let none: Vec<(u32, u32)> = moved("");
        assert_eq!(none, []);
        let of = |name, owner| format!("[[variable]]\nname = \"{name}\"\nowners = [\"{owner}\"]\n");
        let (all, x) = (of("*", "mp1"), of("x", "mp0"));
        assert_eq!(moved(&x), [(1, 0)]);
        assert_eq!(moved(&all), [(1, 1), (2, 1)]);
        for both in [format!("{all}{x}"), format!("{x}{all}")] {
            assert_eq!(moved(&both), [(1, 0), (2, 1)]);
        }
        // Another setting of its own does not keep it where it was.
        let policy = "[[variable]]\nname = \"x\"\npolicy = \"update\"\n";
        assert_eq!(moved(&format!("{all}{policy}")), [(1, 1), (2, 1)]);
    }
}
