//! Sections in which a process does nothing but read the object that it has acquired.
//!
//! A section counts as one if its process reads the object, and from the grant to the release neither writes, nor uses
//! another object, nor acquires another, nor passes a barrier: then nothing shows what the lock protects but the content that is
//! read, which a read outside a section gives as it was last released, too (docs/design/consistency.md#contract). Sections that
//! a process made in itself cost nothing and count among the others.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::record::{Op, Record};
use rustc_hash::FxHashMap;

/// Sections of one object by one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOnly {
    /// In which it only reads.
    pub sections: u64,
    /// All others.
    pub others: u64,
    /// Time of the acquires and releases of the former.
    pub time: Nanos,
}

/// A section that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    object: ObjectId,
    acquire: Nanos,
    read: bool,
    /// Something else than reading the object was done.
    other: bool,
}

/// The sections that processes are in.
#[derive(Clone, Debug, Default)]
pub(super) struct Sections {
    open: FxHashMap<ApId, Vec<Open>>,
    seen: BTreeMap<(ObjectId, ApId), ReadOnly>,
}

impl Sections {
    /// Takes an access of a process into account: all of it, in the order of their start.
    pub(super) fn access(&mut self, record: &Record) {
        let key = (record.object, record.ap);
        if record.op == Op::Acquire && record.is_of_past_sections() {
            self.seen.entry(key).or_default().others += record.accesses();
            return;
        }
        let open = self.open.entry(record.ap).or_default();
        match record.op {
            Op::Read => {
                for section in open.iter_mut() {
                    let own = section.object == record.object;
                    section.read |= own;
                    section.other |= !own;
                }
            }
            Op::Write | Op::Barrier => open.iter_mut().for_each(|section| section.other = true),
            Op::Acquire => {
                open.iter_mut().for_each(|section| section.other = true);
                open.retain(|section| section.object != record.object);
                open.push(Open {
                    object: record.object,
                    acquire: record.spent(),
                    read: false,
                    other: !open.is_empty(),
                });
            }
            Op::Release => {
                let at = open.iter().position(|s| s.object == record.object);
                let Some(section) = at.map(|at| open.swap_remove(at)) else {
                    return;
                };
                let seen = self.seen.entry(key).or_default();
                match section.read && !section.other {
                    true => {
                        seen.sections += 1;
                        seen.time += section.acquire + record.spent();
                    }
                    false => seen.others += 1,
                }
            }
        }
    }

    /// By object and process.
    pub(super) fn finish(self) -> BTreeMap<(ObjectId, ApId), ReadOnly> {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use dosmos_proto::{MpId, VarId};
    use dosmos_trace::record::{Flags, Origin, Side};

    use super::*;

    fn object(index: u32) -> ObjectId {
        ObjectId::new(VarId(1), index)
    }

    /// What process 0 does with objects, an operation per microsecond, each of which takes 100 ns.
    fn seen(operations: &[(Op, u32)], in_process: bool) -> BTreeMap<(ObjectId, ApId), ReadOnly> {
        let mut sections = Sections::default();
        for (at, (op, index)) in operations.iter().enumerate() {
            sections.access(&Record {
                start: Nanos(1_000 * at as u64),
                duration: Nanos(100),
                wait: Nanos::ZERO,
                service: Nanos::ZERO,
                op: *op,
                side: Side::Requester,
                origin: Origin::Local,
                flags: Flags {
                    in_process,
                    ..Flags::default()
                },
                object: object(*index),
                ap: ApId(0),
                mp: MpId(0),
                peer: MpId(0),
                count: if in_process { 7 } else { 1 },
                bytes: 8,
                version: 0,
                range: (0, 0),
            });
        }
        sections.finish()
    }

    fn of_first(operations: &[(Op, u32)]) -> (u64, u64) {
        let seen = seen(operations, false);
        seen.get(&(object(0), ApId(0)))
            .map_or((0, 0), |s| (s.sections, s.others))
    }

    #[test]
    fn sections_in_which_the_object_is_only_read_are_told_from_others() {
        use Op::{Acquire, Barrier, Read, Release, Write};
        let reads = [(Acquire, 0), (Read, 0), (Read, 0), (Release, 0)];
        assert_eq!(of_first(&reads), (1, 0));
        assert_eq!(seen(&reads, false)[&(object(0), ApId(0))].time, Nanos(200));
        // What is read decides what is written, or the lock is for something else.
        for other in [
            (Write, 0),
            (Write, 1),
            (Read, 1),
            (Acquire, 1),
            (Barrier, 1),
        ] {
            let mixed = [(Acquire, 0), (Read, 0), other, (Release, 0)];
            assert_eq!(of_first(&mixed), (0, 1), "{other:?}");
        }
        assert_eq!(of_first(&[(Acquire, 0), (Release, 0)]), (0, 1));
        // Of two, neither: they may have to be read as one.
        let both = [
            (Acquire, 1),
            (Acquire, 0),
            (Read, 0),
            (Release, 0),
            (Release, 1),
        ];
        assert_eq!(of_first(&both), (0, 1));
        // Whose acquire is not known is not counted.
        assert_eq!(of_first(&[(Read, 0), (Release, 0)]), (0, 0));
    }

    #[test]
    fn sections_in_the_process_are_others() {
        let seen = seen(&[(Op::Acquire, 0)], true);
        assert_eq!(seen[&(object(0), ApId(0))].others, 7);
    }
}
