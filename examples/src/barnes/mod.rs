//! Barnes–Hut: the motion of a cluster of stars under their own gravity (Barnes: docs/bibliography.md#dvsm, "Choice of
//! applications").
//!
//! Each process moves a share of the bodies. They lie in an object for each process, at its own memory
//! process; there are two sets, written in turns: after each step everyone reads everything
//! that all others have written (**producers and consumers**; copies are updated), and a barrier
//! ends the step. Velocities are nobody else's business and stay private.
//!
//! The octree is not shared: each process builds all of it from the bodies it has read. That costs some
//! work of each, and saves the fine-grained sharing of cells that, on memory with pages, is false sharing
//! and costs this program many faults (docs/bibliography.md#dvsm). Which bodies are near in space has nothing to do with who moves them, so all have about the same
//! to do.
//!
//! The result must equal the sequential one bit for bit. The sizes of the DVSM paper, table 1, are `--bodies 16384
//! --theta 0.57` and `--bodies 32768 --theta 0.67`.

mod tree;

use std::f64::consts::TAU;
use std::time::Instant;

use clap::Args;
use dsm_lib::{Cache, CopyPolicy, Dsm, Matrix};

use crate::common::{Pace, dice, enough, same_bits, share, unit};
use crate::error::Result;
use crate::figures::{Checksum, Figures};
use crate::program::{Program, Sequential};
use tree::{Body, Tree, Vector};

/// Numbers a body: where it is, and its mass.
const WIDTH: usize = 4;
/// Length of a step in time.
const STEP: f64 = 0.01;

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Barnes {
    /// Bodies, at least one per process.
    #[arg(long, default_value_t = 1024)]
    bodies: usize,
    /// Cells seen under a smaller angle (width by distance) count as one body; 0 opens all.
    #[arg(long, default_value_t = 0.7)]
    theta: f64,
    /// Seed of places and velocities.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    pace: Pace,
}

impl Program for Barnes {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "barnes", "--bodies", self.bodies, 1)?;
        let sets = [
            self.declare(dsm, "barnes.bodies-even")?,
            self.declare(dsm, "barnes.bodies-odd")?,
        ];
        let mine = share(self.bodies, dsm.size(), dsm.rank());
        let (mut all, mut speeds) = self.start();
        speeds = speeds.drain(mine.clone()).collect();
        let mut clock = self.pace.start(dsm, "barnes", ITERATIONS)?;
        while clock.runs() {
            let next = &sets[clock.done() % 2];
            self.step(&mut all, mine.start, &mut speeds);
            let own = next.object(dsm.rank())?;
            own.write_async(&flat(&all[mine.clone()])).post()?;
            let goes_on = clock.next()?;
            fetch(next, dsm.rank(), &mut all)?;
            if !goes_on {
                break;
            }
        }
        if dsm.rank() > 0 {
            return Ok(String::new());
        }
        let expected = flat(&self.sequential(clock.done()));
        if let Some(last) = clock.done().checked_sub(1) {
            same_bits(dsm, "barnes", &sets[last % 2], &expected)?;
        }
        let text = format!(
            "barnes: {} bodies by {} processes, {} steps; equal to a sequential run bit for bit",
            self.bodies,
            dsm.size(),
            clock.done()
        );
        Ok(clock.report(text, Checksum::of(&expected)))
    }
}

/// Steps if nothing is said.
const ITERATIONS: usize = 10;

impl Sequential for Barnes {
    fn alone(&self) -> Result<Figures> {
        let (mut bodies, mut speeds) = self.start();
        let started = Instant::now();
        for _ in 0..self.pace.iterations(ITERATIONS) {
            self.step(&mut bodies, 0, &mut speeds);
        }
        let took = started.elapsed();
        Ok(Figures::new(took, Checksum::of(&flat(&bodies))))
    }
}

impl Barnes {
    fn declare(&self, dsm: &Dsm, name: &str) -> Result<Matrix<f64>> {
        let bodies = dsm.matrix(name, self.bodies, WIDTH).split_rows(dsm.size());
        let bodies = bodies.owner_per_rank().policy(CopyPolicy::Update);
        Ok(bodies.cache(Cache::Ap).declare()?)
    }

    /// A body of a Plummer sphere: dense in the middle, thin outside; and a slow velocity.
    fn initial(&self, i: usize) -> (Body, Vector) {
        let mut dice = dice(self.seed, i);
        // Nine tenths of the mass: the rest is very far away.
        let within = 0.9 * unit(&mut dice) + 1e-6;
        let radius = 1.0 / (within.powf(-2.0 / 3.0) - 1.0).sqrt();
        let up = 2.0 * unit(&mut dice) - 1.0;
        let (sin, cos) = (TAU * unit(&mut dice)).sin_cos();
        let flat = (1.0 - up * up).sqrt();
        let body = Body {
            at: [flat * cos, flat * sin, up].map(|x| x * radius),
            mass: 1.0 / self.bodies as f64,
        };
        (body, [(); 3].map(|()| 0.5 * (unit(&mut dice) - 0.5)))
    }

    /// All bodies at the start, and their velocities.
    fn start(&self) -> (Vec<Body>, Vec<Vector>) {
        (0..self.bodies).map(|i| self.initial(i)).unzip()
    }

    /// Moves the bodies from `first` on, as many as there are velocities, by a step.
    fn step(&self, all: &mut [Body], first: usize, speeds: &mut [Vector]) {
        let tree = Tree::new(all.to_vec());
        for (body, speed) in all[first..].iter_mut().zip(speeds) {
            let pull = tree.pull(&body.at, self.theta);
            for k in 0..3 {
                speed[k] += STEP * pull[k];
                body.at[k] += STEP * speed[k];
            }
        }
    }

    /// The whole computation by one process.
    fn sequential(&self, steps: usize) -> Vec<Body> {
        let (mut bodies, mut speeds) = self.start();
        for _ in 0..steps {
            self.step(&mut bodies, 0, &mut speeds);
        }
        bodies
    }
}

/// Reads the bodies that others have moved; those of process `rank` are here.
fn fetch(set: &Matrix<f64>, rank: usize, all: &mut [Body]) -> Result<()> {
    let others = set.objects().filter(|o| o.index() as usize != rank);
    let asked: Vec<_> = others.map(|o| (o.region(), o.read_async())).collect();
    for (region, numbers) in asked {
        let numbers = numbers.wait()?;
        let theirs = &mut all[region.row as usize..][..region.rows as usize];
        for (body, [x, y, z, mass]) in theirs.iter_mut().zip(numbers.as_chunks::<WIDTH>().0) {
            *body = Body {
                at: [*x, *y, *z],
                mass: *mass,
            };
        }
    }
    Ok(())
}

fn flat(bodies: &[Body]) -> Vec<f64> {
    let numbers = |b: &Body| [b.at[0], b.at[1], b.at[2], b.mass];
    bodies.iter().flat_map(numbers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_keep_together_and_their_middle_rests() {
        let barnes = Barnes {
            bodies: 200,
            theta: 0.5,
            seed: 4,
            pace: Pace::default(),
        };
        let middle = |bodies: &[Body], k: usize| {
            bodies.iter().map(|b| b.at[k]).sum::<f64>() / bodies.len() as f64
        };
        let (before, speeds): (Vec<Body>, Vec<Vector>) =
            (0..200).map(|i| barnes.initial(i)).unzip();
        let after = barnes.sequential(50);
        for k in 0..3 {
            let drift = speeds.iter().map(|v| v[k]).sum::<f64>() / 200.0 * 50.0 * STEP;
            let moved = middle(&after, k) - middle(&before, k);
            assert!((moved - drift).abs() < 0.01, "{moved} {drift}");
        }
        let far = |b: &&Body| b.at.iter().map(|x| x * x).sum::<f64>() > 25.0;
        assert_eq!(after.iter().filter(far).count(), 0);
    }
}
