//! Edge detection on a picture (EDGE: docs/bibliography.md#memory-hierarchies, section 5.2): blur, register, match, repeat or halt.
//!
//! The picture is split by rows: one band per process, at its own memory process. A process keeps its
//! band in private memory and tells its neighbours its first and last rows, as many as one level of blur needs,
//! so that one barrier per level is enough; there are two variables of such rows, written in turns. How
//! many edges did not survive is added up by atomic additions, a counter for each level: when some
//! levels in a row lose none, all halt. At the end the edges must equal those of a sequential run.
//!
//! The picture is generated, another one each iteration and each process its band, or it is a PNG file that process 0 reads
//! and hands out. With
//! `--output` the edges become a PNG file.

mod kernel;
mod scene;

use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use dsm_lib::{CopyPolicy, Dsm, Matrix, Vector};

use crate::common::{Clock, Edges, Pace, same_bits};
use crate::error::{Error, Result};
use crate::figures::{Checksum, Figures};
use crate::picture::Grey;
use crate::program::{Program, Sequential, patient, wrong};
use kernel::{Decision, HALO, Rows, refine, sequential, shown};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Edge {
    /// Find the edges of this PNG file, which process 0 reads, not of a generated picture.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Rows of the generated picture, at least four a process.
    #[arg(long, default_value_t = 128)]
    rows: usize,
    /// Columns of the generated picture.
    #[arg(long, default_value_t = 128)]
    columns: usize,
    /// Seed of the generated picture's noise; each iteration has the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length of a gradient from which it is an edge, 1 to 1000.
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(i32).range(1..=1000))]
    threshold: i32,
    /// Levels of blur at most, 1 to 1000.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    levels: u32,
    /// Write the edges, white on black, to this PNG file.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pace: Pace,
}

impl Program for Edge {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        let given = match (&self.input, dsm.rank()) {
            (Some(path), 0) => Some(Grey::read(path)?),
            _ => None,
        };
        let worker = Worker::new(self, dsm, given.as_ref())?;
        let mut clock = self.pace.start(dsm, "edge", ITERATIONS)?;
        let mut levels = 0;
        while clock.runs() {
            let own = worker.picture(given.as_ref(), clock.done())?;
            levels = worker.find_edges(own)?;
            if !clock.next()? {
                break;
            }
        }
        match (dsm.rank(), clock.done().checked_sub(1)) {
            (0, Some(last)) => {
                let picture = given.unwrap_or_else(|| Grey {
                    width: worker.width,
                    pixels: self.generate((worker.height, worker.width), 0..worker.height, last),
                });
                self.verify(&worker, &picture, levels, &clock)
            }
            _ => Ok(String::new()),
        }
    }
}

/// Iterations if nothing is said.
const ITERATIONS: usize = 1;

impl Sequential for Edge {
    fn alone(&self) -> Result<Figures> {
        let given = self.input.as_ref().map(|path| Grey::read(path));
        let given = given.transpose()?;
        let mut edges = Vec::new();
        let started = Instant::now();
        for i in 0..self.pace.iterations(ITERATIONS) {
            let picture = given.clone().unwrap_or_else(|| Grey {
                width: self.columns,
                pixels: self.generate((self.rows, self.columns), 0..self.rows, i),
            });
            let levels = self.levels as usize;
            (edges, _) = sequential(picture.width, &picture.pixels, self.threshold, levels);
        }
        Ok(Figures::new(started.elapsed(), Checksum::of(&edges)))
    }
}

impl Edge {
    /// Some rows of the generated picture of an iteration.
    fn generate(&self, size: (usize, usize), rows: Range<usize>, iteration: usize) -> Vec<u8> {
        scene::generate(size, rows, self.seed.wrapping_add(iteration as u64))
    }

    fn verify(
        &self,
        worker: &Worker<'_>,
        picture: &Grey,
        levels: usize,
        clock: &Clock,
    ) -> Result<String> {
        let width = picture.width;
        let most = self.levels as usize;
        let (expected, needed) = sequential(width, &picture.pixels, self.threshold, most);
        if levels != needed {
            let what = format!("{levels} levels, a sequential run needs {needed}");
            return Err(wrong(worker.dsm, "edge", what));
        }
        same_bits(worker.dsm, "edge", &worker.shared.edges, &expected)?;
        let (iterations, checksum) = (clock.done(), Checksum::of(&expected));
        let edges = expected.iter().filter(|e| **e == 255).count();
        let found = Grey {
            width,
            pixels: expected,
        };
        if let Some(path) = &self.output {
            found.write(path)?;
        }
        let text = format!(
            "edge: {} x {width} pixels by {} processes, {iterations} iterations; {edges} on edges after {levels} levels, equal to a sequential run",
            found.height(),
            worker.dsm.size()
        );
        Ok(clock.report(text, checksum))
    }
}

/// The shared variables.
struct Shared {
    picture: Matrix<u8>,
    edges: Matrix<u8>,
    /// The first and last rows of the bands, at even and odd levels.
    halos: [Edges<u8>; 2],
    /// How many edges were lost at each level.
    lost: Vector<u64>,
}

impl Shared {
    fn declare(edge: &Edge, dsm: &Dsm, rows: usize, columns: usize) -> Result<Self> {
        let bands = |name| {
            dsm.matrix(name, rows, columns)
                .split_rows(dsm.size())
                .owner_per_rank()
                .declare()
        };
        let halos = |name| Edges::declare(dsm, name, HALO * columns, CopyPolicy::Update);
        Ok(Self {
            picture: bands("edge.picture")?,
            edges: bands("edge.edges")?,
            halos: [halos("edge.even-halos")?, halos("edge.odd-halos")?],
            lost: dsm
                .vector("edge.lost", edge.levels as usize)
                .owner_rank(0)
                .declare()?,
        })
    }
}

/// One process, and the shared variables.
struct Worker<'a> {
    edge: &'a Edge,
    dsm: &'a Dsm,
    shared: Shared,
    height: usize,
    width: usize,
    /// This process's rows.
    band: Range<usize>,
}

impl<'a> Worker<'a> {
    /// Process 0 says how large the picture is.
    fn new(edge: &'a Edge, dsm: &'a Dsm, given: Option<&Grey>) -> Result<Self> {
        let size = dsm.vector::<u64>("edge.size", 2).owner_rank(0).declare()?;
        let size = size.object(0)?;
        if dsm.rank() == 0 {
            let (rows, columns) =
                given.map_or((edge.rows, edge.columns), |g| (g.height(), g.width));
            size.write(&[rows as u64, columns as u64])?;
        }
        patient(dsm).barrier()?;
        let size = size.read()?;
        let (height, width) = (size[0] as usize, size[1] as usize);
        if height < HALO * dsm.size() || width == 0 {
            return Err(Error::Usage(format!(
                "edge: {height} x {width} pixels are too few for {} processes; each needs {HALO} rows",
                dsm.size()
            )));
        }
        let shared = Shared::declare(edge, dsm, height, width)?;
        let region = shared.picture.object(dsm.rank())?.region();
        let band = region.row as usize..(region.row + region.rows) as usize;
        Ok(Self {
            edge,
            dsm,
            shared,
            height,
            width,
            band,
        })
    }

    /// This process's rows of the picture of an iteration: generated, or handed out by process 0.
    fn picture(&self, given: Option<&Grey>, iteration: usize) -> Result<Vec<u8>> {
        if self.dsm.rank() == 0 {
            let lost = self.shared.lost.object(0)?;
            lost.write(&vec![0; lost.len()])?;
        }
        if self.edge.input.is_none() {
            let size = (self.height, self.width);
            return Ok(self.edge.generate(size, self.band.clone(), iteration));
        }
        if let Some(picture) = given {
            for band in self.shared.picture.objects() {
                let first = band.region().row as usize * self.width;
                let pixels = &picture.pixels[first..first + band.len()];
                band.write_async(pixels).post()?;
            }
        }
        patient(self.dsm).barrier()?;
        let own = self.shared.picture.object(self.dsm.rank())?;
        Ok(own.read()?.into_vec())
    }

    /// The four steps; returns the levels it took.
    fn find_edges(&self, mut own: Vec<u8>) -> Result<usize> {
        let rank = self.dsm.rank();
        let mut edges = Rows {
            height: self.height,
            width: self.width,
            first: self.band.start,
            values: vec![false; own.len()],
        };
        let lost = self.shared.lost.object(0)?;
        let (mut level, mut decision) = (0, Decision::default());
        self.shared.halos[level % 2].tell(&own)?;
        patient(self.dsm).barrier()?;
        loop {
            let picture = self.with_halos(level, &own)?;
            let (next, changed) = refine(&picture, &mut edges, level, self.edge.threshold);
            own = next.rows(self.band.clone()).to_vec();
            if changed > 0 {
                lost.fetch_add(level, changed)?;
            }
            self.shared.halos[(level + 1) % 2].tell(&own)?;
            patient(self.dsm).barrier()?;
            let halts = decision.halts(level, lost.get(level)?);
            level += 1;
            if halts || level == self.edge.levels as usize {
                let result = self.shared.edges.object(rank)?;
                result.write(&shown(&edges.values))?;
                return Ok(level);
            }
        }
    }

    /// The band with the neighbours' nearest rows.
    fn with_halos(&self, level: usize, own: &[u8]) -> Result<Rows<u8>> {
        let around = self.shared.halos[level % 2].neighbours()?;
        let [above, below] = [0, 1].map(|side| around[side].as_deref().unwrap_or_default());
        Ok(Rows {
            height: self.height,
            width: self.width,
            first: self.band.start - above.len() / self.width,
            values: [above, own, below].concat(),
        })
    }
}
