//! Columns of times, which spread over orders of magnitude: the upper bits of each value as a byte, the bytes
//! compressed, since few of them are frequent; the lower bits, which are noise, packed as they are.
//!
//! Each block of [`BLOCK`] values has a shift, the number of lower bits, such that most of its values have
//! [`HIGH_BITS`] upper bits. A value whose upper bits do not fit a byte has the byte [`ESCAPE`], and its
//! upper bits stand in a list. Bytes of a column: the shifts (how many blocks in a row, LEB128, and their shift, a
//! byte), the number of escapes, their upper bits (zigzag, LEB128), the length of the compressed bytes
//! (LEB128), those, and the lower bits, block by block.
//!
//! Against packing with patches it saves about a bit a value on log-normal or exponential times, where
//! the widest value of a block is much wider than the usual one.

use bitpacking::{BitPacker, BitPacker4x};

use super::block::{BLOCK, MOST_BITS, Shape};
use super::squeeze::{self, Squeezer};
use super::varint::{put, take, take_byte, unzigzag, zigzag};

/// Upper bits of most values: more make the table of the code longer than they save.
const HIGH_BITS: u8 = 7;
/// Stands for upper bits that do not fit.
const ESCAPE: u8 = u8::MAX;
/// What an escape costs, about.
const ESCAPE_BYTES: usize = 3;
/// It has to save this fraction, or it is not worth its time.
const WORTH: f64 = 0.98;

/// Appends `values` in this form if that is shorter than the `plain` bytes they take as blocks of these
/// shapes; says whether it did.
pub(super) fn pack(
    values: &[u64],
    shapes: &[Shape],
    plain: usize,
    squeezer: &mut Squeezer,
    out: &mut Vec<u8>,
) -> bool {
    let limit = (plain as f64 * WORTH) as usize;
    let shifts = shifts(shapes);
    let highs = highs(values, &shifts);
    let counts = counts(&highs, shapes);
    let lows: usize = shifts.iter().map(|s| BLOCK * usize::from(*s) / 8).sum();
    let apart = lows + counts[usize::from(ESCAPE)] as usize * ESCAPE_BYTES;
    if apart + squeeze::entropy_bytes(&counts) as usize >= limit {
        return false;
    }
    let Some(squeezed) = squeezer.squeeze(&highs) else {
        return false;
    };
    if apart + squeezed.len() >= limit {
        return false;
    }
    put_shifts(&shifts, out);
    put_escapes(values, &highs, &shifts, out);
    put(squeezed.len() as u64, out);
    out.extend_from_slice(squeezed);
    put_lows(values, &shifts, out);
    true
}

/// The shift of each block. One that nearly fits is kept, so that the same byte means the same upper bits.
fn shifts(shapes: &[Shape]) -> Vec<u8> {
    let mut before = 0u8;
    let shift = |shape: &Shape| {
        let fitting = shape.usual.saturating_sub(HIGH_BITS).min(MOST_BITS as u8);
        if fitting.abs_diff(before) > 1 {
            before = fitting;
        }
        before
    };
    shapes.iter().map(shift).collect()
}

fn highs(values: &[u64], shifts: &[u8]) -> Vec<u8> {
    let mut highs = Vec::with_capacity(values.len());
    for (block, shift) in values.chunks(BLOCK).zip(shifts) {
        highs.extend(
            block
                .iter()
                .map(|v| (v >> shift).min(u64::from(ESCAPE)) as u8),
        );
    }
    highs
}

/// How often each byte occurs, but for long runs of zeros, which cost nothing.
fn counts(highs: &[u8], shapes: &[Shape]) -> [u32; 256] {
    // Two tables, as equal bytes in a row would wait for each other.
    let (mut even, mut odd) = ([0u32; 256], [0u32; 256]);
    for (block, shape) in highs.chunks(BLOCK).zip(shapes) {
        if shape.usual == 0 {
            even[0] += 1;
            continue;
        }
        for pair in block.chunks(2) {
            even[usize::from(pair[0])] += 1;
            if let Some(second) = pair.get(1) {
                odd[usize::from(*second)] += 1;
            }
        }
    }
    even.iter_mut().zip(odd).for_each(|(e, o)| *e += o);
    even
}

fn put_shifts(shifts: &[u8], out: &mut Vec<u8>) {
    for run in shifts.chunk_by(|a, b| a == b) {
        put(run.len() as u64, out);
        out.push(run[0]);
    }
}

fn put_escapes(values: &[u64], highs: &[u8], shifts: &[u8], out: &mut Vec<u8>) {
    let escapes = || highs.iter().enumerate().filter(|(_, h)| **h == ESCAPE);
    put(escapes().count() as u64, out);
    for (i, _) in escapes() {
        let upper = (values[i] as i64) >> shifts[i / BLOCK];
        put(zigzag(upper as u64), out);
    }
}

fn put_lows(values: &[u64], shifts: &[u8], out: &mut Vec<u8>) {
    let packer = BitPacker4x::new();
    let mut lows = [0u32; BLOCK];
    for (block, &shift) in values.chunks(BLOCK).zip(shifts) {
        let mask = (1u64 << shift) - 1;
        let masked = block.iter().map(|v| (v & mask) as u32);
        lows.iter_mut()
            .zip(masked)
            .for_each(|(low, value)| *low = value);
        let at = out.len();
        out.resize(at + BLOCK * usize::from(shift) / 8, 0);
        packer.compress(&lows, &mut out[at..], shift);
    }
}

/// Takes `count` values.
pub(super) fn unpack(bytes: &mut &[u8], count: usize) -> Option<Vec<u64>> {
    let shifts = take_shifts(bytes, count.div_ceil(BLOCK))?;
    let mut escapes = take_escapes(bytes)?.into_iter();
    let length = usize::try_from(take(bytes)?).ok()?;
    let (squeezed, mut rest) = bytes.split_at_checked(length)?;
    let highs = squeeze::restore(squeezed, count)?;
    let packer = BitPacker4x::new();
    let mut lows = [0u32; BLOCK];
    let mut values = vec![0u64; count];
    let blocks = values.chunks_mut(BLOCK).zip(highs.chunks(BLOCK));
    for ((block, highs), shift) in blocks.zip(shifts) {
        let (packed, after) = rest.split_at_checked(BLOCK * usize::from(shift) / 8)?;
        rest = after;
        packer.decompress(packed, &mut lows, shift);
        for ((value, low), high) in block.iter_mut().zip(&lows).zip(highs) {
            *value = u64::from(*low) | u64::from(*high) << shift;
        }
        if highs.contains(&ESCAPE) {
            let escaped = highs.iter().enumerate().filter(|(_, h)| **h == ESCAPE);
            for (i, _) in escaped {
                block[i] = u64::from(lows[i]) | escapes.next()? << shift;
            }
        }
    }
    *bytes = rest;
    escapes.next().is_none().then_some(values)
}

fn take_shifts(bytes: &mut &[u8], blocks: usize) -> Option<Vec<u8>> {
    let mut shifts = Vec::with_capacity(blocks);
    while shifts.len() < blocks {
        let run = usize::try_from(take(bytes)?).ok()?;
        let shift = take_byte(bytes)?;
        if run == 0 || run > blocks - shifts.len() || usize::from(shift) > MOST_BITS {
            return None;
        }
        shifts.resize(shifts.len() + run, shift);
    }
    Some(shifts)
}

fn take_escapes(bytes: &mut &[u8]) -> Option<Vec<u64>> {
    let number = usize::try_from(take(bytes)?).ok()?;
    // Each takes a byte at least.
    let mut escapes = Vec::with_capacity(number.min(bytes.len()));
    for _ in 0..number {
        escapes.push(unzigzag(take(bytes)?));
    }
    Some(escapes)
}
