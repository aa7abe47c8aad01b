//! The arithmetic of LU decomposition without pivoting: of a whole matrix, and of one in blocks.
//!
//! Element (i, j) becomes a_ij − l_i0 u_0j − l_i1 u_1j − …, subtracted one by one in this order, whatever
//! the blocks: so the blocked result equals the sequential one bit for bit.

use std::ops::Range;

use crate::common::{dice_from, share, unit};

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
            // A number is two words.
            let mut dice = dice_from(seed, i, 2 * column);
            values.extend((column..column + columns).map(|j| {
                let random = unit(&mut dice);
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
        let several = self.values.chunks_mut(TILE * self.columns);
        for (rows, left) in several.zip(left.values.chunks(TILE * left.columns)) {
            subtract_product(rows, left, &above.values, self.columns);
        }
    }
}

/// Rows and columns of a tile of a block, which is kept in registers.
const TILE: usize = 4;

/// Subtracts the product of `left`, which has as many rows as `rows`, and `above`; their rows have `columns` columns.
fn subtract_product(rows: &mut [f64], left: &[f64], above: &[f64], columns: usize) {
    let height = rows.len() / columns;
    let width = left.len() / height;
    let mut lines = rows.chunks_exact_mut(columns);
    let factors: [_; TILE] = std::array::from_fn(|i| left.chunks_exact(width).nth(i));
    if let ([Some(a), Some(b), Some(c), Some(d)], [Some(p), Some(q), Some(r), Some(s)]) =
        (std::array::from_fn(|_| lines.next()), factors)
    {
        let tiles = columns / TILE * TILE;
        for at in (0..tiles).step_by(TILE) {
            let Some(mut tile) = tile([&*a, b, c, d], at) else {
                return;
            };
            let factors = p.iter().zip(q).zip(r.iter().zip(s));
            for (((p, q), (r, s)), pivot) in factors.zip(above[at..].chunks(columns)) {
                let Some(pivot) = pivot.first_chunk::<TILE>() else {
                    return;
                };
                for (line, factor) in tile.iter_mut().zip([p, q, r, s]) {
                    for (value, pivot) in line.iter_mut().zip(pivot) {
                        *value -= factor * pivot;
                    }
                }
            }
            for (line, tile) in [&mut *a, b, c, d].into_iter().zip(tile) {
                line[at..at + TILE].copy_from_slice(&tile);
            }
        }
        for (line, factors) in [a, b, c, d].into_iter().zip([p, q, r, s]) {
            for (factor, pivot) in factors.iter().zip(above.chunks_exact(columns)) {
                subtract(&mut line[tiles..], *factor, &pivot[tiles..]);
            }
        }
        return;
    }
    for (line, factors) in rows.chunks_exact_mut(columns).zip(left.chunks_exact(width)) {
        for (factor, pivot) in factors.iter().zip(above.chunks_exact(columns)) {
            subtract(line, *factor, pivot);
        }
    }
}

/// The tile at column `at` of four rows.
fn tile(rows: [&[f64]; TILE], at: usize) -> Option<[[f64; TILE]; TILE]> {
    let mut tile = [[0.0; TILE]; TILE];
    for (tile, row) in tile.iter_mut().zip(rows) {
        *tile = *row[at..].first_chunk()?;
    }
    Some(tile)
}

fn subtract(row: &mut [f64], factor: f64, pivot: &[f64]) {
    for (value, p) in row.iter_mut().zip(pivot) {
        *value -= factor * p;
    }
}

/// The whole computation by one process, in blocks: the factors of the `n × n` matrix of `seed`, block by block.
pub(crate) fn factorise(seed: u64, n: usize, blocks: usize) -> Vec<Vec<Block>> {
    let part = |k| share(n, blocks, k);
    let block = |i, j| {
        let (rows, columns): (Range<usize>, Range<usize>) = (part(i), part(j));
        let size = (rows.len(), columns.len());
        Block::of_matrix(seed, n, (rows.start, columns.start), size)
    };
    let line = |i| (0..blocks).map(|j| block(i, j)).collect();
    let mut m: Vec<Vec<Block>> = (0..blocks).map(line).collect();
    for k in 0..blocks {
        let (head, below) = m.split_at_mut(k + 1);
        let (diagonal, above) = head[k][k..].split_at_mut(1);
        let diagonal = &mut diagonal[0];
        diagonal.factor();
        above.iter_mut().for_each(|b| b.solve_lower(diagonal));
        for line in below {
            let (left, rest) = line[k..].split_at_mut(1);
            left[0].solve_upper(diagonal);
            for (block, above) in rest.iter_mut().zip(&*above) {
                block.update(&left[0], above);
            }
        }
    }
    m
}

/// The matrix that blocks make, row by row.
pub(crate) fn whole(blocks: &[Vec<Block>]) -> Vec<f64> {
    let mut all = Vec::new();
    for line in blocks {
        let rows = line.first().map_or(0, |b| b.values.len() / b.columns);
        for row in 0..rows {
            line.iter().for_each(|b| all.extend(b.row(row)));
        }
    }
    all
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
        let f = whole(&factorise(3, n, 1));
        for i in 0..n {
            for j in 0..n {
                let l = |k| if k == i { 1.0 } else { f[i * n + k] };
                let product: f64 = (0..=i.min(j)).map(|k| l(k) * f[k * n + j]).sum();
                assert!((product - a[i * n + j]).abs() < 1e-12 * n as f64);
            }
        }
    }

    #[test]
    fn blocks_of_any_size_give_the_same_bit_for_bit() {
        let n = 29;
        let mut unblocked = Block::of_matrix(5, n, (0, 0), (n, n));
        for k in 0..n {
            let (pivot, below) = unblocked.split_after(k);
            for row in below {
                row[k] /= pivot[k];
                let factor = row[k];
                (k + 1..n).for_each(|j| row[j] -= factor * pivot[j]);
            }
        }
        for blocks in [1, 2, 3, 5, 29] {
            assert_eq!(whole(&factorise(5, n, blocks)), unblocked.values);
        }
    }
}
