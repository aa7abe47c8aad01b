//! Red-black successive over-relaxation on a matrix split by rows (SOR: docs/bibliography.md#dvsm, "Choice of applications").
//!
//! Shows how a kernel with neighbours is written: each process has a band of rows in an object of its
//! own memory process, computes on a native slice of it, and tells its neighbours its edge rows
//! through objects of their own, so that nobody reads a whole band for one row. A barrier ends each
//! half sweep. Half of the band is computed while the neighbours' edges travel, and half while the barrier is under
//! way. There is one variable of edges for each colour: it is written in the half sweep of that
//! colour and read in the other, so the program has no data race. The largest change is gathered in a
//! section. At the end the result must equal the sequential one bit for bit. The size of the DVSM paper, table 1, is
//! `--rows 2000 --columns 1000`.

mod kernel;

use std::time::Instant;

use clap::Args;
use dsm_lib::{Cache, Call, CopyPolicy, Dsm, Matrix, Object, Vector};

use crate::common::{Clock, Edges, Pace, same_bits};
use crate::error::{Error, Result};
use crate::figures::{Checksum, Figures};
use crate::program::{Input, Program, Sequential};
use kernel::{Band, Colour, Half, sequential};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Sor {
    /// Rows of the matrix, at least one per process.
    #[arg(long, default_value_t = 128)]
    rows: usize,
    /// Columns of the matrix.
    #[arg(long, default_value_t = 128)]
    columns: usize,
    /// Over-relaxation factor, between 0 and 2.
    #[arg(long, default_value_t = 1.5)]
    omega: f64,
    /// Gather the largest change every N iterations; 0 for never.
    #[arg(long, default_value_t = 10)]
    check: usize,
    /// Invalidate the neighbours' copies of the edges instead of updating them.
    #[arg(long)]
    invalidate: bool,
    #[command(flatten)]
    pace: Pace,
}

impl Program for Sor {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        if self.rows < dsm.size().max(3) || self.columns < 3 {
            return Err(Error::Usage(format!(
                "sor: {} x {} is too small for {} processes; give --rows and --columns of at least 3, and at least one row per process",
                self.rows,
                self.columns,
                dsm.size()
            )));
        }
        let shared = Shared::declare(self, dsm)?;
        let clock = Worker::new(self, dsm, &shared)?.iterate()?;
        if dsm.rank() == 0 {
            self.verify(dsm, &shared, &clock)
        } else {
            Ok(String::new())
        }
    }
}

/// Iterations if nothing is said.
const ITERATIONS: usize = 100;

impl Sequential for Sor {
    fn alone(&self) -> Result<Figures> {
        let band = Band {
            first_row: 0,
            rows: self.rows,
            columns: self.columns,
            total_rows: self.rows,
        };
        let mut values = band.initial();
        let started = Instant::now();
        band.iterate(self.pace.iterations(ITERATIONS), self.omega, &mut values);
        Ok(Figures::new(started.elapsed(), Checksum::of(&values)))
    }

    fn input(&self) -> Option<Input> {
        let iterations = self.pace.iterations(ITERATIONS);
        let sizes = [self.rows, self.columns, iterations].map(|n| n.to_string());
        Some(Input {
            parameters: sizes.into_iter().chain([self.omega.to_string()]).collect(),
            data: Vec::new(),
        })
    }
}

impl Sor {
    fn verify(&self, dsm: &Dsm, shared: &Shared, clock: &Clock) -> Result<String> {
        let iterations = clock.done();
        let expected = sequential(self.rows, self.columns, iterations, self.omega);
        same_bits(dsm, "sor", &shared.grid, &expected)?;
        let last = shared.change.object(0)?.read()?;
        let change = match last[0] {
            0.0 => String::new(),
            at => format!(", largest change {:.3e} in iteration {at}", last[1]),
        };
        let text = format!(
            "sor: {} x {} by {} processes, {iterations} iterations{change}; equal to a sequential run bit for bit",
            self.rows,
            self.columns,
            dsm.size()
        );
        Ok(clock.report(text, Checksum::of(&expected)))
    }
}

/// The shared variables.
struct Shared {
    grid: Matrix<f64>,
    /// The bands' first and last rows, as of the last half sweep of each colour.
    edges: [Edges<f64>; 2],
    /// The iteration of the last check, and the largest change in it.
    change: Vector<f64>,
}

impl Shared {
    fn declare(sor: &Sor, dsm: &Dsm) -> Result<Self> {
        let policy = match sor.invalidate {
            true => CopyPolicy::Invalidate,
            false => CopyPolicy::Update,
        };
        let edges = |name| Edges::declare(dsm, name, sor.columns, policy);
        Ok(Self {
            grid: dsm
                .matrix("sor.grid", sor.rows, sor.columns)
                .split_rows(dsm.size())
                .owner_per_rank()
                .cache(Cache::Ap) // each process works on its own band in place
                .declare()?,
            edges: [edges("sor.red-edges")?, edges("sor.black-edges")?],
            change: dsm.vector("sor.change", 2).owner_rank(0).declare()?,
        })
    }
}

/// What one process has in hand.
struct Worker<'a> {
    sor: &'a Sor,
    dsm: &'a Dsm,
    shared: &'a Shared,
    band: Band,
    /// The band's rows.
    rows: Object<f64>,
}

impl<'a> Worker<'a> {
    fn new(sor: &'a Sor, dsm: &'a Dsm, shared: &'a Shared) -> Result<Self> {
        let rows = shared.grid.object(dsm.rank())?;
        let region = rows.region();
        let band = Band {
            first_row: region.row as usize,
            rows: region.rows as usize,
            columns: sor.columns,
            total_rows: sor.rows,
        };
        rows.write(&band.initial())?;
        Ok(Self {
            sor,
            dsm,
            shared,
            band,
            rows,
        })
    }

    /// Iterates until all stop, in the same iteration.
    fn iterate(self) -> Result<Clock> {
        let edges = &self.shared.edges[Colour::Black as usize];
        edges.tell(&self.rows.read()?)?;
        let mut clock = self.sor.pace.start(self.dsm, "sor", ITERATIONS)?;
        while clock.runs() {
            let measured = self.is_measured(clock.done() + 1);
            let red = self.half_sweep(Colour::Red, measured, || Ok(clock.barrier_async()))?;
            red.arrived.wait()?;
            let black = self.half_sweep(Colour::Black, measured, || clock.arrive())?;
            if measured {
                self.gather_change(clock.done() + 1, red.change.max(black.change))?;
            }
            if !clock.pass(black.arrived)? {
                break;
            }
        }
        clock.finish()?;
        Ok(clock)
    }

    /// One half sweep; `arrive` tells the others that this process's edges are written.
    fn half_sweep(
        &self,
        colour: Colour,
        measured: bool,
        arrive: impl FnOnce() -> Result<Call<()>>,
    ) -> Result<Swept> {
        let other = match colour {
            Colour::Red => Colour::Black,
            Colour::Black => Colour::Red,
        };
        let half = Half {
            colour,
            omega: self.sor.omega,
            measured,
        };
        let band = self.band;
        let last = band.rows - 1;
        let middle = (band.rows / 2).clamp(1, last.max(1));
        let asked = self.shared.edges[other as usize].ask()?;
        let mut change = band.sweep(1..middle, half, &mut self.rows.edit()?, [&[], &[]]);
        let [above, below] = asked.wait()?;
        let around = [above.as_deref(), below.as_deref()].map(Option::unwrap_or_default);
        let mut rows = self.rows.edit()?;
        change = change.max(band.sweep(0..1, half, &mut rows, around));
        if last > 0 {
            change = change.max(band.sweep(last..band.rows, half, &mut rows, around));
        }
        self.shared.edges[colour as usize].tell(&rows)?;
        rows.finish()?;
        let arrived = arrive()?;
        let mut rows = self.rows.edit()?;
        change = change.max(band.sweep(middle..last, half, &mut rows, [&[], &[]]));
        rows.finish()?;
        Ok(Swept { change, arrived })
    }

    fn is_measured(&self, iteration: usize) -> bool {
        self.sor.check > 0 && iteration.is_multiple_of(self.sor.check)
    }

    /// The largest change in this iteration, over all processes: whoever comes first starts afresh.
    fn gather_change(&self, iteration: usize, change: f64) -> Result<()> {
        let mut section = self.shared.change.object(0)?.acquire()?;
        let now = section.read()?;
        let largest = match now[0] == iteration as f64 {
            true => change.max(now[1]),
            false => change,
        };
        section.write(&[iteration as f64, largest])?;
        section.release()?;
        Ok(())
    }
}

/// A half sweep done.
struct Swept {
    /// The largest change, if it was wanted.
    change: f64,
    /// The barrier that ends it, under way.
    arrived: Call<()>,
}
