//! The processes of a cluster and the tree of groups they belong to. Built once from the cluster
//! file; the same in every process, so that a number means the same everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::{ApId, EmpId, GroupId, Malformed, MpId, Variable, wire};

/// Where a group stands in the tree of groups: `/ocean/north`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupPath(String);

impl GroupPath {
    /// The path of a top-level group.
    pub fn top(name: &str) -> Self {
        Self(format!("/{name}"))
    }
    /// The path of a sub-group.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}/{name}", self.0))
    }
    /// The path as text, with a leading `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for GroupPath {
    fn from(text: &str) -> Self {
        Self(format!("/{}", text.trim_start_matches('/')))
    }
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    /// Its path.
    pub path: GroupPath,
    /// The group it lies in; a parent comes before its children.
    pub parent: Option<GroupId>,
}

/// A memory or link process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemoryProcess {
    /// Unique among all processes.
    pub name: String,
    /// The group it serves.
    pub group: GroupId,
    /// The event manager it reports to.
    pub event_manager: EmpId,
    /// It is the link process of its group: it owns nothing and serves no application.
    pub link: bool,
}

/// An application process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApplicationProcess {
    /// Unique among all processes.
    pub name: String,
    /// The memory process it talks to.
    pub memory_process: MpId,
}

/// An event manager process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventManager {
    /// Unique among all processes.
    pub name: String,
}

/// All processes of a cluster. Always consistent: every number in it names something, parents come
/// before their children, a group has at most one link process, and names are unique. Made by
/// [`TopologyBuilder::build`] or from a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "TopologyBuilder")]
pub struct Topology {
    name: String,
    groups: Vec<Group>,
    memory_processes: Vec<MemoryProcess>,
    application_processes: Vec<ApplicationProcess>,
    event_managers: Vec<EventManager>,
}

/// A topology under construction; nothing is checked before [`build`](Self::build).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TopologyBuilder {
    /// Name of the cluster.
    pub name: String,
    /// By [`GroupId`].
    pub groups: Vec<Group>,
    /// By [`MpId`]; link processes too.
    pub memory_processes: Vec<MemoryProcess>,
    /// By [`ApId`].
    pub application_processes: Vec<ApplicationProcess>,
    /// By [`EmpId`].
    pub event_managers: Vec<EventManager>,
}

impl TopologyBuilder {
    /// The topology, if it is consistent.
    ///
    /// # Errors
    /// Names the first number that names nothing, parent that comes after its child, group with two
    /// link processes, application process at a link process, or name that two processes have.
    pub fn build(self) -> Result<Topology, Malformed> {
        self.check_groups()?;
        self.check_memory_processes()?;
        self.check_application_processes()?;
        let topology = Topology {
            name: self.name,
            groups: self.groups,
            memory_processes: self.memory_processes,
            application_processes: self.application_processes,
            event_managers: self.event_managers,
        };
        let mut names: Vec<&str> = topology.process_names().collect();
        names.sort_unstable();
        match names.windows(2).find(|w| w[0] == w[1]) {
            Some(pair) => Err(bad(format!("two processes are called {}", pair[0]))),
            None => Ok(topology),
        }
    }

    fn check_groups(&self) -> Result<(), Malformed> {
        for (i, group) in self.groups.iter().enumerate() {
            if group.parent.is_some_and(|p| p.index() >= i) {
                return Err(bad(format!("group {} comes before its parent", group.path)));
            }
        }
        Ok(())
    }

    fn check_memory_processes(&self) -> Result<(), Malformed> {
        let mut linked = vec![false; self.groups.len()];
        for mp in &self.memory_processes {
            let Some(group) = self.groups.get(mp.group.index()) else {
                return Err(bad(format!(
                    "{} is in {}, which does not exist",
                    mp.name, mp.group
                )));
            };
            if mp.event_manager.index() >= self.event_managers.len() {
                return Err(bad(format!(
                    "{} reports to {}, which does not exist",
                    mp.name, mp.event_manager
                )));
            }
            if mp.link && std::mem::replace(&mut linked[mp.group.index()], true) {
                return Err(bad(format!("group {} has two link processes", group.path)));
            }
        }
        Ok(())
    }

    fn check_application_processes(&self) -> Result<(), Malformed> {
        for ap in &self.application_processes {
            match self.memory_processes.get(ap.memory_process.index()) {
                Some(mp) if !mp.link => {}
                Some(mp) => {
                    return Err(bad(format!(
                        "{} talks to {}, a link process",
                        ap.name, mp.name
                    )));
                }
                None => {
                    return Err(bad(format!(
                        "{} talks to {}, which does not exist",
                        ap.name, ap.memory_process
                    )));
                }
            }
        }
        Ok(())
    }
}

fn bad(why: String) -> Malformed {
    Malformed::new("topology", why)
}

impl TryFrom<TopologyBuilder> for Topology {
    type Error = Malformed;
    fn try_from(builder: TopologyBuilder) -> Result<Self, Malformed> {
        builder.build()
    }
}

/// To change a topology: take it apart, and build it again.
impl From<Topology> for TopologyBuilder {
    fn from(t: Topology) -> Self {
        Self {
            name: t.name,
            groups: t.groups,
            memory_processes: t.memory_processes,
            application_processes: t.application_processes,
            event_managers: t.event_managers,
        }
    }
}

impl Topology {
    /// Name of the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// All groups, by [`GroupId`].
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }
    /// All memory and link processes, by [`MpId`].
    pub fn memory_processes(&self) -> &[MemoryProcess] {
        &self.memory_processes
    }
    /// All application processes, by [`ApId`].
    pub fn application_processes(&self) -> &[ApplicationProcess] {
        &self.application_processes
    }
    /// All event managers, by [`EmpId`].
    pub fn event_managers(&self) -> &[EventManager] {
        &self.event_managers
    }

    /// Names of all processes.
    pub fn process_names(&self) -> impl Iterator<Item = &str> {
        let mps = self.memory_processes.iter().map(|p| p.name.as_str());
        let aps = self.application_processes.iter().map(|p| p.name.as_str());
        let emps = self.event_managers.iter().map(|p| p.name.as_str());
        mps.chain(aps).chain(emps)
    }

    /// The memory process with this number.
    pub fn mp(&self, id: MpId) -> Option<&MemoryProcess> {
        self.memory_processes.get(id.index())
    }
    /// The application process with this number.
    pub fn ap(&self, id: ApId) -> Option<&ApplicationProcess> {
        self.application_processes.get(id.index())
    }
    /// Name of a memory process, or its number if there is none.
    pub fn mp_name(&self, id: MpId) -> String {
        self.mp(id)
            .map_or_else(|| id.to_string(), |p| p.name.clone())
    }
    /// Name of an application process, or its number if there is none.
    pub fn ap_name(&self, id: ApId) -> String {
        self.ap(id)
            .map_or_else(|| id.to_string(), |p| p.name.clone())
    }
    /// The memory processes that own objects of `variable`, for people: each once; those in other groups than the variable's
    /// behind their group, as in `mp0 mp1, in /south: mp2 mp3`.
    pub fn owners_of(&self, variable: &Variable) -> String {
        let mut by_group: BTreeMap<_, BTreeSet<MpId>> = BTreeMap::new();
        for &owner in variable.owners() {
            let group = self.mp(owner).map_or(variable.group(), |mp| mp.group);
            let elsewhere = (group != variable.group()).then_some(group);
            by_group.entry(elsewhere).or_default().insert(owner);
        }
        let parts = by_group.into_iter().map(|(elsewhere, owners)| {
            let names: Vec<String> = owners.into_iter().map(|id| self.mp_name(id)).collect();
            let names = names.join(" ");
            match elsewhere {
                Some(group) => format!("in {}: {names}", self.group_name(group)),
                None => names,
            }
        });
        let parts: Vec<String> = parts.collect();
        parts.join(", ")
    }
    /// Path of a group, or its number if there is none.
    pub fn group_name(&self, id: GroupId) -> String {
        self.groups
            .get(id.index())
            .map_or_else(|| id.to_string(), |g| g.path.to_string())
    }
    /// Name of an event manager, or its number if there is none.
    pub fn emp_name(&self, id: EmpId) -> String {
        self.event_managers
            .get(id.index())
            .map_or_else(|| id.to_string(), |p| p.name.clone())
    }

    /// The memory or link process called `name`.
    pub fn find_mp(&self, name: &str) -> Option<MpId> {
        position(&self.memory_processes, |p| p.name == name).map(MpId)
    }
    /// The application process called `name`.
    pub fn find_ap(&self, name: &str) -> Option<ApId> {
        position(&self.application_processes, |p| p.name == name).map(ApId)
    }
    /// The event manager called `name`.
    pub fn find_emp(&self, name: &str) -> Option<EmpId> {
        position(&self.event_managers, |p| p.name == name).map(EmpId)
    }
    /// The group at `path` (with or without the leading `/`).
    pub fn find_group(&self, path: &str) -> Option<GroupId> {
        let path = GroupPath::from(path);
        position(&self.groups, |g| g.path == path).map(GroupId)
    }

    /// The group of an application process: that of its memory process.
    pub fn group_of_ap(&self, ap: ApId) -> Option<GroupId> {
        self.mp(self.ap(ap)?.memory_process).map(|mp| mp.group)
    }

    /// Whether `group` is `ancestor` or lies within it.
    pub fn within(&self, group: GroupId, ancestor: GroupId) -> bool {
        self.ancestry(group).any(|g| g == ancestor)
    }

    /// `group`, its parent, and so on up to the top.
    pub fn ancestry(&self, group: GroupId) -> impl Iterator<Item = GroupId> {
        std::iter::successors(Some(group), |g| {
            self.groups.get(g.index()).and_then(|g| g.parent)
        })
    }

    /// The link process of a group.
    pub fn link_of(&self, group: GroupId) -> Option<MpId> {
        position(&self.memory_processes, |p| p.link && p.group == group).map(MpId)
    }

    /// Memory processes that own objects (no link processes), of `group` with its sub-groups or of all.
    pub fn owners_in(&self, group: Option<GroupId>) -> impl Iterator<Item = MpId> {
        (0u32..)
            .zip(&self.memory_processes)
            .filter_map(move |(i, mp)| {
                let inside = group.is_none_or(|g| self.within(mp.group, g));
                (inside && !mp.link).then_some(MpId(i))
            })
    }

    /// Application processes of `group` with its sub-groups, or of all.
    pub fn aps_in(&self, group: Option<GroupId>) -> impl Iterator<Item = ApId> {
        (0u32..)
            .zip(&self.application_processes)
            .filter_map(move |(i, ap)| {
                let its = self.memory_processes[ap.memory_process.index()].group;
                group.is_none_or(|g| self.within(its, g)).then_some(ApId(i))
            })
    }

    /// The same with these application processes at other memory processes.
    ///
    /// # Errors
    /// If one of the memory processes does not exist or is a link process.
    pub fn with_homes(
        &self,
        homes: impl IntoIterator<Item = (ApId, MpId)>,
    ) -> Result<Self, Malformed> {
        let mut builder = TopologyBuilder::from(self.clone());
        for (ap, mp) in homes {
            if let Some(process) = builder.application_processes.get_mut(ap.index()) {
                process.memory_process = mp;
            }
        }
        builder.build()
    }

    /// A number that differs between different topologies: XXH64 (seed 0) of the protobuf encoding of
    /// the topology's message (fields in the order of their numbers), the same on every host and with
    /// every compiler.
    pub fn fingerprint(&self) -> u64 {
        let message = wire::Topology::from(self.clone());
        XxHash64::oneshot(0, &prost::Message::encode_to_vec(&message))
    }
}

fn position<T>(list: &[T], is: impl Fn(&T) -> bool) -> Option<u32> {
    list.iter().position(is).map(|i| i as u32)
}

impl From<Topology> for wire::Topology {
    fn from(t: Topology) -> Self {
        use wire::topology as w;
        Self {
            name: t.name,
            groups: t
                .groups
                .into_iter()
                .map(|g| w::Group {
                    path: g.path.0,
                    parent: g.parent.map(|p| p.0),
                })
                .collect(),
            memory_processes: t
                .memory_processes
                .into_iter()
                .map(|p| w::MemoryProcess {
                    name: p.name,
                    group: p.group.0,
                    event_manager: p.event_manager.0,
                    link: p.link,
                })
                .collect(),
            application_processes: t
                .application_processes
                .into_iter()
                .map(|p| w::ApplicationProcess {
                    name: p.name,
                    memory_process: p.memory_process.0,
                })
                .collect(),
            event_managers: t
                .event_managers
                .into_iter()
                .map(|p| w::EventManager { name: p.name })
                .collect(),
        }
    }
}

impl TryFrom<wire::Topology> for Topology {
    type Error = Malformed;
    fn try_from(t: wire::Topology) -> Result<Self, Malformed> {
        TopologyBuilder {
            name: t.name,
            groups: t
                .groups
                .into_iter()
                .map(|g| Group {
                    path: GroupPath::from(g.path.as_str()),
                    parent: g.parent.map(GroupId),
                })
                .collect(),
            memory_processes: t
                .memory_processes
                .into_iter()
                .map(|p| MemoryProcess {
                    name: p.name,
                    group: GroupId(p.group),
                    event_manager: EmpId(p.event_manager),
                    link: p.link,
                })
                .collect(),
            application_processes: t
                .application_processes
                .into_iter()
                .map(|p| ApplicationProcess {
                    name: p.name,
                    memory_process: MpId(p.memory_process),
                })
                .collect(),
            event_managers: t
                .event_managers
                .into_iter()
                .map(|p| EventManager { name: p.name })
                .collect(),
        }
        .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElementType, Layout, VarId, VariableSpec};

    fn two_groups() -> TopologyBuilder {
        let groups = ["north", "south"].map(|name| Group {
            path: GroupPath::top(name),
            parent: None,
        });
        let memory_processes = (0..2).map(|i| MemoryProcess {
            name: format!("mp{i}"),
            group: GroupId(i),
            event_manager: EmpId(0),
            link: false,
        });
        TopologyBuilder {
            name: "two".into(),
            groups: groups.into(),
            memory_processes: memory_processes.collect(),
            application_processes: vec![ApplicationProcess {
                name: "ap0".into(),
                memory_process: MpId(1),
            }],
            event_managers: vec![EventManager {
                name: "emp0".into(),
            }],
        }
    }

    #[test]
    fn an_owner_in_another_group_than_its_variable_is_said_to_be_there() {
        let topology = two_groups().build().unwrap();
        let spec =
            VariableSpec::new("t", Layout::new(ElementType::F64, (1, 8), (1, 2)).unwrap()).unwrap();
        let owned_by = |owners: &[u32]| {
            let owners = owners.iter().map(|&mp| MpId(mp)).collect();
            let variable = Variable::new(VarId(1), spec.clone(), owners, GroupId(0)).unwrap();
            topology.owners_of(&variable)
        };
        assert_eq!(owned_by(&[0]), "mp0");
        assert_eq!(owned_by(&[1, 0, 1]), "mp0, in /south: mp1");
        assert_eq!(owned_by(&[1]), "in /south: mp1");
    }

    /// The value is that of the specified algorithm: a change of it is a change of the protocol.
    #[test]
    fn the_fingerprint_is_specified() {
        let topology = two_groups().build().unwrap();
        assert_eq!(topology.fingerprint(), 0x2ee2_af8a_f6f8_3c17);
        let mut other = TopologyBuilder::from(topology.clone());
        other.application_processes[0].memory_process = MpId(0);
        assert_ne!(other.build().unwrap().fingerprint(), topology.fingerprint());
        assert_eq!(Topology::default().fingerprint(), 0xef46_db37_51d8_e999);
    }

    #[test]
    fn inconsistent_topologies_are_refused_by_name() {
        type Damage = fn(&mut TopologyBuilder);
        let cases: [(Damage, &str); 7] = [
            (
                |t| t.groups[0].parent = Some(GroupId(1)),
                "group /north comes before its parent",
            ),
            (
                |t| t.memory_processes[1].group = GroupId(2),
                "mp1 is in group#2",
            ),
            (
                |t| t.memory_processes[0].event_manager = EmpId(1),
                "mp0 reports to emp#1",
            ),
            (
                |t| {
                    let mut link = t.memory_processes[0].clone();
                    link.link = true;
                    link.name = "lp0".into();
                    t.memory_processes.push(link.clone());
                    link.name = "lp1".into();
                    t.memory_processes.push(link);
                },
                "group /north has two link processes",
            ),
            (
                |t| t.memory_processes[1].link = true,
                "ap0 talks to mp1, a link process",
            ),
            (
                |t| t.application_processes[0].memory_process = MpId(2),
                "ap0 talks to mp#2",
            ),
            (
                |t| t.event_managers[0].name = "mp0".into(),
                "two processes are called mp0",
            ),
        ];
        for (damage, expected) in cases {
            let mut builder = two_groups();
            damage(&mut builder);
            let error = builder.build().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
