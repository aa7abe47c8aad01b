//! Copies held for our application processes, of objects that other memory processes of the group
//! own.
//!
//! Guarantees: a copy is never older than the last write our application processes sent to its object
//! (a write drops the copy, and a fetch sent before the write is not installed), and never older than
//! what the owner told last (its messages arrive in order). It is read only within the lease with its
//! owner: see [`lease`](crate::core::lease).

use std::cell::Cell;
use std::collections::VecDeque;

use bytes::Bytes;
use dosmos_proto::{MpId, Nanos, ObjectId};
use rustc_hash::FxHashMap;

use crate::core::lease::{LEASE, RENEW_BELOW, RETRY};

/// Most copies held, and most bytes of them. For one more, those go that were not read for long.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    copies: u64,
    bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            copies: 1 << 20,
            bytes: 1 << 30,
        }
    }
}

/// The lease of the copies from one owner.
#[derive(Debug, Default)]
struct Lease {
    /// Copies held.
    copies: u64,
    until: Nanos,
    /// The renewal under way: its number, and when it was sent.
    renewal: Option<(u64, Nanos)>,
}

/// One copy.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) data: Bytes,
    pub(super) version: u64,
    pub(super) owner: MpId,
    /// When it is void, whatever its owner says later.
    pub(super) until: Option<Nanos>,
}

/// A copy in its slot.
#[derive(Debug)]
struct Held {
    copy: Copy,
    /// Its turn in the order of eviction.
    turn: u64,
    /// It was read since its turn was given.
    read: Cell<bool>,
}

#[derive(Debug, Default)]
struct Slot {
    copy: Option<Held>,
    /// Fetches on their way.
    fetching: u32,
    /// Fetches of operations before this one are not installed.
    valid_from: u64,
}

/// All copies held here.
#[derive(Debug, Default)]
pub(super) struct Copies {
    slots: FxHashMap<ObjectId, Slot>,
    leases: FxHashMap<MpId, Lease>,
    held: u64,
    bytes: usize,
    bounds: Bounds,
    /// Copies in the order in which they are considered for eviction, each with its turn; one that was read
    /// gets another turn. Those that are gone are skipped.
    turns: VecDeque<(ObjectId, u64)>,
    next_turn: u64,
}

impl Copies {
    /// The copy of an object, if there is one, and whether it may be read at `now`.
    pub(super) fn get(&self, object: ObjectId, now: Nanos) -> Option<(&Copy, bool)> {
        let held = self.slots.get(&object)?.copy.as_ref()?;
        held.read.set(true);
        let lease = self.leases.get(&held.copy.owner);
        let void = held.copy.until.is_some_and(|until| until <= now);
        Some((&held.copy, !void && lease.is_some_and(|l| now < l.until)))
    }

    /// Whether the copy of an object, if there is one, has another content.
    pub(super) fn differs(&self, object: ObjectId, content: &Bytes) -> bool {
        let held = self.slots.get(&object).and_then(|s| s.copy.as_ref());
        held.is_some_and(|held| held.copy.data != *content)
    }

    /// When the lease of the copy of an object ends, unless it is renewed; none if there is no copy.
    pub(super) fn lease_end(&self, object: ObjectId) -> Option<Nanos> {
        let held = self.slots.get(&object)?.copy.as_ref()?;
        let lease = self.leases.get(&held.copy.owner);
        let end = lease.map_or(Nanos::ZERO, |l| l.until);
        Some(held.copy.until.map_or(end, |until| until.min(end)))
    }

    /// An owner responded to a request that was made at `sent`.
    pub(super) fn renew(&mut self, owner: MpId, sent: Nanos) {
        let lease = self.leases.entry(owner).or_default();
        lease.until = lease.until.max(sent + LEASE);
    }

    /// An owner responded to the request `number`: whether that was a renewal.
    pub(super) fn renewed(&mut self, owner: MpId, number: u64) -> bool {
        let Some(lease) = self.leases.get_mut(&owner) else {
            return false;
        };
        match lease.renewal {
            Some((asked, sent)) if asked == number => {
                lease.renewal = None;
                self.renew(owner, sent);
                true
            }
            _ => false,
        }
    }

    /// Owners whose lease runs out while copies are held, in order.
    pub(super) fn to_renew(&self, now: Nanos) -> Vec<MpId> {
        let needs = |l: &Lease| {
            let waits = l.renewal.is_some_and(|(_, sent)| now < sent + RETRY);
            l.copies > 0 && now + RENEW_BELOW >= l.until && !waits
        };
        let mut list: Vec<MpId> = self
            .leases
            .iter()
            .filter(|(_, l)| needs(l))
            .map(|(owner, _)| *owner)
            .collect();
        list.sort_unstable();
        list
    }

    /// A renewal leaves.
    pub(super) fn renewal_begins(&mut self, owner: MpId, number: u64, now: Nanos) {
        self.leases.entry(owner).or_default().renewal = Some((number, now));
    }

    /// Number of copies held.
    pub(super) fn count(&self) -> u64 {
        self.held
    }

    /// A fetch leaves for the owner.
    pub(super) fn fetch_begins(&mut self, object: ObjectId) {
        self.slots.entry(object).or_default().fetching += 1;
    }

    /// The fetch of this operation came back, with a copy to keep or without; whether it was kept.
    pub(super) fn fetch_ends(
        &mut self,
        object: ObjectId,
        operation: u64,
        copy: Option<Copy>,
    ) -> bool {
        let Some(slot) = self.slots.get_mut(&object) else {
            return false;
        };
        slot.fetching = slot.fetching.saturating_sub(1);
        let fresh = operation >= slot.valid_from;
        let kept = match copy {
            Some(copy) if fresh && copy.data.len() <= self.bounds.bytes => {
                self.put(object, copy);
                true
            }
            _ => false,
        };
        self.tidy(object);
        kept
    }

    fn put(&mut self, object: ObjectId, copy: Copy) {
        self.bytes += copy.data.len();
        self.held += 1;
        self.leases.entry(copy.owner).or_default().copies += 1;
        let turn = self.turn(object);
        let held = Held {
            copy,
            turn,
            read: Cell::new(false),
        };
        let slot = self.slots.entry(object).or_default();
        if let Some(old) = slot.copy.replace(held) {
            self.count_out(&old.copy);
        }
    }

    /// The last turn of all.
    fn turn(&mut self, object: ObjectId) -> u64 {
        self.next_turn += 1;
        self.turns.push_back((object, self.next_turn));
        // Turns of copies that are gone are not kept for ever.
        if self.turns.len() as u64 > 2 * self.held + 64 {
            let slots = &self.slots;
            let current = |(object, turn): &(ObjectId, u64)| is_turn(slots, *object, *turn);
            self.turns.retain(|t| current(t) || t.1 == self.next_turn);
        }
        self.next_turn
    }

    /// A copy to be dropped, with its owner, while there are more than there may be: one that was not read for
    /// long, and not that of `keep`, which just came.
    pub(super) fn oldest_beyond_bounds(&mut self, keep: ObjectId) -> Option<(ObjectId, MpId)> {
        while self.held > self.bounds.copies || self.bytes > self.bounds.bytes {
            let (object, turn) = self.turns.pop_front()?;
            if !is_turn(&self.slots, object, turn) {
                continue;
            }
            let held = self.slots.get_mut(&object).and_then(|s| s.copy.as_mut());
            if let Some(held) = held {
                if !held.read.replace(false) && object != keep {
                    return Some((object, held.copy.owner));
                }
                self.next_turn += 1;
                held.turn = self.next_turn;
                self.turns.push_back((object, held.turn));
            }
        }
        None
    }

    fn count_out(&mut self, old: &Copy) {
        self.bytes -= old.data.len();
        self.held -= 1;
        if let Some(lease) = self.leases.get_mut(&old.owner) {
            lease.copies -= 1;
        }
    }

    /// One of our application processes writes: the copy is void, and so are fetches of operations before
    /// `next_operation`. Whether there was a copy.
    pub(super) fn forget(&mut self, object: ObjectId, next_operation: u64) -> bool {
        if let Some(slot) = self.slots.get_mut(&object) {
            slot.valid_from = next_operation;
        }
        self.drop_copy(object)
    }

    /// The owner takes the copy back; whether there was one.
    pub(super) fn drop_copy(&mut self, object: ObjectId) -> bool {
        let Some(old) = self.slots.get_mut(&object).and_then(|s| s.copy.take()) else {
            return false;
        };
        self.count_out(&old.copy);
        self.tidy(object);
        true
    }

    /// The owner sends new content; whether there was a copy to replace.
    pub(super) fn update(&mut self, object: ObjectId, data: Bytes, version: u64) -> bool {
        let slot = self.slots.get(&object).and_then(|s| s.copy.as_ref());
        let Some((owner, until)) = slot.map(|held| (held.copy.owner, held.copy.until)) else {
            return false;
        };
        self.put(
            object,
            Copy {
                data,
                version,
                owner,
                until,
            },
        );
        true
    }

    /// The owner says that its content has this version now and told of no change: the copy is of
    /// that version too.
    pub(super) fn confirm(&mut self, object: ObjectId, version: u64) {
        if let Some(held) = self.slots.get_mut(&object).and_then(|s| s.copy.as_mut()) {
            held.copy.version = held.copy.version.max(version);
        }
    }

    /// The objects of which there are copies from `owner`, in order.
    pub(super) fn owned_by(&self, owner: MpId) -> Vec<ObjectId> {
        let mut list: Vec<ObjectId> = self
            .slots
            .iter()
            .filter(|(_, s)| s.copy.as_ref().is_some_and(|h| h.copy.owner == owner))
            .map(|(o, _)| *o)
            .collect();
        list.sort_unstable();
        list
    }

    fn tidy(&mut self, object: ObjectId) {
        if let Some(slot) = self.slots.get(&object)
            && slot.fetching == 0
            && slot.copy.is_none()
        {
            self.slots.remove(&object);
        }
    }
}

fn is_turn(slots: &FxHashMap<ObjectId, Slot>, object: ObjectId, turn: u64) -> bool {
    let held = slots.get(&object).and_then(|s| s.copy.as_ref());
    held.is_some_and(|h| h.turn == turn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::VarId;

    fn copy(version: u64) -> Option<Copy> {
        Some(Copy {
            data: Bytes::from_static(b"x"),
            version,
            owner: MpId(1),
            until: None,
        })
    }

    #[test]
    fn a_fetch_sent_before_a_write_is_not_installed() {
        let o = ObjectId::new(VarId(1), 0);
        let mut c = Copies::default();
        c.fetch_begins(o); // call 1
        assert!(!c.forget(o, 3)); // the write is call 2
        c.fetch_begins(o); // call 3
        assert!(!c.fetch_ends(o, 1, copy(1)));
        assert!(c.get(o, Nanos::ZERO).is_none());
        assert!(c.fetch_ends(o, 3, copy(2)));
        assert_eq!(c.get(o, Nanos::ZERO).unwrap().0.version, 2);
        assert_eq!((c.count(), c.bytes), (1, 1));
        assert!(c.forget(o, 4));
        assert_eq!((c.count(), c.bytes, c.slots.len()), (0, 0, 0));
    }

    #[test]
    fn an_update_does_not_revive_a_dropped_copy() {
        let o = ObjectId::new(VarId(1), 0);
        let mut c = Copies::default();
        c.fetch_begins(o);
        c.fetch_ends(o, 1, copy(1));
        assert!(c.update(o, Bytes::from_static(b"new"), 2));
        assert_eq!(c.bytes, 3);
        c.forget(o, 5);
        assert!(!c.update(o, Bytes::from_static(b"y"), 3));
        assert!(c.get(o, Nanos::ZERO).is_none());
    }

    #[test]
    fn a_copy_is_read_within_the_lease_only_and_the_lease_is_renewed_in_time() {
        let o = ObjectId::new(VarId(1), 0);
        let mut c = Copies::default();
        let begin = Nanos::from_millis(10_000);
        c.renew(MpId(1), begin);
        assert_eq!(c.to_renew(begin + LEASE), [], "nothing is held");
        c.fetch_begins(o);
        c.fetch_ends(o, 1, copy(1));
        let end = begin + LEASE;
        assert!(c.get(o, end - Nanos(1)).unwrap().1);
        assert!(!c.get(o, end).unwrap().1);
        assert_eq!(c.to_renew(begin), []);
        let late = end - RENEW_BELOW;
        assert_eq!(c.to_renew(late), [MpId(1)]);
        c.renewal_begins(MpId(1), 7, late);
        assert_eq!(c.to_renew(late), []);
        assert_eq!(c.to_renew(late + RETRY), [MpId(1)]);
        assert!(!c.renewed(MpId(1), 6));
        assert!(c.renewed(MpId(1), 7));
        // From when it was asked for, not from when the response came.
        assert!(c.get(o, late + LEASE - Nanos(1)).unwrap().1);
        assert!(!c.get(o, late + LEASE).unwrap().1);
    }

    fn fetch(c: &mut Copies, index: u32, bytes: usize) {
        let o = ObjectId::new(VarId(1), index);
        c.fetch_begins(o);
        let copy = Copy {
            data: Bytes::from(vec![0; bytes]),
            version: 1,
            owner: MpId(1),
            until: None,
        };
        assert!(c.fetch_ends(o, 1, Some(copy)));
    }

    fn evict(c: &mut Copies, keep: u32) -> Vec<u32> {
        let mut gone = Vec::new();
        while let Some((object, _)) = c.oldest_beyond_bounds(ObjectId::new(VarId(1), keep)) {
            assert!(c.drop_copy(object));
            gone.push(object.index);
        }
        gone
    }

    #[test]
    fn copies_that_are_not_read_make_room_for_others() {
        let bounds = Bounds {
            copies: 3,
            bytes: 100,
        };
        let mut c = Copies {
            bounds,
            ..Copies::default()
        };
        (0..3).for_each(|i| fetch(&mut c, i, 10));
        assert!(evict(&mut c, 2).is_empty());
        // Object 0 is read, 1 is not.
        assert!(c.get(ObjectId::new(VarId(1), 0), Nanos::ZERO).is_some());
        fetch(&mut c, 3, 10);
        assert_eq!(evict(&mut c, 3), [1]);
        // One large copy takes the place of several, but not of itself.
        fetch(&mut c, 4, 95);
        assert_eq!(evict(&mut c, 4), [2, 3, 0]);
        assert_eq!((c.count(), c.bytes), (1, 95));
        // One that does not fit at all is not kept.
        let o = ObjectId::new(VarId(1), 5);
        c.fetch_begins(o);
        let large = Copy {
            data: Bytes::from(vec![0; 101]),
            version: 1,
            owner: MpId(1),
            until: None,
        };
        assert!(!c.fetch_ends(o, 1, Some(large)));
    }

    #[test]
    fn what_is_held_is_counted_at_each_turn() {
        let mut c = Copies {
            bounds: Bounds {
                copies: 2,
                bytes: 100,
            },
            ..Copies::default()
        };
        (0..2).for_each(|i| fetch(&mut c, i, 10));
        // As many and as large as there may be.
        assert!(evict(&mut c, 1).is_empty());
        c.bounds.bytes = 20;
        assert!(evict(&mut c, 1).is_empty());
        // Both were read: each gets another turn, in the same order.
        for i in 0..2 {
            assert!(c.get(ObjectId::new(VarId(1), i), Nanos::ZERO).is_some());
        }
        fetch(&mut c, 2, 10);
        assert_eq!(evict(&mut c, 2), [0]);
        assert_eq!((c.count(), c.bytes, c.leases[&MpId(1)].copies), (2, 20, 2));
        let turns: Vec<u64> = c.turns.iter().map(|(_, turn)| *turn).collect();
        assert!(turns.is_sorted_by(|a, b| a < b), "{turns:?}");
    }

    #[test]
    fn a_copy_ends_with_its_lease_or_with_what_its_owner_said() {
        let o = ObjectId::new(VarId(1), 0);
        let mut c = Copies::default();
        let end = Nanos::from_millis(100);
        let until = Some(end);
        c.fetch_begins(o);
        c.fetch_ends(o, 1, copy(1).map(|copy| Copy { until, ..copy }));
        c.renew(MpId(1), end);
        assert!(c.get(o, end - Nanos(1)).unwrap().1);
        assert!(!c.get(o, end).unwrap().1);
        assert_eq!(c.lease_end(o), Some(end));
        assert!(!c.differs(o, &Bytes::from_static(b"x")));
        assert!(c.differs(o, &Bytes::from_static(b"y")));
        assert!(!c.differs(ObjectId::new(VarId(1), 1), &Bytes::from_static(b"y")));
    }

    #[test]
    fn turns_of_copies_that_are_gone_are_forgotten_from_time_to_time() {
        let mut c = Copies::default();
        (0..100).for_each(|i| fetch(&mut c, i, 1));
        assert_eq!(c.turns.len(), 100);
        // Each is fetched again: as many turns are void as there are copies, and 64.
        let again = |c: &mut Copies, i: u32| {
            let o = ObjectId::new(VarId(1), i % 100);
            assert!(c.update(o, Bytes::from_static(b"y"), 2));
            c.turns.len()
        };
        // A copy that is replaced counts twice while it is.
        let lengths: Vec<usize> = (0..200).map(|i| again(&mut c, i)).collect();
        assert_eq!(lengths.iter().max(), Some(&266));
        assert_eq!(lengths.iter().min(), Some(&101));
        let mut current: Vec<u32> = c.turns.iter().map(|(o, _)| o.index).collect();
        current.sort_unstable();
        current.dedup();
        assert_eq!(current.len(), 100, "a copy lost its turn");
    }

    #[test]
    fn the_order_of_eviction_takes_no_memory_for_copies_that_are_gone() {
        let mut c = Copies::default();
        for i in 0..10_000 {
            fetch(&mut c, i % 10, 1);
            c.forget(ObjectId::new(VarId(1), i % 10), 0);
        }
        assert!(c.turns.len() <= 66, "{}", c.turns.len());
    }
}
