//! The shallow water equations on a sphere (Sphere: docs/bibliography.md#dvsm, "Choice of applications"): a hump of water
//! falls, and waves run around the earth.
//!
//! Each process has a band of circles of latitude in private memory and tells its neighbours its edge
//! rows through objects of its own memory process. A step has two halves, each ended by a barrier: in one
//! the depths change, by the velocities at the edges, in the other the velocities, by the depths. There
//! is a variable of edges for each, written in one half and read in the other, so the program has no
//! data race, and its copies are updated, since each has one reader who always comes back. Mass and
//! energy are added up in a section. At the end the solution is written, each band by its process, and
//! must equal that of a sequential run bit for bit; and the mass must be what it was, to 10⁻⁹.

mod kernel;
mod picture;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use dsm_lib::{CopyPolicy, Dsm, Matrix, Vector};

use crate::common::{Clock, Edges, Pace, enough, same_bits};
use crate::error::{Error, Result};
use crate::figures::{Checksum, Figures};
use crate::picture::write_colours;
use crate::program::{Program, Sequential, wrong};
use kernel::{Band, DEPTH, Grid, Side, sequential};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Sphere {
    /// Circles of latitude between 75° south and 75° north, at least one per process.
    #[arg(long, default_value_t = 48)]
    rows: usize,
    /// Points on each circle.
    #[arg(long, default_value_t = 96)]
    columns: usize,
    /// Sum mass and energy every N iterations; 0 for never.
    #[arg(long, default_value_t = 10)]
    check: usize,
    /// Write the depth to this PNG file, north up: red above the water at rest, blue below.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pace: Pace,
}

impl Program for Sphere {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "sphere", "--rows", self.rows, 2)?;
        self.check()?;
        let shared = Shared::declare(self, dsm)?;
        let mut worker = Worker::new(self, dsm, &shared)?;
        let mut clock = self.pace.start(dsm, "sphere", ITERATIONS)?;
        worker.tell_velocities()?;
        clock.barrier()?;
        while clock.runs() {
            worker.first_half()?;
            clock.barrier()?;
            worker.second_half()?;
            worker.gather_totals(clock.done() + 1)?;
            if !clock.next()? {
                break;
            }
        }
        worker.publish()?;
        clock.finish()?;
        match dsm.rank() {
            0 => self.verify(dsm, &shared, &clock),
            _ => Ok(String::new()),
        }
    }
}

/// Steps if nothing is said.
const ITERATIONS: usize = 100;

impl Sequential for Sphere {
    fn alone(&self) -> Result<Figures> {
        self.check()?;
        let mut band = Band::new(self.grid(), 0, self.rows);
        let dt = self.grid().time_step();
        let started = Instant::now();
        for _ in 0..self.pace.iterations(ITERATIONS) {
            band.step(dt);
        }
        Ok(Figures::new(started.elapsed(), checksum(&band)))
    }
}

fn checksum(band: &Band) -> Checksum {
    let depth = Checksum::of(&band.depth());
    depth.and(&band.east()).and(&band.north())
}

impl Sphere {
    fn check(&self) -> Result<()> {
        if self.columns < 3 {
            return Err(Error::Usage(format!(
                "sphere: --columns {} is too small; give at least 3",
                self.columns
            )));
        }
        Ok(())
    }

    fn grid(&self) -> Grid {
        Grid {
            rows: self.rows,
            columns: self.columns,
        }
    }

    fn verify(&self, dsm: &Dsm, shared: &Shared, clock: &Clock) -> Result<String> {
        let steps = clock.done();
        let expected = sequential(self.grid(), steps);
        let [depth, east, north] = &shared.solution;
        same_bits(dsm, "sphere", depth, &expected.depth())?;
        same_bits(dsm, "sphere", east, &expected.east())?;
        same_bits(dsm, "sphere", north, &expected.north())?;
        let totals = shared.totals.object(0)?.read()?;
        let (mass, _) = sequential(self.grid(), 0).totals();
        let kept = (totals[1] / mass - 1.0).abs() <= 1e-9; // false for NaN
        if totals[0] > 0.0 && !kept {
            let what = format!(
                "the mass was {mass:e}, and {:e} after {} iterations",
                totals[1], totals[0]
            );
            return Err(wrong(dsm, "sphere", what));
        }
        if let Some(path) = &self.output {
            let (width, pixels) = picture::of_depth(self.columns, &expected.depth(), DEPTH);
            write_colours(path, width, &pixels)?;
        }
        let text = format!(
            "sphere: {} x {} by {} processes, {steps} iterations, {:.1} h of water; equal to a sequential run bit for bit",
            self.rows,
            self.columns,
            dsm.size(),
            steps as f64 * self.grid().time_step() / 3600.0
        );
        Ok(clock.report(text, checksum(&expected)))
    }
}

/// The shared variables.
struct Shared {
    depths: Edges<f64>,
    /// Eastward, then northward.
    velocities: Edges<f64>,
    /// The iteration of the last check, mass and energy in it.
    totals: Vector<f64>,
    /// Depth, eastward and northward velocity at the end.
    solution: [Matrix<f64>; 3],
}

impl Shared {
    fn declare(sphere: &Sphere, dsm: &Dsm) -> Result<Self> {
        let edges = |name, length| Edges::declare(dsm, name, length, CopyPolicy::Update);
        let bands = |name| {
            dsm.matrix(name, sphere.rows, sphere.columns)
                .split_rows(dsm.size())
                .owner_per_rank()
                .declare()
        };
        Ok(Self {
            depths: edges("sphere.edge-depths", sphere.columns)?,
            velocities: edges("sphere.edge-velocities", 2 * sphere.columns)?,
            totals: dsm.vector("sphere.totals", 3).owner_rank(0).declare()?,
            solution: [
                bands("sphere.depth")?,
                bands("sphere.east")?,
                bands("sphere.north")?,
            ],
        })
    }
}

/// What one process has in hand.
struct Worker<'a> {
    sphere: &'a Sphere,
    dsm: &'a Dsm,
    shared: &'a Shared,
    band: Band,
    time_step: f64,
}

impl<'a> Worker<'a> {
    fn new(sphere: &'a Sphere, dsm: &'a Dsm, shared: &'a Shared) -> Result<Self> {
        let rows = shared.solution[0].object(dsm.rank())?.region();
        Ok(Self {
            sphere,
            dsm,
            shared,
            band: Band::new(sphere.grid(), rows.row as usize, rows.rows as usize),
            time_step: sphere.grid().time_step(),
        })
    }

    /// By the velocities at the edges: new depths.
    fn first_half(&mut self) -> Result<()> {
        let columns = self.sphere.columns;
        let [south, north] = self.shared.velocities.neighbours()?;
        self.band
            .set_velocities(Side::South, south.as_deref().map(|r| r.split_at(columns)));
        self.band
            .set_velocities(Side::North, north.as_deref().map(|r| r.split_at(columns)));
        self.band.move_water(self.time_step);
        let [first, last] = [Side::South, Side::North].map(|side| self.band.edge_depth(side));
        self.shared.depths.tell_both(first, last)
    }

    /// By the depths at the edges: new velocities.
    fn second_half(&mut self) -> Result<()> {
        let [south, north] = self.shared.depths.neighbours()?;
        self.band.set_depth(Side::South, south.as_deref());
        self.band.set_depth(Side::North, north.as_deref());
        self.band.accelerate(self.time_step);
        self.tell_velocities()
    }

    fn tell_velocities(&self) -> Result<()> {
        let [first, last] = [Side::South, Side::North].map(|side| self.band.edge_velocities(side));
        self.shared.velocities.tell_both(&first, &last)
    }

    /// Mass and energy over all processes: whoever comes first starts afresh.
    fn gather_totals(&mut self, iteration: usize) -> Result<()> {
        if self.sphere.check == 0 || !iteration.is_multiple_of(self.sphere.check) {
            return Ok(());
        }
        let (mass, energy) = self.band.totals();
        let mut section = self.shared.totals.object(0)?.acquire()?;
        let now = section.read()?;
        let sum = match now[0] == iteration as f64 {
            true => [now[0], now[1] + mass, now[2] + energy],
            false => [iteration as f64, mass, energy],
        };
        section.write(&sum)?;
        section.release()?;
        Ok(())
    }

    fn publish(&self) -> Result<()> {
        let fields = [self.band.depth(), self.band.east(), self.band.north()];
        for (variable, values) in self.shared.solution.iter().zip(fields) {
            variable.object(self.dsm.rank())?.write(&values)?;
        }
        Ok(())
    }
}
