//! The grammar of the benchmarks that the models rest on.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// `dosmos bench network`.
#[derive(Debug, Args)]
pub(crate) struct NetworkArgs {
    /// Messages there and back of each size in a run
    #[arg(long, default_value_t = 2000)]
    pub(crate) messages: u32,
    /// Runs; medians and spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Unix sockets instead of TCP
    #[arg(long)]
    pub(crate) unix: bool,
    /// Also write the JSON record here, for `dosmos model inputs --network`
    #[arg(short, long, value_name = "FILE.json")]
    pub(crate) output: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Be the other end: answer every message until standard input ends
    #[arg(long, hide = true, value_name = "ADDRESS")]
    pub(crate) answer: Option<String>,
}

/// `dosmos bench predict`.
#[derive(Debug, Args)]
pub(crate) struct BenchPredictArgs {
    /// Programs with their arguments, e.g. "sor --iterations 300" [default: a choice of the examples]
    #[arg(value_name = "PROGRAM")]
    pub(crate) programs: Vec<String>,
    /// Numbers of application processes, each with a memory process of its own
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4, 8])]
    pub(crate) processes: Vec<u32>,
    /// Runs of each; medians and spread are taken over them
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: usize,
    /// What `dosmos bench network -o` measured [default: it is measured first]
    #[arg(long, value_name = "FILE.json")]
    pub(crate) network: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
