//! Molecular dynamics with migratory locks (Water: docs/bibliography.md#dvsm, "Choice of applications"): the sharing is that of
//! SPLASH's Water, the force is simpler.
//!
//! Each process moves a share of the molecules. Each step has two phases, each ended by a barrier:
//!
//! * *Forces.* Everyone reads the positions of the others' molecules (an object for each process, in its own memory process:
//!   **producer and consumers**, copies are updated), computes its pairs and adds up privately what they
//!   do to each molecule. Then it adds what concerns the molecules of others to the shared forces, block of molecules by
//!   block, in a section each: the objects **migrate** from process to process. It begins with those of the next
//!   process, so all blocks are busy at once. `--blocks` makes them finer (more locks, less waiting) or coarser. With
//!   `--accumulate` the owner adds, without sections: one message for each block, which nobody waits for before the barrier.
//! * *Motion.* Each process takes what others have added to the forces on its molecules, clears it, adds its own, and
//!   writes the new positions.
//!
//! Forces are integers (fixed point), which add up to the same in any order: the result must equal the
//! sequential one bit for bit. The size of the DVSM paper, table 1, is `--molecules 1000`.

mod kernel;

use std::ops::Range;
use std::time::Instant;

use clap::Args;
use dsm_lib::{Cache, Call, CopyPolicy, Dsm, Matrix};

use crate::common::{Pace, enough, same_bits, share};
use crate::error::{Error, Result};
use crate::figures::{Checksum, Figures};
use crate::program::{Program, Sequential};
use kernel::{Cube, Force, Vector};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Water {
    /// Molecules, at least one per process.
    #[arg(long, default_value_t = 343)]
    molecules: usize,
    /// Blocks that the forces on one process's molecules are split into, each with its lock.
    #[arg(long, default_value_t = 4)]
    blocks: usize,
    /// Seed of the velocities.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Have the owners add the forces (accumulate), instead of adding in sections.
    #[arg(long)]
    accumulate: bool,
    #[command(flatten)]
    pace: Pace,
}

impl Program for Water {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "water", "--molecules", self.molecules, 1)?;
        if self.blocks == 0 || self.blocks > self.molecules {
            return Err(Error::Usage(format!(
                "water: --blocks {}: give a number between 1 and --molecules, {}",
                self.blocks, self.molecules
            )));
        }
        let mut worker = Worker::new(self, dsm)?;
        let mut clock = self.pace.start(dsm, "water", ITERATIONS)?;
        while clock.runs() {
            worker.add_forces()?;
            clock.barrier()?;
            worker.advance()?;
            if !clock.next()? {
                break;
            }
        }
        if dsm.rank() > 0 {
            return Ok(String::new());
        }
        let expected = worker.cube.sequential(clock.done());
        same_bits(dsm, "water", &worker.positions, expected.as_flattened())?;
        let text = format!(
            "water: {} molecules by {} processes, {} steps; equal to a sequential run bit for bit",
            self.molecules,
            dsm.size(),
            clock.done()
        );
        let checksum = Checksum::of(expected.as_flattened());
        Ok(clock.report(text, checksum))
    }
}

/// Steps if nothing is said.
const ITERATIONS: usize = 20;

impl Sequential for Water {
    fn alone(&self) -> Result<Figures> {
        let cube = Cube {
            molecules: self.molecules,
            seed: self.seed,
        };
        let (mut at, mut speeds) = cube.start();
        let mut forces = vec![[0; 3]; self.molecules];
        let started = Instant::now();
        for _ in 0..self.pace.iterations(ITERATIONS) {
            cube.step(&mut at, &mut speeds, &mut forces);
        }
        let took = started.elapsed();
        Ok(Figures::new(took, Checksum::of(at.as_flattened())))
    }
}

/// One process and the shared variables.
struct Worker<'a> {
    dsm: &'a Dsm,
    cube: Cube,
    mine: Range<usize>,
    /// All molecules, those of others as they were read.
    at: Vec<Vector>,
    /// Of this process's molecules.
    speeds: Vec<Vector>,
    /// What this process's pairs do to all molecules.
    forces: Vec<Force>,
    /// A row a molecule, an object a process.
    positions: Matrix<f64>,
    /// A row a molecule, for each process as many objects as there are blocks. Molecules do not divide
    /// into blocks evenly, so each block has rows for the largest; see [`block`](Self::block).
    shared_forces: Matrix<i64>,
    blocks: usize,
    /// The owners add forces, without sections.
    accumulate: bool,
}

impl<'a> Worker<'a> {
    fn new(water: &Water, dsm: &'a Dsm) -> Result<Self> {
        let (n, size) = (water.molecules, dsm.size());
        let cube = Cube {
            molecules: n,
            seed: water.seed,
        };
        let mine = share(n, size, dsm.rank());
        let (at, mut speeds) = cube.start();
        speeds = speeds.drain(mine.clone()).collect();
        // A block for each molecule at most.
        let blocks = water.blocks.min(share(n, size, size - 1).len());
        let rows = share(share(n, size, 0).len(), blocks, 0).len();
        let positions = dsm.matrix("water.positions", n, 3).split_rows(size);
        let positions = positions.owner_per_rank().policy(CopyPolicy::Update);
        let positions = positions.cache(Cache::Ap);
        let worker = Self {
            dsm,
            cube,
            at,
            speeds,
            forces: vec![[0; 3]; n],
            positions: positions.declare()?,
            shared_forces: dsm
                .matrix("water.forces", rows * blocks * size, 3)
                .split_rows(blocks * size)
                .owner_ranks((0..blocks * size).map(|block| block / blocks))
                .declare()?,
            blocks,
            accumulate: water.accumulate,
            mine,
        };
        worker.write_positions()?.post()?;
        for block in worker.own_blocks() {
            worker.clear(block)?.post()?;
        }
        Ok(worker)
    }

    /// The molecules of a block of forces.
    fn block(&self, block: usize) -> Range<usize> {
        let share_of = share(self.cube.molecules, self.dsm.size(), block / self.blocks);
        let part = share(share_of.len(), self.blocks, block % self.blocks);
        share_of.start + part.start..share_of.start + part.end
    }

    fn own_blocks(&self) -> Range<usize> {
        self.dsm.rank() * self.blocks..(self.dsm.rank() + 1) * self.blocks
    }

    fn clear(&self, block: usize) -> Result<Call<()>> {
        let block = self.shared_forces.object(block)?;
        Ok(block.write_async(&vec![0; block.len()]))
    }

    fn write_positions(&self) -> Result<Call<()>> {
        let own = self.positions.object(self.dsm.rank())?;
        Ok(own.write_async(self.at[self.mine.clone()].as_flattened()))
    }

    /// Reads where the molecules of others are.
    fn read_positions(&mut self) -> Result<()> {
        let rank = self.dsm.rank();
        let others = self.positions.objects();
        let others = others.filter(|o| o.index() as usize != rank);
        let asked: Vec<_> = others.map(|o| (o.region(), o.read_async())).collect();
        for (region, positions) in asked {
            let theirs = &mut self.at[region.row as usize..][..region.rows as usize];
            theirs
                .as_flattened_mut()
                .copy_from_slice(&positions.wait()?);
        }
        Ok(())
    }

    fn add_forces(&mut self) -> Result<()> {
        self.read_positions()?;
        self.forces.fill([0; 3]);
        self.cube
            .pairs(self.mine.clone(), &self.at, &mut self.forces);
        let own = self.own_blocks();
        for block in (own.end..self.shared_forces.object_count()).chain(0..own.start) {
            let forces = self.forces[self.block(block)].as_flattened();
            // A block that feels nothing is left alone.
            if forces.iter().all(|f| *f == 0) {
                continue;
            }
            match self.accumulate {
                true => {
                    let block = self.shared_forces.object(block)?;
                    block.accumulate_at_async(0, forces).post()?;
                }
                false => self.add(block, forces)?,
            }
        }
        Ok(())
    }

    /// Adds to a block of the shared forces.
    fn add(&self, block: usize, forces: &[i64]) -> Result<()> {
        let mut section = self.shared_forces.object(block)?.acquire()?;
        for (sum, force) in section.values_mut()?.iter_mut().zip(forces) {
            *sum = sum.wrapping_add(*force);
        }
        section.release()?;
        Ok(())
    }

    /// Moves own molecules.
    fn advance(&mut self) -> Result<()> {
        if self.dsm.size() > 1 {
            self.take_forces()?;
        }
        let own = self.mine.clone();
        let molecules = self.at[own.clone()].iter_mut().zip(&mut self.speeds);
        for ((at, speed), force) in molecules.zip(&self.forces[own]) {
            self.cube.advance(at, speed, force);
        }
        Ok(self.write_positions()?.post()?)
    }

    /// Adds to the forces on own molecules what others have, and clears that.
    fn take_forces(&mut self) -> Result<()> {
        let mut asked = Vec::with_capacity(self.blocks);
        for block in self.own_blocks() {
            asked.push((block, self.shared_forces.object(block)?.read_async()));
        }
        for (block, sums) in asked {
            let sums = sums.wait()?;
            self.clear(block)?.post()?;
            let molecules = self.block(block);
            let forces = self.forces[molecules].as_flattened_mut();
            for (force, sum) in forces.iter_mut().zip(&*sums) {
                *force = force.wrapping_add(*sum);
            }
        }
        Ok(())
    }
}
