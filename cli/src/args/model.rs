//! The grammar of `dosmos model`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

use super::common::{Format, SourceArgs};
use crate::complete;

/// The models. All but `inputs` and `predict` read a JSON document and need no trace.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// LoPC, homogeneous threads: cycle time and contention of blocking requests
    #[command(after_help = super::help::MODEL_LOPC)]
    Lopc(PlottedArgs),
    /// LoPC, clients and servers: throughput with Ps servers, or the best number of servers if Ps is missing
    #[command(after_help = super::help::MODEL_CLIENT_SERVER)]
    ClientServer(PlottedArgs),
    /// LoPC, any visit matrix
    #[command(after_help = super::help::MODEL_GENERAL)]
    General(DocumentArgs),
    /// Simulate the machine that LoPC describes, event by event
    #[command(after_help = super::help::MODEL_SIMULATE)]
    Simulate(DocumentArgs),
    /// Page-based DSM: the time of an operation, a barrier, or an application of phases
    #[command(after_help = super::help::MODEL_DVSM)]
    Dvsm(PlottedArgs),
    /// Memory hierarchy: time per instruction of a program on a machine or cluster
    #[command(after_help = super::help::MODEL_MEMHIER)]
    Memhier(DocumentArgs),
    /// Memory hierarchy: the fastest cluster for a budget, or the best upgrade of a cluster
    #[command(after_help = super::help::MODEL_CLUSTER)]
    Cluster(DocumentArgs),
    /// Memory hierarchy: fit the locality (alpha, beta) of an address trace or of measured hit rates
    #[command(after_help = super::help::MODEL_FIT)]
    Fit(DocumentArgs),
    /// Derive the inputs of the other models from a run
    #[command(after_help = super::help::MODEL_INPUTS)]
    Inputs(InputsArgs),
    /// Predict the run time of a recorded run after a change, beside what was measured and modelled
    #[command(after_help = super::help::MODEL_PREDICT)]
    Predict(PredictArgs),
}

/// Which document to derive from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputsFor {
    /// All of them
    All,
    /// `dosmos model lopc`
    Lopc,
    /// `dosmos model general`
    General,
    /// `dosmos model dvsm`
    Dvsm,
    /// `dosmos model fit`
    Fit,
}

/// `dosmos model inputs`.
#[derive(Debug, Args)]
pub(crate) struct InputsArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Print only the document that this model reads
    #[arg(long = "for", value_enum, default_value = "all", value_name = "MODEL")]
    pub(crate) wanted: InputsFor,
    /// With --for fit: application process whose references to use [default: the first]
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::processes))]
    pub(crate) process: Option<String>,
}

/// `dosmos model predict`.
#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Changes to predict, such as speed=8,protocol=0.2,prefetch=0.5,groups=proposed.toml,procs=16 (all keys:
    /// docs/guide/prediction.md)
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',')]
    pub(crate) what_if: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

/// A run, and what messages cost where it ran.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// Costs of messages as measured by `dosmos-bench network -o FILE.json` [default: those of a typical machine]
    #[arg(long, value_name = "FILE.json")]
    pub(crate) network: Option<PathBuf>,
    /// Compute operation times from messages and service alone, without the delays measured in the run
    #[arg(long)]
    pub(crate) no_delays: bool,
}

/// One document in, one answer out.
#[derive(Debug, Args)]
pub(crate) struct DocumentArgs {
    /// JSON document to read; - is standard input (fields: docs/guide/models.md)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

/// A document, and optionally a curve around it.
#[derive(Debug, Args)]
pub(crate) struct PlottedArgs {
    #[command(flatten)]
    pub(crate) document: DocumentArgs,
    /// Also draw the curve through this point as SVG
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
}
