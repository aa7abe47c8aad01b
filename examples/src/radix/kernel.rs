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

    /// The most significant digit, of `bits` bits also where the others leave fewer.
    pub(crate) fn highest(bits: u32) -> Self {
        let shift = u32::BITS - bits;
        Self { shift, bits }
    }

    fn of(self, key: u32) -> usize {
        (key >> self.shift) as usize & ((1 << self.bits) - 1)
    }
}

/// How many of `keys` there are of each value of a digit.
pub(crate) fn histogram(keys: &[u32], digit: Digit) -> Vec<u32> {
    let [histogram] = count(keys, [digit]);
    histogram
}

/// The histograms of all digits of `bits` bits: they do not depend on the order of the keys.
pub(crate) fn histograms(keys: &[u32], bits: u32) -> Vec<Vec<u32>> {
    let digits: Vec<Digit> = Digit::all(bits).collect();
    let (fours, rest) = digits.as_chunks::<4>();
    let mut all: Vec<Vec<u32>> = fours.iter().flat_map(|four| count(keys, *four)).collect();
    match *rest {
        [a, b, c] => all.extend(count(keys, [a, b, c])),
        [a, b] => all.extend(count(keys, [a, b])),
        _ => all.extend(rest.iter().map(|digit| histogram(keys, *digit))),
    }
    all
}

/// How many of `keys` there are of each value of some digits, in one pass over the keys.
fn count<const N: usize>(keys: &[u32], digits: [Digit; N]) -> [Vec<u32>; N] {
    let mut counts = digits.map(|digit| vec![0; 1 << digit.bits]);
    for key in keys {
        for (counts, digit) in counts.iter_mut().zip(digits) {
            counts[digit.of(*key)] += 1;
        }
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

/// The whole computation by one process: sorts `keys` by digits of `bits` bits. `spare` is memory, whatever is in it.
pub(crate) fn sort(keys: &mut Vec<u32>, bits: u32, spare: &mut Vec<u32>) {
    let histograms = histograms(keys, bits);
    sort_counted(keys, bits, &histograms, spare);
}

/// As [`sort`], of keys that have these [`histograms`].
pub(crate) fn sort_counted(
    keys: &mut Vec<u32>,
    bits: u32,
    histograms: &[Vec<u32>],
    spare: &mut Vec<u32>,
) {
    spare.resize(keys.len(), 0);
    for (digit, histogram) in Digit::all(bits).zip(histograms) {
        sort_by_digit(keys, digit, histogram, spare);
        std::mem::swap(keys, spare);
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

/// Which process sorts which keys, where each sorts those of some values of a digit: values in order, and about as many keys each.
#[derive(Debug)]
pub(crate) struct Partition {
    /// How many keys each process has for each: `keys[from][to]`.
    keys: Vec<Vec<usize>>,
    /// The process that sorts the keys of each value.
    by_value: Vec<usize>,
}

impl Partition {
    /// That of `processes` with these `histograms` of their keys, one after another.
    pub(crate) fn new(histograms: &[u32], processes: usize) -> Self {
        let values = histograms.len() / processes;
        let rows: Vec<&[u32]> = histograms.chunks_exact(values).collect();
        let count = |value: usize| rows.iter().map(|row| row[value] as usize).sum::<usize>();
        let total: usize = (0..values).map(count).sum();
        let (mut keys, mut before) = (vec![vec![0; processes]; processes], 0);
        let mut by_value = Vec::with_capacity(values);
        for value in 0..values {
            // Where their middle is in the whole.
            let middle = before + count(value) / 2;
            let to = (middle * processes / total.max(1)).min(processes - 1);
            for (keys, row) in keys.iter_mut().zip(&rows) {
                keys[to] += row[value] as usize;
            }
            by_value.push(to);
            before += count(value);
        }
        Self { keys, by_value }
    }

    /// Puts the `keys` of process `from` into `parted`: those for each process together, in its [`span`](Self::span).
    pub(crate) fn distribute(&self, from: usize, keys: &[u32], digit: Digit, parted: &mut [u32]) {
        let processes = 0..self.keys.len();
        let mut next: Vec<usize> = processes.map(|to| self.span(from, to).start).collect();
        for key in keys {
            let place = &mut next[self.by_value[digit.of(*key)]];
            parted[*place] = *key;
            *place += 1;
        }
    }

    /// Where the keys that process `from` has for `to` are, once they are [distributed](Self::distribute).
    pub(crate) fn span(&self, from: usize, to: usize) -> Range<usize> {
        let row = &self.keys[from];
        let start = row[..to].iter().sum();
        start..start + row[to]
    }

    /// Which positions of the whole the keys of `process` take, once they are sorted.
    pub(crate) fn whole(&self, process: usize) -> Range<usize> {
        let keys_of = |to: usize| self.keys.iter().map(|row| row[to]).sum::<usize>();
        let start = (0..process).map(keys_of).sum();
        start..start + keys_of(process)
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
    fn the_histograms_are_those_of_each_digit() {
        let keys: Vec<u32> = (0..100_u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
        for bits in 1..=16 {
            let each: Vec<_> = Digit::all(bits).map(|d| histogram(&keys, d)).collect();
            assert_eq!(histograms(&keys, bits), each);
        }
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
            sort(&mut alone, bits, &mut Vec::new());
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

        /// Whatever the keys, the parts and the digits: what each process sorts by itself are together the keys, sorted.
        #[test]
        fn partitions_are_sorted_apart(
            parts in prop::collection::vec(prop::collection::vec(0u32..=u32::MAX, 0..20), 1..5),
            few in any::<bool>(),
            bits in 1u32..=16,
        ) {
            // Few values: all keys of some processes, none of others.
            let parts: Vec<Vec<u32>> = match few {
                true => parts.iter().map(|p| p.iter().map(|key| key % 3).collect()).collect(),
                false => parts,
            };
            let digit = Digit::highest(bits);
            let histograms: Vec<Vec<u32>> = parts.iter().map(|p| histogram(p, digit)).collect();
            let partition = Partition::new(&histograms.concat(), parts.len());
            let parted = |(from, part): (usize, &Vec<u32>)| {
                let mut parted = vec![0; part.len()];
                partition.distribute(from, part, digit, &mut parted);
                parted
            };
            let parted: Vec<Vec<u32>> = parts.iter().enumerate().map(parted).collect();
            let (mut sorted, mut spare) = (Vec::new(), vec![7; 3]);
            for to in 0..parts.len() {
                let theirs = parted.iter().enumerate();
                let theirs = theirs.map(|(from, keys)| &keys[partition.span(from, to)]);
                let mut mine: Vec<u32> = theirs.flatten().copied().collect();
                prop_assert_eq!(partition.whole(to), sorted.len()..sorted.len() + mine.len());
                sort(&mut mine, bits, &mut spare);
                sorted.extend(mine);
            }
            let mut expected = parts.concat();
            expected.sort_unstable();
            prop_assert_eq!(sorted, expected);
        }
    }

    #[test]
    fn processes_sort_about_as_many_keys() {
        let partition = Partition::new(&[1, 0, 1, 4, 0, 2, 1, 3], 2);
        assert_eq!((partition.whole(0), partition.whole(1)), (0..5, 5..12));
        assert_eq!((partition.span(1, 0), partition.span(1, 1)), (0..3, 3..6));
    }
}
