//! Copies for and in our application processes: those that this memory process holds, and who of ours has one
//! himself. When one is void, the other is.

use bytes::Bytes;
use dosmos_proto::{ApId, MpId, Nanos, ObjectId};

use super::copies::Copies;
use super::holders::Holders;
use super::records::hand_over;
use crate::core::context::Context;
use crate::core::effects::Caller;
use crate::core::messages::Response;

/// Both.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    pub(super) copies: Copies,
    pub(super) holders: Holders,
}

impl Caches {
    /// One of our application processes writes: our copy is void, and so are fetches of operations before `upcoming`.
    pub(super) fn forget(
        &mut self,
        cx: &mut Context,
        (object, owner): (ObjectId, MpId),
        upcoming: u64,
    ) {
        self.holders.void(cx, object);
        if self.copies.forget(object, upcoming) {
            hand_over(cx, object, owner, true);
        }
    }

    /// Our copy is void, and with it those of our application processes.
    pub(super) fn drop_copy(&mut self, cx: &mut Context, object: ObjectId, owner: MpId) {
        self.holders.void(cx, object);
        if self.copies.drop_copy(object) {
            hand_over(cx, object, owner, true);
        }
    }

    /// Drops copies that were not read for long, if there are more than there may be now that there is one of `keep`.
    pub(super) fn make_room(&mut self, cx: &mut Context, keep: ObjectId) {
        while let Some((object, owner)) = self.copies.oldest_beyond_bounds(keep) {
            self.drop_copy(cx, object, owner);
        }
    }

    /// What everyone sees of an object of this memory process has changed.
    pub(crate) fn changed(&mut self, cx: &mut Context, object: ObjectId) {
        self.holders.void(cx, object);
    }

    /// Copies in our application processes are void when the lease of ours is over.
    pub(crate) fn end_leases(&mut self, cx: &mut Context) {
        for object in self.holders.ended(cx.now, &self.copies) {
            self.holders.void(cx, object);
        }
    }

    /// The link to an owner is new: it may have told us of changes on the old one.
    pub(crate) fn forget_owner(&mut self, cx: &mut Context, owner: MpId) {
        for object in self.copies.owned_by(owner) {
            self.drop_copy(cx, object, owner);
        }
    }

    /// The owner invalidates a copy (no content) or updates it.
    pub(crate) fn revise(
        &mut self,
        cx: &mut Context,
        caller: Caller,
        (object, version): (ObjectId, u64),
        content: Option<Bytes>,
    ) {
        match content {
            Some(data) if self.copies.update(object, data.clone(), version) => {
                self.holders.update(cx, (object, version), &data);
                hand_over(cx, object, caller.mp, false);
                self.make_room(cx, object);
            }
            Some(_) => self.holders.void(cx, object),
            None => self.drop_copy(cx, object, caller.mp),
        }
        cx.respond(caller, Response::CopyAck { object, version }, Nanos::ZERO);
    }

    /// An application process gave an object of ours back and keeps a copy.
    pub(crate) fn kept(&mut self, object: ObjectId, ap: ApId) {
        self.holders.add(object, ap, None);
    }

    /// Copies held now.
    pub(crate) fn count(&self) -> u64 {
        self.copies.count()
    }
}
