//! What a trace is about: processes, variables, barriers, meta-objects.

use std::collections::BTreeMap;

use dosmos_proto::{GroupId, MpId, Nanos, ObjectId, Topology, VarId, Variable};
use serde::{Deserialize, Serialize};

use super::{Completeness, TimeRange};
use crate::clock::{self, Apart, ProcessClock};
use crate::meta::{OperationTimes, PrimaryMeta, SecondaryMeta};
use crate::run::RunId;

/// A barrier's entry in the dictionary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarrierName {
    /// The number that stands for it in `Record::object.var`.
    pub id: VarId,
    /// The group it is of; none: of all.
    pub group: Option<GroupId>,
    /// Its name; may be empty.
    pub name: String,
}

/// What there is: processes, variables, extent in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// Which run; none if nothing is behind it.
    pub run: Option<RunId>,
    /// The event managers behind it. Those of the whole run are in the topology.
    pub event_managers: Vec<String>,
    /// The processes.
    pub topology: Topology,
    /// The variables seen, by number.
    pub variables: Vec<Variable>,
    /// The barriers seen.
    pub barriers: Vec<BarrierName>,
    /// Start of the first and end of the last record; none if there is no record.
    pub extent: Option<TimeRange>,
    /// Number of records.
    pub records: u64,
    /// How the times of the records of each memory process were corrected, by its number.
    pub clocks: Vec<ProcessClock>,
    /// What is missing.
    pub completeness: Completeness,
    /// Answered by a running event manager: more may come.
    pub live: bool,
}

impl Catalog {
    /// The variable called `name`.
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|v| v.spec().name() == name)
    }

    /// Time of all application processes together, from the begin of the trace to its end.
    pub fn process_time(&self) -> Nanos {
        let length = self.extent.map_or(Nanos::ZERO, |extent| extent.length());
        Nanos(
            length
                .0
                .saturating_mul(self.topology.application_processes().len() as u64),
        )
    }

    /// How far the times of two memory processes can be apart.
    pub fn apart(&self, a: MpId, b: MpId) -> Apart {
        clock::apart(&self.clocks, &self.topology, a, b)
    }

    /// Name of a variable or barrier, or its number if unknown.
    pub fn name_of(&self, id: VarId) -> String {
        if let Some(v) = self.variables.iter().find(|v| v.id() == id) {
            return v.spec().name().to_owned();
        }
        match self.barriers.iter().find(|b| b.id == id) {
            Some(b) if b.name.is_empty() => "barrier".to_owned(),
            Some(b) => format!("barrier {}", b.name),
            None => id.to_string(),
        }
    }
}

/// Which meta-objects. Empty lists mean "all".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaQuery {
    /// Of these variables.
    pub variables: Vec<VarId>,
    /// Only these objects.
    pub objects: Vec<ObjectId>,
}

/// Meta-objects, in order of object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetaObjects {
    /// One per object.
    pub primaries: Vec<PrimaryMeta>,
    /// One a copy.
    pub secondaries: Vec<SecondaryMeta>,
    /// How long operations took, by variable or barrier (not by object, also if only some of its objects were asked for).
    pub times: BTreeMap<VarId, OperationTimes>,
    /// What is missing.
    pub completeness: Completeness,
}
