//! Which of our application processes hold copies of objects, and telling them that a copy is void, or what it
//! contains now.
//!
//! Guarantees: whoever holds a copy of an object is listed here; a copy of another memory process's object
//! is held only while there is one in [`Copies`](super::copies::Copies), within its lease. What voids
//! copies stands on the stream of each application process before anything that follows from the change:
//! see docs/design/consistency.md#copies-in-application-processes.

use bytes::Bytes;
use dosmos_proto::{ApId, Nanos, ObjectId};
use rustc_hash::FxHashMap;

use super::copies::Copies;
use crate::core::context::Context;
use crate::core::messages::Output;

/// A copy that was updated so often without being read in between is void at its next update.
const UNREAD_UPDATES: u8 = 4;

/// An application process that has a copy.
#[derive(Debug)]
struct Holder {
    ap: ApId,
    /// Updates sent since it reported accesses.
    unread: u8,
}

/// Copies in our application processes.
#[derive(Debug)]
pub(super) struct Holders {
    by_object: FxHashMap<ObjectId, Vec<Holder>>,
    /// No lease that copies here depend on ends before.
    next_end: Nanos,
}

impl Default for Holders {
    fn default() -> Self {
        Self {
            by_object: FxHashMap::default(),
            next_end: Nanos::MAX,
        }
    }
}

impl Holders {
    /// `ap` is given a copy, which depends on a lease that ends at `until` unless it is renewed.
    pub(super) fn add(&mut self, object: ObjectId, ap: ApId, until: Option<Nanos>) {
        let holders = self.by_object.entry(object).or_default();
        match holders.iter_mut().find(|h| h.ap == ap) {
            Some(holder) => holder.unread = 0,
            None => holders.push(Holder { ap, unread: 0 }),
        }
        self.next_end = self.next_end.min(until.unwrap_or(Nanos::MAX));
    }

    /// `ap` has dropped its copy.
    pub(super) fn remove(&mut self, object: ObjectId, ap: ApId) {
        if let Some(holders) = self.by_object.get_mut(&object) {
            holders.retain(|h| h.ap != ap);
            if holders.is_empty() {
                self.by_object.remove(&object);
            }
        }
    }

    /// `ap` reported accesses to its copy, if it has one.
    pub(super) fn used(&mut self, object: ObjectId, ap: ApId) {
        let holders = self.by_object.get_mut(&object);
        let holder = holders.and_then(|list| list.iter_mut().find(|h| h.ap == ap));
        if let Some(holder) = holder {
            holder.unread = 0;
        }
    }

    /// The copies of an object have this content now; those are void that were not read for long.
    pub(super) fn update(
        &mut self,
        cx: &mut Context,
        (object, version): (ObjectId, u64),
        data: &Bytes,
    ) {
        let Some(holders) = self.by_object.get_mut(&object) else {
            return;
        };
        holders.retain_mut(|holder| {
            let (ap, data) = (holder.ap, data.clone());
            if holder.unread == UNREAD_UPDATES {
                cx.output(Output::Invalidate { ap, object });
                return false;
            }
            holder.unread += 1;
            cx.output(Output::Update {
                ap,
                object,
                version,
                data,
            });
            true
        });
        if holders.is_empty() {
            self.by_object.remove(&object);
        }
    }

    /// The copies of an object are of this version.
    pub(super) fn confirm(&self, cx: &mut Context, object: ObjectId, version: u64) {
        for holder in self.by_object.get(&object).into_iter().flatten() {
            let ap = holder.ap;
            cx.output(Output::Confirm {
                ap,
                object,
                version,
            });
        }
    }

    /// `ap` is given the object to itself: other copies are void. Whether it had one.
    pub(super) fn yield_to(&mut self, cx: &mut Context, object: ObjectId, ap: ApId) -> bool {
        let holders = self.by_object.remove(&object).unwrap_or_default();
        for other in holders.iter().map(|h| h.ap).filter(|a| *a != ap) {
            cx.output(Output::Invalidate { ap: other, object });
        }
        holders.iter().any(|h| h.ap == ap)
    }

    /// The copies of an object are void.
    pub(super) fn void(&mut self, cx: &mut Context, object: ObjectId) {
        for holder in self.by_object.remove(&object).into_iter().flatten() {
            let ap = holder.ap;
            cx.output(Output::Invalidate { ap, object });
        }
    }

    /// An application process is gone.
    pub(super) fn leave(&mut self, ap: ApId) {
        self.by_object.retain(|_, holders| {
            holders.retain(|h| h.ap != ap);
            !holders.is_empty()
        });
    }

    /// Objects whose copies depend on a lease that is over, in order. Searches only if there may be one.
    pub(super) fn ended(&mut self, now: Nanos, copies: &Copies) -> Vec<ObjectId> {
        if now < self.next_end {
            return Vec::new();
        }
        self.next_end = Nanos::MAX;
        let mut ended = Vec::new();
        for object in self.by_object.keys() {
            match copies.lease_end(*object) {
                Some(end) if end <= now => ended.push(*object),
                Some(end) => self.next_end = self.next_end.min(end),
                None => {}
            }
        }
        ended.sort_unstable();
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::super::copies::Copy;
    use super::*;
    use crate::core::lease::LEASE;
    use dosmos_proto::{MpId, VarId};

    const NOW: Nanos = Nanos::from_millis(10_000);

    fn object(index: u32) -> ObjectId {
        ObjectId::new(VarId(1), index)
    }

    #[test]
    fn copies_end_with_the_lease_that_they_depend_on() {
        let mut copies = Copies::default();
        for (owner, sent) in [(1, NOW), (2, NOW + Nanos(7))] {
            let copy = Copy {
                data: Bytes::from_static(b"x"),
                version: 1,
                owner: MpId(owner),
                until: None,
            };
            copies.fetch_begins(object(owner));
            copies.fetch_ends(object(owner), 1, Some(copy));
            copies.renew(MpId(owner), sent);
        }
        let mut holders = Holders::default();
        let end = NOW + LEASE;
        // Of what is owned here, a copy depends on no lease.
        holders.add(object(0), ApId(0), None);
        for of in [1, 2] {
            holders.add(object(of), ApId(0), copies.lease_end(object(of)));
        }
        assert_eq!(holders.ended(end - Nanos(1), &copies), []);
        assert_eq!(holders.ended(end, &copies), [object(1)]);
        holders.remove(object(1), ApId(0));
        assert_eq!(holders.ended(end + Nanos(6), &copies), []);
        assert_eq!(holders.ended(end + Nanos(7), &copies), [object(2)]);
        holders.remove(object(2), ApId(0));
        assert_eq!(holders.ended(end + LEASE, &copies), []);
        assert_eq!(holders.next_end, Nanos::MAX);
    }

    #[test]
    fn who_leaves_holds_nothing() {
        let mut holders = Holders::default();
        for (of, ap) in [(0, 0), (1, 0), (1, 1)] {
            holders.add(object(of), ApId(ap), None);
        }
        holders.leave(ApId(0));
        let left: Vec<_> = holders.by_object.iter().collect();
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].0, left[0].1[0].ap), (&object(1), ApId(1)));
    }
}
