//! The arithmetic of the six-step Fourier transform, of one process and of a band of rows.
//!
//! The n = m² points lie row by row in an m × m matrix. With ω = e^(−2πi/n), rows transformed are rows
//! of the transposed matrix:
//!
//! transpose · transform rows · multiply element (i, j) by ω^(i j) · transpose · transform rows · transpose
//!
//! Each row is transformed by the same code, whoever has it: so the parallel result equals the
//! sequential one bit for bit.

use std::f64::consts::TAU;
use std::ops::Range;

/// A complex number: real part, imaginary part.
pub(crate) type Complex = [f64; 2];

fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

/// e^(±2πi k/n): minus in the forward direction.
fn root(n: usize, k: usize, inverse: bool) -> Complex {
    let angle = TAU * (k % n) as f64 / n as f64;
    [
        angle.cos(),
        if inverse { angle.sin() } else { -angle.sin() },
    ]
}

/// Transforms of rows of `m` points, a power of two, in one direction.
pub(crate) struct Transform {
    m: usize,
    inverse: bool,
    /// The pairs of positions that a row's order in time exchanges.
    swaps: Vec<(usize, usize)>,
    /// For each step but the first, which needs none: its factors, one after another.
    roots: Vec<Vec<Complex>>,
    /// ω_n^k for k < m, and ω_m^k = ω_n^(m k).
    fine: Vec<Complex>,
    coarse: Vec<Complex>,
}

impl Transform {
    pub(crate) fn new(m: usize, inverse: bool) -> Self {
        let bits = m.trailing_zeros();
        let reversed = |i: usize| {
            i.reverse_bits()
                .checked_shr(usize::BITS - bits)
                .unwrap_or(0)
        };
        let steps = (1..bits).map(|step| 1_usize << step);
        let roots = |half| (0..half).map(|k| root(2 * half, k, inverse)).collect();
        Self {
            m,
            inverse,
            swaps: (0..m)
                .map(|i| (i, reversed(i)))
                .filter(|(i, j)| i < j)
                .collect(),
            roots: steps.map(roots).collect(),
            fine: (0..m).map(|k| root(m * m, k, inverse)).collect(),
            coarse: (0..m).map(|k| root(m, k, inverse)).collect(),
        }
    }

    /// Transforms one row in place: decimation in time, radix 2. The inverse divides by √n = m, which
    /// two of them make n.
    pub(crate) fn row(&self, row: &mut [Complex]) {
        for (i, j) in &self.swaps {
            row.swap(*i, *j);
        }
        for [a, b] in row.as_chunks_mut::<2>().0 {
            (*a, *b) = ([a[0] + b[0], a[1] + b[1]], [a[0] - b[0], a[1] - b[1]]);
        }
        for roots in &self.roots {
            for pair in row.chunks_exact_mut(2 * roots.len()) {
                let (even, odd) = pair.split_at_mut(roots.len());
                for ((a, b), root) in even.iter_mut().zip(odd).zip(roots) {
                    let t = times(*root, *b);
                    (*a, *b) = ([a[0] + t[0], a[1] + t[1]], [a[0] - t[0], a[1] - t[1]]);
                }
            }
        }
        if self.inverse {
            let scale = 1.0 / self.m as f64;
            row.as_flattened_mut().iter_mut().for_each(|x| *x *= scale);
        }
    }

    /// Multiplies row `i` of the matrix by the twiddle factors ω_n^(i j).
    pub(crate) fn twiddle(&self, i: usize, row: &mut [Complex]) {
        let (bits, mask) = (self.m.trailing_zeros(), self.m - 1);
        let mut exponent = 0;
        for value in row {
            let factor = times(self.coarse[exponent >> bits], self.fine[exponent & mask]);
            *value = times(*value, factor);
            exponent += i;
        }
    }
}

/// Columns `columns` of `source`, whose rows are `width` long, become rows of `target`, whose rows are `target_width` long,
/// from column `at` on.
pub(crate) fn transpose(
    (source, width): (&[Complex], usize),
    columns: Range<usize>,
    (target, target_width): (&mut [Complex], usize),
    at: usize,
) {
    /// Columns at once: what one row has of them fills cache lines.
    const TILE: usize = 8;
    let columns = columns.step_by(TILE);
    for (column, lines) in columns.zip(target.chunks_mut(TILE * target_width)) {
        let several = lines.len() / target_width;
        for (i, row) in source.chunks_exact(width).enumerate() {
            let row = &row[column..column + several];
            for (line, value) in lines.chunks_exact_mut(target_width).zip(row) {
                line[at + i] = *value;
            }
        }
    }
}

/// The whole transform by one process, of `m²` points in place; `other` is as large.
pub(crate) fn transform(
    transform: &Transform,
    points: &mut Vec<Complex>,
    other: &mut Vec<Complex>,
) {
    let m = transform.m;
    transpose((points, m), 0..m, (other, m), 0);
    for (i, row) in other.chunks_exact_mut(m).enumerate() {
        transform.row(row);
        transform.twiddle(i, row);
    }
    transpose((other, m), 0..m, (points, m), 0);
    for row in points.chunks_exact_mut(m) {
        transform.row(row);
    }
    transpose((points, m), 0..m, (other, m), 0);
    std::mem::swap(points, other);
}

/// Transforms forward and back in turn, `iterations` in all, by one process.
pub(crate) fn sequential(m: usize, mut points: Vec<Complex>, iterations: usize) -> Vec<Complex> {
    let transforms = [Transform::new(m, false), Transform::new(m, true)];
    let mut other = vec![[0.0, 0.0]; points.len()];
    for i in 0..iterations {
        transform(&transforms[i % 2], &mut points, &mut other);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &[Complex], b: &[Complex]) -> bool {
        let mut pairs = a.iter().flatten().zip(b.iter().flatten());
        a.len() == b.len() && pairs.all(|(x, y)| (x - y).abs() < 1e-9)
    }

    #[test]
    fn a_wave_is_one_line_and_an_impulse_is_flat() {
        for m in [1, 2, 4, 8] {
            let n = m * m;
            let k = 3 % n;
            let wave: Vec<Complex> = (0..n).map(|t| root(n, k * t, true)).collect();
            let mut line = vec![[0.0, 0.0]; n];
            line[k] = [n as f64, 0.0];
            assert!(near(&sequential(m, wave, 1), &line), "{m}");

            let mut impulse = vec![[0.0, 0.0]; n];
            impulse[0] = [1.0, 0.0];
            assert!(near(&sequential(m, impulse, 1), &vec![[1.0, 0.0]; n]));
        }
    }

    #[test]
    fn it_is_the_definition_and_comes_back() {
        let (m, n) = (4, 16);
        let points: Vec<Complex> = (0..n)
            .map(|t| [(t * t % 7) as f64 - 3.0, (t % 5) as f64])
            .collect();
        let by_definition: Vec<Complex> = (0..n)
            .map(|k| {
                (0..n).fold([0.0, 0.0], |sum, t| {
                    let term = times(points[t], root(n, k * t, false));
                    [sum[0] + term[0], sum[1] + term[1]]
                })
            })
            .collect();
        assert!(near(&sequential(m, points.clone(), 1), &by_definition));
        assert!(near(&sequential(m, points.clone(), 2), &points));
    }
}
