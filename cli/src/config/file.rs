//! The cluster file as it is written: TOML, every unknown key an error.

use std::path::PathBuf;

use dosmos_proto::{Cache, CopyPolicy, LockKind};
use dosmos_trace::Op;
use dosmos_trace::selection::Mode;
use serde::Deserialize;

use super::bind::Bind;

/// A cluster file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    #[serde(default)]
    pub(super) defaults: Defaults,
    #[serde(default)]
    pub(super) group: Vec<Group>,
    #[serde(default)]
    pub(super) emp: Vec<Emp>,
    #[serde(default)]
    pub(super) lp: Vec<Lp>,
    #[serde(default)]
    pub(super) mp: Vec<Mp>,
    #[serde(default)]
    pub(super) ap: Vec<Ap>,
    #[serde(default)]
    pub(super) recording: Recording,
    #[serde(default)]
    pub(super) store: Store,
    #[serde(default)]
    pub(super) variable: Vec<Variable>,
    pub(super) app: Option<App>,
    pub(super) launch: Option<Launch>,
    pub(super) tls: Option<Tls>,
}

/// Which rank of a launcher is which process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    pub(super) memory_processes: Option<usize>,
    pub(super) application_processes: Option<usize>,
    pub(super) groups: Option<Groups>,
    #[serde(default)]
    pub(super) group: Vec<LaunchGroup>,
    pub(super) network: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) deadline_s: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Groups {
    Host,
    Switch,
    One,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaunchGroup {
    pub(super) name: String,
    pub(super) hosts: String,
}

/// Paths of PEM files; `{name}` in them stands for the process.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    pub(super) ca: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    pub(super) listen: Option<String>,
    pub(super) metrics: Option<String>,
    pub(super) deadline_ms: Option<u64>,
    #[serde(default)]
    pub(super) insecure: bool,
    pub(super) bind: Option<Bind>,
    #[serde(default)]
    pub(super) in_application: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) parent: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Emp {
    pub(super) name: String,
    pub(super) listen: Option<String>,
    pub(super) advertise: Option<String>,
    pub(super) metrics: Option<String>,
    pub(super) store: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lp {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) emp: Option<String>,
    pub(super) listen: Option<String>,
    pub(super) advertise: Option<String>,
    pub(super) metrics: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mp {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) emp: String,
    pub(super) listen: Option<String>,
    pub(super) advertise: Option<String>,
    pub(super) metrics: Option<String>,
    pub(super) in_application: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ap {
    pub(super) name: String,
    pub(super) mp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Recording {
    pub(super) mode: Mode,
    pub(super) sample_one_in: Option<u32>,
    pub(super) variables: Vec<String>,
    pub(super) ops: Vec<Op>,
    pub(super) processes: Vec<String>,
    pub(super) overflow: Overflow,
    pub(super) buffer_bytes: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Store {
    pub(super) max_bytes: Option<u64>,
    pub(super) max_age_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Overflow {
    #[default]
    Drop,
    Block,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) policy: Option<CopyPolicy>,
    pub(super) lock: Option<LockKind>,
    pub(super) cache: Option<Cache>,
    pub(super) replicas: Option<u32>,
    pub(super) owners: Option<Vec<String>>,
    pub(super) placement: Option<Placement>,
}

/// `"creator"`, `"by_name"`, `"round_robin"` or `{ round_robin = "/group" }`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Placement {
    Creator,
    ByName,
    #[serde(untagged)]
    RoundRobin(RoundRobin),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum RoundRobin {
    Everywhere(Everywhere),
    InGroup(InGroup),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Everywhere {
    RoundRobin,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InGroup {
    pub(super) round_robin: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct App {
    pub(super) command: Vec<String>,
}

impl Group {
    /// One that lies in no other.
    pub(super) fn top(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            parent: None,
        }
    }
}

impl Emp {
    pub(super) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            listen: None,
            advertise: None,
            metrics: None,
            store: None,
        }
    }
}

impl Lp {
    pub(super) fn named(name: &str, group: &str, emp: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: group.to_owned(),
            emp: Some(emp.to_owned()),
            listen: None,
            advertise: None,
            metrics: None,
        }
    }
}

impl Mp {
    pub(super) fn named(name: &str, group: &str, emp: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: group.to_owned(),
            emp: emp.to_owned(),
            listen: None,
            advertise: None,
            metrics: None,
            in_application: None,
        }
    }
}

impl Ap {
    pub(super) fn named(name: &str, mp: &str) -> Self {
        Self {
            name: name.to_owned(),
            mp: Some(mp.to_owned()),
        }
    }
}
