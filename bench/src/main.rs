//! Benchmarks of dosmos: they measure on real processes, several runs each, and print medians and spread.
//!
//! One module per benchmark. They share `run` (a cluster for a program, and its output), `statistics` and
//! `machine`.
//!
//! The clusters consist of processes of this same program: a first argument `node`, `app` or `supervise` is handled as the
//! dosmos binary does. So no installed dosmos of another version can be measured by mistake.

mod applications;
mod args;
mod breakdown;
mod core_pair;
mod cost;
mod cures;
mod findings;
mod ingest;
mod instructions;
mod interchange;
mod intrusion;
mod kernels;
mod latency;
mod load;
mod machine;
mod manager;
mod models;
mod network;
mod paper;
mod path;
mod predict;
mod query;
mod replicas;
mod run;
mod scale;
mod statistics;
mod store;
mod stream;
mod top;
mod verify;

use std::process::ExitCode;

use clap::Parser;
use dosmos_cli::output;

use args::{Cli, Command};

/// What a process of a benchmark's cluster is started with.
const CLUSTER_COMMANDS: [&str; 3] = ["node", "app", "supervise"];

fn main() -> ExitCode {
    let first = std::env::args().nth(1);
    if first.is_some_and(|a| CLUSTER_COMMANDS.contains(&a.as_str())) {
        return dosmos_cli::main();
    }
    match carry_out(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            output::error(&format!("{e:#}"));
            ExitCode::from(2)
        }
    }
}

fn carry_out(command: Command) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match command {
        Command::Findings(args) => findings::run(&args),
        Command::Instructions(args) => instructions::run(&args),
        Command::Path(args) => path::run(&args),
        Command::Replicas(args) => runtime.block_on(replicas::run(args)),
        Command::Ingest(args) => runtime.block_on(ingest::run(args)),
        Command::Verify(args) => verify::run(&args),
        Command::Latency(args) => runtime.block_on(latency::run(args)),
        Command::Network(args) => runtime.block_on(network::run(args)),
        Command::Predict(args) => runtime.block_on(predict::run(args)),
        Command::Intrusion(args) => runtime.block_on(intrusion::run(args)),
        Command::Kernels(args) => runtime.block_on(kernels::run(args)),
        Command::Cost(args) => runtime.block_on(cost::run(args)),
        Command::Cures(args) => runtime.block_on(cures::run(args)),
        Command::Paper(args) => runtime.block_on(paper::run(args)),
        Command::Store(args) => store::run(&args),
        Command::Query(args) => runtime.block_on(query::run(&args)),
        Command::Interchange(args) => interchange::run(&args),
        Command::Models(args) => models::run(&args),
        Command::Scale(args) => runtime.block_on(scale::run(args)),
        Command::Top(args) => runtime.block_on(top::run(args)),
    }
}
