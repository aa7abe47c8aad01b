//! The names that a source gives to what its records have numbers for.

use std::collections::HashMap;

use dosmos_interchange::Names as Numbered;
use dosmos_proto::{ApId, MpId, Nanos, VarId};
use dosmos_trace::query::Catalog;

/// Names, both ways, and where the run begins.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    numbered: Numbered,
    /// Barriers and their names.
    barriers: HashMap<VarId, String>,
    variables: HashMap<String, Vec<VarId>>,
    aps: HashMap<String, ApId>,
    event_manager: String,
    /// The first record of the run: `at_s` counts from here.
    zero: Nanos,
}

impl Names {
    /// Those of a source. `zero` is the beginning of the run.
    pub(crate) fn of(catalog: &Catalog, zero: Nanos) -> Self {
        let mut variables: HashMap<String, Vec<VarId>> = HashMap::new();
        for v in &catalog.variables {
            let name = v.spec().name().to_owned();
            variables.entry(name).or_default().push(v.id());
        }
        let processes = catalog.topology.application_processes().iter();
        let aps = (0..).map(ApId).zip(processes);
        Self {
            numbered: Numbered::of(catalog),
            barriers: catalog
                .barriers
                .iter()
                .map(|b| (b.id, b.name.clone()))
                .collect(),
            variables,
            aps: aps.map(|(id, p)| (p.name.clone(), id)).collect(),
            event_manager: catalog.event_managers.join(" "),
            zero,
        }
    }

    /// Of a variable; none if it is a barrier.
    pub(crate) fn variable(&self, id: VarId) -> Option<String> {
        let variable = !self.barriers.contains_key(&id);
        variable.then(|| self.numbered.variable(id).into_owned())
    }

    /// Of a barrier; none if it is a variable.
    pub(crate) fn barrier(&self, id: VarId) -> Option<&str> {
        self.barriers.get(&id).map(String::as_str)
    }

    pub(crate) fn ap(&self, id: ApId) -> String {
        self.numbered.ap(id).into_owned()
    }

    pub(crate) fn mp(&self, id: MpId) -> String {
        self.numbered.mp(id).into_owned()
    }

    pub(crate) fn event_manager(&self) -> &str {
        &self.event_manager
    }

    pub(crate) fn zero(&self) -> Nanos {
        self.zero
    }

    /// The variables with this name; none are known.
    pub(crate) fn variables_named(&self, name: &str) -> Option<&[VarId]> {
        self.variables.get(name).map(Vec::as_slice)
    }

    /// The application process with this name.
    pub(crate) fn ap_named(&self, name: &str) -> Option<ApId> {
        self.aps.get(name).copied()
    }
}
