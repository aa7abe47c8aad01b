//! LU decomposition of a dense matrix in blocks, without pivoting (the matrix is diagonally dominant).
//!
//! The matrix is one variable, a block is one object, and the blocks are dealt out to a grid of
//! processes (2-D scatter decomposition: docs/bibliography.md#memory-hierarchies, section 5.2), each at its process's memory process.
//! A process works on its blocks in private memory and writes each one once, when it is final; from then
//! on it is only read. So no copy is ever invalidated, and a block comes to a memory process once. Each
//! step has two barriers: the diagonal block is known, its row and column are known. At the end the
//! factors must equal those of a sequential run bit for bit.

mod kernel;

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use dsm_lib::{Call, Dsm, Matrix, View};

use crate::app::{Program, patient};
use crate::common::{Pace, same_bits};
use crate::error::{Error, Result};
use kernel::Block;
pub use kernel::sequential;

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

impl Program for Lu {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        if self.n == 0 || self.block == 0 || self.block > self.n {
            return Err(Error::Usage(format!(
                "lu: blocks of {} in a matrix of {}; give --n of at least 1, and --block between 1 and that",
                self.block, self.n
            )));
        }
        let worker = Worker::new(self, dsm)?;
        let mut clock = self.pace.start(dsm, "lu", 1)?;
        while clock.runs() {
            worker.factorise(self.seed_of(clock.done()))?;
            if !clock.next()? {
                break;
            }
        }
        match dsm.rank() {
            0 => self.verify(&worker, clock.done()),
            _ => Ok(String::new()),
        }
    }
}

impl Lu {
    /// The seed of the matrix of an iteration.
    fn seed_of(&self, iteration: usize) -> u64 {
        self.seed.wrapping_add(iteration as u64)
    }

    fn verify(&self, worker: &Worker<'_>, iterations: usize) -> Result<String> {
        if let Some(last) = iterations.checked_sub(1) {
            let expected = sequential(self.seed_of(last), self.n);
            same_bits(worker.dsm, "lu", &worker.matrix, &expected)?;
        }
        Ok(format!(
            "lu: {} x {} in {} x {} blocks by {} processes, {iterations} iterations; equal to a sequential run bit for bit",
            self.n,
            self.n,
            worker.blocks,
            worker.blocks,
            worker.dsm.size()
        ))
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
        let blocks = lu.n.div_ceil(lu.block);
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
        for k in 0..self.blocks {
            if let Some(mut diagonal) = mine.remove(&(k, k)) {
                diagonal.factor();
                self.publish((k, k), &diagonal)?.wait()?;
            }
            dsm.barrier()?;
            self.solve_panels(k, &mut mine)?;
            dsm.barrier()?;
            self.update_rest(k, &mut mine)?;
        }
        Ok(())
    }

    /// This process's blocks, before the first step.
    fn initial(&self, seed: u64) -> Result<BTreeMap<(usize, usize), Block>> {
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

    /// Row and column `k`: final after this, and written.
    fn solve_panels(&self, k: usize, mine: &mut BTreeMap<(usize, usize), Block>) -> Result<()> {
        let panels = mine.extract_if(.., |(i, j), _| *i == k || *j == k);
        let panels: Vec<_> = panels.collect();
        if panels.is_empty() {
            return Ok(());
        }
        let diagonal = block(self.fetch(k, k)?)?;
        let mut written = Vec::with_capacity(panels.len());
        for ((i, j), mut panel) in panels {
            match i == k {
                true => panel.solve_lower(&diagonal),
                false => panel.solve_upper(&diagonal),
            }
            written.push(self.publish((i, j), &panel)?);
        }
        written.into_iter().try_for_each(|w| Ok(w.wait()?))
    }

    /// The blocks right of and below row and column `k`: all that is needed is asked for at once.
    fn update_rest(&self, k: usize, mine: &mut BTreeMap<(usize, usize), Block>) -> Result<()> {
        let rows: BTreeSet<usize> = mine.keys().map(|(i, _)| *i).collect();
        let columns: BTreeSet<usize> = mine.keys().map(|(_, j)| *j).collect();
        let left = rows.iter().map(|i| Ok((*i, self.fetch(*i, k)?)));
        let left = left.collect::<Result<Vec<_>>>()?;
        let above = columns.iter().map(|j| Ok((*j, self.fetch(k, *j)?)));
        let above = above.collect::<Result<Vec<_>>>()?;
        let arrived = |calls: Vec<(usize, Call<View<f64>>)>| -> Result<BTreeMap<usize, Block>> {
            let blocks = calls.into_iter().map(|(at, call)| Ok((at, block(call)?)));
            blocks.collect()
        };
        let (left, above) = (arrived(left)?, arrived(above)?);
        for ((i, j), rest) in mine {
            rest.update(&left[i], &above[j]);
        }
        Ok(())
    }

    fn fetch(&self, i: usize, j: usize) -> Result<Call<View<f64>>> {
        Ok(self.matrix.object(i * self.blocks + j)?.read_async())
    }

    fn publish(&self, (i, j): (usize, usize), block: &Block) -> Result<Call<()>> {
        let object = self.matrix.object(i * self.blocks + j)?;
        Ok(object.write_async(&block.values))
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
