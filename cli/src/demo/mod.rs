//! `dosmos demo`: a cluster on this machine, an example program on it, and the terminal.
//!
//! The exit code is 0 only if the program has run to its end and verified its result.

mod cluster;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use dosmos_analysis::{Efficiency, Thresholds, efficiency};
use dosmos_client::{Fused, RemoteSource, Run};
use dosmos_examples::App;
use dosmos_proto::Nanos;
use dosmos_trace::query::{MetaQuery, TraceSource};
use dosmos_visualizer::tui::{self, Options};

use crate::args::{DemoArgs, Format};
use crate::config::Cluster;
use crate::launch::{AppOutcome, RunDir, Running};
use crate::output::{self, Cell, Table};
use crate::query::{share, totals};
use crate::signals::Signals;
use crate::top;

pub use cluster::{CLUSTER, text as cluster};

/// Seconds the program computes if nobody says.
const HEADLESS_SECONDS: u64 = 5;
const TERMINAL_SECONDS: u64 = 60;

pub(crate) async fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let Some(app) = dosmos_examples::catalog()
        .iter()
        .find(|a| a.name == args.app)
    else {
        let names: Vec<&str> = dosmos_examples::catalog().iter().map(|a| a.name).collect();
        bail!(
            "there is no example program {}; programs: {}",
            args.app,
            names.join(", ")
        );
    };
    let text = cluster(args.groups, args.processes)?;
    let cluster = Cluster::parse(&text).map_err(|e| anyhow::anyhow!(e.join("\n")))?;
    let seconds = args.seconds.unwrap_or(if args.headless {
        HEADLESS_SECONDS
    } else {
        TERMINAL_SECONDS
    });
    // Invalid arguments are reported before anything starts.
    app.check(&args.args)?;
    if args.headless
        && let Some(option) = args.screen.given()
    {
        bail!(
            "{option} has no effect with --headless, which shows no screen; leave one of them out"
        );
    }
    if args.seconds.is_some() && !takes_seconds(app, &args.args) {
        bail!(
            "--seconds has no effect on {}: it takes no --seconds, or they are among its arguments; \
             `dosmos app {} --help` lists them",
            app.name,
            app.name
        );
    }
    let screen = match args.headless {
        true => None,
        false => Some(top::options(&args.screen)?),
    };
    let run_dir = RunDir::create(args.run_dir, "demo")?;
    let file = run_dir.path().join("cluster.toml");
    std::fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    let program = std::env::current_exe().context("cannot find the path of this executable")?;
    let picture = run_dir.path().join(format!("{}.png", app.name));
    let mut command = vec![program.display().to_string(), "app".into(), app.name.into()];
    command.extend(with_defaults(app, args.args, seconds, &picture));
    let mut signals = Signals::new()?;
    let shown = run_dir.shown();
    let mut running = tokio::select! {
        started = Running::start(cluster, &file, run_dir) => started?,
        () = signals.first() => bail!("interrupted"),
    };
    let source = Arc::new(Fused::new(
        running
            .cluster
            .topology
            .event_managers()
            .iter()
            .map(|e| Arc::new(RemoteSource::named(e.name.clone(), running.book.clone())) as _)
            .collect(),
    ));
    let ended = if let Some(screen) = screen {
        let ended = in_terminal(&mut running, &command, source, app.name, screen).await;
        if let Ok(outcome) = &ended {
            outcome.incidents.iter().for_each(|i| output::note(i));
            if outcome.failures.is_empty() {
                repeat_last_words(&running);
            }
        }
        ended
    } else {
        headless(&mut running, &command, &*source, signals).await
    };
    running.stop().await;
    let failures = ended?.failures;
    for failure in &failures {
        output::error(failure);
    }
    if picture.exists() {
        output::text(&format!("picture written:   {shown}/{}.png\n", app.name));
    }
    output::text(&format!(
        "inspect the run:   dosmos top --run-dir {shown}\nfind bad sharing:  dosmos check --run-dir {shown}\n"
    ));
    Ok(if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether the program takes a time beside these arguments.
fn takes_seconds(app: &App, args: &[String]) -> bool {
    let more = args.iter().cloned();
    let more = more.chain(["--seconds".to_owned(), "1".to_owned()]);
    app.accepts(&more.collect::<Vec<_>>())
}

/// The program's arguments, and a time and a picture if it knows these and nothing is said about them.
fn with_defaults(app: &App, mut args: Vec<String>, seconds: u64, picture: &Path) -> Vec<String> {
    for (option, value) in [
        ("--seconds", seconds.to_string()),
        ("--output", picture.display().to_string()),
    ] {
        let mut more = args.clone();
        more.extend([option.to_owned(), value]);
        // An option given twice is refused.
        if app.accepts(&more) {
            args = more;
        }
    }
    args
}

async fn headless(
    running: &mut Running,
    command: &[String],
    source: &dyn TraceSource,
    mut signals: Signals,
) -> anyhow::Result<AppOutcome> {
    let started = Instant::now();
    let outcome = tokio::select! {
        outcome = running.run_app(command, true) => outcome?,
        () = signals.first() => bail!("interrupted"),
    };
    let took = started.elapsed();
    running.stop_memory().await;
    output::text(&summary(source, took.into()).await?);
    Ok(outcome)
}

/// The terminal stays when the program has ended; the program ends when the terminal is left.
async fn in_terminal(
    running: &mut Running,
    command: &[String],
    source: Arc<Fused>,
    app: &str,
    screen: Options,
) -> anyhow::Result<AppOutcome> {
    let (tell, finished) = tokio::sync::oneshot::channel::<String>();
    let run_dir = running.run_dir.path();
    let options = Options {
        title: app.to_owned(),
        started_by: "dosmos demo".to_owned(),
        finished: Some(Box::pin(async move {
            match finished.await {
                Ok(how) => how,
                Err(_) => std::future::pending().await,
            }
        })),
        ask_before: Some(format!("{app} and its cluster")),
        runs: run_dir.parent().unwrap_or(run_dir).to_owned(),
        ..screen
    };
    let terminal = tui::run(Run::of(source, ""), options);
    let program = async {
        let outcome = running.run_app(command, false).await;
        let how = match &outcome {
            Ok(o) if o.failures.is_empty() => "run finished".to_owned(),
            Ok(o) => format!("run failed: {}", o.failures[0]),
            Err(e) => format!("run failed: {e}"),
        };
        // The terminal may have been left this moment.
        let _ = tell.send(how);
        outcome
    };
    tokio::pin!(terminal, program);
    tokio::select! {
        left = &mut terminal => {
            left?;
            let early = format!("{app} was stopped when the terminal view was left, before it had verified its result");
            Ok(AppOutcome { failures: vec![early], incidents: Vec::new() })
        }
        outcome = &mut program => {
            terminal.await?;
            outcome
        }
    }
}

/// What the program printed while the terminal was in the way.
fn repeat_last_words(running: &Running) {
    for process in running.cluster.topology.application_processes() {
        if let Some(words) = running.run_dir.last_words(&process.name) {
            output::text(&format!("[{}] {words}\n", process.name));
        }
    }
}

/// What a run did, variable by variable.
async fn summary(source: &dyn TraceSource, took: Nanos) -> anyhow::Result<String> {
    let catalog = source.catalog().await?;
    let status = source.status().await?;
    let (totals, completeness) = totals(source, &MetaQuery::default()).await?;
    let times = source.breakdown().await?;
    let efficiency = Efficiency::of(&times.phases);
    let verdict = efficiency::verdict(efficiency.as_ref(), Thresholds::default().efficiency);
    let t = &catalog.topology;
    let mut text = format!(
        "\n{verdict}\n{} groups, {} memory, {} link, {} application processes, {} event managers; ran {took}\n\n",
        t.groups().len(),
        t.owners_in(None).count(),
        t.memory_processes().iter().filter(|p| p.link).count(),
        t.application_processes().len(),
        t.event_managers().len(),
    );
    let mut table = Table::new(&[
        "variable", "time", "share", "reads", "cached", "intra", "inter", "writes", "intra",
        "inter", "acquires", "delayed",
    ]);
    let mut used: Vec<_> = catalog.variables.iter().collect();
    used.retain(|v| totals.contains_key(&v.id()));
    used.sort_by_key(|v| std::cmp::Reverse(totals[&v.id()].sums.times.total()));
    for v in used {
        let total = &totals[&v.id()];
        let (intra, inter) = (&total.by_origin.intra, &total.by_origin.inter);
        let numbers = [
            total.sums.reads(),
            total.sums.reads_on_copies,
            intra.reads,
            inter.reads,
            total.sums.counts.writes,
            intra.writes,
            inter.writes,
            total.sums.counts.acquires,
            total.sums.delayed,
        ];
        let time = total.sums.times.total();
        let first = [
            Cell::from(v.spec().name()),
            time.into(),
            share(time, catalog.process_time()),
        ];
        table.row(first.into_iter().chain(numbers.map(Cell::from)));
    }
    text += &match table.is_empty() {
        true => "no variable was used\n".to_owned(),
        false => table.render(Format::Table),
    };
    let stored: u64 = status.event_managers.iter().map(|e| e.records).sum();
    let bytes: u64 = status.event_managers.iter().map(|e| e.stored_bytes).sum();
    text += &format!(
        "\n{stored} records stored ({:.1} MB on disk), {} dropped\n",
        bytes as f64 / 1e6,
        completeness.dropped
    );
    for line in completeness.reasons() {
        text += &format!("incomplete: {line}\n");
    }
    Ok(text)
}
