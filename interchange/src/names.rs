//! From numbers to names, quickly.

use std::borrow::Cow;
use std::collections::HashMap;

use dosmos_proto::{ApId, GroupId, MpId, VarId, Variable};
use dosmos_trace::query::{BarrierName, Catalog};

/// The names of a catalog by number.
#[derive(Clone, Debug)]
pub struct Names {
    variables: HashMap<VarId, String>,
    barriers: HashMap<VarId, BarrierName>,
    aps: Vec<String>,
    mps: Vec<String>,
    groups: Vec<String>,
}

impl Names {
    /// The names of `catalog`.
    pub fn of(catalog: &Catalog) -> Self {
        let t = &catalog.topology;
        let variable = |v: &Variable| (v.id(), v.spec().name().to_owned());
        let aps = t.application_processes().iter().map(|p| p.name.clone());
        let mps = t.memory_processes().iter().map(|p| p.name.clone());
        let groups = t.groups().iter().map(|g| g.path.to_string());
        Self {
            variables: catalog.variables.iter().map(variable).collect(),
            barriers: catalog.barriers.iter().map(|b| (b.id, b.clone())).collect(),
            aps: aps.collect(),
            mps: mps.collect(),
            groups: groups.collect(),
        }
    }

    /// Name of a variable, or its number if unknown.
    pub fn variable(&self, id: VarId) -> Cow<'_, str> {
        match self.variables.get(&id) {
            Some(name) => name.into(),
            None => id.to_string().into(),
        }
    }

    /// Name of a barrier, empty if it has none, and the path of its group if it is not of all.
    pub fn barrier(&self, id: VarId) -> (&str, Option<Cow<'_, str>>) {
        match self.barriers.get(&id) {
            Some(b) => (&b.name, b.group.map(|g| self.group(g))),
            None => ("", None),
        }
    }

    /// Name of an application process, or its number if unknown.
    pub fn ap(&self, id: ApId) -> Cow<'_, str> {
        or_number(self.aps.get(id.index()), id)
    }

    /// Name of a memory process, or its number if unknown.
    pub fn mp(&self, id: MpId) -> Cow<'_, str> {
        or_number(self.mps.get(id.index()), id)
    }

    /// Path of a group, or its number if unknown.
    pub fn group(&self, id: GroupId) -> Cow<'_, str> {
        or_number(self.groups.get(id.index()), id)
    }
}

fn or_number(name: Option<&String>, number: impl std::fmt::Display) -> Cow<'_, str> {
    match name {
        Some(name) => name.into(),
        None => number.to_string().into(),
    }
}
