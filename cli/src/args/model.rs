//! The grammar of `dosmos model`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;

/// The models. All but `inputs` and `predict` read one JSON document and know nothing of traces.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// LoPC, all threads alike: cycle time and contention of blocking requests
    Lopc(PlottedArgs),
    /// LoPC of a work pile: throughput with P_s servers; without `Ps`, the best number of servers
    ClientServer(PlottedArgs),
    /// LoPC for any visit matrix
    General(DocumentArgs),
    /// Simulate the machine that LoPC describes, event by event
    Simulate(DocumentArgs),
    /// Page-based DSM: the cost of an operation, a barrier, or an application of phases
    Dvsm(PlottedArgs),
    /// Memory hierarchy: time per instruction of a program on a machine or cluster
    Memhier(DocumentArgs),
    /// Memory hierarchy: the fastest cluster for a budget, or the best upgrade of one
    Cluster(DocumentArgs),
    /// Locality (alpha, beta) of an address trace or of measured hit rates
    Fit(DocumentArgs),
}

/// One document in, one answer out.
#[derive(Debug, Args)]
pub(crate) struct DocumentArgs {
    /// The JSON document (`-`: standard input); its fields: docs/guide/models.md
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

/// A document, and optionally a curve around it.
#[derive(Debug, Args)]
pub(crate) struct PlottedArgs {
    #[command(flatten)]
    pub(crate) document: DocumentArgs,
    /// Also draw the curve this point lies on, as SVG
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
}
