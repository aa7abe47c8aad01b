//! What the detectors know of a run: sums and states gathered in one pass over its records.

mod builder;
mod object;
mod phases;

use std::collections::BTreeMap;

use dosmos_proto::{ApId, MpId, ObjectId, VarId};
use dosmos_trace::meta::OpCounts;
use dosmos_trace::query::{Catalog, TimeRange};
use dosmos_trace::record::{Op, Origin};

pub use builder::ProfileBuilder;
pub use object::{ApUse, HandOvers, MpUse, ObjectProfile, Waiting};
pub use phases::{Phase, Phases};

/// Mean cost of one access by operation class and origin, in nanoseconds, waiting for locks excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    sums: [[(u64, u64); 3]; 4], // (time, count) by operation class and origin
}

/// What an inter-group access is assumed to cost, as a multiple of an intra-group one, and that of a
/// local one, where the run has no access to measure it by. One more process on the way each.
const FARTHER: f64 = 2.0;

impl Costs {
    fn class(op: Op) -> Option<usize> {
        match op {
            Op::Read => Some(0),
            Op::Write => Some(1),
            Op::Acquire => Some(2),
            Op::Release => Some(3),
            Op::Barrier => None,
        }
    }

    fn add(&mut self, op: Op, origin: Origin, nanos: u64) {
        if let Some(class) = Self::class(op) {
            let slot = &mut self.sums[class][origin as usize - 1];
            slot.0 += nanos;
            slot.1 += 1;
        }
    }

    /// Mean cost of an `op` from `origin`. Where none was seen it is estimated from the nearest origin
    /// of the same operation (a factor of two a step), else from other operations; 1 if nothing was seen.
    pub fn mean(&self, op: Op, origin: Origin) -> f64 {
        let Some(class) = Self::class(op) else {
            return 1.0;
        };
        let at = origin as usize - 1;
        let of_class = |class: usize| {
            let row = &self.sums[class];
            (0..3)
                .filter(|&o| row[o].1 > 0)
                .min_by_key(|&o| o.abs_diff(at))
                .map(|o| {
                    let mean = row[o].0 as f64 / row[o].1 as f64;
                    mean * FARTHER.powi(at as i32 - o as i32)
                })
        };
        of_class(class)
            .or_else(|| (0..4).find_map(of_class))
            .unwrap_or(1.0)
    }
}

/// What the detectors know of a run.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What it covers.
    pub window: TimeRange,
    /// Names, processes, groups, and how complete the records are.
    pub catalog: Catalog,
    /// Every object accessed.
    pub objects: BTreeMap<ObjectId, ObjectProfile>,
    /// Barrier phases, by barrier.
    pub barriers: BTreeMap<VarId, Phases>,
    /// Accesses and their time, by application process.
    pub aps: BTreeMap<ApId, ApUse>,
    /// What accesses cost.
    pub costs: Costs,
}

impl Profile {
    /// Number of application processes that did anything in the window.
    pub fn active(&self) -> usize {
        self.aps.len()
    }

    /// Total process time: length of the window × active application processes, in nanoseconds.
    pub fn process_time(&self) -> f64 {
        (self.window.length().0 as f64 * self.active() as f64).max(1.0)
    }

    /// The fraction of total process time that `nanos` is, at most 1.
    pub fn fraction(&self, nanos: f64) -> f64 {
        (nanos / self.process_time()).clamp(0.0, 1.0)
    }

    /// Fraction of the accesses that were recorded.
    pub fn completeness(&self) -> f64 {
        let c = &self.catalog.completeness;
        let kept = c.recorded.saturating_sub(c.dropped) as f64;
        let all = (c.recorded as f64).max(1.0);
        let kept = if c.dropped == 0 { 1.0 } else { kept / all };
        let emps = self.catalog.event_managers.len() + c.missing.len();
        let answered = 1.0 - c.missing.len() as f64 / emps.max(1) as f64;
        kept * c.sampling * answered
    }

    /// Objects of each variable, in order.
    pub fn by_variable(&self) -> BTreeMap<VarId, Vec<(ObjectId, &ObjectProfile)>> {
        let mut map: BTreeMap<VarId, Vec<_>> = BTreeMap::new();
        for (&id, profile) in &self.objects {
            map.entry(id.var).or_default().push((id, profile));
        }
        map
    }

    /// The owner of an object: as declared, else as its records say.
    pub fn owner(&self, object: ObjectId) -> Option<MpId> {
        let declared = self.catalog.variables.iter().find(|v| v.id == object.var);
        declared
            .map(|v| v.owner(object.index))
            .or_else(|| self.objects.get(&object).map(|o| o.owner))
    }

    /// How far an access by a process of `from` to an object owned by `owner` goes.
    pub fn origin(&self, from: MpId, owner: MpId) -> Origin {
        let group = |mp: MpId| self.catalog.topology.mp(mp).map(|p| p.group);
        if from == owner {
            Origin::Local
        } else if group(from) == group(owner) {
            Origin::Intra
        } else {
            Origin::Inter
        }
    }

    /// Names of application processes.
    pub fn ap_names<'a>(&self, aps: impl IntoIterator<Item = &'a ApId>) -> Vec<String> {
        aps.into_iter()
            .map(|&a| self.catalog.topology.ap_name(a))
            .collect()
    }

    /// Paths of the groups of application processes, each once.
    pub fn group_names<'a>(&self, aps: impl IntoIterator<Item = &'a ApId>) -> Vec<String> {
        let topology = &self.catalog.topology;
        let mut names: Vec<String> = aps
            .into_iter()
            .filter_map(|&a| topology.group_of_ap(a))
            .map(|g| topology.group_name(g))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Sum over operations of count × mean cost at `origin`, in nanoseconds.
pub fn cost_of(costs: &Costs, counts: &OpCounts, origin: Origin) -> f64 {
    counts.reads as f64 * costs.mean(Op::Read, origin)
        + counts.writes as f64 * costs.mean(Op::Write, origin)
        + counts.acquires as f64 * costs.mean(Op::Acquire, origin)
        + counts.releases as f64 * costs.mean(Op::Release, origin)
}
