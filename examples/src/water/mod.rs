//! Molecular dynamics with migratory locks (Water: docs/bibliography.md#dvsm, "Choice of applications"): the sharing is that of
//! SPLASH's Water, the force is simpler.
//!
//! Each process moves a share of the molecules. Each step has two phases, each ended by a barrier:
//!
//! * *Forces.* Everyone reads all positions (an object for each process, in its own memory process:
//!   **producer and consumers**, copies are updated), computes its pairs and adds up privately what they
//!   do to each molecule. Then it adds that to the shared forces, block of molecules by block, in a
//!   section each: the objects **migrate** from process to process. It begins with its own molecules, so
//!   all blocks are busy at once. `--blocks` makes them finer (more locks, less waiting) or coarser.
//! * *Motion.* Each process takes the forces on its molecules, clears them, and writes the new positions.
//!
//! Forces are integers (fixed point), which add up to the same in any order: the result must equal the
//! sequential one bit for bit. The size of the DVSM paper, table 1, is `--molecules 1000`.

mod kernel;

use std::ops::Range;

use clap::Args;
use dsm_lib::{CopyPolicy, Dsm, Matrix};

use crate::app::Program;
use crate::common::{Pace, enough, same_bits, share};
use crate::error::{Error, Result};
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
        let mut clock = self.pace.start(dsm, "water", 20)?;
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
        Ok(format!(
            "water: {} molecules by {} processes, {} steps; equal to a sequential run bit for bit",
            self.molecules,
            dsm.size(),
            clock.done()
        ))
    }
}

/// One process and the shared variables.
struct Worker<'a> {
    dsm: &'a Dsm,
    cube: Cube,
    mine: Range<usize>,
    speeds: Vec<Vector>,
    /// A row a molecule, an object a process.
    positions: Matrix<f64>,
    /// A row a molecule, for each process as many objects as there are blocks. Molecules do not divide
    /// into blocks evenly, so each block has rows for the largest; see [`block`](Self::block).
    forces: Matrix<i64>,
    blocks: usize,
}

impl<'a> Worker<'a> {
    fn new(water: &Water, dsm: &'a Dsm) -> Result<Self> {
        let (n, size) = (water.molecules, dsm.size());
        let cube = Cube {
            molecules: n,
            seed: water.seed,
        };
        let mine = share(n, size, dsm.rank());
        let (at, speeds): (Vec<Vector>, Vec<Vector>) =
            mine.clone().map(|i| cube.initial(i)).unzip();
        // A block for each molecule at most.
        let blocks = water.blocks.min(share(n, size, size - 1).len());
        let rows = share(share(n, size, 0).len(), blocks, 0).len();
        let positions = dsm.matrix("water.positions", n, 3).split_rows(size);
        let positions = positions.owner_per_rank().policy(CopyPolicy::Update);
        let worker = Self {
            dsm,
            cube,
            speeds,
            positions: positions.declare()?,
            forces: dsm
                .matrix("water.forces", rows * blocks * size, 3)
                .split_rows(blocks * size)
                .owner_ranks((0..blocks * size).map(|block| block / blocks))
                .declare()?,
            blocks,
            mine,
        };
        let own = worker.positions.object(dsm.rank())?;
        own.write(at.as_flattened())?;
        for block in worker.own_blocks() {
            worker.clear(block)?;
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

    fn clear(&self, block: usize) -> Result<()> {
        let block = self.forces.object(block)?;
        Ok(block.write(&vec![0; block.len()])?)
    }

    fn add_forces(&self) -> Result<()> {
        let at = self.positions.read_all()?;
        let at: &[Vector] = at.as_chunks().0;
        let mut forces = vec![[0; 3]; self.cube.molecules];
        self.cube.pairs(self.mine.clone(), at, &mut forces);
        let (first, blocks) = (self.own_blocks().start, self.forces.object_count());
        for turn in 0..blocks {
            let block = (first + turn) % blocks;
            self.add(block, &forces[self.block(block)])?;
        }
        Ok(())
    }

    /// Adds to a block of the shared forces; a block that feels nothing is left alone.
    fn add(&self, block: usize, forces: &[Force]) -> Result<()> {
        let forces = forces.as_flattened();
        if forces.iter().all(|f| *f == 0) {
            return Ok(());
        }
        let mut section = self.forces.object(block)?.acquire()?;
        let mut sums = section.read()?.into_vec();
        for (sum, force) in sums.iter_mut().zip(forces) {
            *sum = sum.wrapping_add(*force);
        }
        section.write(&sums)?;
        section.release()?;
        Ok(())
    }

    /// Moves own molecules.
    fn advance(&mut self) -> Result<()> {
        let mut forces: Vec<Force> = Vec::with_capacity(self.speeds.len());
        for block in self.own_blocks() {
            let sums = self.forces.object(block)?.read()?;
            forces.extend(&sums.as_chunks().0[..self.block(block).len()]);
            self.clear(block)?;
        }
        let own = self.positions.object(self.dsm.rank())?;
        let mut at = own.read()?.into_vec();
        let molecules = at.as_chunks_mut().0.iter_mut().zip(&mut self.speeds);
        for ((at, speed), force) in molecules.zip(&forces) {
            self.cube.advance(at, speed, force);
        }
        Ok(own.write(&at)?)
    }
}
