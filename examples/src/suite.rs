//! Several programs, one after another, in one session: a cluster is started once for all of them.
//!
//! Each argument is a program with its arguments, in quotes. The first that fails ends the suite.

use clap::Args;
use dsm_lib::Dsm;

use crate::error::{Error, Result};
use crate::program::patient;

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Suite {
    /// Programs with their arguments: "is --keys 1000" "sor".
    #[arg(required = true, value_name = "PROGRAM")]
    programs: Vec<String>,
}

impl Suite {
    /// Runs each program by `run`; returns what they say.
    pub(crate) fn each(
        &self,
        dsm: &Dsm,
        run: impl Fn(&Dsm, &str, &[String]) -> Result<String>,
    ) -> Result<String> {
        let mut said = Vec::new();
        for program in &self.programs {
            let mut words = program.split_whitespace().map(str::to_owned);
            let name = words.next().unwrap_or_default();
            if name == "suite" {
                return Err(Error::Usage("a suite cannot be of suites".into()));
            }
            said.push(run(dsm, &name, &words.collect::<Vec<_>>())?);
            // Whoever verifies takes its time; the others must not leave before it is content.
            patient(dsm).barrier()?;
        }
        said.retain(|text| !text.is_empty());
        Ok(said.join("\n"))
    }
}
