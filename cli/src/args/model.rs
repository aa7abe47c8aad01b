//! The grammar of `dosmos model`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Format, SourceArgs};

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
    /// From a run: the inputs that the other models read
    Inputs(InputsArgs),
    /// From a run: where its time went, where the model says it went, and where it would go after a change
    Predict(PredictArgs),
}

/// Which document to make of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputsFor {
    /// Everything
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
    /// Only the document that this model reads
    #[arg(long = "for", value_enum, default_value = "all", value_name = "MODEL")]
    pub(crate) wanted: InputsFor,
    /// Whose references (with `--for fit`) [default: the first process]
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Option<String>,
}

/// `dosmos model predict`.
#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// What to change, e.g. `speed=8,protocol=0.2,prefetch=0.5,groups=proposed.toml,procs=16`; all keys:
    /// docs/guide/prediction.md
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',')]
    pub(crate) what_if: Vec<String>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

/// A run, and what messages cost where it ran.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// What `dosmos-bench network -o` measured [default: a typical machine's]
    #[arg(long, value_name = "FILE.json")]
    pub(crate) network: Option<PathBuf>,
    /// Operations take what their messages and their service take: use no delays measured in the run
    #[arg(long)]
    pub(crate) no_delays: bool,
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
