//! Options that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use dosmos_client::{Scope, Target};

use crate::complete;

/// Options that choose the run to read.
#[derive(Clone, Debug, Default, Args)]
pub struct SourceArgs {
    /// Read from a running event manager at host:port or unix:PATH; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub emp: Vec<String>,
    /// Read a trace store directory; may be repeated for the stores of one run
    #[arg(long, value_name = "DIR")]
    pub store: Vec<PathBuf>,
    /// Read a run directory: its event managers while they run, otherwise their stores [default: dosmos-run/latest]
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// Show the certificate in this folder to event managers on other hosts [default: DOSMOS_TLS]
    #[arg(long, value_name = "DIR")]
    pub tls: Option<PathBuf>,
}

impl SourceArgs {
    /// What they name.
    pub fn target(&self) -> Target {
        Target {
            event_managers: self.emp.clone(),
            stores: self.store.clone(),
            run_dir: self.run_dir.clone(),
            tls: self.tls.clone(),
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns
    Table,
    /// A JSON document
    Json,
    /// Comma-separated values with a header line
    Csv,
}

/// Options that choose records.
#[derive(Debug, Default, Args)]
pub(crate) struct SelectArgs {
    /// Only these variables: names or patterns (`*`, `?`, or a regular expression after `re:`); NAME[INDEX] is one object
    #[arg(long, value_name = "NAME", value_delimiter = ',', add = ArgValueCandidates::new(complete::variables))]
    pub(crate) var: Vec<String>,
    /// Only accesses by these application processes: names or patterns, as for --var
    #[arg(long, value_name = "NAME", value_delimiter = ',', add = ArgValueCandidates::new(complete::processes))]
    pub(crate) ap: Vec<String>,
    /// Only these operations: read, write, acquire, release, barrier
    #[arg(long, value_name = "OPERATION", value_delimiter = ',')]
    pub(crate) op: Vec<String>,
    /// Only accesses of these origins: local, intra (group), inter (group)
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    pub(crate) origin: Vec<String>,
    /// Start of the time range: +1.5s (since the start of the run), 12:03:04.5 (UTC), or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// End of the time range, in the same formats
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
}

impl SelectArgs {
    pub(crate) fn scope(&self) -> Scope {
        Scope {
            variables: self.var.clone(),
            processes: self.ap.clone(),
            operations: self.op.clone(),
            origins: self.origin.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
        }
    }
}
