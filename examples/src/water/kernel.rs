//! The physics: molecules in a periodic cube that attract and repel each other in pairs.
//!
//! The force is Lennard-Jones' with a cut-off, in units in which its depth, its range and the mass of a
//! molecule are 1. It is summed in fixed point: integers add up to the same in any order, so whoever
//! adds first, the result is the same to the last bit, and the sum over all molecules is exactly zero.

use std::ops::Range;

use crate::common::{dice, unit};

/// A place, a velocity.
pub(crate) type Vector = [f64; 3];
/// A force in fixed point.
pub(crate) type Force = [i64; 3];

/// One unit of force in fixed point: 2^32. The largest sum is 2^31 units, far more than occurs.
const FIXED: f64 = 4_294_967_296.0;
/// Farther than this, molecules do not feel each other.
const CUT_OFF: f64 = 2.5;
/// Distance on the grid where they start; nearly that of least energy.
const SPACING: f64 = 1.2;
/// Length of a step in time.
const STEP: f64 = 0.004;

/// The cube and what is in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cube {
    pub(crate) molecules: usize,
    pub(crate) seed: u64,
}

impl Cube {
    /// Molecules along an edge at the start.
    fn edge(self) -> usize {
        let mut edge = 1_usize;
        while edge.pow(3) < self.molecules {
            edge += 1;
        }
        edge
    }

    fn width(self) -> f64 {
        // At least so wide that a molecule meets another only once.
        (self.edge() as f64 * SPACING).max(2.0 * CUT_OFF)
    }

    /// Where molecule `i` is at the start, and how fast.
    pub(crate) fn initial(self, i: usize) -> (Vector, Vector) {
        let edge = self.edge();
        let mut dice = dice(self.seed, i);
        let at = [i / edge / edge, i / edge % edge, i % edge].map(|k| (k as f64 + 0.5) * SPACING);
        (at, [(); 3].map(|()| unit(&mut dice) - 0.5))
    }

    /// From `b` to `a` the short way round, in a cube as wide as `width`; both are in it.
    fn between(width: f64, a: &Vector, b: &Vector) -> Vector {
        std::array::from_fn(|k| {
            let d = a[k] - b[k];
            let round = if d > 0.0 { d - width } else { d + width };
            if d.abs() > 0.5 * width { round } else { d }
        })
    }

    /// The force of `b` on `a`, in a cube as wide as `width`; that of `a` on `b` is its opposite.
    fn force(width: f64, a: &Vector, b: &Vector) -> Option<Force> {
        let d = Self::between(width, a, b);
        let square = d.iter().map(|x| x * x).sum::<f64>();
        if square > CUT_OFF * CUT_OFF {
            return None;
        }
        let near = 1.0 / square;
        let sixth = near * near * near;
        let strength = 24.0 * near * sixth * (2.0 * sixth - 1.0);
        Some(d.map(|x| (x * strength * FIXED) as i64))
    }

    /// Adds to `forces` what the pairs that `mine` are responsible for exert: molecule i for itself and
    /// each of the half of all that follow it, round and round; so each pair has one who is.
    pub(crate) fn pairs(self, mine: Range<usize>, at: &[Vector], forces: &mut [Force]) {
        let (n, width) = (self.molecules, self.width());
        for i in mine {
            // Opposites, of an even number, would be responsible for each other.
            let partners = (n - 1) / 2 + usize::from(n.is_multiple_of(2) && i < n / 2);
            let end = i + 1 + partners;
            let mut own = [0; 3];
            for others in [i + 1..end.min(n), 0..end.saturating_sub(n)] {
                for (other, theirs) in at[others.clone()].iter().zip(&mut forces[others]) {
                    if let Some(force) = Self::force(width, &at[i], other) {
                        for k in 0..3 {
                            own[k] = force[k].wrapping_add(own[k]);
                            theirs[k] = theirs[k].wrapping_sub(force[k]);
                        }
                    }
                }
            }
            for k in 0..3 {
                forces[i][k] = forces[i][k].wrapping_add(own[k]);
            }
        }
    }

    /// Moves a molecule on by a step.
    pub(crate) fn advance(self, at: &mut Vector, speed: &mut Vector, force: &Force) {
        let width = self.width();
        for k in 0..3 {
            speed[k] += STEP * force[k] as f64 / FIXED;
            at[k] = (at[k] + STEP * speed[k]).rem_euclid(width);
        }
    }

    /// All molecules at the start: where they are, and how fast.
    pub(crate) fn start(self) -> (Vec<Vector>, Vec<Vector>) {
        (0..self.molecules).map(|i| self.initial(i)).unzip()
    }

    /// A step of all molecules.
    pub(crate) fn step(self, at: &mut [Vector], speeds: &mut [Vector], forces: &mut [Force]) {
        forces.fill([0; 3]);
        self.pairs(0..self.molecules, at, forces);
        for ((at, speed), force) in at.iter_mut().zip(speeds).zip(forces) {
            self.advance(at, speed, force);
        }
    }

    /// The whole computation by one process: where the molecules are after `steps`.
    pub(crate) fn sequential(self, steps: usize) -> Vec<Vector> {
        let (mut at, mut speeds) = self.start();
        let mut forces = vec![[0; 3]; self.molecules];
        for _ in 0..steps {
            self.step(&mut at, &mut speeds, &mut forces);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cube(molecules: usize) -> Cube {
        Cube { molecules, seed: 1 }
    }

    #[test]
    fn the_near_repel_the_far_attract_and_in_between_is_rest() {
        let width = cube(1000).width();
        let pull = |x: f64| Cube::force(width, &[1.0 + x, 1.0, 1.0], &[1.0; 3]);
        assert!((pull(1.0).unwrap()[0] as f64 / FIXED - 24.0).abs() < 1e-6);
        assert!(pull(1.0).unwrap()[0] > 0 && pull(1.5).unwrap()[0] < 0);
        let rest = pull(2_f64.powf(1.0 / 6.0)).unwrap()[0];
        assert!((rest as f64 / FIXED).abs() < 1e-9, "{rest}");
        assert!(pull(2.49).is_some() && pull(2.51).is_none());
        assert!(pull(width - 2.49).is_some(), "round the cube");
    }

    #[test]
    fn every_pair_has_one_who_is_responsible() {
        for n in [1, 2, 3, 26, 27] {
            let cube = cube(n);
            let at: Vec<Vector> = (0..n).map(|i| cube.initial(i).0).collect();
            let mut forces = vec![[0; 3]; n];
            // Whoever does it, the sum is the same.
            for i in (0..n).rev() {
                cube.pairs(i..i + 1, &at, &mut forces);
            }
            for (i, is) in forces.iter().enumerate() {
                let mut sum = [0; 3];
                for j in (0..n).filter(|j| *j != i) {
                    // As the pair has computed it: from its first molecule.
                    let ahead = (j + n - i) % n;
                    let first = 2 * ahead < n || (2 * ahead == n && i < j);
                    let (a, b, sign) = if first { (i, j, 1) } else { (j, i, -1) };
                    let force = Cube::force(cube.width(), &at[a], &at[b]).unwrap_or_default();
                    for k in 0..3 {
                        sum[k] += sign * force[k];
                    }
                }
                assert_eq!(*is, sum, "{i} of {n}");
            }
        }
    }

    #[test]
    fn energy_and_momentum_stay() {
        let cube = cube(64);
        let n = cube.molecules;
        let (mut at, mut speed): (Vec<_>, Vec<_>) = (0..n).map(|i| cube.initial(i)).unzip();
        let kinetic = |speed: &[Vector]| speed.iter().flatten().map(|v| v * v / 2.0).sum::<f64>();
        let potential = |at: &[Vector]| {
            let mut sum = 0.0;
            for i in 0..n {
                for j in 0..i {
                    let square: f64 = Cube::between(cube.width(), &at[i], &at[j])
                        .iter()
                        .map(|x| x * x)
                        .sum();
                    if square <= CUT_OFF * CUT_OFF {
                        sum += 4.0 * (square.powi(-6) - square.powi(-3));
                    }
                }
            }
            sum
        };
        let before = kinetic(&speed) + potential(&at);
        for _ in 0..200 {
            let mut forces = vec![[0; 3]; n];
            cube.pairs(0..n, &at, &mut forces);
            for k in 0..3 {
                assert_eq!(forces.iter().map(|f| f[k]).sum::<i64>(), 0);
            }
            for ((at, speed), force) in at.iter_mut().zip(&mut speed).zip(&forces) {
                cube.advance(at, speed, force);
            }
        }
        let after = kinetic(&speed) + potential(&at);
        assert!(
            (after - before).abs() < 0.05 * before.abs(),
            "{before} {after}"
        );
        assert_eq!(at, cube.sequential(200));
    }
}
