//! The processes of a run that serve metrics: where, and the labels of their series.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::bail;
use dosmos_client::{Launch, run_dir, store_dirs};
use dosmos_proto::transport::Address;
use dosmos_proto::{AddressBook, Topology};
use dosmos_trace::store::Manifest;
use serde::Serialize;

use crate::output;

/// What serves metrics in a run.
#[derive(Debug)]
pub(super) struct Watched {
    /// The name of the run: that of its directory.
    pub(super) run: String,
    /// How it was started.
    pub(super) launch: Launch,
    targets: Vec<Target>,
}

/// A process: an item of a `file_sd` file of Prometheus, and of its `static_configs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Target {
    /// Its one address.
    targets: [String; 1],
    pub(super) labels: Labels,
}

/// What all series of a process have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Labels {
    /// Its name.
    pub(super) process: String,
    /// `mp`, `lp` or `emp`, as its page says.
    role: &'static str,
    /// The name of its run.
    run: String,
    /// The path of its group; event managers have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
}

impl Watched {
    /// Of the run in a directory, or of the latest one.
    pub(super) fn of(dir: Option<&Path>) -> anyhow::Result<Self> {
        let dir = run_dir(dir)?;
        let stores = store_dirs(&dir)?;
        let topology = Manifest::read(&stores[0])?.identity.topology;
        let path = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        let name = path.file_name().unwrap_or(path.as_os_str());
        let watched = Self {
            run: name.to_string_lossy().into_owned(),
            launch: Launch::beside(&stores),
            targets: Vec::new(),
        };
        let book = AddressBook::new(Default::default(), Some(&dir));
        let targets = targets(&topology, &watched.run, &book);
        if targets.is_empty() {
            bail!(watched.why_none(&dir, &topology, &book));
        }
        Ok(Self { targets, ..watched })
    }

    /// The processes, those of the first group first.
    pub(super) fn targets(&self) -> &[Target] {
        &self.targets
    }

    fn why_none(&self, dir: &Path, topology: &Topology, book: &AddressBook) -> String {
        let dir = dir.display();
        let mut names = topology.process_names();
        match self.launch.metadata().is_some_and(|m| m.ended.is_some()) {
            true => format!("the run in {dir} has ended; only processes that run serve metrics"),
            false if names.any(|name| book.resolve(name).is_some()) => format!(
                "no process of the run in {dir} serves metrics; its cluster file says metrics = \"off\": leave that out, \
                 or name an address (docs/guide/metrics.md)"
            ),
            false => format!("no process of the run in {dir} is running here"),
        }
    }
}

fn targets(topology: &Topology, run: &str, book: &AddressBook) -> Vec<Target> {
    let of_memory = topology.memory_processes().iter().map(|p| {
        let role = if p.link { "lp" } else { "mp" };
        let group = topology.groups().get(p.group.index());
        (&p.name, role, group.map(|g| g.path.to_string()))
    });
    let of_events = topology.event_managers().iter();
    let of_events = of_events.map(|p| (&p.name, "emp", None));
    let target = |(name, role, group): (&String, _, _)| {
        let Address::Tcp(address) = book.resolve(&format!("{name}.metrics"))? else {
            return None;
        };
        if stands_for_all(&address) {
            output::note(&format!(
                "{name} listens at all addresses of its host ({address}): write the name of the host in place of the address"
            ));
        }
        let labels = Labels {
            process: name.clone(),
            role,
            run: run.to_owned(),
            group,
        };
        Some(Target {
            targets: [address],
            labels,
        })
    };
    of_memory.chain(of_events).filter_map(target).collect()
}

/// Whether nobody on another host can dial it as it is.
fn stands_for_all(address: &str) -> bool {
    address
        .parse::<SocketAddr>()
        .is_ok_and(|a| a.ip().is_unspecified())
}
