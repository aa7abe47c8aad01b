//! Columns with few different values: the values once, in order, and for each record the number of its own.
//!
//! The numbers are bit-packed, or, where some are much more frequent than others, their bytes are
//! compressed.

use std::cell::RefCell;

use super::ChunkError;
use super::bits::{self, Sign};

const ONE: u8 = 0;
const PACKED: u8 = 1;
const COMPRESSED: u8 = 2;

/// Level of the compression: higher ones gain nothing on single bytes.
const LEVEL: i32 = 1;
/// Compression has to save this fraction, or it is not worth its time.
const WORTH: f64 = 0.96;

const SLOTS: usize = 1 << 15;

thread_local! {
    /// Kept, since making one costs more than using it.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A column decoded: the different values, and for each record the position of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbols<T> {
    /// The different values.
    pub values: Vec<T>,
    /// For each record, which of them it has. Never out of bounds.
    pub of: Vec<u16>,
}

impl<T: Copy> Symbols<T> {
    /// The value of record `i`.
    pub fn at(&self, i: usize) -> T {
        self.values[usize::from(self.of[i])]
    }

    pub(super) fn map<U>(
        self,
        each: impl FnMut(T) -> Result<U, ChunkError>,
    ) -> Result<Symbols<U>, ChunkError> {
        let values: Result<Vec<U>, _> = self.values.into_iter().map(each).collect();
        Ok(Symbols {
            values: values?,
            of: self.of,
        })
    }
}

/// Numbers the different values of a column, at most 2^15 of them.
#[derive(Debug)]
pub(super) struct Interner {
    /// Number of a value plus one, where its hash points; 0: free.
    slots: Vec<u16>,
    keys: Vec<u64>,
    pub(super) symbols: Symbols<u64>,
}

impl Interner {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![0; SLOTS],
            keys: Vec::new(),
            symbols: Symbols {
                values: Vec::new(),
                of: Vec::new(),
            },
        }
    }

    /// Takes a column; the different values are then in rising order.
    pub(super) fn take(&mut self, column: impl Iterator<Item = u64>) {
        self.slots.fill(0);
        self.keys.clear();
        self.symbols.of.clear();
        let mut last = (0, None);
        for key in column {
            let number = match last {
                (before, Some(number)) if before == key => number,
                _ => self.number(key),
            };
            last = (key, Some(number));
            self.symbols.of.push(number);
        }
        let mut order: Vec<u16> = (0..self.keys.len() as u16).collect();
        order.sort_unstable_by_key(|&i| self.keys[usize::from(i)]);
        let mut rank = vec![0; order.len()];
        self.symbols.values.clear();
        for (place, &i) in (0..).zip(&order) {
            rank[usize::from(i)] = place;
            self.symbols.values.push(self.keys[usize::from(i)]);
        }
        for symbol in &mut self.symbols.of {
            *symbol = rank[usize::from(*symbol)];
        }
    }

    fn number(&mut self, key: u64) -> u16 {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (hash >> 49) as usize;
        loop {
            match self.slots[slot] {
                0 => {
                    self.keys.push(key);
                    self.slots[slot] = self.keys.len() as u16;
                    return self.keys.len() as u16 - 1;
                }
                n if self.keys[usize::from(n) - 1] == key => return n - 1,
                _ => slot = (slot + 1) % SLOTS,
            }
        }
    }
}

/// Appends a column.
pub(super) fn put(
    column: &Symbols<u64>,
    compressor: &mut zstd::bulk::Compressor<'static>,
    out: &mut Vec<u8>,
) {
    bits::put(column.values.len() as u64, out);
    let mut before = 0u64;
    for &value in &column.values {
        bits::put(value.wrapping_sub(before), out);
        before = value;
    }
    if column.values.len() <= 1 {
        out.push(ONE);
        return;
    }
    let width = usize::BITS - (column.values.len() - 1).leading_zeros();
    let packed_bytes = column.of.len() * width as usize / 8;
    if entropy_bytes(column) < packed_bytes as f64 * WORTH
        && let Ok(compressed) = compressor.compress(&planes(column))
        && compressed.len() < packed_bytes
    {
        out.push(COMPRESSED);
        out.extend_from_slice(&compressed);
        return;
    }
    out.push(PACKED);
    let wide: Vec<u64> = column.of.iter().map(|s| u64::from(*s)).collect();
    bits::pack(&wide, Sign::Unsigned, out);
}

pub(super) fn compressor() -> std::io::Result<zstd::bulk::Compressor<'static>> {
    zstd::bulk::Compressor::new(LEVEL)
}

/// The numbers' low bytes, then, if there are more than 256 values, their high bytes.
fn planes(column: &Symbols<u64>) -> Vec<u8> {
    let mut bytes: Vec<u8> = column.of.iter().map(|s| *s as u8).collect();
    if column.values.len() > 256 {
        bytes.extend(column.of.iter().map(|s| (s >> 8) as u8));
    }
    bytes
}

/// What the best code for single values would need.
fn entropy_bytes(column: &Symbols<u64>) -> f64 {
    let mut counts = vec![0u32; column.values.len()];
    for &symbol in &column.of {
        counts[usize::from(symbol)] += 1;
    }
    let all = column.of.len() as f64;
    let used = counts.iter().filter(|n| **n > 0).map(|n| f64::from(*n));
    used.map(|n| n * (all / n).log2()).sum::<f64>() / 8.0
}

/// The column of `count` records in `bytes`.
pub(super) fn take(bytes: &[u8], count: usize) -> Result<Symbols<u64>, ChunkError> {
    take_some(bytes, count).ok_or(ChunkError::Damaged("symbol column"))
}

fn take_some(mut bytes: &[u8], count: usize) -> Option<Symbols<u64>> {
    let different = usize::try_from(bits::take(&mut bytes)?).ok()?;
    if different > count || (different == 0) != (count == 0) {
        return None;
    }
    let mut before = 0u64;
    let mut values = Vec::with_capacity(different);
    for _ in 0..different {
        before = before.wrapping_add(bits::take(&mut bytes)?);
        values.push(before);
    }
    let of: Vec<u16> = match bits::take_byte(&mut bytes)? {
        ONE if different <= 1 => vec![0; count],
        PACKED => {
            let wide = bits::unpack(bytes, count).ok()?;
            let narrow = wide.into_iter().map(|s| u16::try_from(s).ok());
            narrow.collect::<Option<_>>()?
        }
        COMPRESSED => {
            let planes = if different > 256 { 2 } else { 1 };
            let bytes = decompress(bytes, count * planes)?;
            let (low, high) = bytes.split_at_checked(count)?;
            let mut of: Vec<u16> = low.iter().map(|b| u16::from(*b)).collect();
            for (symbol, high) in of.iter_mut().zip(high) {
                *symbol |= u16::from(*high) << 8;
            }
            of
        }
        _ => return None,
    };
    let most = of.iter().copied().max().map_or(0, usize::from);
    (count == 0 || most < different).then_some(Symbols { values, of })
}

/// What was compressed, if it has exactly `length` bytes.
fn decompress(bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = zstd::bulk::Decompressor::new().ok();
        }
        let plain = kept.as_mut()?.decompress(bytes, length).ok()?;
        (plain.len() == length).then_some(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn symbols_read_back(
            column in prop_oneof![
                prop::collection::vec(0u64..7, 0..3_000),
                prop::collection::vec(prop_oneof![9 => Just(3u64), 1 => any::<u64>()], 0..3_000),
                prop::collection::vec(any::<u64>(), 0..1_000),
            ],
        ) {
            let mut interner = Interner::new();
            interner.take(column.iter().copied());
            let mut bytes = Vec::new();
            put(&interner.symbols, &mut compressor().unwrap(), &mut bytes);
            let read = take(&bytes, column.len()).unwrap();
            let values: Vec<u64> = (0..column.len()).map(|i| read.at(i)).collect();
            prop_assert_eq!(values, column);
        }
    }
}
