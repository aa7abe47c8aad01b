//! Readers: what they keep is never taken for valid once it is not.

use std::sync::Arc;

use dosmos_proto::{ObjectId, VarId, wire};

use super::held::{Elements, Wanted};
use super::reads::Reads;
use super::slot::{AnySlot, Marks, Slot};
use crate::element::sealed::Sealed;
use crate::operation::Target;

const OBJECT: ObjectId = ObjectId {
    var: VarId(1),
    index: 0,
};
const NUMBER: u64 = 7;

fn content(first: u64) -> Vec<u64> {
    vec![first, 0, 0, 0]
}

fn bytes(first: u64) -> Vec<u8> {
    u64::bytes_of(&content(first)).to_vec()
}

/// A slot with a copy of version 1.
fn with_a_copy() -> (Slot<u64>, Arc<Marks>) {
    let marks = Arc::new(Marks::default());
    let slot = Slot::new(Target::named("v"), OBJECT, 4, Arc::clone(&marks));
    slot.keep(1, 1, &bytes(1));
    (slot, marks)
}

fn read(reads: &Reads, times: u64, elements: Elements) {
    for _ in 0..times {
        reads.add(elements, 8);
    }
}

fn entrust(slot: &Slot<u64>) {
    let done = wire::ReadDone {
        version: 1,
        unchanged: true,
        ..wire::ReadDone::default()
    };
    assert!(slot.entrust(2, &done, NUMBER));
}

#[test]
fn whatever_changes_what_is_held_ends_what_readers_keep() {
    type Change = fn(&Slot<u64>);
    let changes: [(&str, Change); 10] = [
        ("keep", |slot| slot.keep(2, 2, &bytes(2))),
        ("entrust", entrust),
        ("write", |slot| slot.wrote(2)),
        ("invalidate", AnySlot::invalidate),
        ("update", |slot| slot.update(2, &bytes(2))),
        ("confirm", |slot| slot.confirm(2)),
        ("read elsewhere", |slot| slot.has_read(2, 8)),
        ("lose", |slot| assert!(!slot.lose())),
        ("recall", |slot| {
            drop(slot.recall(NUMBER, Wanted::Everything));
        }),
        // Reads are then the first ones since.
        ("report", |slot| {
            assert_eq!(slot.take_served().reads.count, 1);
        }),
    ];
    for (what, change) in changes {
        let (slot, _) = with_a_copy();
        let reads = Arc::default();
        let before = slot.keep_for(&reads).unwrap();
        assert_eq!(*before.0, content(1), "{what}");
        assert_eq!(before.2, slot.stamp(), "{what}");
        assert_eq!(slot.get(0).unwrap().0, 1, "{what}");
        assert_eq!(before.2, slot.stamp(), "a read changes nothing");
        change(&slot);
        assert_ne!(before.2, slot.stamp(), "{what}");
        assert_eq!(*before.0, content(1), "what was read stays as it is");
        // Nobody looks any more.
        slot.forget(&reads);
        let last = slot.stamp();
        slot.invalidate();
        assert_eq!(last, slot.stamp(), "{what}");
    }
}

#[test]
fn nothing_is_kept_of_what_this_process_may_change_at_any_time() {
    let (slot, _) = with_a_copy();
    entrust(&slot);
    let reads = Arc::default();
    assert!(slot.keep_for(&reads).is_none());
    slot.lose();
    assert!(slot.keep_for(&reads).is_none());
}

#[test]
fn reads_are_of_the_version_that_was_read_and_reported_once() {
    let (slot, marks) = with_a_copy();
    let served = |slot: &Slot<u64>| {
        let reads = slot.take_served().reads;
        (reads.count, reads.bytes, reads.version, reads.elements)
    };
    let [one, other] = [Arc::new(Reads::default()), Arc::default()];
    read(&one, 9, (0, 4)); // of another slot's content, long ago
    slot.keep_for(&one).unwrap();
    slot.keep_for(&other).unwrap();
    assert_eq!(marks.take_touched(), [OBJECT, OBJECT]);
    read(&one, 3, (1, 2));
    slot.update(2, &bytes(2));
    assert_eq!(served(&slot), (3, 24, 1, (1, 2)));
    // Read, as it was, behind the report: it comes with the next one.
    marks.take_touched();
    read(&one, 1, (1, 2));
    read(&other, 2, (3, 4));
    slot.forget(&other);
    assert_eq!(marks.take_touched(), [OBJECT]);
    slot.keep_for(&one).unwrap();
    read(&one, 1, (0, 1));
    assert_eq!(served(&slot), (4, 32, 2, (0, 4)));
    // What is reported is not to be reported again.
    marks.take_touched();
    read(&one, 1, (0, 1));
    assert_eq!(served(&slot).0, 1);
    assert_eq!(served(&slot).0, 0);
    assert_eq!(marks.take_touched(), []);
}
