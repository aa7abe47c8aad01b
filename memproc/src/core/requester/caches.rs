//! Copies for and in our application processes: those that this memory process holds, and who of ours has one
//! himself. When one is void, the other is.

use bytes::Bytes;
use dosmos_proto::{ApId, Cache, ErrorCode, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::Origin;

use super::asking::check_served;
use super::copies::{Copies, Copy};
use super::holders::Holders;
use super::pending::{Kind, Operation, Pending, Read, Ticket, call};
use super::records::{hand_over, operation_record};
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::effects::Caller;
use crate::core::messages::{Delegated, Item, Keep, PeerRequest, Reply, Response};
use crate::core::replica::seat::Seat;

/// Part of a larger object is read without fetching all of it, if application processes keep copies.
const LARGE: usize = 16 << 10;

/// Both.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    pub(super) copies: Copies,
    pub(super) holders: Holders,
}

impl Caches {
    /// Serves a read of `asked` elements from our copy; or gives what is to be asked of the owner. `wrote`: the reader wrote in its
    /// section.
    pub(super) fn read(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        (asked, keep, ahead): ((u32, u32), Keep, bool),
        wrote: bool,
    ) -> Result<Option<Read>, Refusal> {
        let Place { object, owner, .. } = *place;
        let near = owner != cx.me() && cx.cluster.same_group(owner, cx.me());
        let fetch = near && !wrote;
        // Of what has replicas, only memory processes keep copies: their leases are those of its owner.
        let caches = place.variable.spec().cache() == Cache::Ap && place.seat.is_none();
        let may_keep = caches && !wrote && (near || owner == cx.me());
        let keep = if may_keep { keep } else { Keep::Nothing };
        // Where copies are for application processes, part of a large object does not fetch all of it.
        let large = place.bytes() > LARGE && asked.1 - asked.0 <= place.elements / 2;
        let read = Read {
            object,
            range: if ahead && keep > Keep::Nothing {
                (0, 0)
            } else {
                asked
            },
            width: place.width,
            fetch: fetch && !(caches && large && keep == Keep::Nothing),
            keep,
        };
        let copy = self.copies.get(object, cx.now).filter(|_| fetch);
        if let Some((copy, true)) = copy {
            let keep = keep > Keep::Nothing;
            let data = match keep {
                true => copy.data.clone(),
                false => copy.data.slice(place.bytes_of(asked)),
            };
            let version = copy.version;
            if keep {
                let until = self.copies.lease_end(object);
                self.holders.add(object, ticket.ap, until);
            }
            let (to, kind) = (owner, Kind::Read(read));
            if let Some(mut record) = operation_record(cx, &Operation::new(ticket, to, kind)) {
                record.flags.optimized = true;
                record.origin = Origin::Local;
                record.version = version;
                cx.trace(Item::Record(record));
            }
            let reply = Reply::Read {
                version,
                data,
                keep,
                delegation: None,
                unchanged: false,
            };
            cx.reply(ticket.ap, ticket.id, reply, false);
            return Ok(None);
        }
        if copy.is_some() {
            // Its lease is over: it may be out of date.
            self.drop_copy(cx, object, owner);
        }
        check_served(cx, place)?;
        if read.fetch {
            self.copies.fetch_begins(object);
        }
        Ok(Some(read))
    }

    /// The owner responded to the read `number`; the reply to it, and whether it was fetched for a copy that is not kept.
    pub(super) fn receive(
        &mut self,
        cx: &mut Context,
        number: u64,
        (ap, owner, read): (ApId, MpId, Read),
        (version, data, copy, delegation): (u64, Bytes, bool, Option<Delegated>),
        until: Option<Nanos>,
    ) -> Result<(Reply, bool), Refusal> {
        let Read {
            object,
            range: (first, end),
            width,
            fetch,
            ..
        } = read;
        let keep = read.keep > Keep::Nothing;
        let whole = read.is_whole();
        let asked = (first * width) as usize..(end * width) as usize;
        let expected = match cx.variables.place(cx.cluster, object) {
            Ok(place) if whole => place.bytes(),
            _ => asked.len(),
        };
        if data.len() != expected {
            return Err(Refusal::new(
                ErrorCode::Invalid,
                format!(
                    "{} sent {} bytes of {} where {expected} were expected",
                    cx.cluster.mp_name(owner),
                    data.len(),
                    cx.variables.object_name(object)
                ),
            ));
        }
        if fetch && self.copies.differs(object, &data) {
            // Two fetches overlapped. Whoever sees what this one brings does not read what the other did.
            self.holders.void(cx, object);
        }
        let ours = (copy && fetch).then(|| Copy {
            data: data.clone(),
            version,
            owner,
            until,
        });
        let kept = fetch && self.copies.fetch_ends(object, number, ours);
        self.make_room(cx, object);
        // Of another memory process's object, only while there is a copy here that it tells of changes.
        let keep = keep && copy && (kept || owner == cx.me());
        let mut unchanged = false;
        if keep && delegation.is_some() {
            unchanged = self.holders.yield_to(cx, object, ap);
        } else if keep {
            let until = self.copies.lease_end(object);
            self.holders.add(object, ap, until);
        }
        let reply = Reply::Read {
            version,
            data: match (unchanged, whole && !keep) {
                (true, _) => Bytes::new(),
                (false, true) => data.slice(asked),
                (false, false) => data,
            },
            keep,
            delegation,
            unchanged,
        };
        Ok((reply, fetch && !kept))
    }

    /// Asks owners of copies whose lease runs out to renew it.
    pub(super) fn renew_leases(&mut self, cx: &mut Context, numbers: &mut Pending) {
        for owner in self.copies.to_renew(cx.now) {
            let number = numbers.number();
            self.copies.renewal_begins(owner, number, cx.now);
            cx.request(owner, call(number), PeerRequest::Renew);
        }
    }

    /// One of our application processes writes: our copy is void, and so are fetches of operations before `upcoming`.
    pub(super) fn forget(
        &mut self,
        cx: &mut Context,
        (object, owner): (ObjectId, MpId),
        upcoming: u64,
    ) {
        if owner == cx.me() {
            return;
        }
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

    /// What everyone sees of an object of this memory process is this version of it, which copies made since it changed do not know.
    pub(crate) fn published(&self, cx: &mut Context, object: ObjectId, version: u64) {
        self.holders.confirm(cx, object, version);
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

    /// Another process serves the objects of a seat: copies from the one before are void.
    pub(crate) fn forget_seat(&mut self, cx: &mut Context, (seat, owner): (Seat, MpId)) {
        for object in self.copies.owned_by(owner) {
            if cx.variables.seat_of(object) == Some(seat) {
                self.drop_copy(cx, object, owner);
            }
        }
    }

    /// The owner invalidates a copy (no content) or updates it, and may be in no hurry to hear that it is done.
    pub(crate) fn revise(
        &mut self,
        cx: &mut Context,
        caller: Caller,
        (object, version): (ObjectId, u64),
        content: Option<(Bytes, bool)>,
    ) {
        let no_hurry = content.as_ref().is_some_and(|(_, no_hurry)| *no_hurry);
        match content {
            Some((data, _)) if self.copies.update(object, data.clone(), version) => {
                self.holders.update(cx, (object, version), &data);
                hand_over(cx, object, caller.mp, false);
                self.make_room(cx, object);
            }
            Some(_) => self.holders.void(cx, object),
            None => self.drop_copy(cx, object, caller.mp),
        }
        let done = Response::CopyAck {
            object,
            version,
            no_hurry,
        };
        cx.respond(caller, done, Nanos::ZERO);
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
