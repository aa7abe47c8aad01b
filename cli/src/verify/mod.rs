//! `dosmos verify`: whether a run kept the consistency contract; for people and for CI.
//!
//! Exit status: 0 consistent, 1 violated (the counter-examples are printed), 2 undecided, with why and what would decide it. The
//! JSON answer has the keys `verdict`, `run` (how the run was started and how it ended), `looked` (how much was looked at),
//! `violations` (each with its `records`) and `undecided`. Documented in `docs/guide/verify.md`.

mod show;

use std::process::ExitCode;

use dosmos_client::Run;
use dosmos_proto::Nanos;
use dosmos_verify::{Options, State};

use crate::args::{Format, VerifyArgs};
use crate::output;

pub(crate) async fn run(args: VerifyArgs) -> anyhow::Result<ExitCode> {
    let run = Run::open(&args.sources.target()).await?;
    let options = Options {
        races: !args.no_races,
        clock_error: args.clock_error.map(Nanos::from_millis),
        ..Options::default()
    };
    let verified = run.verify(options).await?;
    match args.format {
        Format::Json => output::text(&(show::json(&verified)? + "\n")),
        Format::Csv => output::text(&show::table(&verified).render(Format::Csv)),
        Format::Table => output::text(&show::report(&verified)),
    }
    Ok(ExitCode::from(match verified.verdict.state {
        State::Consistent => 0,
        State::Violated => 1,
        State::Undecided => 2,
    }))
}
