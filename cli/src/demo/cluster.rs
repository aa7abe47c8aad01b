//! Cluster files for demos: any number of groups and processes, in the image of `demo.toml`.

use std::fmt::Write;

use anyhow::bail;

/// Two groups of two memory processes, each with an application process; a link process and an event
/// manager per group.
pub const CLUSTER: &str = include_str!("../demo.toml");

/// Groups and processes of `demo.toml`.
const USUAL: (usize, usize) = (2, 4);
/// Most processes on one machine.
const MOST: usize = 64;

/// A cluster file of `groups` groups with `processes` application processes dealt out evenly, each with a
/// memory process; one event manager per group.
///
/// # Errors
/// If there are too many or too few.
pub fn text(groups: usize, processes: usize) -> anyhow::Result<String> {
    if groups == 0 || groups > processes || processes > MOST {
        bail!(
            "cannot run {processes} processes in {groups} groups: --processes must be between 1 and {MOST}, --groups between 1 and the number of processes"
        );
    }
    Ok(match (groups, processes) {
        USUAL => CLUSTER.to_owned(),
        _ => made(groups, processes),
    })
}

fn made(groups: usize, processes: usize) -> String {
    let mut text = "name = \"demo\"\n".to_owned();
    for group in (0..groups).map(name) {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n[[group]]\nname = \"{group}\"\n[[emp]]\nname = \"emp-{group}\"\n"
        );
        if groups > 1 {
            let _ = write!(text, "[[lp]]\nname = \"lp-{group}\"\ngroup = \"{group}\"\n");
        }
    }
    for i in 0..processes {
        let group = name(i * groups / processes);
        let _ = write!(
            text,
            "\n[[mp]]\nname = \"mp{i}\"\ngroup = \"{group}\"\nemp = \"emp-{group}\"\n[[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n"
        );
    }
    text
}

fn name(group: usize) -> String {
    match ["north", "south", "east", "west"].get(group) {
        Some(name) => (*name).to_owned(),
        None => format!("group{group}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Cluster;

    #[test]
    fn the_usual_demo_is_one_of_many() {
        let usual = Cluster::parse(CLUSTER).unwrap();
        let same = Cluster::parse(&made(USUAL.0, USUAL.1)).unwrap();
        assert_eq!(usual.topology, same.topology);
    }

    #[test]
    fn any_number_of_groups_and_processes_is_a_cluster_and_no_group_is_empty() {
        for (groups, processes) in [(1, 1), (1, 4), (2, 2), (3, 7), (6, 6), (5, MOST)] {
            let cluster = Cluster::parse(&text(groups, processes).unwrap()).unwrap();
            let topology = &cluster.topology;
            assert_eq!(topology.application_processes().len(), processes);
            assert_eq!(topology.groups().len(), groups);
            for group in 0..groups as u32 {
                let inside = topology.owners_in(Some(dosmos_proto::GroupId(group)));
                assert!(inside.count() > 0, "{group} of {groups}");
            }
        }
        for (groups, processes) in [(0, 0), (0, 4), (3, 2), (1, MOST + 1)] {
            let error = text(groups, processes).unwrap_err().to_string();
            assert!(error.contains("--groups"), "{error}");
        }
    }
}
