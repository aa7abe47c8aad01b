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
    /// ω_m^k for k < m/2.
    roots: Vec<Complex>,
}

impl Transform {
    pub(crate) fn new(m: usize, inverse: bool) -> Self {
        let roots = (0..m / 2).map(|k| root(m, k, inverse)).collect();
        Self { m, inverse, roots }
    }

    /// Transforms one row in place: decimation in time, radix 2. The inverse divides by √n = m, which
    /// two of them make n.
    pub(crate) fn row(&self, row: &mut [Complex]) {
        let bits = self.m.trailing_zeros();
        for i in 0..self.m {
            let j = i
                .reverse_bits()
                .checked_shr(usize::BITS - bits)
                .unwrap_or(0);
            if i < j {
                row.swap(i, j);
            }
        }
        let mut half = 1;
        while half < self.m {
            let stride = self.m / (2 * half);
            for pair in row.chunks_exact_mut(2 * half) {
                let (even, odd) = pair.split_at_mut(half);
                for (k, (a, b)) in even.iter_mut().zip(odd).enumerate() {
                    let t = times(self.roots[k * stride], *b);
                    (*a, *b) = ([a[0] + t[0], a[1] + t[1]], [a[0] - t[0], a[1] - t[1]]);
                }
            }
            half *= 2;
        }
        if self.inverse {
            let scale = 1.0 / self.m as f64;
            row.iter_mut().flatten().for_each(|part| *part *= scale);
        }
    }

    /// Multiplies row `i` of the matrix by the twiddle factors ω_n^(i j).
    pub(crate) fn twiddle(&self, i: usize, row: &mut [Complex]) {
        for (j, value) in row.iter_mut().enumerate() {
            *value = times(*value, root(self.m * self.m, i * j, self.inverse));
        }
    }
}

/// The transposed `m × m` matrix.
fn transposed(m: usize, a: &[Complex]) -> Vec<Complex> {
    (0..m * m).map(|at| a[at % m * m + at / m]).collect()
}

/// The whole transform by one process, of `m²` points.
pub(crate) fn sequential(m: usize, points: &[Complex], inverse: bool) -> Vec<Complex> {
    let transform = Transform::new(m, inverse);
    let mut a = transposed(m, points);
    for (i, row) in a.chunks_exact_mut(m).enumerate() {
        transform.row(row);
        transform.twiddle(i, row);
    }
    a = transposed(m, &a);
    for row in a.chunks_exact_mut(m) {
        transform.row(row);
    }
    transposed(m, &a)
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
            assert!(near(&sequential(m, &wave, false), &line), "{m}");

            let mut impulse = vec![[0.0, 0.0]; n];
            impulse[0] = [1.0, 0.0];
            assert!(near(&sequential(m, &impulse, false), &vec![[1.0, 0.0]; n]));
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
        let transformed = sequential(m, &points, false);
        assert!(near(&transformed, &by_definition));
        assert!(near(&sequential(m, &transformed, true), &points));
    }
}
