//! Batches of records as parallel columns.

use bytes::Bytes;
use dosmos_proto::wire::RecordColumns;
use dosmos_proto::{ApId, Malformed, MpId, Nanos, ObjectId, VarId};

use super::columns::{Column, numbers, put, unzigzag, zigzag};
use crate::record::{Flags, Op, Origin, Record, Side};

const SIDE_SHIFT: u32 = 3;
const ORIGIN_SHIFT: u32 = 4;
const FLAG_SHIFT: u32 = 6;

/// Packs operation, side, origin and flags; the layout is that of `RecordColumns.kind`.
pub(crate) fn kind_of(record: &Record) -> u32 {
    let flags = &record.flags;
    record.op as u32
        | (record.side as u32) << SIDE_SHIFT
        | (record.origin as u32) << ORIGIN_SHIFT
        | u32::from(flags.optimized) << FLAG_SHIFT
        | u32::from(flags.sampled) << (FLAG_SHIFT + 1)
        | u32::from(flags.failed) << (FLAG_SHIFT + 2)
        | u32::from(flags.waiting) << (FLAG_SHIFT + 3)
        | u32::from(flags.in_process) << (FLAG_SHIFT + 4)
        | u32::from(flags.atomic) << (FLAG_SHIFT + 5)
        | u32::from(flags.first) << (FLAG_SHIFT + 6)
        | u32::from(flags.own_clock) << (FLAG_SHIFT + 7)
        | u32::from(flags.ahead) << (FLAG_SHIFT + 8)
        | u32::from(flags.posted) << (FLAG_SHIFT + 9)
}

/// Undoes [`kind_of`].
pub(crate) fn kind_from(kind: u32) -> Result<(Op, Side, Origin, Flags), Malformed> {
    let bad = |what| Malformed::new(what, format!("kind {kind:#x}"));
    let bit = |i: u32| kind >> i & 1 == 1;
    let op = Op::from_number(kind & 7).ok_or_else(|| bad("operation"))?;
    let origin = Origin::from_number(kind >> ORIGIN_SHIFT & 3).ok_or_else(|| bad("origin"))?;
    if kind >> (FLAG_SHIFT + 10) != 0 {
        return Err(bad("record flags"));
    }
    let side = if bit(SIDE_SHIFT) {
        Side::Owner
    } else {
        Side::Requester
    };
    let flags = Flags {
        optimized: bit(FLAG_SHIFT),
        sampled: bit(FLAG_SHIFT + 1),
        failed: bit(FLAG_SHIFT + 2),
        waiting: bit(FLAG_SHIFT + 3),
        in_process: bit(FLAG_SHIFT + 4),
        atomic: bit(FLAG_SHIFT + 5),
        first: bit(FLAG_SHIFT + 6),
        own_clock: bit(FLAG_SHIFT + 7),
        ahead: bit(FLAG_SHIFT + 8),
        posted: bit(FLAG_SHIFT + 9),
    };
    Ok((op, side, origin, flags))
}

/// Records that are gone through column by column at once: few enough for the nearest cache.
const AT_ONCE: usize = 128;

/// Records as columns.
pub fn encode(records: &[Record]) -> RecordColumns {
    let base = records.first().map_or(0, |r| r.start.0);
    let counted = records.iter().any(|r| r.count != 1);
    let mut columns: [Vec<u8>; 15] = std::array::from_fn(|_| Vec::with_capacity(records.len() * 2));
    let [
        start,
        duration,
        wait,
        service,
        kind,
        variable,
        object,
        ap,
        mp,
        peer,
        bytes,
        version,
        first,
        end,
        count,
    ] = &mut columns;
    let mut before = base;
    for some in records.chunks(AT_ONCE) {
        for r in some {
            let delta = r.start.0.wrapping_sub(before).cast_signed();
            before = r.start.0;
            put(start, zigzag(delta));
        }
        put_all(duration, some, |r| r.duration.0);
        put_all(wait, some, |r| r.wait.0);
        put_all(service, some, |r| r.service.0);
        put_all(kind, some, |r| kind_of(r).into());
        put_all(variable, some, |r| r.object.var.0.into());
        put_all(object, some, |r| r.object.index.into());
        put_all(ap, some, |r| r.ap.0.into());
        put_all(mp, some, |r| r.mp.0.into());
        put_all(peer, some, |r| r.peer.0.into());
        put_all(bytes, some, |r| r.bytes);
        put_all(version, some, |r| r.version);
        put_all(first, some, |r| r.range.0.into());
        put_all(end, some, |r| r.range.1.into());
        if counted {
            put_all(count, some, |r| r.count.into());
        }
    }
    let whole = |column: &mut Vec<u8>| Bytes::from(std::mem::take(column));
    RecordColumns {
        base_ns: base,
        start_delta_ns: whole(start),
        duration_ns: whole(duration),
        wait_ns: whole(wait),
        service_ns: whole(service),
        kind: whole(kind),
        variable: whole(variable),
        object: whole(object),
        ap: whole(ap),
        mp: whole(mp),
        peer: whole(peer),
        bytes: whole(bytes),
        version: whole(version),
        first: whole(first),
        end: whole(end),
        count: whole(count),
    }
}

fn put_all(column: &mut Vec<u8>, records: &[Record], of: impl Fn(&Record) -> u64) {
    records.iter().for_each(|record| put(column, of(record)));
}

/// The records behind columns.
///
/// # Errors
/// If the columns differ in length, hold something else than numbers of their types, a record's kind means nothing, it stands for
/// no access, or its range ends before it begins.
pub fn decode(c: &RecordColumns) -> Result<Vec<Record>, Malformed> {
    let length = numbers("kind column", &c.kind)?;
    let column = |what, bytes| Column::new(what, bytes, length);
    let mut starts = column("start column", &c.start_delta_ns)?;
    let mut durations = column("duration column", &c.duration_ns)?;
    let mut waits = column("wait column", &c.wait_ns)?;
    let mut services = column("service column", &c.service_ns)?;
    let mut kinds = column("kind column", &c.kind)?;
    let mut variables = column("variable column", &c.variable)?;
    let mut objects = column("object column", &c.object)?;
    let mut aps = column("ap column", &c.ap)?;
    let mut mps = column("mp column", &c.mp)?;
    let mut peers = column("peer column", &c.peer)?;
    let mut bytes = column("bytes column", &c.bytes)?;
    let mut versions = column("version column", &c.version)?;
    let mut firsts = column("first column", &c.first)?;
    let mut ends = column("end column", &c.end)?;
    // Without counts each record stands for one access.
    let mut counts = match c.count.is_empty() {
        true => None,
        false => Some(column("count column", &c.count)?),
    };
    let mut records = Vec::with_capacity(length);
    let mut start = c.base_ns;
    for _ in 0..length {
        start = start.wrapping_add(unzigzag(starts.wide()).cast_unsigned());
        let (op, side, origin, flags) = kind_from(kinds.narrow())?;
        let (first, end) = (firsts.narrow(), ends.narrow());
        if first > end {
            let range = format!("{first} to {end}");
            return Err(Malformed::new("range of elements", range));
        }
        let count = counts.as_mut().map_or(1, Column::narrow);
        if count == 0 {
            return Err(Malformed::new("count", "a record of no access".to_owned()));
        }
        records.push(Record {
            start: Nanos(start),
            duration: Nanos(durations.wide()),
            wait: Nanos(waits.wide()),
            service: Nanos(services.wide()),
            op,
            side,
            origin,
            flags,
            object: ObjectId::new(VarId(variables.narrow()), objects.narrow()),
            ap: ApId(aps.narrow()),
            mp: MpId(mps.narrow()),
            peer: MpId(peers.narrow()),
            count,
            bytes: bytes.wide(),
            version: versions.wide(),
            range: (first, end),
        });
    }
    for column in [
        starts, durations, waits, services, kinds, variables, objects,
    ]
    .into_iter()
    .chain([aps, mps, peers, bytes, versions, firsts, ends])
    .chain(counts)
    {
        column.check()?;
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::records;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        #[test]
        fn batches_read_back(list in prop::collection::vec(records(), 0..50)) {
            prop_assert_eq!(decode(&encode(&list)).unwrap(), list);
        }

        #[test]
        fn ranges_that_end_before_they_begin_are_refused(list in prop::collection::vec(records(), 2)) {
            let mut columns = encode(&list);
            columns.first = vec![0, 3].into();
            columns.end = vec![0, 2].into();
            let e = decode(&columns).unwrap_err();
            prop_assert!(e.to_string().contains("range of elements"), "{}", e);
        }
    }

    #[test]
    fn columns_of_different_length_are_refused_by_name() {
        let mut columns = encode(&[]);
        columns.wait_ns = vec![1].into();
        let e = decode(&columns).unwrap_err();
        assert!(e.to_string().contains("wait column"), "{e}");
    }

    #[test]
    fn numbers_that_are_too_large_are_refused_by_name() {
        let mut columns = encode(&[crate::testing::single()]);
        columns.peer = vec![0x80, 0x80, 0x80, 0x80, 0x10].into();
        let e = decode(&columns).unwrap_err();
        assert!(
            e.to_string().contains("peer column: a number is too large"),
            "{e}"
        );
    }

    #[test]
    fn records_of_no_access_are_refused_and_single_ones_need_no_counts() {
        let mut columns = encode(&[crate::testing::single(), crate::testing::single()]);
        assert!(columns.count.is_empty());
        columns.count = vec![1].into();
        let e = decode(&columns).unwrap_err();
        assert!(e.to_string().contains("count column"), "{e}");
        columns.count = vec![3, 0].into();
        let e = decode(&columns).unwrap_err();
        assert!(e.to_string().contains("of no access"), "{e}");
    }

    #[test]
    fn impossible_kinds_are_refused() {
        for kind in [0u32, 6, 7, 1, 1 | 1 << 16 | 1 << 4] {
            assert!(kind_from(kind).is_err(), "{kind:#x}");
        }
    }
}
