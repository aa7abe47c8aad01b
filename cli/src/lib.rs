//! The dosmos command line: every role and every subcommand in one binary.
//!
//! * [`config`]: the cluster file.
//! * `node`: one process of a cluster. `launch`, `up`, `demo`: all of them on this machine. `ranks`: under a launcher, on many
//!   hosts; `hosts`: by ssh; `print`: for other launchers.
//! * `check`, `diff`: findings and comparisons, for people and for CI.
//! * `verify`: whether a run kept the consistency contract.
//! * `model`: performance models, from documents to predictions.
//! * `query`, `top`, `runs`: asking running event managers and stores.
//! * `cert`: the private authority of a cluster.
//! * `complete`, `man`: completions of the shell, manual pages.
//! * `export`, `import`: traces to and from other tools. `metrics`: for Prometheus and Grafana.
//! * `sql`: what the program with SQL adds; this one hands over to it.
//! * `output`: the only place that prints.
//!
//! Errors go to standard error and exit with 2; a program that ran and failed exits with 1.
//! Invariant: no process started here outlives it.

pub mod args;
mod cert;
pub mod check;
mod complete;
pub mod config;
pub mod demo;
mod diff;
#[cfg(test)]
mod documents;
pub mod export;
mod host_list;
mod hosts;
mod import;
pub mod launch;
mod lock;
mod logs;
mod man;
mod metrics;
pub mod model;
pub mod network;
pub mod node;
pub mod output;
mod print;
mod process;
mod progress;
mod query;
mod ranks;
mod report;
mod runs;
mod runtime;
mod signals;
pub mod sql;
mod store;
mod top;
mod up;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;

use args::{Cli, Command, ConfigCommand};
use runtime::block_on;
use sql::Sql;

/// Exit status of a command line that could not be carried out.
const TROUBLE: u8 = 2;

/// Carries the command line out.
pub fn main() -> ExitCode {
    with(None)
}

/// The same, in the program with SQL.
pub fn main_with(sql: &dyn Sql) -> ExitCode {
    with(Some(sql))
}

fn with(sql: Option<&dyn Sql>) -> ExitCode {
    // Answers and ends here if a shell asks for completions.
    CompleteEnv::with_factory(Cli::command).complete();
    // A reader that stops reading (`| head`) ends us quietly, as it does other tools.
    match Cli::try_parse() {
        Ok(cli) => match carry_out(cli.command, sql) {
            Ok(code) => code,
            Err(e) => {
                output::error(&dosmos_client::text::with_causes(e.as_ref()));
                ExitCode::from(TROUBLE)
            }
        },
        Err(e) => {
            output::usage(&e);
            ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(TROUBLE))
        }
    }
}

fn carry_out(command: Command, sql: Option<&dyn Sql>) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => block_on(demo::run(args)),
        Command::Up(args) => block_on(up::run(args)),
        Command::Node(args) => block_on(node::run(args, sql.and_then(Sql::companion))),
        Command::Top(args) => block_on(top::run(args)).map(|()| ExitCode::SUCCESS),
        Command::Report(args) => block_on(report::run(args)).map(|()| ExitCode::SUCCESS),
        Command::Query(args) => block_on(query::run(args)).map(|()| ExitCode::SUCCESS),
        Command::Runs(args) => block_on(runs::run(args)),
        Command::Diff(args) => block_on(diff::run(args)).map(|()| ExitCode::SUCCESS),
        Command::Check(args) => block_on(check::run(args)),
        Command::Verify(args) => block_on(verify::run(args)),
        Command::Export(args) => export::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Import(args) => import::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Sql(args) => match sql {
            Some(sql) => sql.query(&args),
            None => sql::elsewhere(),
        },
        Command::Archive(args) => match sql {
            Some(sql) => sql.archive(&args),
            None => sql::elsewhere(),
        },
        Command::Metrics { command } => metrics::run(&command).map(|()| ExitCode::SUCCESS),
        Command::Model { command } => model::run(&command).map(|()| ExitCode::SUCCESS),
        Command::Store { command } => store::run(&command),
        Command::Cert { command } => cert::run(command).map(|()| ExitCode::SUCCESS),
        Command::Config {
            command: ConfigCommand::Check { file },
        } => {
            let cluster = config::Cluster::read(&file)?;
            output::text(&cluster.to_string());
            Ok(ExitCode::SUCCESS)
        }
        Command::Completions { shell } => {
            output::text(&complete::script(shell)?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { folder } => {
            man::write(&folder)?;
            output::note(&format!(
                "read them with: man {}/dosmos.1",
                folder.display()
            ));
            Ok(ExitCode::SUCCESS)
        }
        Command::Supervise(args) => block_on(launch::supervisor::run(args)),
        Command::App(args) => {
            if args.list {
                for app in dosmos_examples::catalog() {
                    output::text(&format!("{:18} {}\n", app.name, app.about));
                }
                return Ok(ExitCode::SUCCESS);
            }
            let (name, rest) = args.program.split_first().unzip();
            match dosmos_examples::run(name.map_or("", String::as_str), rest.unwrap_or_default()) {
                Ok(()) => Ok(ExitCode::SUCCESS),
                Err(e) => {
                    output::error(&e.to_string());
                    Ok(ExitCode::FAILURE)
                }
            }
        }
    }
}
