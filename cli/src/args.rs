//! The grammar of the command line.

mod findings;
mod model;
mod store;
mod top;
mod trade;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dosmos_client::{Scope, Target};
use dosmos_trace::query::page::Cursor;
use dosmos_trace::query::table::SortKey;

pub(crate) use findings::{CheckArgs, DiffArgs};
pub(crate) use model::{DocumentArgs, InputsArgs, InputsFor, ModelCommand, PredictArgs, RunArgs};
pub(crate) use store::{StoreArgs, StoreCommand};
pub(crate) use top::{ScreenArgs, TopArgs};
pub use trade::ExportFormat;
pub(crate) use trade::{ExportArgs, ImportArgs};

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
    /// Print what makes a shell complete dosmos's arguments
    Completions {
        /// For which
        shell: clap_complete::Shell,
    },
    /// Run one process of a built-in example program (`dosmos up … -- dosmos app NAME`)
    App(AppArgs),
    /// Run a program and end all that it started when it has ended, or when the starter of this is gone
    #[command(hide = true)]
    Supervise(SuperviseArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what a cluster file describes, or everything that is wrong with it
    Check { file: PathBuf },
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

#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// Permissions, in octal, that new files of the program do not get
    #[arg(long, value_parser = octal)]
    pub(crate) umask: u32,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<String>,
}

fn octal(text: &str) -> Result<u32, std::num::ParseIntError> {
    u32::from_str_radix(text, 8)
}

/// Which run to read.
#[derive(Clone, Debug, Default, Args)]
pub struct SourceArgs {
    /// Address of a running event manager (host:port or unix:PATH); may be repeated
    #[arg(long, value_name = "ADDR")]
    pub emp: Vec<String>,
    /// Directory of a trace store; may be repeated
    #[arg(long, value_name = "DIR")]
    pub store: Vec<PathBuf>,
    /// Directory of a run: all its event managers, or their stores [default: dosmos-run/latest]
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
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

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns
    Table,
    /// A JSON document; its schema is documented
    Json,
    /// Comma-separated values with a line of headers
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
    /// Only accesses with these origins: local, intra, inter
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
    /// At most this many variables, the first in that order
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
