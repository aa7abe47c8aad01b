//! The grammar of the command line.

mod findings;
mod measure;
mod model;
mod store;
mod top;
mod trade;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dosmos_client::{Scope, Target};
use dosmos_trace::query::page::Cursor;
use dosmos_trace::query::table::SortKey;

pub(crate) use findings::{CheckArgs, DiffArgs, FindingsArgs};
pub(crate) use measure::{BenchPredictArgs, NetworkArgs};
pub(crate) use model::{DocumentArgs, InputsArgs, InputsFor, ModelCommand, PredictArgs, RunArgs};
pub(crate) use store::{BenchQueryArgs, BenchStoreArgs, Method, StoreArgs, StoreCommand};
pub(crate) use top::{BenchTopArgs, ScreenArgs, TopArgs};
pub(crate) use trade::{BenchInterchangeArgs, ExportArgs, ExportFormat, ImportArgs};

const FIRST_STEPS: &str = "\
First steps:
  dosmos demo                             a cluster, a program, the terminal
  dosmos demo --headless --app bad-group  a program with bad sharing
  dosmos check                            what was wrong with the last run
  dosmos report -o report.html            all about it on one page";

/// A distributed shared memory, and what programs do with it: run them, watch them, have bad sharing found
#[derive(Debug, Parser)]
#[command(name = "dosmos", version, arg_required_else_help = true, after_help = FIRST_STEPS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole cluster on this machine with an example program, and watch it
    Demo(DemoArgs),
    /// Start every process of a cluster file here, run a program on it, stop cleanly
    Up(UpArgs),
    /// Run one process of a cluster (for launchers such as srun and mpirun)
    Node(NodeArgs),
    /// Watch a running program, or look at a finished one, in the terminal
    Top(TopArgs),
    /// Ask for variables, processes, meta-objects, histograms, histories or events
    Query(QueryArgs),
    /// Say what is wrong with the sharing, what it costs, and what to change (exit status 1 if anything)
    Check(CheckArgs),
    /// Compare two runs of a program, phase by phase, from barrier to barrier
    Diff(DiffArgs),
    /// Write one HTML page on a run: findings, advice, diagrams
    Report(ReportArgs),
    /// Write a trace for other tools: JSONL, CSV, Perfetto or Parquet
    Export(ExportArgs),
    /// Make a trace store of a JSONL file (docs/guide/interchange.md)
    Import(ImportArgs),
    /// Predict with a performance model: contention, DSM phases, memory hierarchies
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// Look after trace stores: what is in one, whether it is whole, less space
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Check cluster files
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Measure: what the published figures come from
    Bench {
        #[command(subcommand)]
        command: BenchCommand,
    },
    /// Print what makes a shell complete dosmos's arguments
    Completions {
        /// For which
        shell: clap_complete::Shell,
    },
    /// Run one process of a built-in example program (`dosmos up … -- dosmos app NAME`)
    App(AppArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what a cluster file describes, or everything that is wrong with it
    Check { file: PathBuf },
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Time of each operation, near and far, on a cluster of real processes on this machine
    Latency(LatencyArgs),
    /// What messages cost on this machine: the network record of the models
    Network(NetworkArgs),
    /// How right the models are: example programs, modelled against measured, with 2, 4 and 8 processes
    Predict(BenchPredictArgs),
    /// What monitoring costs: the worst-case program of 001 §8 in its four configurations
    Intrusion(IntrusionArgs),
    /// Unit grains on one process, alone and beside competitors: memory (MAD), locks (SAD), barriers (BAD)
    Kernels(KernelsArgs),
    /// The experiments of the papers, repeated, beside what the papers print: one page
    Paper(PaperArgs),
    /// The trace store on the reference workload: bytes a record, records a second, beside other ways of storing
    Store(BenchStoreArgs),
    /// Time of each kind of question to a large trace store
    Query(BenchQueryArgs),
    /// What the papers claim of the contention models, reproduced by simulation
    Models(ModelsArgs),
    /// How fast traces are exported, and imported, in each format
    Interchange(BenchInterchangeArgs),
    /// The terminal on a large running system: redraws, time of one, traffic
    Top(BenchTopArgs),
    /// Precision and recall of `dosmos check` over generated traces with and without pathologies
    Findings(FindingsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {
    /// Clusters started one after another; medians and spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Operations of each kind in a run
    #[arg(long, default_value_t = 5000)]
    pub(crate) ops: u64,
    /// Unix sockets instead of TCP
    #[arg(long)]
    pub(crate) unix: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct IntrusionArgs {
    /// Runs of each configuration, one after another in turn; medians and spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Rounds of acquire, write, release and read by each of the four processes
    #[arg(long, default_value_t = 2000)]
    pub(crate) rounds: u64,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct PaperArgs {
    /// Only these experiments (`--list` names them)
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiments: Vec<String>,
    /// Name the experiments and what they repeat
    #[arg(long)]
    pub(crate) list: bool,
    /// Runs of each measurement; medians and spread are taken over them
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: usize,
    /// Little of everything, to see that it works; the figures mean nothing
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where to write the page
    #[arg(short, long, value_name = "FILE", default_value = "paper.html")]
    pub(crate) output: PathBuf,
    /// Also write it as Markdown, with its pictures in a directory of the same name
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct KernelsArgs {
    /// Only these sweeps (`--list` names them)
    #[arg(value_name = "SWEEP")]
    pub(crate) sweeps: Vec<String>,
    /// Name the sweeps and what they vary
    #[arg(long)]
    pub(crate) list: bool,
    /// Most competitors
    #[arg(long, default_value_t = 7)]
    pub(crate) max_n: usize,
    /// Milliseconds a measurement
    #[arg(long, default_value_t = 100)]
    pub(crate) time: u64,
    /// Measurements of each point; medians and spread are taken over them
    #[arg(long, default_value_t = 3)]
    pub(crate) repeats: usize,
    /// Write the curves of each sweep to DIR/SWEEP.svg
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Cycles measured in each simulation
    #[arg(long, default_value_t = 100_000)]
    pub(crate) cycles: u64,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The example program (`dosmos app --list`)
    #[arg(long, default_value = "sor")]
    pub(crate) app: String,
    /// Groups the processes are in
    #[arg(long, default_value_t = 2)]
    pub(crate) groups: usize,
    /// Application processes, each with a memory process; a group each at least
    #[arg(long, default_value_t = 4)]
    pub(crate) processes: usize,
    /// How long the program computes [default: 5 without the terminal, 60 with it]
    #[arg(long)]
    pub(crate) seconds: Option<u64>,
    /// Print a summary at the end instead of showing the terminal
    #[arg(long)]
    pub(crate) headless: bool,
    #[command(flatten)]
    pub(crate) screen: ScreenArgs,
    /// Directory for logs and trace stores [default: dosmos-run/demo-TIME]
    #[arg(long)]
    pub(crate) run_dir: Option<PathBuf>,
    /// More arguments for the example program
    #[arg(last = true)]
    pub(crate) args: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// The cluster file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) cluster: PathBuf,
    /// Directory for logs and trace stores [default: dosmos-run/NAME-TIME]
    #[arg(long)]
    pub(crate) run_dir: Option<PathBuf>,
    /// Leave the event managers running to answer questions, until Ctrl-C
    #[arg(long)]
    pub(crate) keep_emps: bool,
    /// The program and its arguments, run once per application process
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) app: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The cluster file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) cluster: PathBuf,
    /// Which process [default: chosen by the rank that srun or mpirun gave]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Directory through which processes find each other, for logs and stores
    #[arg(long, default_value = ".")]
    pub(crate) run_dir: PathBuf,
    /// End when standard input ends: whoever started this holds the other end
    #[arg(long, hide = true)]
    pub(crate) stdin_is_parent: bool,
}

/// Whom to ask.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SourceArgs {
    /// Address of a running event manager (host:port or unix:PATH); may be repeated
    #[arg(long, value_name = "ADDR")]
    pub(crate) emp: Vec<String>,
    /// Directory of a trace store; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Vec<PathBuf>,
    /// Directory of a run: all its event managers, or their stores [default: dosmos-run/latest]
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
}

impl SourceArgs {
    pub(crate) fn target(&self) -> Target {
        Target {
            event_managers: self.emp.clone(),
            stores: self.store.clone(),
            run_dir: self.run_dir.clone(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// Where to write the page
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Thresholds of the findings, as for `check`
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// What messages cost where it ran, as for `check`
    #[arg(long, value_name = "FILE.json")]
    pub(crate) network: Option<PathBuf>,
    /// Title of the page [default: what was asked]
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Variables with diagrams of their own
    #[arg(long, default_value_t = 4)]
    pub(crate) variables: usize,
    /// Processes with a history
    #[arg(long, default_value_t = 2)]
    pub(crate) processes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Question {
    /// Every variable: declaration, owners, access counts
    Variables,
    /// Every memory and application process
    Processes,
    /// Every group and what belongs to it
    Groups,
    /// Meta-objects: the monitoring state of objects and of their copies
    Meta,
    /// Accesses over time by origin
    Histogram,
    /// What happened, gathered to a number of points
    History,
    /// Single records
    Events,
    /// Where each process's time went: busy, service, local, fault, cold, lock, barrier, other
    Breakdown,
}

/// Which records.
#[derive(Debug, Default, Args)]
pub(crate) struct SelectArgs {
    /// Only these variables; `NAME[INDEX]` for one object
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) var: Vec<String>,
    /// Only accesses by these application processes
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) ap: Vec<String>,
    /// Only these operations: read, write, acquire, release, barrier
    #[arg(long, value_delimiter = ',')]
    pub(crate) op: Vec<String>,
    /// Only accesses from so far: local, intra, inter
    #[arg(long, value_delimiter = ',')]
    pub(crate) origin: Vec<String>,
    /// From then on: `+1.5s` into the run, `12:03:04.5`, or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Until then
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

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// What to ask for
    #[arg(value_enum)]
    pub(crate) question: Question,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Buckets of a histogram
    #[arg(long, default_value_t = 20)]
    pub(crate) buckets: u32,
    /// Points of a history, or events, at most (events: 0 for all)
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: u32,
    /// Events after a page before: the `next` of its answer
    #[arg(long, value_name = "PLACE")]
    pub(crate) after: Option<Cursor>,
    /// Order of the variables: name, objects, copies, reads, oncopy, writes, acquires, delayed, wait, hold, inter
    #[arg(long, value_name = "METRIC")]
    pub(crate) sort: Option<SortKey>,
    /// Only so many variables, the first in that order
    #[arg(long, value_name = "K")]
    pub(crate) top: Option<u32>,
    /// Also owners' records, failed operations and waiting notices (events); each phase (breakdown)
    #[arg(long)]
    pub(crate) all: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct AppArgs {
    /// List the programs
    #[arg(long)]
    pub(crate) list: bool,
    /// Which program, and its arguments (`--help` says which it has)
    #[arg(
        value_name = "NAME",
        trailing_var_arg = true,
        required_unless_present = "list"
    )]
    pub(crate) program: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};

    use super::Cli;

    #[test]
    fn the_grammar_is_consistent_and_every_shell_completes_it() {
        Cli::command().debug_assert();
        for shell in clap_complete::Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "dosmos", &mut script);
            let script = String::from_utf8(script).unwrap();
            for command in Cli::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {command}");
            }
        }
    }
}
