//! Columns with few different values: the values once, in order, and for each record the number of its own.
//!
//! The numbers are bit-packed, or, where some are much more frequent than others, their bytes are
//! compressed.

use bitpacking::{BitPacker, BitPacker4x};

use super::block::BLOCK;
use super::layout::{ChunkError, MOST_RECORDS};
use super::squeeze::{self, Squeezer};
use super::varint::{self, take_byte};

const ONE: u8 = 0;
const PACKED: u8 = 1;
const COMPRESSED: u8 = 2;

/// Compression has to save this fraction, or it is not worth its time.
const WORTH: f64 = 0.96;

/// Twice as many as there can be values, so that one is found in a step or two.
const SLOTS: usize = 2 * MOST_RECORDS;

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

    /// Where the records of each value begin if they are put in order of their value.
    pub(super) fn places(&self) -> Vec<usize> {
        // Two tables, as equal values in a row would wait for each other.
        let mut counts = vec![0; self.values.len()];
        let mut odd = counts.clone();
        for pair in self.of.chunks(2) {
            counts[usize::from(pair[0])] += 1;
            if let Some(second) = pair.get(1) {
                odd[usize::from(*second)] += 1;
            }
        }
        counts.iter_mut().zip(odd).for_each(|(c, o)| *c += o);
        let mut before = 0;
        for count in &mut counts {
            (*count, before) = (before, before + *count);
        }
        counts
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

/// Numbers the different values of a column, at most [`MOST_RECORDS`] of them.
#[derive(Debug)]
pub(super) struct Interner {
    pub(super) numbers: Numbers,
    pub(super) symbols: Symbols<u64>,
}

/// Numbers of values, in the order in which they were first asked for.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Values where their hash points, or after that.
    slots: Box<[Slot; SLOTS]>,
    /// Slots that are not free, by the number of their value.
    used: Vec<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: u64,
    /// Number of the value plus one; 0: free.
    number: u16,
}

impl Interner {
    pub(super) fn new() -> Self {
        Self {
            numbers: Numbers {
                slots: Box::new([Slot::default(); SLOTS]),
                used: Vec::new(),
            },
            symbols: Symbols {
                values: Vec::new(),
                of: Vec::new(),
            },
        }
    }

    /// Takes a column; the different values are then in rising order.
    pub(super) fn take(&mut self, column: impl ExactSizeIterator<Item = u64>) {
        self.begin(column.len());
        for (key, symbol) in column.zip(&mut self.symbols.of) {
            *symbol = self.numbers.of(key);
        }
        self.finish();
    }

    /// Begins a column of `count` values, whose numbers are then to be written to `symbols.of`.
    pub(super) fn begin(&mut self, count: usize) {
        self.numbers.clear();
        self.symbols.of.resize(count, 0);
    }

    /// Ends the column: numbers its different values in rising order.
    pub(super) fn finish(&mut self) {
        let keys = self.numbers.keys();
        let mut order: Vec<u16> = (0..keys.len() as u16).collect();
        order.sort_unstable_by_key(|&i| keys[usize::from(i)]);
        let mut rank = vec![0; order.len()];
        self.symbols.values.clear();
        for (place, &i) in (0..).zip(&order) {
            rank[usize::from(i)] = place;
            self.symbols.values.push(keys[usize::from(i)]);
        }
        for symbol in &mut self.symbols.of {
            *symbol = rank[usize::from(*symbol)];
        }
    }
}

impl Numbers {
    fn clear(&mut self) {
        for slot in self.used.drain(..) {
            self.slots[usize::from(slot)].number = 0;
        }
    }

    fn keys(&self) -> Vec<u64> {
        let slots = self.used.iter().map(|s| self.slots[usize::from(*s)]);
        slots.map(|s| s.key).collect()
    }

    /// The number of a value.
    #[inline]
    pub(super) fn of(&mut self, key: u64) -> u16 {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (hash >> 50) as usize % SLOTS;
        loop {
            let slot = self.slots[at];
            if slot.number == 0 {
                return self.insert(key, at);
            }
            if slot.key == key {
                return slot.number - 1;
            }
            at = (at + 1) % SLOTS;
        }
    }

    #[cold]
    fn insert(&mut self, key: u64, at: usize) -> u16 {
        self.used.push(at as u16);
        let number = self.used.len() as u16;
        self.slots[at] = Slot { key, number };
        number - 1
    }
}

/// Appends a column.
pub(super) fn put(column: &Symbols<u64>, squeezer: &mut Squeezer, out: &mut Vec<u8>) {
    varint::put(column.values.len() as u64, out);
    let mut before = 0u64;
    for &value in &column.values {
        varint::put(value.wrapping_sub(before), out);
        before = value;
    }
    if column.values.len() <= 1 {
        out.push(ONE);
        return;
    }
    let packed_bytes = column.of.len().div_ceil(BLOCK) * block_bytes(column.values.len());
    if entropy_bytes(column) < packed_bytes as f64 * WORTH
        && let Some(compressed) = squeezer.squeeze(&planes(column))
        && compressed.len() < packed_bytes
    {
        out.push(COMPRESSED);
        out.extend_from_slice(compressed);
        return;
    }
    out.push(PACKED);
    pack(&column.of, column.values.len(), out);
}

/// Bits that number `different` values.
fn width(different: usize) -> u8 {
    (usize::BITS - different.saturating_sub(1).leading_zeros()) as u8
}

/// Bytes of a block of such numbers.
fn block_bytes(different: usize) -> usize {
    BLOCK * usize::from(width(different)) / 8
}

fn pack(symbols: &[u16], different: usize, out: &mut Vec<u8>) {
    let packer = BitPacker4x::new();
    let mut block = [0u32; BLOCK];
    for symbols in symbols.chunks(BLOCK) {
        let wide = symbols.iter().map(|s| u32::from(*s));
        block.iter_mut().zip(wide).for_each(|(b, s)| *b = s);
        let at = out.len();
        out.resize(at + block_bytes(different), 0);
        packer.compress(&block, &mut out[at..], width(different));
    }
}

fn unpack(bytes: &[u8], count: usize, different: usize) -> Option<Vec<u16>> {
    if bytes.len() != count.div_ceil(BLOCK) * block_bytes(different) || different > 1 << 16 {
        return None;
    }
    let packer = BitPacker4x::new();
    let mut block = [0u32; BLOCK];
    let mut symbols = vec![0u16; count];
    for (place, packed) in symbols
        .chunks_mut(BLOCK)
        .zip(bytes.chunks(block_bytes(different).max(1)))
    {
        packer.decompress(packed, &mut block, width(different));
        let narrow = block.iter().map(|s| *s as u16);
        place.iter_mut().zip(narrow).for_each(|(p, s)| *p = s);
    }
    Some(symbols)
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
    squeeze::entropy_bytes(&counts)
}

/// The column of `count` records in `bytes`.
pub(super) fn take(bytes: &[u8], count: usize) -> Result<Symbols<u64>, ChunkError> {
    take_some(bytes, count).ok_or(ChunkError::Damaged("symbol column"))
}

fn take_some(mut bytes: &[u8], count: usize) -> Option<Symbols<u64>> {
    let different = usize::try_from(varint::take(&mut bytes)?).ok()?;
    if different > count || (different == 0) != (count == 0) {
        return None;
    }
    let mut before = 0u64;
    let mut values = Vec::with_capacity(different);
    for _ in 0..different {
        before = before.wrapping_add(varint::take(&mut bytes)?);
        values.push(before);
    }
    let of: Vec<u16> = match take_byte(&mut bytes)? {
        ONE if different <= 1 => vec![0; count],
        PACKED if different > 1 => unpack(bytes, count, different)?,
        COMPRESSED => {
            let planes = if different > 256 { 2 } else { 1 };
            let bytes = squeeze::restore(bytes, count * planes)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

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
            put(&interner.symbols, &mut Squeezer::default(), &mut bytes);
            let read = take(&bytes, column.len()).unwrap();
            let values: Vec<u64> = (0..column.len()).map(|i| read.at(i)).collect();
            prop_assert_eq!(values, column);
        }
    }
}
