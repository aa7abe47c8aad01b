//! What a program is: what each of its application processes does, and what they have in common.

use std::time::Duration;

use clap::{Args, Command};
use dsm_lib::Dsm;

use crate::error::{Error, Result};
use crate::figures::Figures;

/// What one application process of a program does, as its arguments say.
pub(crate) trait Program: Args {
    /// Does it; returns what there is to print.
    fn run(&self, dsm: &Dsm) -> Result<String>;
}

/// A program that also exists as a plain sequential one, which has the same kernel and no shared memory.
pub(crate) trait Sequential: Args {
    /// Does by itself what the processes of the parallel program do together.
    fn alone(&self) -> Result<Figures>;

    /// What a program in another language needs to compute the same, if there is one.
    fn input(&self) -> Option<Input> {
        None
    }
}

/// What a program in another language needs to compute the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// In the order in which it takes them.
    pub parameters: Vec<String>,
    /// Random numbers, little end first.
    pub data: Vec<u8>,
}

/// The program that `args` are the arguments of; `name` is what it is called in a message.
pub(crate) fn parse<P: Args>(
    name: &'static str,
    about: &'static str,
    args: &[String],
) -> Result<P> {
    let usage = |e: clap::Error| Error::Usage(e.to_string());
    let command = P::augment_args(Command::new(name).no_binary_name(true)).about(about);
    let matches = command.try_get_matches_from(args).map_err(usage)?;
    P::from_arg_matches(&matches).map_err(usage)
}

/// The session with a deadline for waiting until others have done their work.
pub(crate) fn patient(dsm: &Dsm) -> Dsm {
    dsm.with_deadline(Duration::from_secs(24 * 3600))
}

/// Fails unless the cluster has that many application processes.
pub(crate) fn needs(dsm: &Dsm, program: &'static str, processes: usize) -> Result<()> {
    if dsm.size() >= processes {
        return Ok(());
    }
    Err(Error::TooSmall {
        program,
        needs: format!("{processes} application processes"),
        has: dsm.size().to_string(),
    })
}

/// A wrong result, found by this process.
pub(crate) fn wrong(dsm: &Dsm, program: &'static str, what: impl Into<String>) -> Error {
    Error::Wrong {
        program,
        process: dsm.name().to_owned(),
        what: what.into(),
    }
}
