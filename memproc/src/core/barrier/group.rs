//! Whom a barrier is of, who coordinates it, and its number: fixed by the cluster file and its name.

use dosmos_proto::{ErrorCode, GroupId, MpId, Refusal, VarId};

use crate::core::cluster::{Cluster, list};
use crate::core::hash::stable;
use crate::core::messages::Scope;

/// Set in the numbers of barriers, never in those of variables.
const BARRIER_BIT: u32 = 1 << 31;

/// The group a scope means; none for all application processes.
pub(super) fn group_of(cluster: &Cluster, scope: &Scope) -> Result<Option<GroupId>, Refusal> {
    let t = &cluster.topology;
    let unknown = |what: String| {
        let groups = list(t.groups().iter().map(|g| g.path.as_str()));
        let why = format!("there is no group {what}; there are {groups}");
        Err(Refusal::new(ErrorCode::Invalid, why))
    };
    match scope {
        Scope::All => Ok(None),
        Scope::Path(path) if path.is_empty() || path == "/" => Ok(None),
        Scope::Path(path) => match t.find_group(path) {
            Some(group) => Ok(Some(group)),
            None => unknown(path.clone()),
        },
        Scope::Group(group) if group.index() < t.groups().len() => Ok(Some(*group)),
        Scope::Group(group) => unknown(group.to_string()),
    }
}

/// The memory processes with participants, in order.
pub(super) fn members(cluster: &Cluster, group: Option<GroupId>) -> Vec<MpId> {
    let mut members: Vec<MpId> = cluster
        .topology
        .aps_in(group)
        .filter_map(|ap| cluster.mp_of(ap))
        .collect();
    members.sort_unstable();
    members.dedup();
    members
}

/// The coordinator of the barriers of a group or of all; none if there are no participants.
pub(crate) fn coordinator(cluster: &Cluster, group: Option<GroupId>) -> Option<MpId> {
    members(cluster, group).first().copied()
}

/// The number a barrier has in records, in every process.
pub(super) fn number(group: Option<GroupId>, name: &str) -> VarId {
    // Every arrival asks for it, most of them of all processes.
    let mut text = group.map_or_else(|| "-1".to_owned(), |group| group.0.to_string());
    text.push('\n');
    text.push_str(name);
    VarId(BARRIER_BIT | stable(text.as_bytes()) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::test_topology;

    #[test]
    fn a_barrier_of_a_group_that_there_is_not_is_refused() {
        let cluster = Cluster::new(test_topology(&["/a", "/b"], 1, 1), MpId(0));
        let of = |group| group_of(&cluster, &Scope::Group(GroupId(group)));
        assert_eq!(of(0), Ok(Some(GroupId(0))));
        assert_eq!(of(1), Ok(Some(GroupId(1))));
        let refusal = of(2).unwrap_err();
        assert!(refusal.message.contains("there are /a, /b"), "{refusal:?}");
    }

    #[test]
    fn its_coordinator_is_the_first_memory_process_with_participants() {
        let cluster = Cluster::new(test_topology(&["/a", "/b"], 2, 1), MpId(0));
        let of = |group| coordinator(&cluster, group);
        assert_eq!(of(None), Some(MpId(0)));
        assert_eq!(of(Some(GroupId(1))), Some(MpId(2)));
        let nobody = Cluster::new(test_topology(&["/a"], 2, 0), MpId(0));
        assert_eq!(coordinator(&nobody, None), None);
    }
}
