//! Publishing: what an application process wrote outside sections becomes visible before its release
//! or barrier goes on, and its releases and barriers keep their order.
//!
//! Releases, barriers, and acquires behind them pass one at a time through a queue of their
//! application process: a release waits until every owner holding unpublished writes has told the
//! copies (*flush*); a barrier also waits for the releases before it. So whatever an application process did
//! before a barrier is visible after it, however it pipelined its requests.

use dosmos_proto::{ApId, ObjectId, Refusal};
use dosmos_proto::{ErrorCode, MpId};

use super::calls::{Kind, Operation, What};
use super::input::{Ask, Reply};
use super::replies::Cost;
use super::{Core, Cx};

impl Core {
    pub(super) fn release(
        &mut self,
        cx: &mut Cx,
        op: &Operation,
        object: ObjectId,
        epoch: u64,
    ) -> Result<(), Refusal> {
        let place = self.place(object)?;
        self.section_epoch(op.ap, object, epoch)?;
        let call = self.open_operation(op, place.owner, op.what.clone());
        self.prepare(cx, op.ap, call);
        Ok(())
    }

    /// The epoch of the section to be released. One that was lost is over with this.
    fn section_epoch(&mut self, ap: ApId, object: ObjectId, epoch: u64) -> Result<u64, Refusal> {
        match self.guard(ap, object, epoch) {
            Ok(Some(epoch)) => Ok(epoch),
            Ok(None) => Err(Refusal::new(
                ErrorCode::NotHeld,
                format!(
                    "{} does not hold {}; acquire it before releasing it",
                    self.cluster.ap_name(ap),
                    self.object_name(object)
                ),
            )),
            Err(refusal) => {
                let sections = &mut self.sessions.get_mut(ap).sections;
                if sections.get(&object).is_some_and(|s| s.lost) {
                    sections.remove(&object);
                }
                Err(refusal)
            }
        }
    }

    /// Lines a call up behind those of the same application process that publish.
    pub(super) fn prepare(&mut self, cx: &mut Cx, ap: ApId, call: u64) {
        self.sessions.get_mut(ap).preparing.push_back(call);
        self.advance(cx, ap);
    }

    /// Lets go on what can go on. What it completes calls it again, so it does not nest.
    pub(super) fn advance(&mut self, cx: &mut Cx, ap: ApId) {
        if std::mem::replace(&mut self.sessions.get_mut(ap).advancing, true) {
            return;
        }
        while let Some(call) = self.sessions.get_mut(ap).preparing.front().copied() {
            if !self.step(cx, ap, call) {
                break;
            }
        }
        self.sessions.get_mut(ap).advancing = false;
    }

    /// The first call in line: whether something happened.
    fn step(&mut self, cx: &mut Cx, ap: ApId, call: u64) -> bool {
        let Some(op) = self.calls.operation(call) else {
            self.sessions.get_mut(ap).preparing.pop_front();
            return true;
        };
        let what = op.what.clone();
        let session = self.sessions.get_mut(ap);
        let publishes = !matches!(what, What::Acquire { .. });
        if publishes && session.flushing > 0 {
            return false;
        }
        if publishes && !session.dirty.is_empty() {
            self.flush(cx, ap, call);
            return true;
        }
        if let What::Barrier { barrier, .. } = what
            && (session.releasing > 0 || self.barriers.awaits(barrier, ap))
        {
            return false;
        }
        session.preparing.pop_front();
        match what {
            What::Acquire { object, .. } => self.send_acquire(cx, ap, call, object),
            What::Release { object, epoch, .. } => self.send_release(cx, ap, call, object, epoch),
            What::Barrier { barrier, .. } => self.barrier_arrive(cx, ap, call, barrier),
            What::Publish => self.finish(cx, call, Ok(Reply::Published), Cost::default()),
            _ => {}
        }
        true
    }

    /// Has every owner with unpublished writes tell the copies.
    fn flush(&mut self, cx: &mut Cx, ap: ApId, call: u64) {
        let session = self.sessions.get_mut(ap);
        let owners = std::mem::take(&mut session.dirty);
        session.flush_for = call;
        session.flushing += owners.len() as u32;
        for owner in owners {
            match self.peers.reach(&self.cluster, owner) {
                Ok(()) => {
                    let flush = self.calls.open(owner, Kind::Flush(ap));
                    self.dispatch(cx, owner, flush, Ask::Flush { ap });
                }
                Err(refusal) => self.flushed(cx, ap, Some(refusal)),
            }
        }
    }

    /// An owner told the copies, or cannot; then the operation that wanted it fails.
    pub(super) fn flushed(&mut self, cx: &mut Cx, ap: ApId, failed: Option<Refusal>) {
        let session = self.sessions.get_mut(ap);
        session.flushing = session.flushing.saturating_sub(1);
        let wanted_by = session.flush_for;
        if let Some(refusal) = failed
            && session.preparing.front() == Some(&wanted_by)
        {
            self.finish(cx, wanted_by, Err(refusal), Cost::default());
        }
        self.advance(cx, ap);
    }

    fn owner_of(&self, object: ObjectId) -> Result<MpId, Refusal> {
        let owner = self.place(object)?.owner;
        self.peers.reach(&self.cluster, owner)?;
        Ok(owner)
    }

    /// Refuses what the owner would: so at most one acquire of an object by one application process
    /// is at its owner, and taking that back cannot hit another.
    fn acquirable(&self, ap: ApId, object: ObjectId) -> Result<MpId, Refusal> {
        let session = self.sessions.get(ap);
        let held = self.sessions.section(ap, object).filter(|s| !s.lost);
        let twice = |how: String| {
            let who = self.cluster.ap_name(ap);
            Err(Refusal::new(
                ErrorCode::AlreadyHeld,
                format!("{who} already {how}"),
            ))
        };
        if let Some(section) = held {
            return twice(format!(
                "holds {} (epoch {}); release it first",
                self.object_name(object),
                section.epoch
            ));
        }
        if session.is_some_and(|s| s.acquiring.contains(&object)) {
            return twice(format!(
                "waits for {}; one acquire at a time",
                self.object_name(object)
            ));
        }
        self.owner_of(object)
    }

    fn send_acquire(&mut self, cx: &mut Cx, ap: ApId, call: u64, object: ObjectId) {
        let owner = match self.acquirable(ap, object) {
            Ok(owner) => owner,
            Err(refusal) => return self.finish(cx, call, Err(refusal), Cost::default()),
        };
        self.sessions.get_mut(ap).acquiring.insert(object);
        if let Some(op) = self.calls.operation(call) {
            op.what = What::Acquire { object, sent: true };
        }
        self.dispatch(cx, owner, call, Ask::Acquire { object, ap });
    }

    fn send_release(&mut self, cx: &mut Cx, ap: ApId, call: u64, object: ObjectId, epoch: u64) {
        // Again: another release of it may have come before.
        let checked = self.section_epoch(ap, object, epoch);
        let (owner, epoch) = match checked.and_then(|e| Ok((self.owner_of(object)?, e))) {
            Ok(both) => both,
            Err(refusal) => return self.finish(cx, call, Err(refusal), Cost::default()),
        };
        let session = self.sessions.get_mut(ap);
        session.releasing += 1;
        let wrote = session.sections.remove(&object).is_some_and(|s| s.wrote);
        if let Some(op) = self.calls.operation(call) {
            op.what = What::Release {
                object,
                epoch,
                sent: Some(cx.now),
            };
        }
        if wrote && owner != self.cluster.me {
            // A copy fetched meanwhile by another of ours lacks the section's writes; its writer,
            // whose reads may use copies from now on, must not see it.
            self.forget_copy(cx, object, owner);
        }
        self.dispatch(cx, owner, call, Ask::Release { object, ap, epoch });
    }
}
