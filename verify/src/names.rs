//! What the catalog says of variables and processes, looked up by number.

use dosmos_proto::{ApId, GroupId, LockKind, MpId, Nanos, ObjectId, Topology, VarId, Variable};
use dosmos_trace::clock::Apart;
use dosmos_trace::query::Catalog;
use rustc_hash::FxHashMap;

/// Ends of the names of the variables that the lock kinds `spin` and `mcs` are made of.
const LOCK_WORDS: [&str; 2] = ["#lock", "#nodes"];
/// How far clocks of one event manager are taken to be apart where nobody said.
const UNSAID: Nanos = Nanos::from_millis(10);

#[derive(Debug)]
pub(crate) struct Names {
    catalog: Catalog,
    variables: FxHashMap<VarId, usize>,
    barriers: FxHashMap<VarId, Option<GroupId>>,
    /// How far clocks of one event manager may be apart, if the user says so.
    clock_error: Option<Nanos>,
}

impl Names {
    pub(crate) fn new(mut catalog: Catalog, clock_error: Option<Nanos>) -> Self {
        let numbered = catalog.variables.iter().enumerate();
        let variables = numbered.map(|(i, v)| (v.id(), i)).collect();
        let barriers = catalog.barriers.iter().map(|b| (b.id, b.group)).collect();
        catalog.completeness = Default::default();
        Self {
            catalog,
            variables,
            barriers,
            clock_error,
        }
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.catalog.topology
    }

    /// How far times of two memory processes can be apart; none if nobody knows.
    pub(crate) fn clock_error(&self, a: MpId, b: MpId) -> Option<Nanos> {
        match self.catalog.apart(a, b) {
            Apart::Unknown => None,
            Apart::AtMost(_) if a == b => Some(self.own_clock_error(a)),
            Apart::AtMost(error) => Some(self.clock_error.unwrap_or(error)),
            Apart::Unsaid => Some(self.clock_error.unwrap_or(UNSAID)),
        }
    }

    /// How far two times of one memory process can be apart: those that were corrected are off each by up to the bound, as
    /// what is known of its clock changes.
    pub(crate) fn own_clock_error(&self, mp: MpId) -> Nanos {
        let known = self.catalog.clocks.iter().find(|c| c.mp == mp);
        let corrected = known.filter(|c| c.offset_ns != 0 || c.drift_ppb != 0);
        let error = corrected.map_or(Nanos::ZERO, |c| c.error.unwrap_or(Nanos::MAX));
        error + error
    }

    pub(crate) fn processes(&self) -> usize {
        self.topology().application_processes().len()
    }

    pub(crate) fn variable(&self, id: VarId) -> Option<&Variable> {
        self.catalog.variables.get(*self.variables.get(&id)?)
    }

    /// Whether the order of accesses to a variable is made by words in memory: the lock kinds other than `queue`, and these
    /// words themselves.
    pub(crate) fn is_ordered_by_words(&self, id: VarId) -> bool {
        let word = |v: &Variable| LOCK_WORDS.iter().any(|end| v.spec().name().ends_with(end));
        self.variable(id)
            .is_some_and(|v| v.spec().lock() != LockKind::Queue || word(v))
    }

    /// Whether a variable has replicas.
    pub(crate) fn has_replicas(&self, id: VarId) -> bool {
        self.variable(id).is_some_and(|v| v.spec().replicas() > 0)
    }

    /// Whether a memory process may serve what another owns, if it has replicas: both are of one group.
    pub(crate) fn may_keep_for(&self, owner: MpId, mp: MpId) -> bool {
        let group = |mp| self.topology().mp(mp).filter(|p| !p.link).map(|p| p.group);
        group(mp).is_some() && group(owner) == group(mp)
    }

    /// How many processes pass a barrier; none if the barrier is not known.
    pub(crate) fn participants(&self, barrier: VarId) -> Option<Vec<ApId>> {
        let group = self.barriers.get(&barrier)?;
        Some(self.topology().aps_in(*group).collect())
    }

    pub(crate) fn of_variable(&self, id: VarId) -> String {
        self.catalog.name_of(id)
    }

    pub(crate) fn object(&self, object: ObjectId) -> String {
        let name = self.of_variable(object.var);
        match self.variable(object.var).map(|v| v.spec().layout()) {
            Some(layout) if layout.objects() == 1 => name,
            _ => format!("{name}[{}]", object.index),
        }
    }

    pub(crate) fn ap(&self, ap: ApId) -> String {
        self.topology().ap_name(ap)
    }

    pub(crate) fn mp(&self, mp: MpId) -> String {
        self.topology().mp_name(mp)
    }
}
