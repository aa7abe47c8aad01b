//! A consistent cluster: what every other module knows of a cluster file.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use dosmos_memproc::{Recording, VariableOverride};
use dosmos_proto::access::Files;
use dosmos_proto::transport::Address;
use dosmos_proto::{AddressBook, ApId, MpId, Nanos, Topology};
use dosmos_trace::store::Retention;

use super::bind::Bind;
use super::launch::Launch;

/// A consistent cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The processes.
    pub topology: Topology,
    /// Where each memory, link and event manager process listens, by name.
    pub listen: HashMap<String, Listen>,
    /// Where others reach those of them that are behind something that forwards: a router, a container's port, a proxy.
    pub advertise: HashMap<String, Address>,
    /// Where they serve metrics for Prometheus.
    pub metrics: Metrics,
    /// Directories of the trace stores that the file names, by event manager.
    pub stores: HashMap<String, PathBuf>,
    /// What is recorded.
    pub recording: Recording,
    /// How much of the past each trace store keeps.
    pub retention: Retention,
    /// What the file says of variables.
    pub overrides: Vec<VariableOverride>,
    /// How long an operation may take.
    pub deadline: Nanos,
    /// PEM files of its processes, if the file names some; `{name}` in them stands for the process.
    pub tls: Option<Files>,
    /// Other machines may reach processes without encryption.
    pub insecure: bool,
    /// Memory processes that are within the one application process that they have.
    pub in_application: BTreeSet<MpId>,
    /// What runs on processors of its own, where `dosmos up` starts it.
    pub bind: Bind,
    /// What to run once per application process, if the command line does not say.
    pub app: Vec<String>,
    /// Which rank of a launcher is which process, if the file leaves that to a rule.
    pub launch: Option<Launch>,
}

/// Where processes serve metrics: addresses, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// By process, where the file says.
    pub of: HashMap<String, Option<String>>,
    /// All others.
    pub others: Option<String>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            of: HashMap::new(),
            others: Some("127.0.0.1:0".to_owned()),
        }
    }
}

impl Metrics {
    /// The address `process` binds for them.
    pub fn address_of(&self, process: &str) -> Option<&str> {
        self.of.get(process).unwrap_or(&self.others).as_deref()
    }
}

/// Bytes of the longest path of a Unix socket (`sun_path` of unix(7), without its last zero).
const LONGEST_SOCKET: usize = 107;

/// Where a process listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// At this address; with port 0 the system chooses the port.
    At(Address),
    /// At a Unix socket in the run directory.
    UnixInRunDir,
    /// Where this machine alone can reach it: at a Unix socket in the run directory or, if its path is too long for
    /// one, at a port of the loopback interface that the system chooses.
    OnThisMachine,
}

impl Cluster {
    /// The addresses that are known before anything runs, and those in `run_dir`.
    pub fn address_book(&self, run_dir: Option<&Path>) -> AddressBook {
        AddressBook::new(self.known_addresses().collect(), run_dir)
    }

    /// Addresses that the file says.
    pub(crate) fn known_addresses(&self) -> impl Iterator<Item = (String, Address)> {
        let fixed = self.listen.iter();
        let fixed = fixed.filter_map(|(name, listen)| match listen {
            Listen::At(Address::Tcp(text)) if text.ends_with(":0") => None,
            Listen::At(address) => Some((name.clone(), address.clone())),
            Listen::UnixInRunDir | Listen::OnThisMachine => None,
        });
        let advertised = self.advertise.iter();
        let advertised = advertised.map(|(name, address)| (name.clone(), address.clone()));
        fixed.chain(advertised)
    }

    /// The address a process binds.
    pub fn bind_address(&self, name: &str, run_dir: &Path) -> Address {
        let socket = run_dir.join(format!("{name}.sock"));
        match self.listen.get(name) {
            Some(Listen::At(address)) => address.clone(),
            Some(Listen::UnixInRunDir) => Address::Unix(socket),
            Some(Listen::OnThisMachine) | None if socket.as_os_str().len() <= LONGEST_SOCKET => {
                Address::Unix(socket)
            }
            Some(Listen::OnThisMachine) | None => Address::Tcp("127.0.0.1:0".to_owned()),
        }
    }

    /// The directory of an event manager's store.
    pub fn store_of(&self, name: &str, run_dir: &Path) -> PathBuf {
        self.stores
            .get(name)
            .cloned()
            .unwrap_or_else(|| run_dir.join("store").join(name))
    }

    /// The memory process of an application process, if it is within that.
    pub(crate) fn within(&self, ap: ApId) -> Option<MpId> {
        let mp = self.topology.ap(ap)?.memory_process;
        self.in_application.contains(&mp).then_some(mp)
    }

    /// The application process that memory process `mp` is within, if it is.
    pub(crate) fn around(&self, mp: MpId) -> Option<&str> {
        let mut aps = self.topology.application_processes().iter();
        let ap = aps.find(|ap| ap.memory_process == mp)?;
        self.in_application
            .contains(&mp)
            .then_some(ap.name.as_str())
    }
}

impl fmt::Display for Cluster {
    /// The tree of groups with their processes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = &self.topology;
        writeln!(
            f,
            "cluster {}: {} groups, {} memory processes, {} application processes, {} event managers",
            t.name(),
            t.groups().len(),
            t.owners_in(None).count(),
            t.application_processes().len(),
            t.event_managers().len()
        )?;
        for (id, group) in (0u32..).zip(t.groups()) {
            writeln!(f, "{}", group.path)?;
            let members = (0u32..).zip(t.memory_processes());
            for (mp, process) in members.filter(|(_, p)| p.group.0 == id) {
                let kind = if process.link { "lp" } else { "mp" };
                let emp = t.emp_name(process.event_manager);
                let aps: Vec<&str> = t
                    .application_processes()
                    .iter()
                    .filter(|ap| ap.memory_process.0 == mp)
                    .map(|ap| ap.name.as_str())
                    .collect();
                let how = match self.in_application.contains(&MpId(mp)) {
                    true => "is within",
                    false => "serves",
                };
                let serves = if aps.is_empty() {
                    String::new()
                } else {
                    format!(", {how} {}", aps.join(", "))
                };
                writeln!(f, "  {kind} {}: reports to {emp}{serves}", process.name)?;
            }
        }
        Ok(())
    }
}
