//! What is known of each of our application processes: whether it is here, the sections it is in,
//! which owners hold writes of it that copies were not told of, and what it is publishing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dosmos_proto::{ApId, ErrorCode, Incarnation, MpId, Nanos, ObjectId, Refusal, VarId};
use rustc_hash::FxHashMap;

use crate::core::context::Context;
use crate::core::lease::MAX_SILENCE;

/// Most requests of one application process under way at once.
pub const MAX_OUTSTANDING: u32 = 4096;

/// An exclusive section an application process is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub(super) epoch: u64,
    /// It wrote: from now on it reads at the owner, where its writes are.
    pub(super) wrote: bool,
    pub(super) owner: MpId,
    /// The owner was lost and the section with it.
    pub(super) lost: bool,
}

/// One application process.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(super) connected: bool,
    /// When it was heard last.
    pub(super) heard: Nanos,
    pub(super) outstanding: u32,
    /// It accessed an object or came to a barrier.
    pub(super) accessed: bool,
    pub(super) sections: BTreeMap<ObjectId, Section>,
    /// Objects whose acquires are at their owners.
    pub(super) acquiring: BTreeSet<ObjectId>,
    /// Owners with writes outside sections that copies were not told of, and which starts of them.
    pub(super) dirty: BTreeMap<MpId, Option<Incarnation>>,
    /// Owners that could not be reached when their writes were to be published: it was told, and they are published when the
    /// owner can be reached again.
    pub(super) owed: BTreeMap<MpId, Option<Incarnation>>,
    /// The barrier that it came to before all copies acknowledged what it wrote, and which start of this process it was.
    pub(super) ahead: Option<(u64, Option<Incarnation>)>,
    /// Flushes under way, and the operation that wanted the last.
    pub(super) flushing: u32,
    pub(super) flush_for: Option<u64>,
    /// Releases sent to owners and not responded to.
    pub(super) releasing: u32,
    /// Barriers it waits at.
    pub(super) at_barriers: BTreeSet<VarId>,
    /// Operations that publish or come after one that does, in order: see `publish`.
    pub(super) line: VecDeque<u64>,
    /// `advance` is at work.
    pub(super) advancing: bool,
}

impl Session {
    /// Whether something that publishes is to be done before a release could leave.
    pub(super) fn publishes(&self) -> bool {
        !self.line.is_empty()
            || self.flushing > 0
            || self.releasing > 0
            || !self.dirty.is_empty()
            || self.ahead.is_some()
    }

    /// It accesses an object, or comes to a barrier; whether that is the first time.
    pub(super) fn begins_to_access(&mut self) -> bool {
        !std::mem::replace(&mut self.accessed, true)
    }

    /// An owner can be reached again: what could not be published there is to be published.
    pub(super) fn regain(&mut self, owner: MpId) {
        if let Some(incarnation) = self.owed.remove(&owner) {
            self.dirty.entry(owner).or_insert(incarnation);
        }
    }

    /// What was published ahead of an arrival is to be published for good: the barrier has not opened.
    pub(super) fn fall_back(&mut self, me: MpId) {
        if let Some((_, incarnation)) = self.ahead.take() {
            self.dirty.entry(me).or_insert(incarnation);
        }
    }
}

/// All application processes that ever connected.
#[derive(Debug, Default)]
pub(crate) struct Sessions(FxHashMap<ApId, Session>);

impl Sessions {
    pub(super) fn get(&self, ap: ApId) -> Option<&Session> {
        self.0.get(&ap)
    }

    pub(super) fn get_mut(&mut self, ap: ApId) -> &mut Session {
        self.0.entry(ap).or_default()
    }

    /// An owner can be reached again.
    pub(super) fn regain(&mut self, owner: MpId) {
        self.0.values_mut().for_each(|s| s.regain(owner));
    }

    pub(super) fn section(&self, ap: ApId, object: ObjectId) -> Option<&Section> {
        self.0.get(&ap)?.sections.get(&object)
    }

    /// An application process is heard.
    pub(crate) fn hear(&mut self, now: Nanos, ap: ApId) {
        self.get_mut(ap).heard = now;
    }

    /// Whether an application process has not been heard for too long.
    pub(crate) fn is_silent(&self, now: Nanos, ap: ApId) -> bool {
        let heard = self.get(ap).map_or(Nanos::ZERO, |s| s.heard);
        heard + MAX_SILENCE <= now
    }

    /// Whether an application process is here.
    pub(crate) fn is_connected(&self, ap: ApId) -> bool {
        self.get(ap).is_some_and(|s| s.connected)
    }

    /// An application process that is here and may have one more request under way.
    pub(super) fn check_admission(
        &mut self,
        cx: &Context,
        ap: ApId,
    ) -> Result<&mut Session, Refusal> {
        let me = || cx.cluster.mp_name(cx.me());
        let ap_name = || cx.cluster.ap_name(ap);
        let session = self.0.get_mut(&ap).filter(|s| s.connected);
        match session {
            None => Err(Refusal::new(
                ErrorCode::Invalid,
                format!("{} is not connected to {}", ap_name(), me()),
            )),
            Some(s) if s.outstanding >= MAX_OUTSTANDING => Err(Refusal::new(
                ErrorCode::Limit,
                format!(
                    "{} has {MAX_OUTSTANDING} requests under way at {}; await some first",
                    ap_name(),
                    me()
                ),
            )),
            Some(session) => Ok(session),
        }
    }

    /// The epoch of the section that a write or release belongs to, if any; refused if that section is
    /// over.
    pub(super) fn check_section(
        &self,
        cx: &Context,
        ap: ApId,
        object: ObjectId,
        epoch: Option<u64>,
    ) -> Result<Option<u64>, Refusal> {
        let stale = |why: String| {
            Err(Refusal::new(
                ErrorCode::StaleEpoch,
                format!(
                    "the section of {} on {} is over: {why}; acquire it again",
                    cx.cluster.ap_name(ap),
                    cx.variables.object_name(object)
                ),
            ))
        };
        match (self.section(ap, object), epoch) {
            (Some(s), _) if s.lost => stale(format!("{} was lost", cx.cluster.mp_name(s.owner))),
            (Some(s), Some(epoch)) if epoch != s.epoch => {
                stale(format!("epoch {epoch} was given, {} is current", s.epoch))
            }
            (Some(s), _) => Ok(Some(s.epoch)),
            (None, Some(epoch)) => stale(format!("epoch {epoch} is not current")),
            (None, None) => Ok(None),
        }
    }

    /// The epoch of the section to be released. One that was lost is over with this.
    pub(super) fn check_release(
        &mut self,
        cx: &Context,
        ap: ApId,
        object: ObjectId,
        epoch: Option<u64>,
    ) -> Result<u64, Refusal> {
        match self.check_section(cx, ap, object, epoch) {
            Ok(Some(epoch)) => Ok(epoch),
            Ok(None) => Err(Refusal::new(
                ErrorCode::NotHeld,
                format!(
                    "{} does not hold {}; acquire it before releasing it",
                    cx.cluster.ap_name(ap),
                    cx.variables.object_name(object)
                ),
            )),
            Err(refusal) => {
                let sections = &mut self.get_mut(ap).sections;
                if sections.get(&object).is_some_and(|s| s.lost) {
                    sections.remove(&object);
                }
                Err(refusal)
            }
        }
    }

    /// Refuses an acquire that the owner would refuse: so at most one acquire of an object by one
    /// application process is at its owner, and taking that back cannot hit another.
    pub(super) fn check_acquire(
        &self,
        cx: &Context,
        ap: ApId,
        object: ObjectId,
    ) -> Result<(), Refusal> {
        let twice = |how: String| {
            let who = cx.cluster.ap_name(ap);
            Err(Refusal::new(
                ErrorCode::AlreadyHeld,
                format!("{who} already {how}"),
            ))
        };
        if let Some(section) = self.section(ap, object).filter(|s| !s.lost) {
            return twice(format!(
                "holds {} (epoch {}); release it first",
                cx.variables.object_name(object),
                section.epoch
            ));
        }
        if self.get(ap).is_some_and(|s| s.acquiring.contains(&object)) {
            return twice(format!(
                "waits for {}; one acquire at a time",
                cx.variables.object_name(object)
            ));
        }
        Ok(())
    }

    /// Those connected, in order.
    pub(super) fn connected(&self) -> Vec<ApId> {
        let mut list: Vec<ApId> = self
            .0
            .iter()
            .filter(|(_, s)| s.connected)
            .map(|(ap, _)| *ap)
            .collect();
        list.sort_unstable();
        list
    }

    /// Sections on objects of an owner are lost. Unpublished writes to them are not forgotten: the
    /// next release or barrier publishes them or fails.
    pub(super) fn lose_owner(&mut self, owner: MpId) {
        for session in self.0.values_mut() {
            for section in session.sections.values_mut() {
                section.lost |= section.owner == owner;
            }
        }
    }
}
