//! What one application process has to publish, and the operations that wait for that, in order.
//!
//! Releases, barriers, and acquires behind them pass one at a time through a line of their application
//! process: each waits until every owner holding unpublished writes has told the copies (*flush*), and for the
//! response to the release before it. So whoever learns of a release or a barrier sees whatever its application process did
//! before, however it pipelined its requests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dosmos_proto::{ApId, Incarnation, MpId, Refusal, VarId};

use super::flushes::{Flush, Flushes};
use super::pending::{Barrier, Kind, Operation, Pending};
use crate::core::context::Context;

/// The line of one application process.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Operations that publish or come after one that does, in order.
    operations: VecDeque<u64>,
    /// Owners with writes outside sections that copies were not told of, and which starts of them.
    dirty: BTreeMap<MpId, Option<Incarnation>>,
    /// Owners that could not be reached when their writes were to be published: it was told, and they are published when the
    /// owner can be reached again.
    owed: BTreeMap<MpId, Option<Incarnation>>,
    /// The barrier that it came to before all copies acknowledged what it wrote, and which start of this process it was.
    ahead: Option<(u64, Option<Incarnation>)>,
    /// Owners that are asked next to tell the copies.
    to_flush: BTreeMap<MpId, Option<Incarnation>>,
    /// Flushes under way, and the operation that wanted the last.
    flushing: u32,
    flush_for: Option<u64>,
    /// The operation that fails next, and why.
    failed: Option<(u64, Refusal)>,
    /// Releases sent to owners and not responded to.
    releasing: u32,
    /// Barriers it waits at.
    at_barriers: BTreeSet<VarId>,
    /// Its steps are being taken.
    advancing: bool,
}

/// What happens next in a line.
pub(super) enum Step {
    /// An operation leaves the line and starts.
    Start(u64),
    /// An operation fails: what was written before it could not be published.
    Fail(u64, Refusal),
}

impl Line {
    /// Lines an operation up behind the others.
    pub(super) fn push(&mut self, number: u64) {
        self.operations.push_back(number);
    }

    /// An operation is complete; whether it was in line.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let waited = self.operations.len();
        self.operations.retain(|n| *n != number);
        self.operations.len() < waited
    }

    /// Whether something that publishes is to be done before a release could leave.
    pub(super) fn is_busy(&self) -> bool {
        !self.operations.is_empty()
            || self.flushing > 0
            || self.releasing > 0
            || !self.dirty.is_empty()
            || self.ahead.is_some()
    }

    /// It wrote outside sections to a start of an owner.
    pub(super) fn wrote(&mut self, owner: MpId, incarnation: Option<Incarnation>) {
        self.dirty.entry(owner).or_insert(incarnation);
    }

    /// Owners with writes that copies were not told of.
    pub(super) fn into_dirty(self) -> impl Iterator<Item = MpId> {
        self.dirty.into_keys()
    }

    /// Whether its steps may be taken: they do not nest.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.advancing, true)
    }

    /// What happens next, after the flushes that come before it; nothing if it has to wait, and then its steps are all taken.
    pub(super) fn next(
        &mut self,
        cx: &mut Context,
        ap: ApId,
        (pending, flushes): (&mut Pending, &mut Flushes),
    ) -> Option<Step> {
        loop {
            if let Some((number, why)) = self.failed.take() {
                return Some(Step::Fail(number, why));
            }
            if let Some((to, incarnation)) = self.to_flush.pop_first() {
                let flush = Flush {
                    ap,
                    to,
                    incarnation,
                };
                self.flushing += 1;
                match cx.check_reachable(to) {
                    Ok(()) => flushes.send(cx, pending.number(), flush),
                    Err(why) => self.flush_lost(&flush, why),
                }
                continue;
            }
            let front = self.operations.front().copied();
            let operation = front.map(|number| (number, pending.get(number)));
            let Some((number, operation)) = operation else {
                break;
            };
            let Some(&Operation { to, ref kind, .. }) = operation else {
                self.operations.pop_front();
                continue;
            };
            let publishes = !matches!(kind, Kind::Acquire(_));
            if publishes && self.flushing > 0 {
                break;
            }
            if publishes && self.ahead.is_some_and(|(barrier, _)| barrier != number) {
                self.fall_back(cx.me());
            }
            if publishes && !self.dirty.is_empty() {
                self.flush_for = Some(number);
                let dirty = std::mem::take(&mut self.dirty);
                match kind {
                    Kind::Barrier(_) if self.may_publish_ahead(cx, &dirty, to) => {
                        let incarnation = dirty.into_values().next().flatten();
                        self.ahead = Some((number, incarnation));
                        self.flushing += 1;
                        flushes.send_ahead(cx, pending.number(), (ap, incarnation), to);
                    }
                    _ => self.to_flush = dirty,
                }
                continue;
            }
            if publishes && self.releasing > 0 {
                break;
            }
            if let Kind::Barrier(Barrier { barrier, .. }) = kind
                && self.at_barriers.contains(barrier)
            {
                break;
            }
            self.operations.pop_front();
            return Some(Step::Start(number));
        }
        self.advancing = false;
        None
    }

    /// Whether an arrival at a barrier can follow what it publishes on its way to the coordinator.
    fn may_publish_ahead(
        &self,
        cx: &Context,
        dirty: &BTreeMap<MpId, Option<Incarnation>>,
        coordinator: MpId,
    ) -> bool {
        coordinator != cx.me()
            && cx.check_reachable(coordinator).is_ok()
            && dirty.keys().eq([&cx.me()])
            && self.releasing == 0
            && self.at_barriers.is_empty()
    }

    /// An owner told the copies, or refused to; then the operation that wanted it fails.
    pub(super) fn flushed(&mut self, result: Result<(), Refusal>) {
        self.flushing = self.flushing.saturating_sub(1);
        if let Err(why) = result
            && let Some(wanted_by) = self.flush_for
            && self.operations.front() == Some(&wanted_by)
        {
            self.failed = Some((wanted_by, why));
        }
    }

    /// An owner cannot be reached that was to tell the copies.
    pub(super) fn flush_lost(&mut self, flush: &Flush, why: Refusal) {
        self.owed.insert(flush.to, flush.incarnation);
        self.flushed(Err(why));
    }

    /// An owner can be reached again: what could not be published there is to be published.
    pub(super) fn regain(&mut self, owner: MpId) {
        if let Some(incarnation) = self.owed.remove(&owner) {
            self.dirty.entry(owner).or_insert(incarnation);
        }
    }

    /// What was published ahead of an arrival is to be published for good: the barrier has not opened.
    fn fall_back(&mut self, me: MpId) {
        if let Some((_, incarnation)) = self.ahead.take() {
            self.dirty.entry(me).or_insert(incarnation);
        }
    }

    /// A release was sent to its owner.
    pub(super) fn release_begins(&mut self) {
        self.releasing += 1;
    }

    /// The owner responded to a release, or nobody waits for that any more.
    pub(super) fn release_ends(&mut self) {
        self.releasing = self.releasing.saturating_sub(1);
    }

    /// It waits at a barrier from now on.
    pub(super) fn arrive(&mut self, barrier: VarId) {
        self.at_barriers.insert(barrier);
    }

    /// The barrier `number` opened for it, or it does not wait any more.
    pub(super) fn barrier_ends(&mut self, me: MpId, number: u64, barrier: &Barrier, opened: bool) {
        if barrier.arrived.is_some() {
            self.at_barriers.remove(&barrier.barrier);
        }
        if self.ahead.is_some_and(|(of, _)| of == number) {
            match opened {
                // The coordinator opened it, so it has heard what was published.
                true => self.ahead = None,
                false => self.fall_back(me),
            }
        }
    }
}
