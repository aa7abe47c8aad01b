//! A recursive ray tracer with work stealing (Raytrace: docs/bibliography.md#dvsm, "Choice of applications"); writes a PNG.
//!
//! Process 0 writes the scene, once; all read it, once. The picture is split into tiles, one object
//! each, at the memory process of the process that has it to begin with; a tile is written once, whole, so
//! that there is no false sharing. Each process takes tiles from its own queue and, when that is
//! empty, steals half of what another has left: see [`queue`]. Each round is a frame, seen from
//! another place. At the end the picture must equal that of a sequential run, pixel by pixel.

mod geometry;
mod kernel;
mod queue;
mod scene;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use dsm_lib::{Dsm, Matrix, Scalar};

use crate::common::{Clock, Pace, same_bits, share};
use crate::error::{Error, Result};
use crate::figures::{Checksum, Figures};
use crate::picture::write_colours;
use crate::program::{Program, Sequential, wrong};
use kernel::World;
use queue::Queues;
use scene::{Ball, NUMBERS, balls};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Raytrace {
    /// Rows of the picture.
    #[arg(long, default_value_t = 240)]
    rows: usize,
    /// Columns of the picture.
    #[arg(long, default_value_t = 320)]
    columns: usize,
    /// Rows and columns of a tile, about.
    #[arg(long, default_value_t = 16)]
    tile: usize,
    /// Generations of balls on balls, 0 to 5.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=5))]
    depth: u32,
    /// Write the last frame to this PNG file.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pace: Pace,
}

impl Program for Raytrace {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        self.check()?;
        let shared = Shared::declare(self, dsm)?;
        let mut queues = Queues::declare(dsm)?;
        if dsm.rank() == 0 {
            let numbers = balls(self.depth).into_iter().flat_map(Ball::to_numbers);
            shared
                .scene
                .object(0)?
                .write(&numbers.collect::<Vec<f64>>())?;
        }
        let mut clock = self.pace.start(dsm, "raytrace", ITERATIONS)?;
        let view = shared.scene.object(0)?.read()?;
        let scene = view.rows().filter_map(Ball::from_numbers).collect();
        let mut world = World::new(scene, (self.rows, self.columns));
        let tiles = share(shared.picture.object_count(), dsm.size(), dsm.rank());
        while clock.runs() {
            world.see(clock.done());
            queues.fill(&tiles)?;
            clock.barrier()?;
            shared.render(&world, &mut queues)?;
            if !clock.next()? {
                break;
            }
        }
        match dsm.rank() {
            0 => self.verify(dsm, &shared, &world, &clock),
            _ => Ok(String::new()),
        }
    }
}

/// Frames if nothing is said.
const ITERATIONS: usize = 1;

impl Sequential for Raytrace {
    fn alone(&self) -> Result<Figures> {
        self.check()?;
        let mut world = World::new(balls(self.depth), (self.rows, self.columns));
        let mut picture = Vec::new();
        let started = Instant::now();
        for frame in 0..self.pace.iterations(ITERATIONS) {
            world.see(frame);
            picture = world.render((0, 0), world.size);
        }
        Ok(Figures::new(started.elapsed(), Checksum::of(&picture)))
    }
}

impl Raytrace {
    fn check(&self) -> Result<()> {
        if self.tile.min(self.rows).min(self.columns) == 0 {
            return Err(Error::Usage(format!(
                "raytrace: tiles of {} in {} x {} pixels; give --rows, --columns and --tile of at least 1",
                self.tile, self.rows, self.columns
            )));
        }
        Ok(())
    }

    fn verify(&self, dsm: &Dsm, shared: &Shared, world: &World, clock: &Clock) -> Result<String> {
        let frames = clock.done();
        if world.balls != balls(self.depth) {
            return Err(wrong(dsm, "raytrace", "the scene is not what was written"));
        }
        let expected = world.render((0, 0), world.size);
        if frames > 0 {
            same_bits(dsm, "raytrace", &shared.picture, &expected)?;
        }
        if let Some(path) = &self.output {
            write_colours(path, self.columns, &expected)?;
        }
        let tiles = shared.picture.object_count();
        let text = format!(
            "raytrace: {} x {} pixels in {tiles} tiles by {} processes, {frames} frames, {} tiles stolen; equal to a sequential run bit for bit",
            self.rows,
            self.columns,
            dsm.size(),
            shared.stolen.read()?
        );
        Ok(clock.report(text, Checksum::of(&expected)))
    }
}

/// The shared variables.
struct Shared {
    scene: Matrix<f64>,
    /// A tile is an object.
    picture: Matrix<u32>,
    /// How many tiles changed hands.
    stolen: Scalar<u64>,
}

impl Shared {
    fn declare(raytrace: &Raytrace, dsm: &Dsm) -> Result<Self> {
        let (rows, columns) = (raytrace.rows, raytrace.columns);
        let parts = (
            rows.div_ceil(raytrace.tile),
            columns.div_ceil(raytrace.tile),
        );
        let tiles = parts.0 * parts.1;
        let owners = (0..dsm.size()).flat_map(|rank| {
            let own = share(tiles, dsm.size(), rank);
            own.map(move |_| rank)
        });
        Ok(Self {
            scene: dsm
                .matrix("raytrace.scene", scene::count(raytrace.depth), NUMBERS)
                .owner_rank(0)
                .declare()?,
            picture: dsm
                .matrix("raytrace.picture", rows, columns)
                .split_blocks(parts.0, parts.1)
                .owner_ranks(owners)
                .declare()?,
            stolen: dsm.scalar("raytrace.stolen").owner_rank(0).declare()?,
        })
    }

    /// Computes tiles as long as there are any.
    fn render(&self, world: &World, queues: &mut Queues) -> Result<()> {
        let mut stolen = 0;
        while let Some(taken) = queues.next()? {
            stolen += taken.stolen;
            let tile = self.picture.object(taken.tile)?;
            let r = tile.region();
            let first = (r.row as usize, r.column as usize);
            let pixels = world.render(first, (r.rows as usize, r.columns as usize));
            tile.write_async(&pixels).post()?;
        }
        if stolen > 0 {
            self.stolen.fetch_add(stolen)?;
        }
        Ok(())
    }
}
