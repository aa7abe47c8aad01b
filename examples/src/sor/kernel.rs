//! The arithmetic of red-black successive over-relaxation, sequential and on a band of rows.
//!
//! A point's new value depends on its own and on its four neighbours', which are all of the other
//! colour: within a half sweep the order of the points does not matter, so the parallel result equals
//! the sequential one bit for bit.

/// The two half sweeps of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Black,
}

impl Colour {
    fn is_of(self, row: usize, column: usize) -> bool {
        (row + column).is_multiple_of(2) == (self == Self::Red)
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

fn relax(omega: f64, old: f64, up: f64, down: f64, left: f64, right: f64) -> f64 {
    old + omega * ((up + down + left + right) / 4.0 - old)
}

/// The whole computation by one process: the matrix after `iterations`, row by row.
pub fn sequential(rows: usize, columns: usize, iterations: usize, omega: f64) -> Vec<f64> {
    let mut m: Vec<f64> = (0..rows * columns)
        .map(|at| initial(at / columns, at % columns, rows))
        .collect();
    for _ in 0..iterations {
        for colour in [Colour::Red, Colour::Black] {
            for i in 1..rows.saturating_sub(1) {
                for j in 1..columns.saturating_sub(1) {
                    if colour.is_of(i, j) {
                        let at = i * columns + j;
                        let (up, down) = (m[at - columns], m[at + columns]);
                        m[at] = relax(omega, m[at], up, down, m[at - 1], m[at + 1]);
                    }
                }
            }
        }
    }
    m
}

/// The rows of one process, and where they lie in the matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Band {
    pub(crate) first_row: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) total_rows: usize,
}

impl Band {
    pub(crate) fn initial(&self) -> Vec<f64> {
        (0..self.rows * self.columns)
            .map(|at| {
                let (row, column) = (at / self.columns, at % self.columns);
                initial(self.first_row + row, column, self.total_rows)
            })
            .collect()
    }

    /// One half sweep over `values`; `above` and `below` are the rows next to the band, empty at the
    /// border of the matrix. Returns the largest change.
    pub(crate) fn sweep(
        &self,
        colour: Colour,
        omega: f64,
        values: &mut [f64],
        above: &[f64],
        below: &[f64],
    ) -> f64 {
        let columns = self.columns;
        let mut change: f64 = 0.0;
        for i in 0..self.rows {
            let row = self.first_row + i;
            if row == 0 || row + 1 == self.total_rows {
                continue;
            }
            for j in (1..columns.saturating_sub(1)).filter(|j| colour.is_of(row, *j)) {
                let at = i * columns + j;
                let up = if i == 0 {
                    above[j]
                } else {
                    values[at - columns]
                };
                let down = if i + 1 == self.rows {
                    below[j]
                } else {
                    values[at + columns]
                };
                let new = relax(omega, values[at], up, down, values[at - 1], values[at + 1]);
                change = change.max((new - values[at]).abs());
                values[at] = new;
            }
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
                let colour = [Colour::Red, Colour::Black][half % 2];
                let before = bands.clone();
                for (k, (band, values)) in bands.iter_mut().enumerate() {
                    let above = k.checked_sub(1).map(|k| &before[k].1);
                    let above = above.map_or(&[][..], |v| &v[v.len() - columns..]);
                    let below = before.get(k + 1).map_or(&[][..], |b| &b.1[..columns]);
                    band.sweep(colour, omega, values, above, below);
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
