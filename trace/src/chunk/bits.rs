//! Columns of integers in few bits: differences to a block's minimum, bit-packed, with the few that need
//! many more bits than the rest set apart (patched frame of reference).
//!
//! A column begins with a byte that says how it is stored: all values equal (the value), nearly all
//! zero (the others, each after its distance from the one before), split (`split.rs`), or blocks of [`BLOCK`] values,
//! whichever is shortest. A block:
//! its minimum, the width of the packed part (0 to 32 bits), the number of exceptions, the packed part,
//! the exceptions' positions (one byte each), and what of each exception lies above the width. Integers outside
//! the packed part are LEB128.

use bitpacking::{BitPacker, BitPacker4x};

use super::block::{BLOCK, MOST_BITS, Shape, Sign, bits};
use super::layout::ChunkError;
use super::split;
use super::squeeze::Squeezer;
use super::varint::{put, take, take_byte, unzigzag, zigzag};

/// At most one in N values is not zero where a column is stored as its values that are not.
const SPARSE: usize = 48;

const CONSTANT: u8 = 0;
const FEW: u8 = 1;
const BLOCKS: u8 = 2;
const SIGNED_BLOCKS: u8 = 3;
const SPLIT: u8 = 4;

/// A column of zeros.
pub(super) const ZEROS: [u8; 2] = [CONSTANT, 0];

/// Appends `values`.
pub(super) fn pack(values: &[u64], sign: Sign, squeezer: &mut Squeezer, out: &mut Vec<u8>) {
    let first = values.first().copied().unwrap_or(0);
    if values.iter().all(|v| *v == first) {
        return pack_constant(first, out);
    }
    let few = values.len() / SPARSE;
    let mut others = values.iter().enumerate().filter(|(_, v)| **v != 0);
    if others.nth(few).is_none() {
        let others = values.iter().enumerate().filter(|(_, v)| **v != 0);
        return pack_few(others.map(|(i, v)| (i, *v)), out);
    }
    let shapes: Vec<Shape> = values.chunks(BLOCK).map(|b| Shape::of(b, sign)).collect();
    let plain = shapes.iter().map(|s| s.bytes).sum();
    let at = out.len();
    out.push(SPLIT);
    if split::pack(values, &shapes, plain, squeezer, out) {
        return;
    }
    out[at] = match sign {
        Sign::Unsigned => BLOCKS,
        Sign::Signed => SIGNED_BLOCKS,
    };
    for (block, shape) in values.chunks(BLOCK).zip(&shapes) {
        pack_block(block, shape, sign, out);
    }
}

/// Appends `count` values that are all zero but for `changes`, in order of their position. As [`pack`]
/// would, in time that depends on the number of changes.
pub(super) fn pack_changes(changes: &[(u16, u64)], count: usize, out: &mut Vec<u8>) {
    if changes.is_empty() {
        return pack_constant(0, out);
    }
    if changes.len() <= count / SPARSE {
        return pack_few(changes.iter().map(|(i, v)| (usize::from(*i), *v)), out);
    }
    out.push(SIGNED_BLOCKS);
    let mut rest = changes;
    for from in (0..count).step_by(BLOCK) {
        let length = BLOCK.min(count - from);
        let here = rest.partition_point(|(i, _)| usize::from(*i) < from + length);
        let (here, after) = rest.split_at(here);
        rest = after;
        pack_changed_block(here, from, length, out);
    }
}

fn pack_changed_block(changes: &[(u16, u64)], from: usize, length: usize, out: &mut Vec<u8>) {
    let mut lengths = [0u8; 65];
    lengths[0] = (length - changes.len()) as u8;
    changes
        .iter()
        .for_each(|(_, value)| lengths[bits(*value)] += 1);
    // A value below zero has all bits, and is then the lowest.
    if lengths[64] == 0 {
        let shape = Shape::with_lengths(0, &lengths);
        if shape.width == 0 {
            out.extend_from_slice(&[0, 0, changes.len() as u8]);
            out.extend(changes.iter().map(|(i, _)| (usize::from(*i) - from) as u8));
            changes.iter().for_each(|(_, value)| put(*value, out));
            return;
        }
    }
    let mut block = [0; BLOCK];
    for (i, value) in changes {
        block[usize::from(*i) - from] = *value;
    }
    let block = &block[..length];
    pack_block(block, &Shape::of(block, Sign::Signed), Sign::Signed, out);
}

fn pack_constant(value: u64, out: &mut Vec<u8>) {
    out.push(CONSTANT);
    put(value, out);
}

fn pack_few(others: impl Iterator<Item = (usize, u64)>, out: &mut Vec<u8>) {
    out.push(FEW);
    let mut next = 0;
    for (i, value) in others {
        put((i - next) as u64, out);
        put(zigzag(value), out);
        next = i + 1;
    }
}

fn pack_block(block: &[u64], shape: &Shape, sign: Sign, out: &mut Vec<u8>) {
    let Shape { low, width, .. } = *shape;
    let mask = low_bits(width);
    let mut packed = [0u32; BLOCK];
    let mut positions = [0u8; BLOCK];
    let mut exceptions = 0;
    for (i, (value, packed)) in block.iter().zip(&mut packed).enumerate() {
        let difference = value.wrapping_sub(low);
        *packed = (difference & mask) as u32;
        positions[exceptions] = i as u8;
        exceptions += usize::from(difference > mask);
    }
    let positions = &positions[..exceptions];
    match sign {
        Sign::Signed => put(zigzag(low), out),
        Sign::Unsigned => put(low, out),
    }
    out.push(width as u8);
    out.push(exceptions as u8);
    let at = out.len();
    out.resize(at + BLOCK * width / 8, 0);
    BitPacker4x::new().compress(&packed, &mut out[at..], width as u8);
    out.extend_from_slice(positions);
    for &i in positions {
        put(block[usize::from(i)].wrapping_sub(low) >> width, out);
    }
}

fn low_bits(width: usize) -> u64 {
    (1u64 << width) - 1
}

/// The `count` values in `bytes`, which must hold nothing else.
pub(super) fn unpack(mut bytes: &[u8], count: usize) -> Result<Vec<u64>, ChunkError> {
    let values = unpack_some(&mut bytes, count).ok_or(ChunkError::Damaged("packed column"))?;
    if bytes.is_empty() {
        Ok(values)
    } else {
        Err(ChunkError::Damaged("packed column"))
    }
}

fn unpack_some(bytes: &mut &[u8], count: usize) -> Option<Vec<u64>> {
    let sign = match take_byte(bytes)? {
        CONSTANT => return Some(vec![take(bytes)?; count]),
        FEW => return unpack_few(bytes, count),
        SPLIT => return split::unpack(bytes, count),
        BLOCKS => Sign::Unsigned,
        SIGNED_BLOCKS => Sign::Signed,
        _ => return None,
    };
    let mut values = vec![0; count];
    let packer = BitPacker4x::new();
    for block in values.chunks_mut(BLOCK) {
        unpack_block(packer, bytes, sign, block)?;
    }
    Some(values)
}

fn unpack_few(bytes: &mut &[u8], count: usize) -> Option<Vec<u64>> {
    let mut values = vec![0; count];
    let mut next = 0usize;
    while !bytes.is_empty() {
        let at = next.checked_add(usize::try_from(take(bytes)?).ok()?)?;
        *values.get_mut(at)? = unzigzag(take(bytes)?);
        next = at + 1;
    }
    Some(values)
}

fn unpack_block(
    packer: BitPacker4x,
    bytes: &mut &[u8],
    sign: Sign,
    block: &mut [u64],
) -> Option<()> {
    let low = take(bytes)?;
    let low = if sign == Sign::Signed {
        unzigzag(low)
    } else {
        low
    };
    let width = usize::from(take_byte(bytes)?);
    if width > MOST_BITS {
        return None;
    }
    let exceptions = usize::from(take_byte(bytes)?);
    let (packed, rest) = bytes.split_at_checked(BLOCK * width / 8)?;
    let (positions, rest) = rest.split_at_checked(exceptions)?;
    *bytes = rest;
    let mut differences = [0u32; BLOCK];
    packer.decompress(packed, &mut differences, width as u8);
    for (value, difference) in block.iter_mut().zip(&differences) {
        *value = low.wrapping_add(u64::from(*difference));
    }
    for &at in positions {
        let above = take(bytes)? << width;
        let value = block.get_mut(usize::from(at))?;
        *value = value.wrapping_add(above);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns() -> impl Strategy<Value = Vec<u64>> {
        prop_oneof![
            prop::collection::vec(any::<u64>(), 0..600),
            prop::collection::vec(0u64..1000, 0..600),
            prop::collection::vec(prop_oneof![20 => 0u64..1000, 1 => any::<u64>()], 0..600),
            prop::collection::vec(prop_oneof![99 => Just(0u64), 1 => any::<u64>()], 0..600),
            prop::collection::vec((-50i64..50).prop_map(|v| v as u64), 0..600),
            prop::collection::vec(Just(7u64), 0..600),
            // Times: orders of magnitude, some far off, some before the one before.
            prop::collection::vec(
                (0u32..20, any::<u32>()).prop_map(|(wide, v)| u64::from(v >> (12 + wide % 5))),
                0..2000
            ),
            prop::collection::vec(
                prop_oneof![
                    50 => (0u32..3, any::<u32>()).prop_map(|(wide, v)| u64::from(v >> (20 + wide))),
                    1 => any::<i64>().prop_map(|v| v as u64),
                    1 => (-5000i64..0).prop_map(|v| v as u64),
                ],
                0..2000
            ),
        ]
    }

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        #[test]
        fn packing_reads_back(values in columns(), signed in any::<bool>()) {
            let sign = if signed { Sign::Signed } else { Sign::Unsigned };
            let mut bytes = Vec::new();
            pack(&values, sign, &mut Squeezer::default(), &mut bytes);
            prop_assert_eq!(unpack(&bytes, values.len()).unwrap(), values);
        }

        #[test]
        fn changes_read_back(changes in prop::collection::btree_map(0u16..3000, prop_oneof![
            3 => 1u64..9, 1 => any::<u64>(), 1 => (-9i64..0).prop_map(|v| v as u64)], 0..400), count in 3000usize..4000) {
            let changes: Vec<(u16, u64)> = changes.into_iter().collect();
            let mut values = vec![0; count];
            changes.iter().for_each(|(i, v)| values[usize::from(*i)] = *v);
            let mut bytes = Vec::new();
            pack_changes(&changes, count, &mut bytes);
            prop_assert_eq!(unpack(&bytes, count).unwrap(), values);
        }

        #[test]
        fn any_bytes_give_values_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 1..300), mode in 0u8..6, count in 0usize..9_000) {
            bytes[0] = mode;
            if let Ok(values) = unpack(&bytes, count) {
                prop_assert_eq!(values.len(), count);
            }
        }
    }

    #[test]
    fn a_few_outliers_widen_nothing() {
        let mut values: Vec<u64> = (0..1024).map(|i| i * 37 % 256).collect();
        let mut plain = Vec::new();
        pack(
            &values,
            Sign::Unsigned,
            &mut Squeezer::default(),
            &mut plain,
        );
        values[500] = u64::MAX;
        let mut patched = Vec::new();
        pack(
            &values,
            Sign::Unsigned,
            &mut Squeezer::default(),
            &mut patched,
        );
        assert!(plain.len() < 1024 + 8 * 4 + 1, "{}", plain.len());
        assert!(patched.len() < plain.len() + 14, "{}", patched.len());
    }
}
