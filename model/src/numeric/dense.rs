//! Dense square systems, solved by Gaussian elimination with partial pivoting.
//!
//! Sizes here are numbers of nodes (tens), for which a plain row-major elimination is as fast as a
//! library and needs none.

/// A square matrix, row after row.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    n: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// The `n`×`n` zero matrix.
    pub(crate) fn zero(n: usize) -> Self {
        Self {
            n,
            values: vec![0.0; n * n],
        }
    }

    /// Row `i`.
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.n..(i + 1) * self.n]
    }

    /// Row `i`, to be changed.
    pub(crate) fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.values[i * self.n..(i + 1) * self.n]
    }
}

/// Solves `a x = b`; `x` replaces `b`, and `a` is used up. `false` if `a` is singular.
pub(crate) fn solve_in_place(a: &mut Matrix, b: &mut [f64]) -> bool {
    let n = a.n;
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&i, &j| a.row(i)[column].abs().total_cmp(&a.row(j)[column].abs()))
            .unwrap_or(column);
        let pivot_value = a.row(pivot)[column];
        if pivot_value == 0.0 || !pivot_value.is_finite() {
            return false;
        }
        if pivot != column {
            for k in column..n {
                a.values.swap(pivot * n + k, column * n + k);
            }
            b.swap(pivot, column);
        }
        let (upper, lower) = a.values.split_at_mut((column + 1) * n);
        let pivot_row = &upper[column * n + column..];
        let pivot_b = b[column];
        for (row, rhs) in lower.chunks_exact_mut(n).zip(&mut b[column + 1..]) {
            let factor = row[column] / pivot_value;
            if factor != 0.0 {
                for (x, p) in row[column..].iter_mut().zip(pivot_row) {
                    *x -= factor * p;
                }
                *rhs -= factor * pivot_b;
            }
        }
    }
    for i in (0..n).rev() {
        let known: f64 = a.row(i)[i + 1..]
            .iter()
            .zip(&b[i + 1..])
            .map(|(c, x)| c * x)
            .sum();
        b[i] = (b[i] - known) / a.row(i)[i];
    }
    b.iter().all(|x| x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::{Matrix, solve_in_place};

    #[test]
    fn solves_a_system_that_needs_pivoting() {
        let rows = [[0.0, 2.0, 1.0], [1.0, 1.0, 0.0], [3.0, 0.0, 1.0]];
        let x = [1.0, -2.0, 4.0];
        let mut a = Matrix::zero(3);
        let mut b = [0.0; 3];
        for (i, row) in rows.iter().enumerate() {
            a.row_mut(i).copy_from_slice(row);
            b[i] = row.iter().zip(&x).map(|(c, v)| c * v).sum();
        }
        assert!(solve_in_place(&mut a, &mut b));
        for (found, wanted) in b.iter().zip(&x) {
            assert!((found - wanted).abs() < 1e-14);
        }
    }

    #[test]
    fn a_singular_system_is_refused() {
        let mut a = Matrix::zero(2);
        a.row_mut(0).copy_from_slice(&[1.0, 2.0]);
        a.row_mut(1).copy_from_slice(&[2.0, 4.0]);
        assert!(!solve_in_place(&mut a, &mut [1.0, 2.0]));
    }
}
