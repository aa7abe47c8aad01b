//! The arithmetic of red-black successive over-relaxation, sequential and on a band of rows.
//!
//! A point's new value depends on its own and on its four neighbours', which are all of the other
//! colour: within a half sweep the order of the points does not matter, so the parallel result equals
//! the sequential one bit for bit.

use std::cell::Cell;
use std::ops::Range;

/// The two half sweeps of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Black,
}

impl Colour {
    /// The first column of this colour inside the border.
    fn first_column(self, row: usize) -> usize {
        1 + usize::from(row.is_multiple_of(2) == (self == Self::Red))
    }
}

/// Where to start: a warm upper edge, a left edge cooling downwards, zero elsewhere. Rows and columns
/// on the border keep their values.
pub(crate) fn initial(row: usize, column: usize, rows: usize) -> f64 {
    match (row, column) {
        (0, _) => 100.0,
        (_, 0) => 100.0 * (rows - 1 - row) as f64 / (rows - 1) as f64,
        _ => 0.0,
    }
}

/// The points of one colour in a row, from column `first` on; the largest change if `MEASURE` is set, else 0.
fn relax<const MEASURE: bool>(
    omega: f64,
    first: usize,
    above: &[f64],
    row: &mut [f64],
    below: &[f64],
) -> f64 {
    let row = Cell::from_mut(&mut row[first - 1..]).as_slice_of_cells();
    let around = above[first..].chunks(2).zip(below[first..].chunks(2));
    let mut change: f64 = 0.0;
    for (here, (up, down)) in row.windows(3).step_by(2).zip(around) {
        let old = here[1].get();
        let mean = (up[0] + down[0] + here[0].get() + here[2].get()) / 4.0;
        let new = old + omega * (mean - old);
        if MEASURE {
            // One instruction, where `max` also looks for what is not a number.
            let moved = (new - old).abs();
            change = if moved > change { moved } else { change };
        }
        here[1].set(new);
    }
    change
}

/// The whole computation by one process: the matrix after `iterations`, row by row.
pub(crate) fn sequential(rows: usize, columns: usize, iterations: usize, omega: f64) -> Vec<f64> {
    let band = Band {
        first_row: 0,
        rows,
        columns,
        total_rows: rows,
    };
    let mut values = band.initial();
    band.iterate(iterations, omega, &mut values);
    values
}

/// The rows of one process, and where they lie in the matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Band {
    pub(crate) first_row: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) total_rows: usize,
}

/// What there is to do in a half sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Half {
    pub(crate) colour: Colour,
    pub(crate) omega: f64,
    /// Whether the largest change is wanted.
    pub(crate) measured: bool,
}

impl Band {
    pub(crate) fn initial(&self) -> Vec<f64> {
        (0..self.rows)
            .flat_map(|row| {
                let row = self.first_row + row;
                (0..self.columns).map(move |column| initial(row, column, self.total_rows))
            })
            .collect()
    }

    /// Iterations on a band that is the whole matrix.
    pub(crate) fn iterate(&self, iterations: usize, omega: f64, values: &mut [f64]) {
        for _ in 0..iterations {
            for colour in [Colour::Red, Colour::Black] {
                let half = Half {
                    colour,
                    omega,
                    measured: false,
                };
                self.sweep(0..self.rows, half, values, [&[], &[]]);
            }
        }
    }

    /// A half sweep over some rows of `values`; `around` are the rows above and below the band, which only the band's first
    /// and last row need, and which are empty at the border of the matrix. Returns the largest change, if wanted.
    pub(crate) fn sweep(
        &self,
        rows: Range<usize>,
        half: Half,
        values: &mut [f64],
        around: [&[f64]; 2],
    ) -> f64 {
        let columns = self.columns;
        let mut change: f64 = 0.0;
        for i in rows {
            let row = self.first_row + i;
            if row == 0 || row + 1 == self.total_rows {
                continue;
            }
            let (before, rest) = values.split_at_mut(i * columns);
            let (here, after) = rest.split_at_mut(columns);
            let above = before.rchunks(columns).next().unwrap_or(around[0]);
            let below = after.chunks(columns).next().unwrap_or(around[1]);
            let (omega, first) = (half.omega, half.colour.first_column(row));
            let relax = if half.measured {
                relax::<true>
            } else {
                relax::<false>
            };
            change = change.max(relax(omega, first, above, here, below));
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_give_the_sequential_result_bit_for_bit() {
        let (rows, columns, iterations, omega) = (13, 9, 7, 1.7);
        for parts in [vec![13], vec![1, 12], vec![5, 4, 4], vec![1; 13]] {
            let mut first_row = 0;
            let mut bands: Vec<(Band, Vec<f64>)> = Vec::new();
            for rows_here in parts {
                let band = Band {
                    first_row,
                    rows: rows_here,
                    columns,
                    total_rows: rows,
                };
                bands.push((band, band.initial()));
                first_row += rows_here;
            }
            for half in 0..2 * iterations {
                let half = Half {
                    colour: [Colour::Red, Colour::Black][half % 2],
                    omega,
                    measured: half % 4 == 0,
                };
                let before = bands.clone();
                for (k, (band, values)) in bands.iter_mut().enumerate() {
                    let above = k.checked_sub(1).map(|k| &before[k].1);
                    let above = above.map_or(&[][..], |v| &v[v.len() - columns..]);
                    let below = before.get(k + 1).map_or(&[][..], |b| &b.1[..columns]);
                    // In any order: no point of a half sweep depends on another one.
                    let inner = 1..band.rows.max(2) - 1;
                    let around = [above, below];
                    let edges = [band.rows.max(2) - 1..band.rows, 0..1];
                    for rows in [inner].into_iter().chain(edges) {
                        band.sweep(rows, half, values, around);
                    }
                }
            }
            let all: Vec<f64> = bands.into_iter().flat_map(|(_, v)| v).collect();
            let expected = sequential(rows, columns, iterations, omega);
            let bits = |m: &[f64]| m.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&all), bits(&expected));
        }
    }

    #[test]
    fn the_border_stays_and_the_inside_settles() {
        let m = sequential(10, 10, 400, 1.5);
        assert_eq!(m[..10], [100.0; 10]);
        let next = sequential(10, 10, 401, 1.5);
        let change = m.iter().zip(&next).map(|(a, b)| (a - b).abs());
        assert!(change.fold(0.0, f64::max) < 1e-9);
    }
}
