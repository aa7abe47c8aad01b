//! What goes in comes out; what is damaged is noticed.
use dosmos_proto::{ApId, MpId, Nanos, ObjectId, VarId};
use proptest::prelude::*;

use super::layout::MAGIC;
use super::{Chunk, Column, MOST_RECORDS, encode};
use crate::record::Record;
use crate::testing::records;

/// Four processes that sweep over the rows of a grid and meet at a barrier, as SOR does.
fn ordinary() -> Vec<Record> {
    let mut noise = 1u64;
    let mut records = Vec::new();
    for i in 0..MOST_RECORDS as u64 {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        let (ap, round, step) = ((i % 4) as u32, i / 4 / 16, i / 4 % 16);
        let op = crate::Op::from_number([1, 1, 2, 4][step as usize % 4]).unwrap_or(crate::Op::Read);
        records.push(Record {
            start: Nanos(1_700_000_000_000_000_000 + i * 7_000 + noise % 4_096),
            duration: Nanos(1_000 + (noise >> 32) % 30_000),
            wait: Nanos(0),
            service: Nanos((noise >> 20) % 2_000),
            op,
            side: crate::Side::Requester,
            origin: crate::Origin::ALL[usize::from(step == 0)],
            flags: crate::record::Flags::default(),
            object: ObjectId::new(VarId(1 << 20), ap * 16 + step as u32),
            ap: ApId(ap),
            mp: MpId(ap),
            peer: MpId(ap),
            count: 1,
            bytes: 8_192,
            version: round,
            range: (0, 1_024),
        });
    }
    records
}

#[test]
fn a_full_chunk_of_ordinary_records_is_of_the_size_that_suits_the_engine() {
    let bytes = encode(&ordinary()).len();
    assert!((16 << 10..64 << 10).contains(&bytes), "{bytes} bytes");
}

#[test]
fn counts_of_one_cost_nothing_to_speak_of() {
    let bytes = encode(&ordinary());
    let chunk = Chunk::open(&bytes).unwrap();
    assert_eq!(chunk.counts(), Ok(None));
    assert!(chunk.size_of(Column::Count) <= 2);
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(256))]

    #[test]
    fn chunks_read_back(list in prop::collection::vec(records(), 0..600)) {
        let bytes = encode(&list);
        prop_assert_eq!(Chunk::open(&bytes).unwrap().records().unwrap(), list);
    }

    #[test]
    fn a_flipped_bit_is_noticed(
        list in prop::collection::vec(records(), 1..100), at in any::<prop::sample::Index>(), bit in 0u8..8,
    ) {
        let mut bytes = encode(&list);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let read = Chunk::open(&bytes).and_then(|c| c.records());
        prop_assert!(read.is_err());
    }

    #[test]
    fn a_cut_chunk_is_noticed(list in prop::collection::vec(records(), 1..100), at in any::<prop::sample::Index>()) {
        let bytes = encode(&list);
        let cut = &bytes[..at.index(bytes.len())];
        prop_assert!(Chunk::open(cut).and_then(|c| c.records()).is_err());
    }

    #[test]
    fn any_bytes_give_records_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..400), magic in any::<bool>()) {
        if magic && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(MAGIC);
        }
        prop_assert!(Chunk::open(&bytes).and_then(|c| c.records()).is_err());
    }
}
