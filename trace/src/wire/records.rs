//! Batches of records as parallel columns.

use dosmos_proto::wire::RecordColumns;
use dosmos_proto::{ApId, Malformed, MpId, Nanos, ObjectId, VarId};

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
}

/// Undoes [`kind_of`].
pub(crate) fn kind_from(kind: u32) -> Result<(Op, Side, Origin, Flags), Malformed> {
    let bad = |what| Malformed::new(what, format!("kind {kind:#x}"));
    let bit = |i: u32| kind >> i & 1 == 1;
    let op = Op::from_number(kind & 7).ok_or_else(|| bad("operation"))?;
    let origin = Origin::from_number(kind >> ORIGIN_SHIFT & 3).ok_or_else(|| bad("origin"))?;
    if kind >> (FLAG_SHIFT + 9) != 0 {
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
    };
    Ok((op, side, origin, flags))
}

/// Records as columns.
pub fn encode(records: &[Record]) -> RecordColumns {
    let base = records.first().map_or(0, |r| r.start.0);
    let column = |of: fn(&Record) -> u64| records.iter().map(of).collect::<Vec<u64>>();
    let narrow = |of: fn(&Record) -> u32| records.iter().map(of).collect::<Vec<u32>>();
    let mut before = base;
    RecordColumns {
        base_ns: base,
        start_delta_ns: records
            .iter()
            .map(|r| {
                let delta = r.start.0.wrapping_sub(before) as i64;
                before = r.start.0;
                delta
            })
            .collect(),
        duration_ns: column(|r| r.duration.0),
        wait_ns: column(|r| r.wait.0),
        service_ns: column(|r| r.service.0),
        kind: narrow(kind_of),
        variable: narrow(|r| r.object.var.0),
        object: narrow(|r| r.object.index),
        ap: narrow(|r| r.ap.0),
        mp: narrow(|r| r.mp.0),
        peer: narrow(|r| r.peer.0),
        bytes: column(|r| r.bytes),
        version: column(|r| r.version),
        first: narrow(|r| r.range.0),
        end: narrow(|r| r.range.1),
        count: if records.iter().all(|r| r.count == 1) {
            Vec::new()
        } else {
            narrow(|r| r.count)
        },
    }
}

/// The records behind `columns`.
///
/// # Errors
/// If the columns differ in length, a record's kind means nothing, it stands for no access, or its range ends before it
/// begins.
pub fn decode(columns: RecordColumns) -> Result<Vec<Record>, Malformed> {
    let c = columns;
    let length = c.kind.len();
    for (what, other) in [
        ("start column", c.start_delta_ns.len()),
        ("duration column", c.duration_ns.len()),
        ("wait column", c.wait_ns.len()),
        ("service column", c.service_ns.len()),
        ("variable column", c.variable.len()),
        ("object column", c.object.len()),
        ("ap column", c.ap.len()),
        ("mp column", c.mp.len()),
        ("peer column", c.peer.len()),
        ("bytes column", c.bytes.len()),
        ("version column", c.version.len()),
        ("first column", c.first.len()),
        ("end column", c.end.len()),
    ] {
        if other != length {
            return Err(Malformed::new(
                what,
                format!("{other} entries, the kind column has {length}"),
            ));
        }
    }
    // Without counts each record stands for one access.
    if c.count.len() != length && !c.count.is_empty() {
        let text = format!("{} entries, the kind column has {length}", c.count.len());
        return Err(Malformed::new("count column", text));
    }
    let mut start = c.base_ns;
    (0..length)
        .map(|i| {
            start = start.wrapping_add(c.start_delta_ns[i] as u64);
            let (op, side, origin, flags) = kind_from(c.kind[i])?;
            if c.first[i] > c.end[i] {
                let range = format!("{} to {}", c.first[i], c.end[i]);
                return Err(Malformed::new("range of elements", range));
            }
            let count = c.count.get(i).copied().unwrap_or(1);
            if count == 0 {
                return Err(Malformed::new("count", "a record of no access".to_owned()));
            }
            Ok(Record {
                start: Nanos(start),
                duration: Nanos(c.duration_ns[i]),
                wait: Nanos(c.wait_ns[i]),
                service: Nanos(c.service_ns[i]),
                op,
                side,
                origin,
                flags,
                object: ObjectId::new(VarId(c.variable[i]), c.object[i]),
                ap: ApId(c.ap[i]),
                mp: MpId(c.mp[i]),
                peer: MpId(c.peer[i]),
                count,
                bytes: c.bytes[i],
                version: c.version[i],
                range: (c.first[i], c.end[i]),
            })
        })
        .collect()
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
            prop_assert_eq!(decode(encode(&list)).unwrap(), list);
        }

        #[test]
        fn ranges_that_end_before_they_begin_are_refused(list in prop::collection::vec(records(), 2)) {
            let mut columns = encode(&list);
            (columns.first[1], columns.end[1]) = (3, 2);
            let e = decode(columns).unwrap_err();
            prop_assert!(e.to_string().contains("range of elements"), "{}", e);
        }
    }

    #[test]
    fn columns_of_different_length_are_refused_by_name() {
        let mut columns = encode(&[]);
        columns.wait_ns.push(1);
        let e = decode(columns).unwrap_err();
        assert!(e.to_string().contains("wait column"), "{e}");
    }

    #[test]
    fn records_of_no_access_are_refused_and_single_ones_need_no_counts() {
        let mut columns = encode(&[crate::testing::single(), crate::testing::single()]);
        assert!(columns.count.is_empty());
        columns.count = vec![1];
        let e = decode(columns.clone()).unwrap_err();
        assert!(e.to_string().contains("count column"), "{e}");
        columns.count = vec![3, 0];
        let e = decode(columns).unwrap_err();
        assert!(e.to_string().contains("of no access"), "{e}");
    }

    #[test]
    fn impossible_kinds_are_refused() {
        for kind in [0u32, 6, 7, 1, 1 | 1 << 15 | 1 << 4] {
            assert!(kind_from(kind).is_err(), "{kind:#x}");
        }
    }
}
