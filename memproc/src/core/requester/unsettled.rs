//! Acquires that nobody waits for any more and that may be granted nevertheless.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, MpId};

use super::pending::{Acquire, Kind, Operation};
use crate::core::context::Context;
use crate::core::messages::Notice;

/// Application processes with an acquire that nobody waits for any more, by owner: it may have arrived, or may yet, though the
/// link broke that it and what takes it back went over.
#[derive(Debug, Default)]
pub(super) struct Unsettled(BTreeMap<MpId, BTreeSet<ApId>>);

impl Unsettled {
    /// Nobody waits for an operation any more. If it is an acquire, whatever takes it back may get lost on the way, when the
    /// acquire does not.
    pub(super) fn note(&mut self, cx: &Context, operation: &Operation) {
        if matches!(operation.kind, Kind::Acquire(Acquire { sent: true, .. }))
            && operation.to != cx.me()
        {
            let unsettled = self.0.entry(operation.to).or_default();
            unsettled.insert(operation.ticket.ap);
        }
    }

    /// The way to an owner is new: what it may have granted nobody waits for. Said as often as the way is new: this may get lost, too.
    pub(super) fn tell(&self, cx: &mut Context, owner: MpId) {
        for ap in self.0.get(&owner).into_iter().flatten().copied() {
            cx.notice(owner, Notice::Abandon { ap, object: None });
        }
    }
}
