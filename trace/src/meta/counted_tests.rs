//! Records that stand for several accesses are worth as much as the same accesses one by one.

use proptest::prelude::*;

use super::MetaState;
use crate::query::{Completeness, MetaQuery};
use crate::record::{Flags, Op, Origin, Record, Side};
use dosmos_proto::{ApId, EmpId, MpId, Nanos, ObjectId, Topology, VarId};

/// Gap before it, distance of its accesses, their number, object; a write, of a copy, in the process.
type One = (u64, u64, u32, u32, [bool; 3]);

/// Reads and writes, single and several, in order of their last access.
fn counted() -> impl Strategy<Value = Vec<Record>> {
    let one = (
        0u64..1_000,
        0u64..50,
        prop_oneof![Just(1u32), 1u32..40],
        0u32..3,
        any::<[bool; 3]>(),
    );
    prop::collection::vec(one, 0..40).prop_map(|list| {
        let mut at = 1_000;
        let record = |(gap, each, count, object, [write, optimized, in_process]): One| {
            let length = each * u64::from(count - 1);
            let start = at + gap;
            at = start + length;
            let op = if write { Op::Write } else { Op::Read };
            Record {
                start: Nanos(start),
                duration: Nanos(length),
                wait: Nanos(0),
                service: Nanos(0),
                op,
                side: Side::Requester,
                origin: Origin::Local,
                flags: Flags {
                    optimized: optimized && !write,
                    in_process,
                    ..Flags::default()
                },
                object: ObjectId::new(VarId(1), object),
                ap: ApId(object % 2),
                mp: MpId(0),
                peer: MpId(u32::from(optimized)),
                count,
                bytes: u64::from(count) * 8,
                version: at,
                range: (0, 1),
            }
        };
        list.into_iter().map(record).collect()
    })
}

/// The accesses of a record, each as a record of its own.
fn singles(record: &Record) -> impl Iterator<Item = Record> {
    let spread = record.spread();
    (0..spread.count()).map(move |i| Record {
        start: spread.at(i),
        duration: Nanos(0),
        count: 1,
        bytes: record.bytes / spread.count(),
        ..*record
    })
}

fn fold(records: impl IntoIterator<Item = Record>) -> MetaState {
    let mut state = MetaState::new(Topology::default(), EmpId(0));
    records.into_iter().for_each(|r| state.apply(&r));
    state
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(256))]

    #[test]
    fn meta_objects_of_counted_records_are_those_of_single_ones(records in counted()) {
        let (a, b) = (fold(records.clone()), fold(records.iter().flat_map(singles)));
        let metas = |state: &MetaState| state.query(&MetaQuery::default(), Completeness::default());
        prop_assert_eq!(metas(&a), metas(&b));
        for i in 0..2 {
            prop_assert_eq!(a.accesses_of(ApId(i)), b.accesses_of(ApId(i)));
            prop_assert_eq!(a.accesses_at(MpId(i)), b.accesses_at(MpId(i)));
        }
        let done: u64 = records.iter().map(Record::accesses).sum();
        let counted: u64 = [0, 1].map(|i| a.accesses_of(ApId(i)).map(super::objects::OpCounts::total).total()).iter().sum();
        prop_assert_eq!(counted, done);
    }
}

#[test]
fn what_a_process_did_in_itself_counts_at_the_owner_once() {
    let own = Record {
        flags: Flags {
            in_process: true,
            ..Flags::default()
        },
        op: Op::Write,
        count: 7,
        peer: MpId(1),
        ..crate::testing::single()
    };
    let at_owner = Record {
        side: Side::Owner,
        ..own
    };
    let state = fold([own, at_owner]);
    let metas = state.query(&MetaQuery::default(), Completeness::default());
    assert_eq!(metas.primaries.len(), 1);
    assert_eq!(metas.primaries[0].counts.writes, 7);
    assert_eq!(state.accesses_of(ApId(0)).local.writes, 7);
}
