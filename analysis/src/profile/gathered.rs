//! The profile of a run, and what is derived from its sums.

use std::collections::BTreeMap;
use std::sync::Arc;

use dosmos_proto::{ApId, CopyPolicy, GroupId, MpId, Nanos, ObjectId, VarId, Variable};
use dosmos_trace::query::{Catalog, TimeRange};
use dosmos_trace::record::Origin;

use super::{ApUse, Beginnings, Broken, Costs, ObjectProfile, Phases, ReadOnly, Sequences};
use crate::efficiency::Efficiency;
use crate::path::{CriticalPath, Delay};

/// What the detectors know of a run.
#[derive(Clone, Debug)]
pub struct Profile {
    /// How much of the processes' time was computing, if they said where it went.
    pub efficiency: Option<Efficiency>,
    /// What it covers.
    pub window: TimeRange,
    /// Names, processes, groups, and how complete the records are.
    pub catalog: Arc<Catalog>,
    /// Every object accessed.
    pub objects: BTreeMap<ObjectId, ObjectProfile>,
    /// Barrier phases, by the group whose processes pass (none: all).
    pub barriers: BTreeMap<Option<GroupId>, Phases>,
    /// Accesses and their time, by application process.
    pub aps: BTreeMap<ApId, ApUse>,
    /// What processes do one access right after the other; of the whole run only.
    pub sequences: Sequences,
    /// Sections in which processes only read; of the whole run only.
    pub read_only: BTreeMap<(ObjectId, ApId), ReadOnly>,
    /// The time of a reply and of the next request on their way between application process and memory process, on average;
    /// none of a process that did not tell where its time went.
    pub hops: BTreeMap<ApId, Nanos>,
    /// What accesses cost.
    pub costs: Costs,
    /// Circles of waiting that a deadline broke.
    pub broken: Vec<Broken>,
    /// When processes began, of a whole run.
    pub beginnings: Beginnings,
    /// The longest chain of dependences; none without records.
    pub path: Option<CriticalPath>,
    /// What waits for others cost, the largest first.
    pub delays: Vec<Delay>,
    /// Places of the variables in the catalog.
    pub(super) places: Arc<BTreeMap<VarId, usize>>,
    /// The same of equal stretches of the window, one after the other, as far as detectors look at them: without use by
    /// memory process, and without objects that one process alone used or that were only read. None in a stretch.
    pub windows: Vec<Profile>,
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

    /// A sum over records as it would be had all of them been kept, where some were left out evenly.
    pub fn scaled(&self, sum: f64) -> f64 {
        sum / self.sampling()
    }

    /// The fraction of total process time that `nanos` is, at most 1.
    pub fn fraction(&self, nanos: f64) -> f64 {
        (nanos / self.process_time()).clamp(0.0, 1.0)
    }

    /// The fraction of the time of this number of processes that `nanos` is: what a loss means to those whom it concerns,
    /// whatever the number of the others.
    pub fn fraction_of(&self, processes: usize, nanos: f64) -> f64 {
        let theirs = self.window.length().0 as f64 * processes as f64;
        (nanos / theirs.max(1.0)).clamp(0.0, 1.0)
    }

    /// Time lost by all, nanoseconds, where these processes lose so much in accesses (nanoseconds; negative: they would
    /// lose more): that, or what all lose that wait at barriers for them, if it is more.
    ///
    /// Of records that are lacking nobody knows which phase they are of: then only what was lost in accesses.
    pub fn lost_by_all(&self, lost: &BTreeMap<ApId, f64>) -> f64 {
        let own = lost.values().sum();
        if self.completeness() < 1.0 {
            return own;
        }
        let waiting = self.barriers.values();
        waiting
            .map(|p| p.shorter(lost) * p.by_ap.len() as f64)
            .fold(own, f64::max)
    }

    /// What was lost at a memory process, by the application processes that caused it: as much as each used the object.
    pub fn by_ap_of(&self, mp: MpId, object: &ObjectProfile, lost: f64) -> Vec<(ApId, f64)> {
        let topology = &self.catalog.topology;
        let here = |ap: ApId| topology.ap(ap).is_some_and(|p| p.memory_process == mp);
        let users: Vec<(ApId, f64)> = object
            .by_ap
            .iter()
            .filter(|(ap, _)| here(**ap))
            .map(|(&ap, used)| (ap, used.counts.total() as f64))
            .collect();
        let all: f64 = users.iter().map(|u| u.1).sum();
        let share = |(ap, uses): (ApId, f64)| (ap, lost * uses / all.max(1.0));
        users.into_iter().map(share).collect()
    }

    /// Fraction of the accesses that were recorded.
    pub fn completeness(&self) -> f64 {
        (1.0 - self.unseen()) * self.sampling()
    }

    /// Fraction of the accesses that sampling kept; 1 if the sources do not say.
    pub fn sampling(&self) -> f64 {
        match self.catalog.completeness.sampling {
            s if s > 0.0 && s <= 1.0 => s,
            _ => 1.0,
        }
    }

    /// Fraction of the accesses that nothing is known of: their records were dropped, removed or damaged, or are kept by
    /// event managers that did not answer (as many as others keep).
    pub fn unseen(&self) -> f64 {
        let c = &self.catalog.completeness;
        let (lost, all) = (c.lost_accesses(), c.accesses());
        let dropped = lost as f64 / (all.max(lost) as f64).max(1.0);
        let known = self.catalog.event_managers.iter();
        let answered = known.filter(|e| !c.missing.contains(e)).count();
        let silent = c.missing.len() as f64 / (answered + c.missing.len()).max(1) as f64;
        1.0 - (1.0 - dropped) * (1.0 - silent)
    }

    /// Number of accesses that were not seen, if those at event managers that did not answer are as many as elsewhere.
    pub fn unseen_accesses(&self) -> f64 {
        let c = &self.catalog.completeness;
        let seen = c.accesses().saturating_sub(c.lost_accesses()) as f64;
        let unseen = self.unseen();
        match unseen > 0.0 {
            true => seen.max(1.0) * unseen / (1.0 - unseen).max(f64::EPSILON),
            false => 0.0,
        }
    }

    /// The declaration of a variable.
    pub fn variable(&self, id: VarId) -> Option<&Variable> {
        self.catalog.variables.get(*self.places.get(&id)?)
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
        self.variable(object.var)
            .map(|v| v.owner(object.index))
            .or_else(|| self.objects.get(&object).map(|o| o.owner))
    }

    /// What releases do to the copies of a variable.
    pub fn policy(&self, id: VarId) -> CopyPolicy {
        self.variable(id)
            .map(|v| v.spec().policy())
            .unwrap_or_default()
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
