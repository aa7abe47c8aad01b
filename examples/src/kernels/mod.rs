//! The workload kernels MAD (memory access), SAD (synchronisation access) and BAD (barriers): unit grains on
//! one test process, alone and beside competitors (docs/design/models.md#workload-kernels). `dosmos-bench kernels` runs the sweeps.
//!
//! Process 0 prints one JSON object a number of competitors ([`Outcome`]) or barrier ([`BarrierOutcome`]).

mod barriers;
mod experiment;
mod grain;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dsm_lib::Dsm;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::program::{Program, patient};

pub use barriers::{BarrierKind, BarrierOutcome};
pub use experiment::{Experiment, Outcome, Place};
pub use grain::{Critical, Grain, Memory, Random, Stride, Value};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Kernels {
    /// Experiments, a JSON array of {name, words, test, competitors, n, lock, place}
    #[arg(long, value_name = "FILE")]
    experiments: Option<PathBuf>,
    /// Milliseconds per measurement
    #[arg(long, default_value_t = 100)]
    time: u64,
    /// Measurements of each point
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Measure barriers instead: this many of each kind
    #[arg(long, value_name = "ROUNDS")]
    barriers: Option<usize>,
    /// Microseconds that each process arrives after the one before
    #[arg(long, value_delimiter = ',', default_value = "0")]
    skew: Vec<u64>,
}

impl Program for Kernels {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        let delay = grain::Delay::calibrate();
        let mut lines = Vec::new();
        for experiment in self.read()? {
            let effort = experiment::Effort {
                time: Duration::from_millis(self.time),
                repeats: self.repeats,
            };
            for outcome in experiment::run(dsm, &experiment, delay, effort)? {
                lines.push(line(&outcome));
            }
        }
        if let Some(rounds) = self.barriers {
            for &skew in &self.skew {
                for kind in [BarrierKind::Native, BarrierKind::Counter] {
                    lines.push(line(&barriers::run(dsm, kind, skew, delay, rounds)?));
                }
            }
        }
        patient(dsm).barrier()?;
        Ok(match dsm.rank() {
            0 => lines.join("\n"),
            _ => String::new(),
        })
    }
}

impl Kernels {
    fn read(&self) -> Result<Vec<Experiment>> {
        let Some(path) = &self.experiments else {
            return Ok(Vec::new());
        };
        let file = |source| Error::Unreadable {
            path: path.clone(),
            source,
        };
        let text = std::fs::read_to_string(path).map_err(file)?;
        serde_json::from_str(&text).map_err(|e| Error::Usage(format!("{}: {e}", path.display())))
    }
}

fn line(outcome: &impl Serialize) -> String {
    // A struct of numbers and names always has a JSON form.
    serde_json::to_string(outcome).unwrap_or_default()
}
