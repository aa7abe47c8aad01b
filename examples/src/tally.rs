//! A count that goes on when its owner is lost: processes count in sections on one variable with replicas, and go on after what
//! failed. What each has confirmed it writes down, to be held against what the others have: no number may be counted twice.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use dsm_lib::{Cache, Dsm, FencingToken, Scalar};
use serde_json::json;

use crate::error::{Error, Result};
use crate::program::{Program, needs};

/// At most this number of sections fail in a row.
const MOST_FAILURES: u32 = 20;
/// Between one that failed and the next.
const PAUSE: Duration = Duration::from_millis(50);

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub(crate) struct Tally {
    /// Sections of each process.
    #[arg(long, default_value_t = 100)]
    sections: u64,
    /// Replicas of the count.
    #[arg(long, default_value_t = 1)]
    replicas: u32,
    /// Microseconds between two sections.
    #[arg(long, default_value_t = 0)]
    pause: u64,
    /// Write a line for each section, to FILE.<its name>.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl Program for Tally {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        let owner = dsm.homes().first().map_or("", |h| h);
        let count = dsm.scalar::<u64>("tally").owner(owner);
        let count = count.replicas(self.replicas).cache(Cache::Mp).declare()?;
        let mut log = self.open_log(dsm)?;
        let mut say = |line: String| match &mut log {
            Some((path, file)) => file
                .write_all(format!("{line}\n").as_bytes())
                .map_err(|e| file_error(path, e)),
            None => Ok(()),
        };
        dsm.barrier()?;
        let (mut done, mut failed) = (0, 0);
        while done < self.sections {
            match next(&count) {
                Ok((number, token)) => {
                    say(format!("counted {number} {token}"))?;
                    (done, failed) = (done + 1, 0);
                    std::thread::sleep(Duration::from_micros(self.pause));
                }
                Err(e) => {
                    say(format!("failed: {e}"))?;
                    failed += 1;
                    // Without its memory process nothing will succeed.
                    if failed > MOST_FAILURES || matches!(e, dsm_lib::Error::Lost { .. }) {
                        return Err(e.into());
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(format!("tally: {} counted {done} times", dsm.name()))
    }
}

impl Tally {
    fn open_log(&self, dsm: &Dsm) -> Result<Option<(PathBuf, File)>> {
        let Some(log) = &self.log else {
            return Ok(None);
        };
        let mut name = log.clone().into_os_string();
        name.push(format!(".{}", dsm.name()));
        let path = PathBuf::from(name);
        let file = File::create(&path).map_err(|e| file_error(&path, e))?;
        Ok(Some((path, file)))
    }
}

/// Counts once: the number, and the token of the section.
fn next(count: &Scalar<u64>) -> dsm_lib::Result<(u64, u64)> {
    let mut section = count.acquire()?;
    let number = section.read()? + 1;
    let token = section.fencing_token().map_or(0, FencingToken::number);
    section.write(number)?;
    section.release()?;
    Ok((number, token))
}

/// Sections on variables with 0, 1 and 2 replicas, in turn: what replicas cost.
#[derive(Args, Debug, Clone)]
pub(crate) struct Kept {
    /// Rounds: each does a number of sections on each of the three variables.
    #[arg(long, default_value_t = 50)]
    rounds: u32,
    /// Sections on one variable before the next has its turn.
    #[arg(long, default_value_t = 100)]
    sections: u32,
    /// Elements of each variable, 8 bytes each.
    #[arg(long, default_value_t = 1)]
    elements: usize,
    /// The variables belong to the memory process of this rank; rank 0 uses them.
    #[arg(long, default_value_t = 0)]
    owner: usize,
}

impl Program for Kept {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        needs(dsm, "kept", 3)?;
        let declare = |replicas: u32| {
            let variable = dsm.vector::<u64>(&format!("kept{replicas}"), self.elements);
            variable
                .owner_rank(self.owner)
                .replicas(replicas)
                .cache(Cache::Mp)
                .declare()
        };
        let variables = [declare(0)?, declare(1)?, declare(2)?];
        dsm.barrier()?;
        let mut lines = String::new();
        if dsm.rank() == 0 {
            for round in 0..self.rounds {
                for (replicas, variable) in variables.iter().enumerate() {
                    let object = variable.object(0)?;
                    let start = Instant::now();
                    for _ in 0..self.sections {
                        let mut section = object.acquire()?;
                        section.write_at(0, &[u64::from(round)])?;
                        section.release()?;
                    }
                    let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(self.sections);
                    lines += &format!("{}\n", json!({ "replicas": replicas, "us": us }));
                }
            }
        }
        crate::program::patient(dsm).barrier()?;
        Ok(lines)
    }
}

fn file_error(path: &std::path::Path, source: std::io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}
