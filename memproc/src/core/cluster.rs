//! What is known of the cluster from its configuration: names, distances, neighbours and the next hop
//! along the tree of groups. Fixed for the life of the process.
//!
//! Routes: memory processes of one group are neighbours of each other and of their group's link
//! process; link processes are neighbours of those of their parent and child groups, and of each
//! other at the top level. There is exactly one path between any two processes, so messages between
//! them stay in order.

use std::sync::Arc;

use dosmos_proto::{ApId, EmpId, ErrorCode, GroupId, MpId, Refusal, Topology};
use dosmos_trace::Origin;

/// The cluster as seen from one process.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) topology: Arc<Topology>,
    pub(crate) me: MpId,
    /// See [`Settings`](crate::core::Settings).
    pub(crate) in_application: bool,
    /// Next hop towards each process; none where there is no link process to cross.
    next: Vec<Option<MpId>>,
    /// Memory processes that own objects: the homes of names, in order.
    owners: Vec<MpId>,
}

impl Cluster {
    pub(crate) fn new(topology: Arc<Topology>, me: MpId) -> Self {
        let count = topology.memory_processes().len() as u32;
        let next = (0..count)
            .map(|d| next_hop(&topology, me, MpId(d)))
            .collect();
        let owners = topology.owners_in(None).collect();
        Self {
            topology,
            me,
            in_application: false,
            next,
            owners,
        }
    }

    /// Whether this is a link process.
    pub(crate) fn is_link(&self) -> bool {
        self.topology.mp(self.me).is_some_and(|mp| mp.link)
    }

    pub(crate) fn group_of(&self, mp: MpId) -> GroupId {
        self.topology.mp(mp).map(|p| p.group).unwrap_or_default()
    }

    pub(crate) fn same_group(&self, a: MpId, b: MpId) -> bool {
        self.group_of(a) == self.group_of(b)
    }

    /// How far `b` is from `a`.
    pub(crate) fn origin(&self, a: MpId, b: MpId) -> Origin {
        if a == b {
            Origin::Local
        } else if self.same_group(a, b) {
            Origin::Intra
        } else {
            Origin::Inter
        }
    }

    /// The neighbour to hand a message for `destination` to.
    pub(crate) fn next_hop(&self, destination: MpId) -> Option<MpId> {
        self.next.get(destination.index()).copied().flatten()
    }

    /// All neighbours: the processes that are their own next hop.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = MpId> {
        (0u32..)
            .zip(&self.next)
            .filter_map(|(i, n)| (*n == Some(MpId(i))).then_some(MpId(i)))
    }

    /// The processes reached through `neighbour`, itself included.
    pub(crate) fn through(&self, neighbour: MpId) -> Vec<MpId> {
        (0u32..)
            .zip(&self.next)
            .filter_map(|(i, n)| (*n == Some(neighbour)).then_some(MpId(i)))
            .collect()
    }

    /// The memory processes that own objects.
    pub(crate) fn owners(&self) -> &[MpId] {
        &self.owners
    }

    /// The other memory process, if there is only one, of any kind: all that it learns of this one, it learns on the link between them.
    pub(crate) fn only_other(&self) -> Option<MpId> {
        let all = self.topology.memory_processes().len() as u32;
        let mut others = (0..all).map(MpId).filter(|mp| *mp != self.me);
        others.next().filter(|_| others.next().is_none())
    }

    /// The event manager of a memory process.
    pub(crate) fn emp_of(&self, mp: MpId) -> EmpId {
        self.topology
            .mp(mp)
            .map(|p| p.event_manager)
            .unwrap_or_default()
    }

    /// The memory process of an application process.
    pub(crate) fn mp_of(&self, ap: ApId) -> Option<MpId> {
        self.topology.ap(ap).map(|a| a.memory_process)
    }

    /// The application processes of a memory process, in order.
    pub(crate) fn aps_of(&self, mp: MpId) -> Vec<ApId> {
        let aps = self.topology.aps_in(None);
        aps.filter(|ap| self.mp_of(*ap) == Some(mp)).collect()
    }

    pub(crate) fn mp_name(&self, mp: MpId) -> String {
        self.topology.mp_name(mp)
    }

    pub(crate) fn ap_name(&self, ap: ApId) -> String {
        self.topology.ap_name(ap)
    }

    /// Both ends are link processes of top-level groups: they form one mesh, and tidings that came
    /// over one of its links do not go over another.
    pub(crate) fn in_top_mesh(&self, a: MpId, b: MpId) -> bool {
        let top = |mp: MpId| {
            self.topology
                .mp(mp)
                .is_some_and(|p| p.link && self.topology.groups()[p.group.index()].parent.is_none())
        };
        top(a) && top(b)
    }

    /// The application process called `name`, if it is one of ours.
    pub(crate) fn own_ap(&self, name: &str) -> Result<ApId, Refusal> {
        let unknown = |why| Err(Refusal::new(ErrorCode::UnknownProcess, why));
        let Some(ap) = self.topology.find_ap(name) else {
            let known = self.topology.application_processes().iter();
            return unknown(format!(
                "the cluster file has no application process {name:?}; it has {}",
                list(known.map(|a| a.name.as_str()))
            ));
        };
        match self.mp_of(ap) {
            Some(mp) if mp == self.me => Ok(ap),
            mp => unknown(format!(
                "{name} talks to {}, not to {}; connect it there or change its `mp` in the cluster file",
                mp.map_or_else(|| "nobody".to_owned(), |m| self.mp_name(m)),
                self.mp_name(self.me)
            )),
        }
    }
}

/// A list of names for a message, cut where it gets long.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    let mut text = String::new();
    for (i, name) in names.enumerate() {
        if i == SHOWN {
            text.push_str(", …");
            break;
        }
        if i > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    if text.is_empty() {
        text.push_str("none");
    }
    text
}

fn next_hop(t: &Topology, from: MpId, to: MpId) -> Option<MpId> {
    let (a, b) = (t.mp(from)?, t.mp(to)?);
    if from == to {
        return None;
    }
    if a.group == b.group {
        return Some(to);
    }
    if !a.link {
        return t.link_of(a.group);
    }
    if t.within(b.group, a.group) {
        // Down: into the child group that holds the destination.
        let child = t
            .ancestry(b.group)
            .find(|g| t.groups()[g.index()].parent == Some(a.group))?;
        return t.link_of(child);
    }
    match t.groups()[a.group.index()].parent {
        Some(parent) => t.link_of(parent),
        None => t.link_of(t.ancestry(b.group).last()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::topology;

    fn path(t: &Arc<Topology>, from: &str, to: &str) -> Vec<String> {
        let to = t.find_mp(to).unwrap();
        let mut at = t.find_mp(from).unwrap();
        let mut names = vec![t.mp_name(at)];
        while at != to {
            at = Cluster::new(Arc::clone(t), at).next_hop(to).unwrap();
            names.push(t.mp_name(at));
            assert!(names.len() < 10, "{names:?} goes round in circles");
        }
        names
    }

    #[test]
    fn messages_follow_the_tree_of_groups() {
        let t = topology(&["/a", "/a/x", "/a/x/deep", "/b", "/b/y"], 1, 0);
        assert_eq!(path(&t, "mp0", "mp3"), ["mp0", "lp.a", "lp.b", "mp3"]);
        assert_eq!(
            path(&t, "mp2", "mp4"),
            [
                "mp2",
                "lp.a.x.deep",
                "lp.a.x",
                "lp.a",
                "lp.b",
                "lp.b.y",
                "mp4"
            ]
        );
        assert_eq!(
            path(&t, "mp0", "mp2"),
            ["mp0", "lp.a", "lp.a.x", "lp.a.x.deep", "mp2"]
        );
    }

    #[test]
    fn neighbours_are_mutual() {
        let t = topology(&["/a", "/a/x", "/b"], 2, 0);
        for i in 0..t.memory_processes().len() as u32 {
            let mine = Cluster::new(Arc::clone(&t), MpId(i));
            for n in mine.neighbours() {
                let its = Cluster::new(Arc::clone(&t), n);
                assert!(its.neighbours().any(|m| m == MpId(i)));
            }
        }
    }
}
