//! From the file to a consistent cluster: names become numbers, missing link processes are added, and all errors are reported
//! together.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use dosmos_memproc::{ALL_VARIABLES, Overflow, Recording, VariableOverride};
use dosmos_proto::names::check_name;
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess};
use dosmos_proto::transport::Address;
use dosmos_proto::{EmpId, GroupId, MAX_REPLICAS, MpId, Nanos, Placement, TopologyBuilder};
use dosmos_trace::pattern::Pattern;
use dosmos_trace::selection::Selection;
use dosmos_trace::store::Retention;

use super::cluster::{Cluster, Listen, Metrics};
use super::file;
use super::launch::Launch;
use super::names::{NAME_RULE, did_you_mean, is_name};
use super::tls::{Protection, exposed};

/// Smallest bound of a trace store, in bytes.
const LEAST_STORE: u64 = 16 << 20;

/// Numbers by name, and the errors found until now.
#[derive(Default)]
struct Builder {
    errors: Vec<String>,
    topology: TopologyBuilder,
    groups: BTreeMap<String, GroupId>,
    emps: BTreeMap<String, EmpId>,
    mps: BTreeMap<String, MpId>,
    processes: HashSet<String>,
    listen: HashMap<String, Listen>,
    advertise: HashMap<String, Address>,
    default_listen: Option<String>,
    metrics: Metrics,
    /// Addresses that other machines can reach are allowed: without encryption, or with.
    exposed: bool,
}

/// `protection`: what is said beside the file.
pub(super) fn build(
    file: file::File,
    launch: Option<Launch>,
    protection: Protection,
) -> Result<Cluster, Vec<String>> {
    let insecure = file.defaults.insecure || protection == Protection::Insecure;
    let tls = file.tls.map(file::Tls::into_files);
    let mut b = Builder {
        default_listen: file.defaults.listen,
        exposed: insecure || tls.is_some() || protection == Protection::Tls,
        ..Builder::default()
    };
    if let Some(text) = file.defaults.metrics {
        b.metrics.others = b.metrics_at("[defaults]", &text);
    }
    if !is_name(&file.name) {
        b.error(format!("cluster {:?}: {NAME_RULE}", file.name));
    }
    b.topology.name = file.name;
    b.groups(file.group);
    let stores = b.emps(file.emp);
    let said = file
        .mp
        .iter()
        .map(|mp| mp.in_application)
        .collect::<Vec<_>>();
    b.mps(file.mp);
    b.links(file.lp);
    b.aps(file.ap);
    let in_application = b.in_application(&said, file.defaults.in_application);
    let recording = b.recording(file.recording);
    let retention = b.retention(&file.store);
    let overrides = b.variables(file.variable);
    let app = file.app.map(|a| a.command).unwrap_or_default();
    if !b.errors.is_empty() {
        return Err(b.errors);
    }
    let topology = b.topology.build().map_err(|e| vec![e.to_string()])?;
    Ok(Cluster {
        launch,
        topology,
        listen: b.listen,
        advertise: b.advertise,
        metrics: b.metrics,
        stores,
        recording,
        retention,
        overrides,
        tls,
        insecure,
        in_application,
        bind: file.defaults.bind.unwrap_or_default(),
        deadline: Nanos::from_millis(file.defaults.deadline_ms.unwrap_or(60_000)),
        app,
    })
}

impl Builder {
    fn error(&mut self, text: impl Into<String>) {
        self.errors.push(text.into());
    }

    /// Groups, parents before children whatever their order in the file.
    fn groups(&mut self, groups: Vec<file::Group>) {
        let mut by_name: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut order = Vec::new();
        for group in groups {
            if !is_name(&group.name) {
                self.error(format!("group {:?}: {NAME_RULE}", group.name));
            } else if by_name.insert(group.name.clone(), group.parent).is_some() {
                self.error(format!("two groups are called {}; rename one", group.name));
            } else {
                order.push(group.name);
            }
        }
        if by_name.is_empty() {
            self.error("there is no group; add [[group]] with a name");
        }
        for (name, parent) in &by_name {
            if let Some(parent) = parent
                && !by_name.contains_key(parent)
            {
                let hint = did_you_mean(parent, by_name.keys());
                self.errors.push(format!(
                    "group {name}: its parent {parent} does not exist{hint}"
                ));
            }
        }
        for name in &order {
            let mut chain = Vec::new();
            self.group(name, &by_name, &mut chain);
        }
    }

    fn group(
        &mut self,
        name: &str,
        all: &BTreeMap<String, Option<String>>,
        chain: &mut Vec<String>,
    ) -> Option<GroupId> {
        if let Some(&id) = self.groups.get(name) {
            return Some(id);
        }
        if let Some(at) = chain.iter().position(|n| n == name) {
            let circle = chain[at..].join(" in ");
            // Reported once, by its first member.
            if chain[at..]
                .iter()
                .min()
                .is_some_and(|first| first == &chain[0])
            {
                self.error(format!(
                    "the groups form a cycle: {circle} in {name}; remove one `parent`"
                ));
            }
            return None;
        }
        chain.push(name.to_owned());
        let parent = match all.get(name)? {
            Some(parent) => Some(self.group(parent, all, chain)?),
            None => None,
        };
        let path = match parent {
            Some(p) => self.topology.groups[p.index()].path.child(name),
            None => GroupPath::top(name),
        };
        let id = GroupId(self.topology.groups.len() as u32);
        self.topology.groups.push(Group { path, parent });
        self.groups.insert(name.to_owned(), id);
        Some(id)
    }

    fn emps(&mut self, emps: Vec<file::Emp>) -> HashMap<String, std::path::PathBuf> {
        let mut stores = HashMap::new();
        if emps.is_empty() {
            self.error("there is no event manager; add [[emp]] with a name");
        }
        for emp in emps {
            self.process(&emp.name, emp.listen);
            self.advertised(&emp.name, emp.advertise.as_deref());
            self.metrics_of(&emp.name, emp.metrics.as_deref());
            if let Some(store) = emp.store {
                if let Some((other, _)) = stores.iter().find(|(_, s)| **s == store) {
                    let text = format!(
                        "event managers {other} and {} have the same store {}; give each its own",
                        emp.name,
                        store.display()
                    );
                    self.error(text);
                }
                stores.insert(emp.name.clone(), store);
            }
            let id = EmpId(self.topology.event_managers.len() as u32);
            self.emps.insert(emp.name.clone(), id);
            self.topology
                .event_managers
                .push(EventManager { name: emp.name });
        }
        stores
    }

    fn mps(&mut self, mps: Vec<file::Mp>) {
        if mps.is_empty() {
            self.error("there is no memory process; add [[mp]] with name, group and emp");
        }
        for mp in mps {
            self.process(&mp.name, mp.listen);
            self.advertised(&mp.name, mp.advertise.as_deref());
            self.metrics_of(&mp.name, mp.metrics.as_deref());
            let what = format!("memory process {}", mp.name);
            let group = self.group_called(&what, &mp.group);
            let event_manager = self.emp_called(&what, &mp.emp);
            let id = MpId(self.topology.memory_processes.len() as u32);
            self.mps.insert(mp.name.clone(), id);
            self.topology.memory_processes.push(MemoryProcess {
                name: mp.name,
                group,
                event_manager,
                link: false,
            });
        }
        for (name, id) in self.emps.clone() {
            let mut mps = self.topology.memory_processes.iter();
            if !mps.any(|mp| mp.event_manager == id) && self.errors.is_empty() {
                self.error(format!(
                    "no memory process reports to event manager {name}; add emp = {name:?} to one, or remove it"
                ));
            }
        }
    }

    fn links(&mut self, links: Vec<file::Lp>) {
        let mut linked = HashSet::new();
        for lp in links {
            self.process(&lp.name, lp.listen);
            self.advertised(&lp.name, lp.advertise.as_deref());
            self.metrics_of(&lp.name, lp.metrics.as_deref());
            let what = format!("link process {}", lp.name);
            let group = self.group_called(&what, &lp.group);
            let event_manager = match &lp.emp {
                Some(emp) => self.emp_called(&what, emp),
                None => self.emp_near(group),
            };
            if self.groups.contains_key(&lp.group) && !linked.insert(group) {
                self.error(format!(
                    "group {} has two link processes, {} the second; a group has one",
                    lp.group, lp.name
                ));
            }
            self.link(lp.name, group, event_manager);
        }
        if self.groups.len() < 2 {
            return;
        }
        for (name, group) in self.groups.clone() {
            if !linked.contains(&group) {
                let link = format!("lp.{name}");
                self.process(&link, None);
                let event_manager = self.emp_near(group);
                self.link(link, group, event_manager);
            }
        }
    }

    fn link(&mut self, name: String, group: GroupId, event_manager: EmpId) {
        self.topology.memory_processes.push(MemoryProcess {
            name,
            group,
            event_manager,
            link: true,
        });
    }

    /// The event manager of the first memory process in the group, its sub-groups, or anywhere.
    fn emp_near(&self, group: GroupId) -> EmpId {
        let (mps, groups) = (&self.topology.memory_processes, &self.topology.groups);
        let up = |g: &GroupId| groups.get(g.index()).and_then(|g| g.parent);
        let within = |mp: &&MemoryProcess| {
            std::iter::successors(Some(mp.group), up).any(|above| above == group)
        };
        let inside = mps.iter().find(within);
        inside
            .or(mps.first())
            .map_or(EmpId(0), |mp| mp.event_manager)
    }

    /// Memory processes that are within their application processes: those of which that is `said`, or by default those that can be.
    fn in_application(&mut self, said: &[Option<bool>], default: bool) -> BTreeSet<MpId> {
        let mut within = BTreeSet::new();
        for (said, at) in said.iter().zip(0..) {
            let mp = MpId(at);
            let aps = self.topology.application_processes.iter();
            let has = aps.filter(|ap| ap.memory_process == mp).count();
            if *said == Some(true) && has != 1 {
                let name = &self.topology.memory_processes[mp.index()].name;
                self.errors.push(format!(
                    "memory process {name}: in_application = true is for one that has one application process, and it has {has}"
                ));
            }
            if said.unwrap_or(default) && has == 1 {
                within.insert(mp);
            }
        }
        within
    }

    fn aps(&mut self, aps: Vec<file::Ap>) {
        if aps.is_empty() {
            self.error("there is no application process; add [[ap]] with name and mp");
        }
        for ap in aps {
            self.process(&ap.name, None);
            self.listen.remove(&ap.name);
            let memory_process = match &ap.mp {
                None => {
                    self.error(format!(
                        "application process {} has no memory process; add mp = \"…\"",
                        ap.name
                    ));
                    MpId(0)
                }
                Some(name) => match self.mps.get(name) {
                    Some(&id) => id,
                    None => {
                        let hint = did_you_mean(name, self.mps.keys());
                        self.error(format!(
                            "application process {}: memory process {name} does not exist{hint}",
                            ap.name
                        ));
                        MpId(0)
                    }
                },
            };
            self.topology
                .application_processes
                .push(ApplicationProcess {
                    name: ap.name,
                    memory_process,
                });
        }
    }

    /// Notes a process's name and address.
    fn process(&mut self, name: &str, listen: Option<String>) {
        if !is_name(name) {
            self.error(format!("process {name:?}: {NAME_RULE}"));
        } else if !self.processes.insert(name.to_owned()) {
            self.error(format!("two processes are called {name}; rename one"));
        }
        let text = listen.or_else(|| self.default_listen.clone());
        let listen = match text.as_deref() {
            None => Listen::OnThisMachine,
            Some("unix") => Listen::UnixInRunDir,
            Some(text) => match text.parse::<Address>() {
                Ok(address) => Listen::At(address),
                Err(e) => {
                    self.error(format!("process {name}: {e}"));
                    return;
                }
            },
        };
        if let Listen::At(address) = &listen
            && !address.is_local()
            && !self.exposed
        {
            self.error(exposed(&format!(
                "process {name} would listen at {address}"
            )));
        }
        self.listen.insert(name.to_owned(), listen);
    }

    /// Notes at which address others reach a process, if that is another one than where it listens.
    fn advertised(&mut self, name: &str, text: Option<&str>) {
        let Some(text) = text else { return };
        match text.parse::<Address>() {
            Ok(Address::Tcp(at)) if at.ends_with(":0") => self.error(format!(
                "process {name} advertises {at}: nobody can know which port that is; name the port that others reach it at"
            )),
            Ok(address) => {
                self.advertise.insert(name.to_owned(), address);
            }
            Err(e) => self.error(format!("process {name}: advertise: {e}")),
        }
    }

    /// Notes where a process serves its metrics, if the file says.
    fn metrics_of(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            let at = self.metrics_at(&format!("process {name}"), text);
            self.metrics.of.insert(name.to_owned(), at);
        }
    }

    /// An address for metrics; none for `off`.
    fn metrics_at(&mut self, what: &str, text: &str) -> Option<String> {
        if text == "off" {
            return None;
        }
        match text.parse() {
            Ok(address @ Address::Tcp(_)) if address.is_local() || self.exposed => {}
            Ok(Address::Tcp(_)) => {
                self.error(exposed(&format!("{what} would serve metrics at {text}")));
            }
            _ => self.error(format!(
                "{what}: metrics = {text:?} is not an address; write host:port (port 0: the system chooses) or \"off\""
            )),
        }
        Some(text.to_owned())
    }

    fn group_called(&mut self, what: &str, name: &str) -> GroupId {
        let bare = name.trim_start_matches('/');
        let bare = bare.rsplit('/').next().unwrap_or(bare);
        if let Some(&id) = self.groups.get(bare) {
            return id;
        }
        let hint = did_you_mean(bare, self.groups.keys());
        self.error(format!("{what}: group {name} does not exist{hint}"));
        GroupId(0)
    }

    fn emp_called(&mut self, what: &str, name: &str) -> EmpId {
        if let Some(&id) = self.emps.get(name) {
            return id;
        }
        let hint = did_you_mean(name, self.emps.keys());
        self.error(format!("{what}: event manager {name} does not exist{hint}"));
        EmpId(0)
    }

    fn recording(&mut self, r: file::Recording) -> Recording {
        if r.sample_one_in == Some(0) {
            self.error(
                "recording: sample_one_in must be at least 1 (1: every access, 10: one in ten)",
            );
        }
        if r.buffer_bytes.is_some_and(|b| b < 1 << 20) {
            self.error("recording: buffer_bytes is below 1 MiB (1048576)");
        }
        for text in r.variables.iter().chain(&r.processes) {
            if let Err(e) = Pattern::parse(text) {
                self.error(format!("recording: {e}"));
            }
        }
        let default = Recording::default();
        Recording {
            selection: Selection {
                mode: r.mode,
                sample_one_in: r.sample_one_in.unwrap_or(1),
                variables: r.variables,
                ops: r.ops,
                processes: r.processes,
            },
            overflow: match r.overflow {
                file::Overflow::Drop => Overflow::Drop,
                file::Overflow::Block => Overflow::Block,
            },
            buffer_bytes: r.buffer_bytes.unwrap_or(default.buffer_bytes),
        }
    }

    fn retention(&mut self, s: &file::Store) -> Retention {
        if s.max_bytes.is_some_and(|b| b < LEAST_STORE) {
            self.error(format!(
                "store: max_bytes is below 16 MiB ({LEAST_STORE}); old records are removed in parts of that order"
            ));
        }
        if s.max_age_s.is_some_and(|s| !s.is_finite() || s < 1.0) {
            self.error("store: max_age_s is below 1");
        }
        Retention {
            max_bytes: s.max_bytes,
            max_age: s.max_age_s.map(|s| Nanos((s * 1e9) as u64)),
        }
    }

    fn variables(&mut self, variables: Vec<file::Variable>) -> Vec<VariableOverride> {
        let mut seen = HashSet::new();
        let mut overrides = Vec::new();
        for v in variables {
            if v.name != ALL_VARIABLES
                && let Err(why) = check_name("variable name", &v.name)
            {
                self.error(format!("variable {:?}: {why}", v.name));
            }
            if !seen.insert(v.name.clone()) {
                self.error(format!("variable {} has two entries; merge them", v.name));
            }
            if v.owners.is_some() && v.placement.is_some() {
                self.error(format!(
                    "variable {}: has both owners and placement; keep one",
                    v.name
                ));
            }
            let placement = match (v.owners, v.placement) {
                (Some(owners), _) => {
                    self.owners(&v.name, &owners);
                    match Placement::explicit(owners) {
                        Ok(placement) => Some(placement),
                        Err(why) => {
                            self.error(format!("variable {}: {why}", v.name));
                            None
                        }
                    }
                }
                (None, Some(p)) => Some(self.placement(&v.name, p)),
                (None, None) => None,
            };
            if let Some(replicas) = v.replicas {
                self.replicas(&v.name, replicas, placement.as_ref());
            }
            overrides.push(VariableOverride {
                name: v.name,
                policy: v.policy,
                placement,
                lock: v.lock,
                cache: v.cache,
                replicas: v.replicas,
            });
        }
        overrides
    }

    /// Whether the group of each owner, or some group if the owners are not known yet, has enough memory processes.
    fn replicas(&mut self, variable: &str, replicas: u32, placement: Option<&Placement>) {
        if replicas > MAX_REPLICAS {
            return self.error(format!(
                "variable {variable}: replicas = {replicas}; there can be 0 to {MAX_REPLICAS}"
            ));
        }
        let mps = &self.topology.memory_processes;
        let others = |group: GroupId| {
            let here = mps.iter().filter(|mp| mp.group == group && !mp.link);
            here.count().saturating_sub(1)
        };
        let named: Vec<GroupId> = match placement {
            Some(Placement::Explicit(names)) => {
                let names = names.as_slice().iter();
                let ids = names.filter_map(|name| self.mps.get(name));
                ids.filter_map(|mp| mps.get(mp.index()))
                    .map(|mp| mp.group)
                    .collect()
            }
            _ => Vec::new(),
        };
        let most = mps.iter().map(|mp| others(mp.group)).max().unwrap_or(0);
        let least = named
            .iter()
            .map(|group| others(*group))
            .min()
            .unwrap_or(most);
        if (replicas as usize) > least {
            self.error(format!(
                "variable {variable}: replicas = {replicas}, but only {least} other memory processes are in the group of an owner; add [[mp]] there or lower it"
            ));
        }
    }

    fn owners(&mut self, variable: &str, owners: &[String]) {
        for owner in owners {
            if !self.mps.contains_key(owner) {
                let hint = did_you_mean(owner, self.mps.keys());
                self.error(format!(
                    "variable {variable}: memory process {owner} does not exist{hint}"
                ));
            }
        }
    }

    fn placement(&mut self, variable: &str, placement: file::Placement) -> Placement {
        match placement {
            file::Placement::Creator => Placement::Creator,
            file::Placement::ByName => Placement::ByName,
            file::Placement::RoundRobin(file::RoundRobin::Everywhere(_)) => {
                Placement::RoundRobin(None)
            }
            file::Placement::RoundRobin(file::RoundRobin::InGroup(g)) => {
                let what = format!("variable {variable}");
                let id = self.group_called(&what, &g.round_robin);
                let path = self.topology.groups.get(id.index());
                Placement::RoundRobin(path.map(|g| g.path.to_string()))
            }
        }
    }
}
