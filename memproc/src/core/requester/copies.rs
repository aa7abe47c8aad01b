//! Copies held for our application processes, of objects that other memory processes of the group
//! own.
//!
//! Guarantees: a copy is never older than the last write our application processes sent to its object
//! (a write drops the copy, and a fetch sent before the write is not installed), and never older than
//! what the owner told last (its messages arrive in order).

use bytes::Bytes;
use dosmos_proto::{MpId, ObjectId};

use rustc_hash::FxHashMap;

/// Most bytes of copies held. Past it, reads are still served, but by the owner.
const MAX_BYTES: usize = 1 << 30;

/// One copy.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) data: Bytes,
    pub(super) version: u64,
    pub(super) owner: MpId,
}

#[derive(Debug, Default)]
struct Slot {
    copy: Option<Copy>,
    /// Fetches on their way.
    fetching: u32,
    /// Fetches of operations before this one are not installed.
    valid_from: u64,
}

/// All copies held here.
#[derive(Debug, Default)]
pub(super) struct Copies {
    slots: FxHashMap<ObjectId, Slot>,
    held: u64,
    bytes: usize,
}

impl Copies {
    /// The copy of an object, if there is a valid one.
    pub(super) fn get(&self, object: ObjectId) -> Option<&Copy> {
        self.slots.get(&object)?.copy.as_ref()
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
            Some(copy) if fresh && self.bytes + copy.data.len() <= MAX_BYTES => {
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
        let slot = self.slots.entry(object).or_default();
        match slot.copy.replace(copy) {
            Some(old) => self.bytes -= old.data.len(),
            None => self.held += 1,
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
        self.held -= 1;
        self.bytes -= old.data.len();
        self.tidy(object);
        true
    }

    /// The owner sends new content; whether there was a copy to replace.
    pub(super) fn update(&mut self, object: ObjectId, data: Bytes, version: u64) -> bool {
        let Some(old) = self.get(object) else {
            return false;
        };
        let owner = old.owner;
        self.put(
            object,
            Copy {
                data,
                version,
                owner,
            },
        );
        true
    }

    /// The owner says that its content has this version now and told of no change: the copy is of
    /// that version too.
    pub(super) fn confirm(&mut self, object: ObjectId, version: u64) {
        if let Some(copy) = self.slots.get_mut(&object).and_then(|s| s.copy.as_mut()) {
            copy.version = copy.version.max(version);
        }
    }

    /// The objects of which there are copies from `owner`, in order.
    pub(super) fn owned_by(&self, owner: MpId) -> Vec<ObjectId> {
        let mut list: Vec<ObjectId> = self
            .slots
            .iter()
            .filter(|(_, s)| s.copy.as_ref().is_some_and(|c| c.owner == owner))
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

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::VarId;

    fn copy(version: u64) -> Option<Copy> {
        Some(Copy {
            data: Bytes::from_static(b"x"),
            version,
            owner: MpId(1),
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
        assert!(c.get(o).is_none());
        assert!(c.fetch_ends(o, 3, copy(2)));
        assert_eq!(c.get(o).unwrap().version, 2);
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
        assert!(c.get(o).is_none());
    }
}
