//! Which of our application processes hold copies of objects, and telling them that a copy is void.
//!
//! Guarantees: whoever holds a copy of an object is listed here; a copy of another memory process's object
//! is held only while there is one in [`Copies`](super::copies::Copies), within its lease. What voids
//! copies stands on the stream of each application process before anything that follows from the change:
//! see docs/design/consistency.md#copies-in-application-processes.

use dosmos_proto::{ApId, Nanos, ObjectId};
use rustc_hash::FxHashMap;

use super::copies::Copies;
use crate::core::context::Context;
use crate::core::messages::Output;

/// Copies in our application processes.
#[derive(Debug)]
pub(super) struct Holders {
    by_object: FxHashMap<ObjectId, Vec<ApId>>,
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
        if !holders.contains(&ap) {
            holders.push(ap);
        }
        self.next_end = self.next_end.min(until.unwrap_or(Nanos::MAX));
    }

    /// `ap` has dropped its copy.
    pub(super) fn remove(&mut self, object: ObjectId, ap: ApId) {
        if let Some(holders) = self.by_object.get_mut(&object) {
            holders.retain(|a| *a != ap);
            if holders.is_empty() {
                self.by_object.remove(&object);
            }
        }
    }

    /// `ap` is given the object to itself: other copies are void. Whether it had one.
    pub(super) fn yield_to(&mut self, cx: &mut Context, object: ObjectId, ap: ApId) -> bool {
        let holders = self.by_object.remove(&object).unwrap_or_default();
        for other in holders.iter().copied().filter(|a| *a != ap) {
            cx.output(Output::Invalidate { ap: other, object });
        }
        holders.contains(&ap)
    }

    /// The copies of an object are void.
    pub(super) fn void(&mut self, cx: &mut Context, object: ObjectId) {
        for ap in self.by_object.remove(&object).into_iter().flatten() {
            cx.output(Output::Invalidate { ap, object });
        }
    }

    /// An application process is gone.
    pub(super) fn leave(&mut self, ap: ApId) {
        self.by_object.retain(|_, holders| {
            holders.retain(|a| *a != ap);
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
