//! The grammar of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dosmos_cli::args::Format;
use serde::Serialize;

/// Measure dosmos on this machine: the benchmarks behind every published figure
#[derive(Debug, Parser)]
#[command(name = "dosmos-bench", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the time of each operation (local, intra-group, inter-group) on a cluster of real processes
    Latency(LatencyArgs),
    /// Measure what a message costs on this machine, and write it as the network record that the models read
    Network(NetworkArgs),
    /// Predict runs under other conditions from recorded ones, and measure them: processors, groups, sockets
    Predict(PredictArgs),
    /// Measure the cost of monitoring: the worst-case program of the DOSMOS-Trace paper in its four configurations
    Intrusion(IntrusionArgs),
    /// Measure memory (MAD), locks (SAD) and barriers (BAD) by one process, alone and beside competing processes
    Kernels(KernelsArgs),
    /// Compare each application with the plain sequential program, and some with MPI
    Cost(CostArgs),
    /// Repeat the experiments of the papers and write the results beside the published ones as one HTML page
    Paper(PaperArgs),
    /// Measure the trace store on the reference workload (bytes per record, records per second) and other ways to store
    Store(StoreArgs),
    /// Measure the time of each kind of query on a large trace store
    Query(QueryArgs),
    /// Reproduce by simulation what the papers state about the accuracy of the contention models
    Models(ModelsArgs),
    /// Measure the speed of export in each format and of import
    Interchange(InterchangeArgs),
    /// Measure `dosmos top` on a large running system: redraws per second, time per redraw, network traffic
    Top(TopArgs),
    /// Measure what a large system takes: memory per object, copy, chunk and connection, and answers of many event managers
    Scale(ScaleArgs),
    /// Measure precision and recall of `dosmos check` on generated traces with known pathologies
    Findings(FindingsArgs),
    /// Measure what the cures that `dosmos check` proposes gain, beside what it predicts: runs with and without each in turn
    Cures(CuresArgs),
    /// Measure the speed and memory of finding the critical path of a generated run
    Path(PathArgs),
    /// Measure what 1 and 2 replicas add to a section with a write, beside none, in turn in the same run
    Replicas(ReplicasArgs),
    /// Measure how many records per second one event manager takes from many memory processes
    Ingest(IngestArgs),
    /// Measure the speed and memory of `dosmos verify` on a generated run that keeps the contract
    Verify(VerifyArgs),
    /// Count the instructions of an operation on the paths that everything goes through (needs valgrind)
    Instructions(InstructionsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InstructionsArgs {
    /// Compare with the counts in this file; fail if one differs by more than 3 %
    #[arg(long, value_name = "FILE.json")]
    pub(crate) check: Option<PathBuf>,
    /// Write the counts to this file, for --check
    #[arg(long, value_name = "FILE.json")]
    pub(crate) json: Option<PathBuf>,
    /// Only run one path, for this number of operations: what is counted
    #[arg(long, hide = true, requires = "operations")]
    pub(crate) path: Option<String>,
    #[arg(long, hide = true, requires = "path")]
    pub(crate) operations: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    /// Records
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) records: u64,
    /// Application processes
    #[arg(long, default_value_t = 16)]
    pub(crate) processes: u32,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Operations of application processes
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) operations: u64,
    /// Application processes
    #[arg(long, default_value_t = 16)]
    pub(crate) processes: u32,
    /// Objects
    #[arg(long, default_value_t = 1024)]
    pub(crate) objects: u32,
    /// Do not look for data races
    #[arg(long)]
    pub(crate) no_races: bool,
}

#[derive(Debug, Args)]
pub(crate) struct IngestArgs {
    /// Memory processes
    #[arg(long, default_value_t = 64)]
    pub(crate) processes: u32,
    /// Records of all of them together
    #[arg(long, default_value_t = 30_000_000)]
    pub(crate) records: u64,
    /// Number of runs; the medians and the spread are taken over them
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: usize,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {
    /// Number of runs, each on a new cluster; the medians and the spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Number of operations of each kind per run
    #[arg(long, default_value_t = 5000)]
    pub(crate) ops: u64,
    /// Use Unix sockets instead of TCP
    #[arg(long)]
    pub(crate) unix: bool,
    /// Compare TCP with TLS and without, in pairs of runs, instead of with floors
    #[arg(long, conflicts_with = "unix")]
    pub(crate) tls: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Be the other end of the plain socket: send everything back
    #[arg(long, hide = true, value_name = "ADDRESS")]
    pub(crate) echo: Option<String>,
    /// Compute until standard input ends
    #[arg(long, hide = true)]
    pub(crate) keep_awake: bool,
}

/// `dosmos-bench network`.
#[derive(Debug, Args)]
pub(crate) struct NetworkArgs {
    /// Number of round trips of each message size per run
    #[arg(long, default_value_t = 2000)]
    pub(crate) messages: u32,
    /// Number of runs; the medians and the spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Use Unix sockets instead of TCP
    #[arg(long)]
    pub(crate) unix: bool,
    /// Also write the network record (JSON) to this file, for the option --network of dosmos
    #[arg(short, long, value_name = "FILE.json")]
    pub(crate) output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Be the other end: reply to every message until standard input ends
    #[arg(long, hide = true, value_name = "ADDRESS")]
    pub(crate) answer: Option<String>,
}

/// What is different between the run that is recorded and the one that is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Case {
    Processors,
    Groups,
    Together,
    Tcp,
    Slow,
    Four,
    Eight,
    Half,
    Size,
}

/// `dosmos-bench predict`.
#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// Run these programs with these arguments, e.g. "sor --iterations 300" [default: the applications]
    #[arg(value_name = "PROGRAM")]
    pub(crate) programs: Vec<String>,
    /// Only these cases; may be repeated
    #[arg(long = "case", value_enum)]
    pub(crate) cases: Vec<Case>,
    /// Number of rounds: each a run before and a run after
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: usize,
    /// Keep the runs in this directory, which is made
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Run nothing: predict the runs again that --keep left in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    pub(crate) kept: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct IntrusionArgs {
    /// Turns: in each, every configuration runs on, off, off, on, which is two pairs
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Number of rounds (acquire, write, release, read) of each of the four processes
    #[arg(long, default_value_t = 1000)]
    pub(crate) rounds: u64,
    /// Count instructions, too (needs valgrind): of as many pairs, without computing
    #[arg(long)]
    pub(crate) instructions: bool,
    /// Run once in this configuration (0: no monitoring) and say how long it took
    #[arg(long, hide = true)]
    pub(crate) once: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct KernelsArgs {
    /// Run only these sweeps (see --list)
    #[arg(value_name = "SWEEP")]
    pub(crate) sweeps: Vec<String>,
    /// List the sweeps and what they vary
    #[arg(long)]
    pub(crate) list: bool,
    /// Largest number of competing processes
    #[arg(long, default_value_t = 7)]
    pub(crate) max_n: usize,
    /// Length of a measurement, in milliseconds
    #[arg(long, default_value_t = 100)]
    pub(crate) time: u64,
    /// Number of measurements of each point; the medians and the spread are taken over them
    #[arg(long, default_value_t = 3)]
    pub(crate) repeats: usize,
    /// Write the curves of each sweep to DIR/SWEEP.svg
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// Run these applications, with these arguments or those of the papers, e.g. sor "is --keys 1000000" [default: all]
    #[arg(value_name = "APPLICATION")]
    pub(crate) applications: Vec<String>,
    /// Numbers of processes
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    pub(crate) processes: Vec<usize>,
    /// Number of rounds, in each of which every program runs once; the medians and the spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Do not run the MPI programs (they also need mpicc and mpirun)
    #[arg(long)]
    pub(crate) no_mpi: bool,
    /// Run a smoke test: one round of small sizes that shows that the programs agree; ignore the times
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also write the measurements to this file, for --compare
    #[arg(long, value_name = "FILE.json")]
    pub(crate) json: Option<PathBuf>,
    /// Also print the times relative to those of an earlier run, from a file written by --json
    #[arg(long, value_name = "FILE.json")]
    pub(crate) compare: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Run the sequential program, once, in this process, and print its figures as JSON
    #[arg(long, hide = true)]
    pub(crate) alone: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PaperArgs {
    /// Run only these experiments (see --list)
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiments: Vec<String>,
    /// List the experiments and what they repeat
    #[arg(long)]
    pub(crate) list: bool,
    /// Number of runs of each measurement; the medians and the spread are taken over them
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: usize,
    /// Run a smoke test: very short runs that show that the experiments work; ignore the figures
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the page to this file
    #[arg(short, long, value_name = "FILE", default_value = "paper.html")]
    pub(crate) output: PathBuf,
    /// Also write the page as Markdown, with its pictures in a directory of the same name
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

/// A way to store records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    /// The trace store, full records
    Chunks,
    /// The trace store, the six fields of the papers
    SixFields,
    /// A plain append-only file of fixed-size records
    File,
    /// sled with one key per record
    OneKey,
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Number of records per run
    #[arg(long, default_value_t = 20_000_000)]
    pub(crate) records: u64,
    /// Number of records per run of the method one-key, which is too slow for the full number
    #[arg(long, default_value_t = 500_000)]
    pub(crate) one_key_records: u64,
    /// Number of records per commit
    #[arg(long, default_value_t = 65_536)]
    pub(crate) commit: usize,
    /// Number of runs, each in a new process; the medians and the spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Measure only these methods, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) method: Vec<Method>,
    /// Seed of the reference workload
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Directory for the stores, which are removed at the end [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Measure one method once, in this process, and print the figures as JSON
    #[arg(long, hide = true)]
    pub(crate) one_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// Number of records in the store
    #[arg(long, default_value_t = 100_000_000)]
    pub(crate) records: u64,
    /// Number of measured repetitions of each query, after one that is not counted
    #[arg(long, default_value_t = 15)]
    pub(crate) runs: usize,
    /// Seed of the reference workload
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Keep the store in this directory, and reuse it if it exists [default: a temporary store]
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Number of cycles measured in each simulation
    #[arg(long, default_value_t = 100_000)]
    pub(crate) cycles: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ReplicasArgs {
    /// Rounds: in each, sections on the three variables in turn
    #[arg(long, default_value_t = 50)]
    pub(crate) rounds: u32,
    /// Sections on one variable before the next has its turn
    #[arg(long, default_value_t = 100)]
    pub(crate) sections: u32,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct InterchangeArgs {
    /// Number of records of the trace
    #[arg(long, default_value_t = 2_000_000)]
    pub(crate) records: u64,
    /// Number of runs; the medians and the spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Seed of the reference workload
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Directory for stores and files, which are removed at the end [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
    /// Objects, copies and meta-objects whose memory is measured
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) objects: u32,
    /// Memory processes that report to one event manager
    #[arg(long, default_value_t = 1_000)]
    pub(crate) processes: u32,
    /// Chunks of a store that is opened
    #[arg(long, default_value_t = 2_000)]
    pub(crate) chunks: u32,
    /// Numbers of event managers that are asked together
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16, 64, 100])]
    pub(crate) managers: Vec<u32>,
    /// Variables of each event manager
    #[arg(long, default_value_t = 100)]
    pub(crate) variables: u32,
    /// Times that each question is asked
    #[arg(long, default_value_t = 21)]
    pub(crate) rounds: usize,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Measure only the memory of one thing, in this process
    #[arg(long, hide = true)]
    pub(crate) part: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Number of variables of the simulated system
    #[arg(long, default_value_t = 100_000)]
    pub(crate) variables: u32,
    /// Number of event managers, each with one memory process
    #[arg(long, default_value_t = 64)]
    pub(crate) emps: u32,
    /// Records per second that the system produces
    #[arg(long, default_value_t = 20_000)]
    pub(crate) rate: u32,
    /// Number of runs; the medians and the spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Time on each screen per run, in seconds
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Time between two updates, in milliseconds
    #[arg(long, default_value_t = 500)]
    pub(crate) refresh: u64,
    /// Width of the terminal, in columns
    #[arg(long, default_value_t = 200)]
    pub(crate) columns: u16,
    /// Height of the terminal, in rows
    #[arg(long, default_value_t = 60)]
    pub(crate) rows: u16,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

/// Where the causes that `dosmos-bench findings` looks for are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// Any number of causes beside each other, among 3 to 15 processes, all the time
    Mixed,
    /// One cause among 8 processes: all the time or in 20 or 30 % of it, at once or in bursts
    Varied,
    /// The same among 64 processes
    Many,
    /// Programs in which something that orders accesses was left out, and the same without the mistake
    Racing,
}

#[derive(Debug, Args)]
pub(crate) struct FindingsArgs {
    /// Number of traces of each form; a tenth of it of those with many processes
    #[arg(long, default_value_t = 500)]
    pub(crate) traces: u64,
    /// Seed of the first trace (the detectors were tuned on mixed seeds below 1000)
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) seed: u64,
    /// Only traces of these forms; separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "mixed,varied,many,racing"
    )]
    pub(crate) forms: Vec<Form>,
    /// Ask the detectors alone, without the replay by which `dosmos check` decides what is worth it (more than ten times as fast)
    #[arg(long)]
    pub(crate) without_replay: bool,
    /// Drop this fraction of the records (0 to 1), in bursts
    #[arg(long, default_value_t = 0.0)]
    pub(crate) drop: f64,
    /// Keep one record in N
    #[arg(long, default_value_t = 1)]
    pub(crate) sample: u32,
    /// List every mistake with the seed of its trace
    #[arg(long)]
    pub(crate) mistakes: bool,
    /// Read thresholds of the detectors from a TOML file; those left out keep their defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

/// How `dosmos-bench cures` prints its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CuresFormat {
    /// Aligned columns
    Table,
    /// A Markdown document
    Markdown,
    /// Comma-separated values with a header line, without the summary
    Csv,
    /// A JSON document
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CuresArgs {
    /// Measure only these programs (see --list), or examples with arguments, e.g. "sor --rows 512"; separated by commas
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    pub(crate) programs: Vec<String>,
    /// List the programs with their arguments
    #[arg(long)]
    pub(crate) list: bool,
    /// Number of pairs of runs, without and with each cure, interleaved; the 95 % intervals are taken over them
    #[arg(long, default_value_t = 10)]
    pub(crate) pairs: usize,
    /// Number of patches to measure per program: those of the first findings that have one
    #[arg(long, default_value_t = 3)]
    pub(crate) patches: usize,
    /// Read thresholds of the detectors from a TOML file; those left out keep their defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Read message costs from a file written by `network -o`, for predicted gains [default: those of a typical machine]
    #[arg(long, value_name = "FILE.json")]
    pub(crate) network: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: CuresFormat,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use dosmos_documents::{commands, documents};

    use super::Cli;

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_benchmark_in_the_documents_is_understood() {
        let programs = ["cargo run --release -p dosmos-bench -- ", "dosmos-bench "];
        let mut tried = 0;
        for document in documents() {
            for (line, words) in commands(&document.text, &programs) {
                let all = std::iter::once("dosmos-bench".to_owned()).chain(words);
                if let Err(e) = Cli::try_parse_from(all) {
                    panic!("{}: {line}\n{e}", document.path);
                }
                tried += 1;
            }
        }
        assert!(tried > 0, "no benchmark was found");
    }
}
