//! The fold from records to meta-objects: what one event manager knows, as a function of what its
//! memory processes and the other event managers told it, in order. No I/O; the same input in the same
//! order gives the same state, the same hand-overs and the same numbers.

use std::collections::{BTreeMap, HashMap, HashSet};

use dosmos_proto::{ApId, EmpId, GroupId, MpId, Nanos, ObjectId, Topology, VarId, Variable};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::objects::{
    Access, HandOver, LAST_ACCESSES, OpCounts, PrimaryMeta, SecondaryContent, SecondaryMeta,
};
use super::ordered::Ordered;
use super::sketch::Sketch;
use super::times::OperationTimes;
use crate::query::table::Sums;
use crate::query::{Completeness, MetaObjects, MetaQuery};
use crate::record::{Op, Origin, PerOrigin, Record, Side};

/// The meta-objects of one event manager.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MetaState {
    me: EmpId,
    /// Not part of what is saved: it stands in the store's manifest.
    #[serde(skip)]
    topology: Topology,
    groups: HashMap<VarId, GroupId>,
    primaries: Ordered<ObjectId, Primary>,
    secondaries: BTreeMap<(ObjectId, MpId), Secondary>,
    /// Sections of our application processes on objects owned elsewhere: whether they wrote.
    remote_sections: FxHashMap<(ObjectId, ApId), bool>,
    sent: HashMap<EmpId, u64>,
    received: HashMap<EmpId, u64>,
    by_mp: FxHashMap<MpId, PerOrigin<OpCounts>>,
    by_ap: FxHashMap<ApId, PerOrigin<OpCounts>>,
    /// Of the operations of our application processes, whoever owns the variable; of barriers by their number.
    times: FxHashMap<VarId, OperationTimes>,
}

/// A primary meta-object and what is needed to keep it. Its `copies_at` is filled in when it is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Primary {
    meta: PrimaryMeta,
    /// The section under way; more than one where the records stand in another order than that of the grants.
    held: Vec<Section>,
    /// For each memory process: reads that made a copy there, less those that contents said were undone.
    /// Positive: it has a copy. Both sides count the same reads, so it does not matter which of the two
    /// is heard first.
    copies: BTreeMap<MpId, i64>,
}

impl Primary {
    fn add_to(&self, sums: &mut Sums) {
        let copies = self.copies.values().filter(|made| **made > 0).count();
        sums.primary(&self.meta, copies as u64);
    }
}

/// The section under way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Section {
    ap: ApId,
    since: Nanos,
    wrote: bool,
}

/// A secondary meta-object and the number of reads that made its copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Secondary {
    meta: SecondaryMeta,
    fetches: u64,
}

impl MetaState {
    /// No meta-objects yet, of event manager `me`.
    pub fn new(topology: Topology, me: EmpId) -> Self {
        Self {
            me,
            topology,
            groups: HashMap::new(),
            primaries: Ordered::default(),
            secondaries: BTreeMap::new(),
            remote_sections: FxHashMap::default(),
            sent: HashMap::new(),
            received: HashMap::new(),
            by_mp: FxHashMap::default(),
            by_ap: FxHashMap::default(),
            times: FxHashMap::default(),
        }
    }

    /// Says whose state this is, after it was read from where the topology is not saved.
    pub(crate) fn belongs_to(&mut self, topology: Topology, me: EmpId) {
        self.topology = topology;
        self.me = me;
    }

    /// Learns of a variable: those of its objects owned by one of our memory processes have their
    /// primary meta-objects here.
    pub fn declare(&mut self, variable: &Variable) {
        self.groups.insert(variable.id(), variable.group());
        let (first, last) = (
            ObjectId::new(variable.id(), 0),
            ObjectId::new(variable.id(), u32::MAX),
        );
        let group = variable.group();
        let primaries = &mut self.primaries;
        primaries.change(first..=last, |primary| primary.meta.group = group);
    }

    /// Takes a record of one of our memory processes into account.
    pub fn apply(&mut self, record: &Record) {
        if record.side == Side::Requester && record.is_access() {
            let at_mp = self.by_mp.entry(record.mp).or_default();
            at_mp[record.origin].count(record.op, record.accesses());
            let by_ap = self.by_ap.entry(record.ap).or_default();
            by_ap[record.origin].count(record.op, record.accesses());
        }
        if OperationTimes::measures(record) {
            let times = self.times.entry(record.object.var).or_default();
            times.count(record);
        }
        if record.flags.failed || record.op == Op::Barrier {
            return;
        }
        if record.flags.waiting {
            self.delayed(record);
        } else if record.flags.optimized {
            self.read_on_copy(record);
        } else if is_on_main_copy(record) {
            self.on_main_copy(record);
        } else {
            // Counted at the main copy; what is left to us is the copy it may have made.
            self.at_the_requester(record);
        }
    }

    fn delayed(&mut self, record: &Record) {
        let access = self.access(record);
        let primary = self.primary(record);
        primary.meta.delayed += record.accesses();
        push_bounded(&mut primary.meta.delayed_acquires, access);
    }

    fn read_on_copy(&mut self, record: &Record) {
        let secondary = &mut self.secondary(record).meta;
        secondary.reads += record.accesses();
        *secondary.by_ap.entry(record.ap).or_default() += record.accesses();
    }

    fn at_the_requester(&mut self, record: &Record) {
        let section = (record.object, record.ap);
        match record.op {
            Op::Acquire if record.is_of_past_sections() => {}
            Op::Acquire => {
                self.remote_sections.insert(section, false);
            }
            Op::Release => {
                self.remote_sections.remove(&section);
            }
            Op::Write => {
                self.remote_sections
                    .entry(section)
                    .and_modify(|w| *w = true);
            }
            Op::Read => {
                let wrote = self.remote_sections.get(&section).copied().unwrap_or(false);
                if makes_a_copy(record, wrote) {
                    let secondary = self.secondary(record);
                    secondary.fetches += match record.flags.sampled {
                        true => 0,
                        false => record.accesses(),
                    };
                }
            }
            Op::Barrier => {}
        }
    }

    fn on_main_copy(&mut self, record: &Record) {
        let access = self.access(record);
        let n = record.accesses();
        let primary = self.primary(record);
        let meta = &mut primary.meta;
        meta.counts.count(record.op, n);
        meta.by_origin[record.origin].count(record.op, n);
        meta.by_ap.entry(record.ap).or_default().count(record.op, n);
        meta.version = meta.version.max(record.version);
        let section = primary.held.iter().position(|held| held.ap == record.ap);
        match record.op {
            Op::Read => {
                let wrote = section.is_some_and(|at| primary.held[at].wrote);
                if record.side == Side::Owner && makes_a_copy(record, wrote) {
                    primary.copy_made(record.mp, record);
                }
            }
            Op::Write => {
                push_all(&mut meta.last_writes, access, record);
                if let Some(at) = section {
                    primary.held[at].wrote = true;
                }
            }
            Op::Acquire => {
                push_all(&mut meta.last_acquires, access, record);
                meta.wait += record.wait;
                meta.wait_sketch.count(Nanos(record.wait.0 / n), n);
                tell_wait(&mut meta.delayed_acquires, record);
                primary.held.retain(|held| held.ap != record.ap);
                if record.is_of_past_sections() {
                    return;
                }
                primary.held.push(Section {
                    ap: record.ap,
                    since: record.end(),
                    wrote: false,
                });
            }
            Op::Release => {
                if let Some(at) = section {
                    let time = record.start - primary.held.swap_remove(at).since;
                    meta.hold += time;
                    meta.hold_sketch.count(time, 1);
                }
            }
            Op::Barrier => {}
        }
    }

    /// Takes a hand-over of one of our memory processes into account. What is returned is to reach the
    /// event manager of the primary; it carries the next number for that event manager. If that is this
    /// one, it has been received already and nothing is returned.
    pub fn hand_over(&mut self, hand_over: &HandOver) -> Option<(EmpId, SecondaryContent)> {
        let key = (hand_over.object, hand_over.copy_at);
        let mut content = SecondaryContent {
            sequence: 0,
            object: hand_over.object,
            copy_at: hand_over.copy_at,
            reads: 0,
            dropped: hand_over.dropped,
            fetches: 0,
            by_ap: BTreeMap::new(),
        };
        if let Some(secondary) = self.secondaries.get_mut(&key) {
            content.reads = std::mem::take(&mut secondary.meta.reads);
            content.by_ap = std::mem::take(&mut secondary.meta.by_ap);
            if hand_over.dropped {
                content.fetches = secondary.fetches;
                self.secondaries.remove(&key);
            }
        }
        if hand_over.primary_emp == self.me {
            self.add_to_primary(&content);
            return None;
        }
        let sequence = self.sent.entry(hand_over.primary_emp).or_default();
        *sequence += 1;
        content.sequence = *sequence;
        Some((hand_over.primary_emp, content))
    }

    /// Takes what event manager `from` handed over into account. A number that was received already is
    /// ignored; whether it was new is returned.
    pub fn receive(&mut self, from: EmpId, content: &SecondaryContent) -> bool {
        let last = self.received.entry(from).or_default();
        if content.sequence <= *last {
            return false;
        }
        *last = content.sequence;
        self.add_to_primary(content);
        true
    }

    fn add_to_primary(&mut self, content: &SecondaryContent) {
        let primary = self.primary_of(content.object, None);
        let meta = &mut primary.meta;
        meta.reads_on_copies += content.reads;
        for (&ap, &reads) in &content.by_ap {
            meta.by_ap.entry(ap).or_default().reads += reads;
        }
        if content.dropped {
            primary.copy_gone(content.copy_at, content.fetches);
        }
    }

    /// Memory processes that hold a copy of `object` now, as far as is known here.
    pub fn copies_of(&self, object: ObjectId) -> Vec<MpId> {
        let primary = self.primaries.get(&object);
        primary.map(|p| p.now().copies_at).unwrap_or_default()
    }

    /// Number of the last content received from `from`.
    pub fn last_received(&self, from: EmpId) -> u64 {
        self.received.get(&from).copied().unwrap_or(0)
    }

    /// Contents handed to other event managers, and received from them.
    pub fn exchanged(&self) -> (u64, u64) {
        (self.sent.values().sum(), self.received.values().sum())
    }

    /// Accesses by the application processes of a memory process, by origin.
    pub fn accesses_at(&self, mp: MpId) -> PerOrigin<OpCounts> {
        self.by_mp.get(&mp).copied().unwrap_or_default()
    }

    /// Accesses of an application process of one of our memory processes, by origin.
    pub fn accesses_of(&self, ap: ApId) -> PerOrigin<OpCounts> {
        self.by_ap.get(&ap).copied().unwrap_or_default()
    }

    /// Figures summed by variable, of those named; none named: of all, with the total of the times only.
    pub fn sums(&self, wanted: Option<&HashSet<VarId>>) -> HashMap<VarId, Sums> {
        let mut sums: HashMap<VarId, Sums> = HashMap::new();
        let Some(wanted) = wanted else {
            for (_, primary) in self.primaries.iter() {
                let its = sums.entry(primary.meta.object.var).or_default();
                primary.add_to(its);
            }
            for secondary in self.secondaries.values() {
                let its = sums.entry(secondary.meta.object.var).or_default();
                its.secondary(&secondary.meta);
            }
            for (&variable, times) in &self.times {
                sums.entry(variable).or_default().times.add_totals(times);
            }
            return sums;
        };
        for &variable in wanted {
            let first = ObjectId::new(variable, 0);
            let last = ObjectId::new(variable, u32::MAX);
            let mut its = Sums::default();
            let primaries = self.primaries.range(first..=last);
            primaries.for_each(|(_, primary)| primary.add_to(&mut its));
            let (first, last) = ((first, MpId(0)), (last, MpId(u32::MAX)));
            let secondaries = self.secondaries.range(first..=last);
            secondaries.for_each(|(_, secondary)| its.secondary(&secondary.meta));
            if let Some(times) = self.times.get(&variable) {
                its.times.add(times);
            }
            sums.insert(variable, its);
        }
        sums
    }

    /// The meta-objects asked for, in order of object.
    pub fn query(&self, query: &MetaQuery, completeness: Completeness) -> MetaObjects {
        let wanted = |object: &ObjectId| {
            (query.variables.is_empty() || query.variables.contains(&object.var))
                && (query.objects.is_empty() || query.objects.contains(object))
        };
        let objects_of = |v: &VarId| {
            let mut its = query.objects.iter().filter(|o| o.var == *v);
            query.objects.is_empty() || its.next().is_some()
        };
        let timed = |v: &VarId| {
            (query.variables.is_empty() || query.variables.contains(v)) && objects_of(v)
        };
        MetaObjects {
            times: self
                .times
                .iter()
                .filter(|(id, _)| timed(id))
                .map(|(id, times)| (*id, times.clone()))
                .collect(),
            primaries: self
                .primaries
                .iter()
                .filter(|(id, _)| wanted(id))
                .map(|(_, p)| p.now())
                .collect(),
            secondaries: self
                .secondaries
                .iter()
                .filter(|((id, _), _)| wanted(id))
                .map(|(_, s)| s.meta.clone())
                .collect(),
            completeness,
        }
    }

    fn primary(&mut self, record: &Record) -> &mut Primary {
        self.primary_of(record.object, Some(record.peer))
    }

    fn primary_of(&mut self, object: ObjectId, owner: Option<MpId>) -> &mut Primary {
        let (groups, topology) = (&self.groups, &self.topology);
        let of_owner = || Some(topology.mp(owner?)?.group);
        let group = || groups.get(&object.var).copied().or_else(of_owner);
        let primary = self.primaries.get_or_make(object, || Primary {
            meta: PrimaryMeta {
                object,
                group: group().unwrap_or_default(),
                owner: MpId::default(),
                copies_at: Vec::new(),
                counts: OpCounts::default(),
                reads_on_copies: 0,
                last_acquires: Vec::new(),
                last_writes: Vec::new(),
                delayed_acquires: Vec::new(),
                delayed: 0,
                by_origin: PerOrigin::default(),
                by_ap: BTreeMap::new(),
                wait: Nanos::ZERO,
                hold: Nanos::ZERO,
                wait_sketch: Sketch::default(),
                hold_sketch: Sketch::default(),
                version: 0,
            },
            held: Vec::new(),
            copies: BTreeMap::new(),
        });
        if let Some(owner) = owner {
            primary.meta.owner = owner;
        }
        primary
    }

    fn secondary(&mut self, record: &Record) -> &mut Secondary {
        let owner = self.topology.mp(record.peer);
        let primary_emp = owner.map_or(self.me, |p| p.event_manager);
        self.secondaries
            .entry((record.object, record.mp))
            .or_insert_with(|| Secondary {
                meta: SecondaryMeta {
                    object: record.object,
                    copy_at: record.mp,
                    primary_emp,
                    reads: 0,
                    by_ap: BTreeMap::new(),
                },
                fetches: 0,
            })
    }

    fn access(&self, record: &Record) -> Access {
        Access {
            ap: record.ap,
            mp: record.mp,
            group: self.topology.group_of_ap(record.ap).unwrap_or_default(),
            at: record.start,
            wait: Nanos(record.wait.0 / record.accesses()),
        }
    }
}

impl Primary {
    /// The meta-object as it is now.
    fn now(&self) -> PrimaryMeta {
        let copies = self.copies.iter().filter(|(_, made)| **made > 0);
        PrimaryMeta {
            copies_at: copies.map(|(mp, _)| *mp).collect(),
            ..self.meta.clone()
        }
    }

    fn copy_made(&mut self, mp: MpId, read: &Record) {
        let made = self.copies.entry(mp).or_default();
        // Of sampled records the two sides do not see the same ones: there is nothing to count.
        *made = match read.flags.sampled {
            true => 1.max(*made),
            false => *made + i64::from(read.count.max(1)),
        };
    }

    fn copy_gone(&mut self, mp: MpId, fetches: u64) {
        let made = self.copies.entry(mp).or_default();
        *made = match i64::try_from(fetches) {
            Ok(0) | Err(_) => 0.min(*made),
            Ok(fetches) => made.saturating_sub(fetches),
        };
        if *made == 0 {
            self.copies.remove(&mp);
        }
    }
}

/// Whether a record is of accesses to the main copy, and nobody else's: the owner's record of what others did, or the only
/// one. What a process did in itself with what another memory process owns, the owner has a record of.
fn is_on_main_copy(record: &Record) -> bool {
    let elsewhere = record.flags.in_process && record.peer != record.mp;
    record.side == Side::Owner || record.origin == Origin::Local && !elsewhere
}

/// Whether a read served by the owner left a copy with its requester: copies live in the owner's group
/// only, and what an application process wrote in its section is never copied before its release.
fn makes_a_copy(record: &Record, wrote_in_section: bool) -> bool {
    record.op == Op::Read && record.origin == Origin::Intra && !wrote_in_section
}

/// Completes the entry of a delayed acquire now that it is granted.
fn tell_wait(delayed: &mut [Access], grant: &Record) {
    let granted = |a: &&mut Access| {
        a.ap == grant.ap && grant.start <= a.at && a.at <= grant.end() && a.wait == Nanos::ZERO
    };
    if let Some(access) = delayed.iter_mut().rev().find(granted) {
        access.wait = grant.wait;
    }
}

/// Adds the accesses of a record, of several the last ones, each when it was.
fn push_all(list: &mut Vec<Access>, access: Access, record: &Record) {
    let spread = record.spread();
    let first = spread.count().saturating_sub(LAST_ACCESSES as u64);
    for i in first..spread.count() {
        let at = spread.at(i);
        push_bounded(list, Access { at, ..access });
    }
}

fn push_bounded(list: &mut Vec<Access>, access: Access) {
    if list.len() == LAST_ACCESSES {
        list.remove(0);
    }
    list.push(access);
}
