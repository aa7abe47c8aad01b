//! Columns of integers as blocks of bit-packed differences to the block's minimum.
//!
//! A block holds up to [`BLOCK`] values: the minimum (LEB128), the width in bits (one byte), then the
//! differences, packed least significant bit first and padded to a whole byte.

use super::ChunkError;

/// Values in a block. One outlier widens its own block only.
pub(super) const BLOCK: usize = 256;

/// Most bytes that `count` packed values can take.
pub(super) fn packed_bound(count: usize) -> usize {
    count.div_ceil(BLOCK) * (10 + 1) + count * 8
}

/// Appends `values`, packed.
pub(super) fn pack(values: &[u64], out: &mut Vec<u8>) {
    for block in values.chunks(BLOCK) {
        let low = block.iter().copied().min().unwrap_or(0);
        let spread = block.iter().map(|v| v - low).fold(0, |a, b| a | b);
        let width = 64 - spread.leading_zeros();
        put_leb128(low, out);
        out.push(width as u8);
        let (mut pending, mut bits) = (0u128, 0);
        for value in block {
            pending |= u128::from(value - low) << bits;
            bits += width;
            while bits >= 8 {
                out.push(pending as u8);
                pending >>= 8;
                bits -= 8;
            }
        }
        if bits > 0 {
            out.push(pending as u8);
        }
    }
}

/// The `count` values packed in `bytes`, which must hold nothing else.
pub(super) fn unpack(mut bytes: &[u8], count: usize) -> Result<Vec<u64>, ChunkError> {
    let damaged = || ChunkError::Damaged("packed column");
    // Two bytes a block at least: a claimed count cannot make us allocate more than the input allows.
    if count.div_ceil(BLOCK) * 2 > bytes.len() {
        return Err(damaged());
    }
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let here = BLOCK.min(count - values.len());
        let low = take_leb128(&mut bytes).ok_or_else(damaged)?;
        let (&width, rest) = bytes.split_first().ok_or_else(damaged)?;
        if width > 64 {
            return Err(damaged());
        }
        let length = (here * usize::from(width)).div_ceil(8);
        let (packed, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
        unpack_block(packed, u32::from(width), low, here, &mut values);
        bytes = rest;
    }
    if bytes.is_empty() {
        Ok(values)
    } else {
        Err(damaged())
    }
}

fn unpack_block(packed: &[u8], width: u32, low: u64, count: usize, values: &mut Vec<u64>) {
    if width == 0 {
        values.resize(values.len() + count, low);
        return;
    }
    let mask = u64::MAX >> (64 - width);
    let (mut pending, mut bits) = (0u128, 0);
    let mut input = packed.chunks(8);
    for _ in 0..count {
        if bits < width {
            let next = input.next().unwrap_or_default();
            let mut word = [0; 8];
            word[..next.len()].copy_from_slice(next);
            pending |= u128::from(u64::from_le_bytes(word)) << bits;
            bits += 64;
        }
        values.push(low.wrapping_add(pending as u64 & mask));
        pending >>= width;
        bits -= width;
    }
}

fn put_leb128(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Differences to the value before, small if values rise or fall slowly.
pub(super) fn delta(values: &[u64]) -> Vec<u64> {
    let mut before = 0;
    values
        .iter()
        .map(|&v| {
            let difference = v.wrapping_sub(before) as i64;
            before = v;
            ((difference << 1) ^ (difference >> 63)) as u64
        })
        .collect()
}

/// Undoes [`delta`] in place.
pub(super) fn undelta(values: &mut [u64]) {
    let mut before = 0u64;
    for v in values {
        let difference = (*v >> 1) as i64 ^ -((*v & 1) as i64);
        before = before.wrapping_add(difference as u64);
        *v = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns() -> impl Strategy<Value = Vec<u64>> {
        prop_oneof![
            prop::collection::vec(any::<u64>(), 0..600),
            prop::collection::vec(0u64..1000, 0..600),
            prop::collection::vec(Just(7u64), 0..600),
        ]
    }

    proptest! {
        #[test]
        fn packing_reads_back(values in columns()) {
            let mut bytes = Vec::new();
            pack(&values, &mut bytes);
            prop_assert!(bytes.len() <= packed_bound(values.len()));
            prop_assert_eq!(unpack(&bytes, values.len()).unwrap(), values.clone());
            let mut there_and_back = delta(&values);
            undelta(&mut there_and_back);
            prop_assert_eq!(there_and_back, values);
        }

        #[test]
        fn any_bytes_give_values_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), count in 0usize..100_000) {
            if let Ok(values) = unpack(&bytes, count) {
                prop_assert_eq!(values.len(), count);
            }
        }
    }
}
