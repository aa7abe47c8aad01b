//! The fold from records to meta-objects: what one event manager knows, as a function of what its
//! memory processes and the other event managers told it, in order. No I/O; the same input in the same
//! order gives the same state, the same hand-overs and the same numbers.

use std::collections::{BTreeMap, HashMap};

use dosmos_proto::{ApId, EmpId, GroupId, MpId, Nanos, ObjectId, Topology, VarId, Variable};

use super::{
    Access, HandOver, LAST_ACCESSES, OpCounts, PrimaryMeta, SecondaryContent, SecondaryMeta, Sketch,
};
use crate::query::{Completeness, MetaObjects, MetaQuery};
use crate::record::{Op, Origin, Record, Side};

/// The meta-objects of one event manager.
#[derive(Clone, Debug)]
pub struct MetaState {
    me: EmpId,
    topology: Topology,
    groups: HashMap<VarId, GroupId>,
    primaries: BTreeMap<ObjectId, Primary>,
    secondaries: BTreeMap<(ObjectId, MpId), SecondaryMeta>,
    sent: HashMap<EmpId, u64>,
    received: HashMap<EmpId, u64>,
    by_mp: BTreeMap<MpId, [OpCounts; 3]>,
}

/// A primary meta-object and the section under way, which its hold time needs.
#[derive(Clone, Debug)]
struct Primary {
    meta: PrimaryMeta,
    held: Option<(ApId, Nanos)>,
}

impl Sketch {
    /// Counts one value.
    pub fn count(&mut self, value: Nanos) {
        let bucket = value.0.checked_ilog2().unwrap_or(0) as usize;
        if self.0.len() <= bucket {
            self.0.resize(bucket + 1, 0);
        }
        self.0[bucket] += 1;
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// A value that at least the fraction `q` of the values do not exceed: the upper edge of its
    /// bucket, so at most twice the true quantile. None if there are no values.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        let rank = (q.clamp(0.0, 1.0) * self.total() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.0.iter().position(|n| {
            seen += n;
            seen >= rank
        })?;
        Some(Nanos(2u64.saturating_pow(bucket as u32 + 1) - 1))
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }
}

impl MetaState {
    /// No meta-objects yet, of event manager `me`.
    pub fn new(topology: Topology, me: EmpId) -> Self {
        Self {
            me,
            topology,
            groups: HashMap::new(),
            primaries: BTreeMap::new(),
            secondaries: BTreeMap::new(),
            sent: HashMap::new(),
            received: HashMap::new(),
            by_mp: BTreeMap::new(),
        }
    }

    /// Learns of a variable: those of its objects owned by one of our memory processes have their
    /// primary meta-objects here.
    pub fn declare(&mut self, variable: &Variable) {
        self.groups.insert(variable.id, variable.group);
        for id in variable.objects() {
            if let Some(primary) = self.primaries.get_mut(&id) {
                primary.meta.group = variable.group;
            }
        }
    }

    /// Takes a record of one of our memory processes into account.
    pub fn apply(&mut self, record: &Record) {
        if record.side == Side::Requester && record.is_access() {
            let counts = self.by_mp.entry(record.mp).or_default();
            counts[record.origin as usize - 1].count(record.op);
        }
        if record.flags.failed || record.op == Op::Barrier {
            return;
        }
        if record.flags.waiting {
            self.delayed(record);
        } else if record.flags.optimized {
            self.read_on_copy(record);
        } else if record.side == Side::Owner || record.origin == Origin::Local {
            self.on_main_copy(record);
        } else if record.op == Op::Read && record.origin == Origin::Intra {
            // The reply made a copy; the read itself was counted at the main copy.
            self.secondary(record.object, record.mp, record.peer);
        }
    }

    fn delayed(&mut self, record: &Record) {
        let access = self.access(record);
        let primary = self.primary(record);
        primary.meta.delayed += 1;
        push_bounded(&mut primary.meta.delayed_acquires, access);
    }

    fn read_on_copy(&mut self, record: &Record) {
        let secondary = self.secondary(record.object, record.mp, record.peer);
        secondary.reads += 1;
        *secondary.by_ap.entry(record.ap).or_default() += 1;
    }

    fn on_main_copy(&mut self, record: &Record) {
        let access = self.access(record);
        let primary = self.primary(record);
        let meta = &mut primary.meta;
        meta.counts.count(record.op);
        meta.by_origin[record.origin as usize - 1].count(record.op);
        meta.by_ap.entry(record.ap).or_default().count(record.op);
        meta.version = meta.version.max(record.version);
        match record.op {
            Op::Read => {
                if record.side == Side::Owner
                    && record.origin == Origin::Intra
                    && !meta.copies_at.contains(&record.mp)
                {
                    meta.copies_at.push(record.mp);
                }
            }
            Op::Write => push_bounded(&mut meta.last_writes, access),
            Op::Acquire => {
                push_bounded(&mut meta.last_acquires, access);
                meta.wait += record.wait;
                meta.wait_sketch.count(record.wait);
                primary.held = Some((record.ap, record.end()));
            }
            Op::Release => {
                if let Some((_, since)) = primary.held.take_if(|(ap, _)| *ap == record.ap) {
                    let held = record.start - since;
                    meta.hold += held;
                    meta.hold_sketch.count(held);
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
        let (reads, by_ap) = match self.secondaries.get_mut(&key) {
            Some(s) => (std::mem::take(&mut s.reads), std::mem::take(&mut s.by_ap)),
            None => (0, BTreeMap::new()),
        };
        if hand_over.dropped {
            self.secondaries.remove(&key);
        }
        let mut content = SecondaryContent {
            sequence: 0,
            object: hand_over.object,
            copy_at: hand_over.copy_at,
            reads,
            dropped: hand_over.dropped,
            by_ap,
        };
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
            meta.copies_at.retain(|mp| *mp != content.copy_at);
        }
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
    pub fn accesses_at(&self, mp: MpId) -> [OpCounts; 3] {
        self.by_mp.get(&mp).copied().unwrap_or_default()
    }

    /// The meta-objects asked for, in order of object.
    pub fn query(&self, query: &MetaQuery, completeness: Completeness) -> MetaObjects {
        let wanted = |object: &ObjectId| {
            (query.variables.is_empty() || query.variables.contains(&object.var))
                && (query.objects.is_empty() || query.objects.contains(object))
        };
        MetaObjects {
            primaries: self
                .primaries
                .iter()
                .filter(|(id, _)| wanted(id))
                .map(|(_, p)| p.meta.clone())
                .collect(),
            secondaries: self
                .secondaries
                .iter()
                .filter(|((id, _), _)| wanted(id))
                .map(|(_, s)| s.clone())
                .collect(),
            completeness,
        }
    }

    fn primary(&mut self, record: &Record) -> &mut Primary {
        self.primary_of(record.object, Some(record.peer))
    }

    fn primary_of(&mut self, object: ObjectId, owner: Option<MpId>) -> &mut Primary {
        let group = self.groups.get(&object.var).copied().unwrap_or_default();
        let primary = self.primaries.entry(object).or_insert_with(|| Primary {
            meta: PrimaryMeta {
                object,
                group,
                owner: MpId::default(),
                copies_at: Vec::new(),
                counts: OpCounts::default(),
                reads_on_copies: 0,
                last_acquires: Vec::new(),
                last_writes: Vec::new(),
                delayed_acquires: Vec::new(),
                delayed: 0,
                by_origin: Default::default(),
                by_ap: BTreeMap::new(),
                wait: Nanos::ZERO,
                hold: Nanos::ZERO,
                wait_sketch: Sketch::default(),
                hold_sketch: Sketch::default(),
                version: 0,
            },
            held: None,
        });
        if let Some(owner) = owner {
            primary.meta.owner = owner;
        }
        primary
    }

    fn secondary(&mut self, object: ObjectId, copy_at: MpId, owner: MpId) -> &mut SecondaryMeta {
        let primary_emp = self.topology.mp(owner).map_or(self.me, |p| p.event_manager);
        self.secondaries
            .entry((object, copy_at))
            .or_insert_with(|| SecondaryMeta {
                object,
                copy_at,
                primary_emp,
                reads: 0,
                by_ap: BTreeMap::new(),
            })
    }

    fn access(&self, record: &Record) -> Access {
        Access {
            ap: record.ap,
            mp: record.mp,
            group: self.topology.group_of_ap(record.ap).unwrap_or_default(),
            at: record.start,
            wait: record.wait,
        }
    }
}

fn push_bounded(list: &mut Vec<Access>, access: Access) {
    if list.len() == LAST_ACCESSES {
        list.remove(0);
    }
    list.push(access);
}
