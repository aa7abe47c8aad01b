//! The arithmetic of LU decomposition without pivoting: of a whole matrix, and of one in blocks.
//!
//! Element (i, j) becomes a_ij − l_i0 u_0j − l_i1 u_1j − …, subtracted one by one in this order, whatever
//! the blocks: so the blocked result equals the sequential one bit for bit.

use crate::common::{dice, unit};

/// A rectangle of a matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
}

impl Block {
    /// The rows from `row` on and columns from `column` on of the `n × n` matrix of `seed`: random numbers
    /// between −1 and 1, and `n` more on the diagonal, which is then larger than the rest of its row.
    pub(crate) fn of_matrix(
        seed: u64,
        n: usize,
        (row, column): (usize, usize),
        (rows, columns): (usize, usize),
    ) -> Self {
        let mut values = Vec::with_capacity(rows * columns);
        for i in row..row + rows {
            values.extend((column..column + columns).map(|j| {
                let random = unit(&mut dice(seed, i * n + j));
                2.0 * random - 1.0 + if i == j { n as f64 } else { 0.0 }
            }));
        }
        Self { columns, values }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// Row `k` and the rows after it.
    fn split_after(&mut self, k: usize) -> (&[f64], std::slice::ChunksExactMut<'_, f64>) {
        let (head, tail) = self.values.split_at_mut((k + 1) * self.columns);
        (
            &head[k * self.columns..],
            tail.chunks_exact_mut(self.columns),
        )
    }

    /// Replaces a square block by its factors: L below the diagonal (its own diagonal is 1), U above.
    pub(crate) fn factor(&mut self) {
        for k in 0..self.columns {
            let (pivot, below) = self.split_after(k);
            for row in below {
                row[k] /= pivot[k];
                let factor = row[k];
                subtract(&mut row[k + 1..], factor, &pivot[k + 1..]);
            }
        }
    }

    /// A block right of the factored block `diagonal` becomes its part of U.
    pub(crate) fn solve_lower(&mut self, diagonal: &Self) {
        for k in 0..diagonal.columns {
            let (pivot, below) = self.split_after(k);
            for (i, row) in below.enumerate() {
                subtract(row, diagonal.row(k + 1 + i)[k], pivot);
            }
        }
    }

    /// A block below the factored block `diagonal` becomes its part of L.
    pub(crate) fn solve_upper(&mut self, diagonal: &Self) {
        for row in self.values.chunks_exact_mut(self.columns) {
            for k in 0..diagonal.columns {
                let pivot = diagonal.row(k);
                row[k] /= pivot[k];
                let factor = row[k];
                subtract(&mut row[k + 1..], factor, &pivot[k + 1..]);
            }
        }
    }

    /// Subtracts the product of a block of L, left of this one, and a block of U, above it.
    pub(crate) fn update(&mut self, left: &Self, above: &Self) {
        for (i, row) in self.values.chunks_exact_mut(self.columns).enumerate() {
            for (k, factor) in left.row(i).iter().enumerate() {
                subtract(row, *factor, above.row(k));
            }
        }
    }
}

fn subtract(row: &mut [f64], factor: f64, pivot: &[f64]) {
    for (value, p) in row.iter_mut().zip(pivot) {
        *value -= factor * p;
    }
}

/// The whole computation by one process: the factors of the `n × n` matrix of `seed`, row by row.
pub fn sequential(seed: u64, n: usize) -> Vec<f64> {
    let mut whole = Block::of_matrix(seed, n, (0, 0), (n, n));
    whole.factor();
    whole.values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_matrix_has_the_known_factors() {
        let mut m = Block {
            columns: 3,
            values: vec![2.0, 1.0, 1.0, 4.0, 3.0, 3.0, 8.0, 7.0, 9.0],
        };
        m.factor();
        assert_eq!(m.values, [2.0, 1.0, 1.0, 2.0, 1.0, 1.0, 4.0, 3.0, 2.0]);
    }

    #[test]
    fn the_product_of_the_factors_is_the_matrix() {
        let n = 40;
        let a = Block::of_matrix(3, n, (0, 0), (n, n)).values;
        let f = sequential(3, n);
        for i in 0..n {
            for j in 0..n {
                let l = |k| if k == i { 1.0 } else { f[i * n + k] };
                let product: f64 = (0..=i.min(j)).map(|k| l(k) * f[k * n + j]).sum();
                assert!((product - a[i * n + j]).abs() < 1e-12 * n as f64);
            }
        }
    }

    #[test]
    fn blocks_of_any_size_give_the_sequential_result_bit_for_bit() {
        let n = 13;
        let expected = sequential(5, n);
        for cuts in [vec![0, 13], vec![0, 5, 9, 13], (0..=13).collect()] {
            let parts: Vec<(usize, usize)> = cuts.windows(2).map(|w| (w[0], w[1] - w[0])).collect();
            let blocks = parts.len();
            let mut m: Vec<Vec<Block>> = parts
                .iter()
                .map(|(row, rows)| {
                    let one = |(column, columns): &(usize, usize)| {
                        Block::of_matrix(5, n, (*row, *column), (*rows, *columns))
                    };
                    parts.iter().map(one).collect()
                })
                .collect();
            for k in 0..blocks {
                m[k][k].factor();
                let diagonal = m[k][k].clone();
                let (head, below) = m.split_at_mut(k + 1);
                let above = &mut head[k][k + 1..];
                above.iter_mut().for_each(|b| b.solve_lower(&diagonal));
                for line in below {
                    line[k].solve_upper(&diagonal);
                    let (left, rest) = line.split_at_mut(k + 1);
                    for (block, above) in rest.iter_mut().zip(&*above) {
                        block.update(&left[k], above);
                    }
                }
            }
            for ((row, _), line) in parts.iter().zip(&m) {
                for ((column, columns), block) in parts.iter().zip(line) {
                    for (i, values) in block.values.chunks_exact(*columns).enumerate() {
                        let at = (row + i) * n + column;
                        assert_eq!(values, &expected[at..at + columns]);
                    }
                }
            }
        }
    }
}
