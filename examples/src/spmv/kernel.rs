//! The arithmetic: some rows of a sparse matrix, times a vector.

use std::ops::Range;

use rand::RngExt;

use crate::common::{dice, unit};

/// Some rows of the matrix, each of the same number of non-zeros: their columns, and their values.
pub(crate) struct Rows {
    per_row: usize,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Rows {
    /// Rows `rows` of the `n × n` matrix of `seed`. They have random columns and positive values: the power method
    /// converges.
    pub(crate) fn new(seed: u64, n: usize, per_row: usize, rows: Range<usize>) -> Self {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for row in rows {
            let mut dice = dice(seed, row);
            for _ in 0..per_row {
                columns.push(dice.random_range(0..n as u32));
                values.push(unit(&mut dice));
            }
        }
        Self {
            per_row,
            columns,
            values,
        }
    }

    /// The columns of the non-zeros, row by row.
    pub(crate) fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The values of the non-zeros, row by row.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// These rows of A x, times `scale`, into `y`.
    pub(crate) fn times(&self, x: &[f64], scale: f64, y: &mut [f64]) {
        let rows = self.columns.chunks_exact(self.per_row);
        let rows = rows.zip(self.values.chunks_exact(self.per_row));
        for (y, (columns, values)) in y.iter_mut().zip(rows) {
            *y = scale * product(columns, values, x);
        }
    }
}

/// One row times `x`: four sums, so that an addition need not wait for the one before.
fn product(columns: &[u32], values: &[f64], x: &[f64]) -> f64 {
    let (columns, last_columns) = columns.as_chunks::<4>();
    let (values, last_values) = values.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (columns, values) in columns.iter().zip(values) {
        for k in 0..4 {
            sums[k] += values[k] * x[columns[k] as usize];
        }
    }
    let mut sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (column, value) in last_columns.iter().zip(last_values) {
        sum += value * x[*column as usize];
    }
    sum
}

/// The largest absolute value.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |max, v| max.max(v.abs()))
}

/// One iteration of the power method on the whole matrix: `y` becomes A x, scaled so that the largest |x| was 1.
pub(crate) fn iterate(matrix: &Rows, x: &[f64], y: &mut [f64]) {
    matrix.times(x, 1.0 / largest(x), y);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_by_hand() {
        let matrix = Rows {
            per_row: 6,
            columns: vec![0, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 1],
            values: vec![2.0, 1.0, 1.0, 1.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, -1.0],
        };
        let mut y = [0.0; 2];
        matrix.times(&[1.0, 10.0, 100.0], 2.0, &mut y);
        assert_eq!(y, [664.0, -18.0]);
        assert_eq!(largest(&[102.0, 0.0, -110.0]), 110.0);
    }

    #[test]
    fn the_power_method_finds_an_eigenvector() {
        let matrix = Rows::new(5, 60, 12, 0..60);
        let (mut x, mut y) = (vec![1.0; 60], vec![0.0; 60]);
        for _ in 0..200 {
            iterate(&matrix, &x, &mut y);
            std::mem::swap(&mut x, &mut y);
        }
        let eigenvalue = largest(&x);
        iterate(&matrix, &x, &mut y);
        for (next, x) in y.iter().zip(&x) {
            assert!((next - x).abs() < 1e-9 * eigenvalue, "{next} {x}");
        }
    }
}
