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

/// Sorts `keys` by one digit, equal ones in their order; also how many keys there are of each value.
pub(crate) fn sort_by_digit(keys: &[u32], digit: Digit) -> (Vec<u32>, Vec<u32>) {
    let mut histogram = vec![0u32; 1 << digit.bits];
    for key in keys {
        histogram[digit.of(*key)] += 1;
    }
    let mut next: Vec<usize> = starts(&histogram);
    let mut sorted = vec![0; keys.len()];
    for key in keys {
        let place = &mut next[digit.of(*key)];
        sorted[*place] = *key;
        *place += 1;
    }
    (sorted, histogram)
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

/// Puts the pieces together; `parts` hold the `spans` of each process.
pub(crate) fn assemble(pieces: &[Piece], spans: &[Range<usize>], parts: &[Vec<u32>]) -> Vec<u32> {
    let mut whole = Vec::with_capacity(pieces.iter().map(|p| p.keys.len()).sum());
    for Piece { process, keys } in pieces {
        let base = spans[*process].start;
        whole.extend_from_slice(&parts[*process][keys.start - base..keys.end - base]);
    }
    whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_digit_is_sorted_and_equal_ones_keep_their_order() {
        let keys = [0x21, 0x11, 0x30, 0x12, 0x01];
        let digit = Digit { shift: 0, bits: 4 };
        let (sorted, histogram) = sort_by_digit(&keys, digit);
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
            let mut parts = parts;
            for digit in Digit::all(bits) {
                let (sorted, histograms): (Vec<_>, Vec<_>) =
                    parts.iter().map(|p| sort_by_digit(p, digit)).unzip();
                let mut start = 0;
                for part in &mut parts {
                    let wanted = start..start + part.len();
                    start = wanted.end;
                    let pieces = pieces(&histograms.concat(), 1 << bits, &wanted);
                    let spans = spans(&pieces, sorted.len());
                    let read: Vec<Vec<u32>> =
                        sorted.iter().zip(&spans).map(|(s, r)| s[r.clone()].to_vec()).collect();
                    *part = assemble(&pieces, &spans, &read);
                }
            }
            prop_assert_eq!(parts.concat(), expected);
        }
    }
}
