//! The grammar of the command line.

mod cert;
mod common;
mod findings;
mod help;
mod hosts;
mod interchange;
mod metrics;
mod model;
mod runs;
mod sql;
mod store;
mod top;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dosmos_trace::query::page::Cursor;
use dosmos_trace::query::table::SortKey;

pub(crate) use cert::{AuthorityArgs, CertCommand, InitArgs, IssueArgs, RotateArgs};
pub(crate) use common::SelectArgs;
pub use common::{Format, SourceArgs};
pub(crate) use findings::{CheckArgs, CheckFormat, DiffArgs, VerifyArgs};
pub(crate) use hosts::{Hosts, PrintFor};
pub use interchange::ExportFormat;
pub(crate) use interchange::{ExportArgs, ImportArgs};
pub(crate) use metrics::{MetricsCommand, PrometheusArgs, TargetsArgs};
pub(crate) use model::{DocumentArgs, InputsArgs, InputsFor, ModelCommand, PredictArgs, RunArgs};
pub(crate) use runs::RunsArgs;
pub use sql::{ArchiveArgs, Division, SqlArgs};
pub(crate) use store::{StoreArgs, StoreCommand};
pub(crate) use top::{ScreenArgs, TopArgs};

/// Distributed shared memory with built-in monitoring: run programs, watch them, find bad sharing
#[derive(Debug, Parser)]
#[command(name = "dosmos", version, arg_required_else_help = true, after_help = help::FIRST_STEPS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an example program on a cluster on this machine, and watch it
    #[command(after_help = help::DEMO)]
    Demo(DemoArgs),
    /// Start all processes of a cluster file on this machine, run a program, stop everything
    #[command(after_help = help::UP)]
    Up(UpArgs),
    /// Run one process of a cluster, for launchers such as srun and mpirun
    #[command(after_help = help::NODE)]
    Node(NodeArgs),
    /// Watch a running program, or inspect a finished run, in the terminal
    #[command(after_help = help::TOP)]
    Top(TopArgs),
    /// Print variables, processes, access counts over time or single records of a run
    #[command(after_help = help::QUERY)]
    Query(QueryArgs),
    /// List the runs of a folder: program, start, length, processes, efficiency, completeness; or remove old ones
    #[command(after_help = help::RUNS)]
    Runs(RunsArgs),
    /// Find bad sharing in a run: what it costs, and what to change
    #[command(after_help = help::CHECK)]
    Check(CheckArgs),
    /// Prove or refute that the memory was consistent in a run, and find data races of its program
    #[command(after_help = help::VERIFY)]
    Verify(VerifyArgs),
    /// Compare two runs of a program, phase by phase (a phase is the time between two barriers)
    #[command(after_help = help::DIFF)]
    Diff(DiffArgs),
    /// Write an HTML page about a run: verdict, findings, advice, charts; or a summary as Markdown or JSON
    #[command(after_help = help::REPORT)]
    Report(ReportArgs),
    /// Convert a trace for other tools: JSONL, CSV, Perfetto, OTLP or Parquet
    #[command(after_help = help::EXPORT)]
    Export(ExportArgs),
    /// Create a trace store from a JSONL file (format: docs/guide/interchange.md)
    #[command(after_help = help::IMPORT)]
    Import(ImportArgs),
    /// Answer a question in SQL over the records, objects, variables, processes, phases and findings of a run
    #[command(after_help = help::SQL)]
    Sql(SqlArgs),
    /// Write the records of a run as Parquet files, divided for data frames and data bases
    #[command(after_help = help::ARCHIVE)]
    Archive(ArchiveArgs),
    /// Write what Prometheus and Grafana need to watch a run: a configuration, targets, a dashboard
    #[command(after_help = help::METRICS)]
    Metrics {
        #[command(subcommand)]
        command: MetricsCommand,
    },
    /// Predict run times with performance models: contention, DSM phases, memory hierarchies
    #[command(after_help = help::MODEL)]
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// Inspect, verify or compact trace stores
    #[command(after_help = help::STORE)]
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Make and renew the certificates of a cluster
    #[command(after_help = help::CERT)]
    Cert {
        #[command(subcommand)]
        command: CertCommand,
    },
    /// Check cluster files
    #[command(after_help = help::CONFIG)]
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print a completion script for a shell; it completes names of variables and processes of a run too
    #[command(after_help = help::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages of all commands
    #[command(after_help = help::MAN)]
    Man {
        /// Folder for the pages, created if it does not exist
        folder: PathBuf,
    },
    /// Run one process of a built-in example program (started by `dosmos up`)
    #[command(after_help = help::APP)]
    App(AppArgs),
    /// Run a program; end everything it started when it ends or when the parent process is gone
    #[command(hide = true)]
    Supervise(SuperviseArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the groups and processes of a cluster file, or all of its errors
    #[command(after_help = help::CONFIG)]
    Check {
        /// The cluster file (TOML)
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Example program to run; `dosmos app --list` lists them
    #[arg(long, default_value = "sor")]
    pub(crate) app: String,
    /// Number of groups
    #[arg(long, default_value_t = 2)]
    pub(crate) groups: usize,
    /// Number of application processes, each with its own memory process; at least one per group, at most 64
    #[arg(long, default_value_t = 4)]
    pub(crate) processes: usize,
    /// Seconds for which the program computes [default: 60, with --headless 5]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<u64>,
    /// Print a summary at the end instead of showing the terminal view
    #[arg(long)]
    pub(crate) headless: bool,
    #[command(flatten)]
    pub(crate) screen: ScreenArgs,
    /// Directory for logs and trace stores [default: dosmos-run/demo-TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
    /// Arguments for the example program; `dosmos app NAME --help` lists them
    #[arg(last = true)]
    pub(crate) args: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Cluster file (TOML)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) cluster: PathBuf,
    /// Directory for logs and trace stores [default: dosmos-run/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
    /// Keep the event managers running after the program has ended, until Ctrl-C, to answer queries
    #[arg(long)]
    pub(crate) keep_emps: bool,
    /// Run on these hosts through ssh: names separated by commas, or as n[01-04]; needs a [launch] section. With --print
    /// also a number of hosts
    #[arg(long, value_name = "LIST", conflicts_with = "keep_emps")]
    pub(crate) hosts: Option<Hosts>,
    /// Start nothing: print a script or manifest that runs the cluster on --hosts under another launcher
    #[arg(long, value_enum, value_name = "LAUNCHER", requires = "hosts")]
    pub(crate) print: Option<PrintFor>,
    /// --hosts: the command that reaches a host, with its options
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub(crate) ssh: String,
    /// --hosts: path of dosmos on the hosts [default: that of this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_dosmos: Option<PathBuf>,
    /// --print kubernetes: container image with dosmos and the program
    #[arg(long, value_name = "IMAGE", default_value = concat!("dosmos:", env!("CARGO_PKG_VERSION")))]
    pub(crate) image: String,
    /// Allow addresses that other machines can reach, without encryption
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Program and arguments, started once per application process [default: [app] command of the cluster file]
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) app: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Cluster file (TOML)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) cluster: PathBuf,
    /// Name of the process in the cluster file [default: by the rank that the launcher assigned]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// This rank stands for its host: start all processes that the [launch] rule gives a host
    #[arg(long, conflicts_with = "name")]
    pub(crate) whole_host: bool,
    /// Read settings (VARIABLE=VALUE lines, then an empty line) from standard input, whose end then ends the host
    #[arg(long, hide = true, requires = "whole_host")]
    pub(crate) settings_on_stdin: bool,
    /// Directory for addresses, logs and trace stores [default: with a [launch] rule dosmos-run/NAME-JOB, otherwise .]
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
    /// Allow addresses that other machines can reach, without encryption
    #[arg(long)]
    pub(crate) insecure: bool,
    /// End when standard input ends (its other end is held by the parent process)
    #[arg(long, hide = true)]
    pub(crate) stdin_is_parent: bool,
    /// Program and arguments, for application processes [default: [app] command of the cluster file]
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) app: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// Umask of the program, in octal
    #[arg(long, value_parser = octal)]
    pub(crate) umask: u32,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<String>,
}

fn octal(text: &str) -> Result<u32, std::num::ParseIntError> {
    u32::from_str_radix(text, 8)
}

/// What `dosmos report` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A page with charts
    Html,
    /// A summary for comments, as in continuous integration
    Markdown,
    /// A summary for programs
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// File to write; - is standard output [default: report.html, - for the other formats]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What to write: a page, or a summary without charts for comments (markdown) and programs (json)
    #[arg(long, value_enum, default_value = "html")]
    pub(crate) format: ReportFormat,
    /// Thresholds of the detectors (TOML), as for `dosmos check`; missing keys keep their defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Measured costs of messages, as for `dosmos check` [default: those of a typical machine]
    #[arg(long, value_name = "FILE.json")]
    pub(crate) network: Option<PathBuf>,
    /// Title of the page [default: the name of the run directory or store]
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Number of variables with charts of their own, the most accessed first [default: 4]
    #[arg(long, value_name = "N")]
    pub(crate) variables: Option<usize>,
    /// Number of application processes with a history chart [default: 2]
    #[arg(long, value_name = "N")]
    pub(crate) processes: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Question {
    /// One row per variable: declaration, owners, access counts
    Variables,
    /// One row per variable or barrier and operation: how long the operations took
    Times,
    /// One row per memory, link and application process
    Processes,
    /// One row per group, with its processes and variables
    Groups,
    /// One row per meta-object: the monitoring state of an object or of a copy
    Meta,
    /// Accesses over time, by origin (local, intra-group, inter-group)
    Histogram,
    /// Accesses in order of time, merged into at most --limit points
    History,
    /// Single records in order of time
    Events,
    /// How much of the time was computing and where the rest went, of the run, its groups, processes and phases
    Efficiency,
    /// Execution-time breakdown per application process: busy, service, local, fault, cold, lock, barrier, other
    Breakdown,
}

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// What to print
    #[arg(value_enum)]
    pub(crate) question: Question,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// histogram: number of buckets [default: 20]
    #[arg(long, value_name = "N")]
    pub(crate) buckets: Option<u32>,
    /// history, events: maximum number of rows (events: 0 for all) [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// events: continue after an earlier page: the value that it printed as `next`
    #[arg(long, value_name = "PLACE")]
    pub(crate) after: Option<Cursor>,
    /// variables: sort by this column, largest first (default time): time, name, objects, copies, reads, cached, writes, acquires, delayed,
    /// wait, hold, inter
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sort: Option<SortKey>,
    /// variables: print only the first K in the order of --sort
    #[arg(long, value_name = "K")]
    pub(crate) top: Option<u32>,
    /// events: also records made by owners, failed operations and waiting notices; breakdown: one row per phase; efficiency: all phases, not only
    /// the ten that lost most
    #[arg(long)]
    pub(crate) all: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct AppArgs {
    /// List the example programs
    #[arg(long)]
    pub(crate) list: bool,
    /// Name of the program and its arguments; `NAME --help` lists them
    #[arg(
        value_name = "NAME",
        trailing_var_arg = true,
        required_unless_present = "list",
        conflicts_with = "list"
    )]
    pub(crate) program: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
    }
}
