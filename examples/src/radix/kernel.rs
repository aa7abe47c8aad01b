//! The steps of a radix sort by one digit, of one process's part of the keys.

use std::ops::Range;

/// The digit of `bits` bits that starts at bit `shift`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digit {
    pub(crate) shift: u32,
    pub(crate) bits: u32,
}

impl Digit {
    /// All digits of a 32-bit key, the least significant first.
    pub(crate) fn all(bits: u32) -> impl Iterator<Item = Self> {
        (0..u32::BITS)
            .step_by(bits as usize)
            .map(move |shift| Self { shift, bits })
    }

    fn of(self, key: u32) -> usize {
        (key >> self.shift) as usize & ((1 << self.bits) - 1)
    }
}

/// How many of `keys` there are of each value of a digit.
pub(crate) fn histogram(keys: &[u32], digit: Digit) -> Vec<u32> {
    let mut counts = vec![0; 1 << digit.bits];
    for key in keys {
        counts[digit.of(*key)] += 1;
    }
    counts
}

/// Puts `keys`, which have this `histogram`, into `sorted` by one digit, equal ones in their order.
pub(crate) fn sort_by_digit(keys: &[u32], digit: Digit, histogram: &[u32], sorted: &mut [u32]) {
    let mut next = starts(histogram);
    for key in keys {
        let place = &mut next[digit.of(*key)];
        sorted[*place] = *key;
        *place += 1;
    }
}

/// The whole computation by one process: sorts `keys` by digits of `bits` bits.
pub(crate) fn sort(keys: &mut Vec<u32>, bits: u32) {
    let mut sorted = vec![0; keys.len()];
    for digit in Digit::all(bits) {
        sort_by_digit(keys, digit, &histogram(keys, digit), &mut sorted);
        std::mem::swap(keys, &mut sorted);
    }
}

/// The prefix sums of a histogram: where the keys of each value start.
fn starts(histogram: &[u32]) -> Vec<usize> {
    let sums = histogram.iter().scan(0, |sum, count| {
        let start = *sum;
        *sum += *count as usize;
        Some(start)
    });
    sums.collect()
}

/// Some keys of one process's sorted part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) process: usize,
    pub(crate) keys: Range<usize>,
}

/// Where the keys at positions `wanted` of the whole, sorted by this digit, come from: pieces in order.
/// `histograms` are those of all processes, of `values` entries each. The pieces from one process follow
/// each other in its part.
pub(crate) fn pieces(histograms: &[u32], values: usize, wanted: &Range<usize>) -> Vec<Piece> {
    let histograms: Vec<&[u32]> = histograms.chunks_exact(values).collect();
    let starts: Vec<Vec<usize>> = histograms.iter().map(|h| starts(h)).collect();
    let (mut found, mut at) = (Vec::new(), 0);
    for value in 0..values {
        for (process, histogram) in histograms.iter().enumerate() {
            let end = at + histogram[value] as usize;
            let (first, last) = (wanted.start.max(at), wanted.end.min(end));
            if first < last {
                let start = starts[process][value];
                let keys = start + first - at..start + last - at;
                found.push(Piece { process, keys });
            }
            at = end;
        }
    }
    found
}

/// What one has to read of each process's part to have all `pieces`; empty where nothing.
pub(crate) fn spans(pieces: &[Piece], processes: usize) -> Vec<Range<usize>> {
    let mut spans = vec![0..0; processes];
    for Piece { process, keys } in pieces {
        let span = &mut spans[*process];
        *span = match span.start == span.end {
            true => keys.clone(),
            false => span.start..keys.end,
        };
    }
    spans
}

/// Puts those pieces that are of `process` into their places in `whole`; `part` holds its `span`.
pub(crate) fn place(
    pieces: &[Piece],
    (process, span): (usize, &Range<usize>),
    part: &[u32],
    whole: &mut [u32],
) {
    let mut at = 0;
    for piece in pieces {
        let end = at + piece.keys.len();
        if piece.process == process {
            let keys = piece.keys.start - span.start..piece.keys.end - span.start;
            whole[at..end].copy_from_slice(&part[keys]);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_digit_is_sorted_and_equal_ones_keep_their_order() {
        let keys = [0x21, 0x11, 0x30, 0x12, 0x01];
        let digit = Digit { shift: 0, bits: 4 };
        let histogram = histogram(&keys, digit);
        let mut sorted = [0; 5];
        sort_by_digit(&keys, digit, &histogram, &mut sorted);
        assert_eq!(sorted, [0x30, 0x21, 0x11, 0x01, 0x12]);
        assert_eq!(histogram[..4], [1, 3, 1, 0]);
    }

    #[test]
    fn the_digits_cover_the_key() {
        for bits in 1..=16 {
            let digits = Digit::all(bits);
            assert_eq!(
                digits.fold(0, |n, d| n | (d.of(u32::MAX) as u64) << d.shift),
                u64::from(u32::MAX)
            );
        }
    }

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        /// Whatever the keys, the parts and the digits: the processes together sort.
        #[test]
        fn parts_are_sorted_together(
            parts in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..20), 1..5),
            bits in 1u32..12,
        ) {
            let mut expected = parts.concat();
            expected.sort_unstable();
            let mut alone = parts.concat();
            sort(&mut alone, bits);
            prop_assert_eq!(&alone, &expected);
            let mut parts = parts;
            for digit in Digit::all(bits) {
                let histograms: Vec<Vec<u32>> = parts.iter().map(|p| histogram(p, digit)).collect();
                let mut sorted = parts.clone();
                for ((part, histogram), sorted) in parts.iter().zip(&histograms).zip(&mut sorted) {
                    sort_by_digit(part, digit, histogram, sorted);
                }
                let mut start = 0;
                for part in &mut parts {
                    let wanted = start..start + part.len();
                    start = wanted.end;
                    let pieces = pieces(&histograms.concat(), 1 << bits, &wanted);
                    for (process, span) in spans(&pieces, sorted.len()).iter().enumerate() {
                        place(&pieces, (process, span), &sorted[process][span.clone()], part);
                    }
                }
            }
            prop_assert_eq!(parts.concat(), expected);
        }
    }
}
