//! Red-black successive over-relaxation on a matrix split by rows (SOR: docs/bibliography.md#dvsm, "Choice of applications").
//!
//! Shows how a kernel with neighbours is written: each process has a band of rows in an object of its
//! own memory process, computes on a native slice of it, and tells its neighbours its edge rows
//! through objects of their own, so that nobody reads a whole band for one row. A barrier ends each
//! half sweep. There is one variable of edges for each colour: it is written in the half sweep of that
//! colour and read in the other, so the program has no data race. The largest change is gathered in a
//! section. At the end the result must equal the sequential one bit for bit. The size of the DVSM paper, table 1, is
//! `--rows 2000 --columns 1000`.

mod kernel;

use clap::Args;
use dsm_lib::{CopyPolicy, Dsm, Matrix, Object, Vector};

use crate::app::Program;
use crate::common::{Edges, Pace, same_bits};
use crate::error::{Error, Result};
pub use kernel::sequential;
use kernel::{Band, Colour};

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
        let done = Worker::new(self, dsm, &shared)?.iterate()?;
        if dsm.rank() == 0 {
            self.verify(dsm, &shared, done)
        } else {
            Ok(String::new())
        }
    }
}

impl Sor {
    fn verify(&self, dsm: &Dsm, shared: &Shared, iterations: usize) -> Result<String> {
        let expected = sequential(self.rows, self.columns, iterations, self.omega);
        same_bits(dsm, "sor", &shared.grid, &expected)?;
        let last = shared.change.object(0)?.read()?;
        let change = match last[0] {
            0.0 => String::new(),
            at => format!(", largest change {:.3e} in iteration {at}", last[1]),
        };
        Ok(format!(
            "sor: {} x {} by {} processes, {iterations} iterations{change}; equal to a sequential run bit for bit",
            self.rows,
            self.columns,
            dsm.size()
        ))
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
    values: Object<f64>,
}

impl<'a> Worker<'a> {
    fn new(sor: &'a Sor, dsm: &'a Dsm, shared: &'a Shared) -> Result<Self> {
        let values = shared.grid.object(dsm.rank())?;
        let region = values.region();
        let band = Band {
            first_row: region.row as usize,
            rows: region.rows as usize,
            columns: sor.columns,
            total_rows: sor.rows,
        };
        Ok(Self {
            sor,
            dsm,
            shared,
            band,
            values,
        })
    }

    /// Iterates until all stop, in the same iteration; returns how many there were.
    fn iterate(&self) -> Result<usize> {
        let initial = self.band.initial();
        self.values.write(&initial)?;
        self.shared.edges[Colour::Black as usize].tell(&initial)?;
        let mut clock = self.sor.pace.start(self.dsm, "sor", 100)?;
        while clock.runs() {
            let red = self.half_sweep(Colour::Red)?;
            clock.barrier()?;
            let black = self.half_sweep(Colour::Black)?;
            self.gather_change(clock.done() + 1, red.max(black))?;
            if !clock.next()? {
                break;
            }
        }
        Ok(clock.done())
    }

    fn half_sweep(&self, colour: Colour) -> Result<f64> {
        let other = match colour {
            Colour::Red => Colour::Black,
            Colour::Black => Colour::Red,
        };
        // All three requests are under way at once.
        let values = self.values.read_async();
        let [above, below] = self.shared.edges[other as usize].neighbours()?;
        let (above, below) = (above.unwrap_or_default(), below.unwrap_or_default());
        let mut values = values.wait()?.into_vec();

        let change = self
            .band
            .sweep(colour, self.sor.omega, &mut values, &above, &below);
        self.values.write(&values)?;
        self.shared.edges[colour as usize].tell(&values)?;
        Ok(change)
    }

    /// The largest change in this iteration, over all processes: whoever comes first starts afresh.
    fn gather_change(&self, iteration: usize, change: f64) -> Result<()> {
        if self.sor.check == 0 || !iteration.is_multiple_of(self.sor.check) {
            return Ok(());
        }
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
