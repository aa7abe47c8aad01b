//! LU decomposition of a dense matrix in blocks, without pivoting (the matrix is diagonally dominant).
//!
//! The matrix is one variable, a block is one object, and the blocks are dealt out to a grid of
//! processes (2-D scatter decomposition: docs/bibliography.md#memory-hierarchies, section 5.2), each at its process's memory process.
//! A process works on its blocks in private memory and writes each one once, when it is final; from then
//! on it is only read. So no copy is ever invalidated, and a block comes to a memory process once. Each
//! step has two barriers: the diagonal block is known, its row and column are known. What the next step needs is computed
//! first, and the rest while the barriers are under way. At the end the
//! factors must equal those of a sequential run bit for bit.

mod kernel;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use clap::Args;
use dsm_lib::{Call, Dsm, Matrix, View};

use crate::common::{Clock, Pace, same_bits};
use crate::error::{Error, Result};
use crate::figures::{Checksum, Figures};
use crate::program::{Program, Sequential, patient};
use kernel::{Block, factorise, whole};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Lu {
    /// Rows and columns of the matrix.
    #[arg(long, default_value_t = 192)]
    n: usize,
    /// Rows and columns of a block, about.
    #[arg(long, default_value_t = 16)]
    block: usize,
    /// Seed of the matrix; each iteration factors that of the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    pace: Pace,
}

/// Iterations if nothing is said.
const ITERATIONS: usize = 1;

impl Program for Lu {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        self.check()?;
        let worker = Worker::new(self, dsm)?;
        let mut clock = self.pace.start(dsm, "lu", ITERATIONS)?;
        while clock.runs() {
            worker.factorise(self.seed_of(clock.done()))?;
            if !clock.next()? {
                break;
            }
        }
        match dsm.rank() {
            0 => self.verify(&worker, &clock),
            _ => Ok(String::new()),
        }
    }
}

impl Sequential for Lu {
    fn alone(&self) -> Result<Figures> {
        self.check()?;
        let mut factors = Vec::new();
        let started = Instant::now();
        for i in 0..self.pace.iterations(ITERATIONS) {
            factors = factorise(self.seed_of(i), self.n, self.blocks());
        }
        let took = started.elapsed();
        Ok(Figures::new(took, Checksum::of(&whole(&factors))))
    }
}

impl Lu {
    fn check(&self) -> Result<()> {
        if self.n == 0 || self.block == 0 || self.block > self.n {
            return Err(Error::Usage(format!(
                "lu: blocks of {} in a matrix of {}; give --n of at least 1, and --block between 1 and that",
                self.block, self.n
            )));
        }
        Ok(())
    }

    /// Blocks a row and a column.
    fn blocks(&self) -> usize {
        self.n.div_ceil(self.block)
    }

    /// The seed of the matrix of an iteration.
    fn seed_of(&self, iteration: usize) -> u64 {
        self.seed.wrapping_add(iteration as u64)
    }

    fn verify(&self, worker: &Worker<'_>, clock: &Clock) -> Result<String> {
        let (iterations, mut expected) = (clock.done(), Vec::new());
        if let Some(last) = iterations.checked_sub(1) {
            expected = whole(&factorise(self.seed_of(last), self.n, self.blocks()));
            same_bits(worker.dsm, "lu", &worker.matrix, &expected)?;
        }
        let text = format!(
            "lu: {} x {} in {} x {} blocks by {} processes, {iterations} iterations; equal to a sequential run bit for bit",
            self.n,
            self.n,
            worker.blocks,
            worker.blocks,
            worker.dsm.size()
        );
        Ok(clock.report(text, Checksum::of(&expected)))
    }
}

/// One process, and the matrix.
struct Worker<'a> {
    lu: &'a Lu,
    dsm: &'a Dsm,
    matrix: Matrix<f64>,
    /// Blocks a row and a column.
    blocks: usize,
    grid: Grid,
}

/// The processes as a grid, as square as can be, and who has which block.
struct Grid {
    rows: usize,
    columns: usize,
}

impl Grid {
    fn of(processes: usize) -> Self {
        let rows = (1..=processes).filter(|r| r * r <= processes && processes.is_multiple_of(*r));
        let rows = rows.max().unwrap_or(1);
        Self {
            rows,
            columns: processes / rows,
        }
    }

    fn owner(&self, i: usize, j: usize) -> usize {
        i % self.rows * self.columns + j % self.columns
    }
}

impl<'a> Worker<'a> {
    fn new(lu: &'a Lu, dsm: &'a Dsm) -> Result<Self> {
        let blocks = lu.blocks();
        let grid = Grid::of(dsm.size());
        let owners = (0..blocks * blocks).map(|at| grid.owner(at / blocks, at % blocks));
        Ok(Self {
            lu,
            dsm,
            matrix: dsm
                .matrix("lu.matrix", lu.n, lu.n)
                .split_blocks(blocks, blocks)
                .owner_ranks(owners)
                .declare()?,
            blocks,
            grid,
        })
    }

    fn factorise(&self, seed: u64) -> Result<()> {
        let dsm = patient(self.dsm);
        let mut mine = self.initial(seed)?;
        self.factor_diagonal(0, &mut mine)?;
        dsm.barrier()?;
        self.solve_panels(0, &mut mine)?;
        dsm.barrier()?;
        for k in 0..self.blocks - 1 {
            let panels = self.panels(k, &mine)?;
            let rest = mine.keys().filter(|(i, j)| *i > k && *j > k);
            let (next, rest): (Vec<Place>, Vec<Place>) =
                rest.partition(|(i, j)| *i == k + 1 || *j == k + 1);
            panels.update(&mut mine, &next);
            self.factor_diagonal(k + 1, &mut mine)?;
            let (first, second) = rest.split_at(rest.len() / 2);
            let barrier = dsm.barrier_async();
            panels.update(&mut mine, first);
            barrier.wait()?;
            self.solve_panels(k + 1, &mut mine)?;
            let barrier = dsm.barrier_async();
            panels.update(&mut mine, second);
            barrier.wait()?;
        }
        Ok(())
    }

    /// This process's blocks, before the first step.
    fn initial(&self, seed: u64) -> Result<Blocks> {
        let all = (0..self.blocks).flat_map(|i| (0..self.blocks).map(move |j| (i, j)));
        all.filter(|(i, j)| self.grid.owner(*i, *j) == self.dsm.rank())
            .map(|(i, j)| {
                let r = self.matrix.object(i * self.blocks + j)?.region();
                let from = (r.row as usize, r.column as usize);
                let size = (r.rows as usize, r.columns as usize);
                Ok(((i, j), Block::of_matrix(seed, self.lu.n, from, size)))
            })
            .collect()
    }

    /// Block (k, k), if it is this process's: final after this, and written.
    fn factor_diagonal(&self, k: usize, mine: &mut Blocks) -> Result<()> {
        if let Some(diagonal) = mine.get_mut(&(k, k)) {
            diagonal.factor();
            self.publish((k, k), diagonal)?;
        }
        Ok(())
    }

    /// Row and column `k`: final after this, and written.
    fn solve_panels(&self, k: usize, mine: &mut Blocks) -> Result<()> {
        let in_panel = |(i, j): &Place| (*i == k) != (*j == k) && *i >= k && *j >= k;
        if !mine.keys().any(in_panel) {
            return Ok(());
        }
        let diagonal = match mine.get(&(k, k)) {
            Some(own) => own.clone(),
            None => block(self.fetch(k, k)?)?,
        };
        for ((i, j), panel) in mine.iter_mut().filter(|(place, _)| in_panel(place)) {
            match *i == k {
                true => panel.solve_lower(&diagonal),
                false => panel.solve_upper(&diagonal),
            }
            self.publish((*i, *j), panel)?;
        }
        Ok(())
    }

    /// What this process's blocks right of and below row and column `k` need of those. All that others have is asked for
    /// at once.
    fn panels(&self, k: usize, mine: &Blocks) -> Result<Panels> {
        let rest = mine.keys().filter(|(i, j)| *i > k && *j > k);
        let (rows, columns): (BTreeSet<usize>, BTreeSet<usize>) = rest.copied().unzip();
        let needed = rows
            .iter()
            .map(|i| (*i, k))
            .chain(columns.iter().map(|j| (k, *j)));
        let mut found = Blocks::new();
        let mut asked = Vec::new();
        for (i, j) in needed {
            match mine.get(&(i, j)) {
                Some(own) => drop(found.insert((i, j), own.clone())),
                None => asked.push(((i, j), self.fetch(i, j)?)),
            }
        }
        for (place, call) in asked {
            found.insert(place, block(call)?);
        }
        Ok(Panels { k, blocks: found })
    }

    fn fetch(&self, i: usize, j: usize) -> Result<Call<View<f64>>> {
        Ok(self.matrix.object(i * self.blocks + j)?.read_async())
    }

    fn publish(&self, (i, j): Place, block: &Block) -> Result<()> {
        let object = self.matrix.object(i * self.blocks + j)?;
        Ok(object.write_async(&block.values).post()?)
    }
}

/// Row and column of a block.
type Place = (usize, usize);

type Blocks = BTreeMap<Place, Block>;

/// Blocks of row and column `k`.
struct Panels {
    k: usize,
    blocks: Blocks,
}

impl Panels {
    /// Updates the blocks at `places`.
    fn update(&self, mine: &mut Blocks, places: &[Place]) {
        for (i, j) in places {
            if let Some(block) = mine.get_mut(&(*i, *j)) {
                block.update(&self.blocks[&(*i, self.k)], &self.blocks[&(self.k, *j)]);
            }
        }
    }
}

fn block(call: Call<View<f64>>) -> Result<Block> {
    let view = call.wait()?;
    Ok(Block {
        columns: view.rows().next().map_or(1, <[f64]>::len),
        values: view.into_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::Grid;

    #[test]
    fn the_grid_has_all_processes_and_each_has_blocks() {
        for processes in 1..=12 {
            let grid = Grid::of(processes);
            assert_eq!(grid.rows * grid.columns, processes);
            let blocks = (0..12).flat_map(|i| (0..12).map(move |j| (i, j)));
            let owners: std::collections::BTreeSet<usize> =
                blocks.map(|(i, j)| grid.owner(i, j)).collect();
            assert_eq!(owners, (0..processes).collect());
        }
    }
}
