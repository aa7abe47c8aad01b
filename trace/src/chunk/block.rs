//! Blocks of values: how many bits each would take, packed.

use bitpacking::{BitPacker, BitPacker4x};

/// Values in a block. An outlier costs its block a few bytes and the others nothing.
pub(super) const BLOCK: usize = BitPacker4x::BLOCK_LEN;

/// Widest packed part.
pub(super) const MOST_BITS: usize = 32;
/// Values of a block that may have more bits than its usual ones.
const UNUSUAL: usize = 2;

/// Whether values are to be taken as signed: where they are small differences, some below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Unsigned,
    Signed,
}

/// How the values of a block are distributed, and what that means for packing them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) low: u64,
    pub(super) width: usize,
    /// Packed size, about.
    pub(super) bytes: usize,
    /// Bits of nearly all values, above the lowest.
    pub(super) usual: u8,
}

impl Shape {
    pub(super) fn of(block: &[u64], sign: Sign) -> Self {
        let low = match sign {
            Sign::Unsigned => block.iter().copied().min().unwrap_or(0),
            Sign::Signed => block.iter().map(|v| *v as i64).min().unwrap_or(0) as u64,
        };
        let mut lengths = [0u8; 65];
        for value in block {
            lengths[bits(value.wrapping_sub(low))] += 1;
        }
        Self::with_lengths(low, &lengths)
    }

    /// From how many values have how many bits above `low`.
    pub(super) fn with_lengths(low: u64, lengths: &[u8; 65]) -> Self {
        let widest = lengths.iter().rposition(|n| *n > 0).unwrap_or(0);
        let (bytes, width) = best_width(lengths, widest);
        let (mut usual, mut above) = (widest, usize::from(lengths[widest]));
        while usual > 0 && above <= UNUSUAL {
            usual -= 1;
            above += usize::from(lengths[usual]);
        }
        Self {
            low,
            width,
            bytes: bytes + 4,
            usual: usual as u8,
        }
    }
}

/// The width that makes the block shortest, and the bytes it is then; from how many values have how many bits.
fn best_width(lengths: &[u8; 65], widest: usize) -> (usize, usize) {
    let mut best = (usize::MAX, 0);
    // Of exceptions: how many, and the bits that all together are longer than the width.
    let (mut apart, mut longer) = (0, 0);
    for length in lengths[MOST_BITS.min(widest) + 1..=widest].iter().rev() {
        apart += usize::from(*length);
        longer += apart;
    }
    // From the widest down: below a width at which half of the values are exceptions nothing is gained.
    for width in (0..=widest.min(MOST_BITS)).rev() {
        // A byte for the position of each, and seven bits to a byte, rounded up.
        let bytes = BLOCK * width / 8 + apart + (longer + 3 * apart) / 7;
        best = best.min((bytes, width));
        apart += usize::from(lengths[width]);
        longer += apart;
        if apart > BLOCK / 2 && widest <= MOST_BITS {
            break;
        }
    }
    best
}

pub(super) fn bits(value: u64) -> usize {
    64 - value.leading_zeros() as usize
}
