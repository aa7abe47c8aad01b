//! The measurements: seconds of each run, by program and way; written to a file and read from it.

use std::path::Path;

use anyhow::{Context, bail};
use dosmos_examples::Checksum;
use serde::{Deserialize, Serialize};

use super::programs::Program;
use super::ways::{Run, Way};
use crate::machine::machine;

/// All measurements of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    machine: String,
    programs: Vec<OfProgram>,
}

/// Those of one program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct OfProgram {
    /// With its arguments.
    pub(super) program: String,
    /// The sequential program is the first.
    pub(super) ways: Vec<OfWay>,
}

/// Those of one way to run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct OfWay {
    pub(super) way: String,
    /// Of each round.
    pub(super) seconds: Vec<f64>,
    /// Seconds that the busiest process computed, where it is known ([`Run`]).
    pub(super) busiest: Vec<f64>,
    checksum: Checksum,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            machine: machine(),
            programs: Vec::new(),
        }
    }
}

impl Measured {
    pub(super) fn machine(&self) -> &str {
        &self.machine
    }

    pub(super) fn programs(&self) -> &[OfProgram] {
        &self.programs
    }

    /// Those of a program, if there are any.
    pub(super) fn of(&self, program: &str) -> Option<&OfProgram> {
        self.programs.iter().find(|p| p.program == program)
    }

    /// Adds a run.
    ///
    /// # Errors
    /// If its result is not that of the runs before.
    pub(super) fn add(&mut self, program: &Program, way: &Way, run: &Run) -> anyhow::Result<()> {
        let (name, way) = (program.to_string(), way.to_string());
        let at = self.programs.iter().position(|p| p.program == name);
        let at = at.unwrap_or(self.programs.len());
        if at == self.programs.len() {
            self.programs.push(OfProgram {
                program: name,
                ways: Vec::new(),
            });
        }
        let ways = &mut self.programs[at].ways;
        let checksum = run.figures.checksum;
        match ways.iter_mut().find(|w| w.way == way) {
            Some(known) => {
                if known.checksum != checksum {
                    bail!("the result is another one than in the round before");
                }
                known.seconds.push(run.figures.seconds);
                known.busiest.extend(run.busiest);
            }
            None => ways.push(OfWay {
                way,
                seconds: vec![run.figures.seconds],
                busiest: run.busiest.into_iter().collect(),
                checksum,
            }),
        }
        Ok(())
    }

    /// Fails unless all ways to run a program gave the same result.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for program in &self.programs {
            let Some((first, others)) = program.ways.split_first() else {
                continue;
            };
            if let Some(other) = others.iter().find(|w| w.checksum != first.checksum) {
                bail!(
                    "{}: the result of {:?} is not that of {:?}",
                    program.program,
                    other.way,
                    first.way
                );
            }
        }
        Ok(())
    }

    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is not a file that --json writes", path.display()))
    }
}

impl OfProgram {
    pub(super) fn way(&self, way: &str) -> Option<&OfWay> {
        self.ways.iter().find(|w| w.way == way)
    }
}
