//! `dosmos-bench top`: the terminal on a large running system. A user holds a key down; measured are the
//! redraws, the time of one, and the bytes that event managers send to the terminal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use dosmos_client::{Fused, RemoteSource, Run};
use dosmos_visualizer::state::Screen;
use dosmos_visualizer::tui::{self, Drawn, KeyCode, Options};
use serde::Serialize;
use tokio::time::Instant;

use crate::args::TopArgs;
use crate::load::{Load, Size};
use crate::machine::machine;

/// A key so often: fast typing, or a key held down.
const KEYS: Duration = Duration::from_millis(50);
/// After a change of screen so much is not measured: the first answers are on their way.
const WARM_UP: Duration = Duration::from_secs(1);

/// The screens measured, and the key that the user holds there.
const SCREENS: [(Screen, KeyCode); 6] = [
    (Screen::Overview, KeyCode::Down),
    (Screen::Variables, KeyCode::Down),
    (Screen::Histogram, KeyCode::Char('>')),
    (Screen::VariableHistory, KeyCode::Char('v')),
    (Screen::Findings, KeyCode::Down),
    (Screen::Health, KeyCode::Down),
];

/// One screen in one run. The schema of `--format json`, with medians and extremes over runs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Measured {
    redraws_a_second: f64,
    answers_a_second: f64,
    redraw_median_ms: f64,
    redraw_max_ms: f64,
    kilobytes_a_second: f64,
}

pub(crate) async fn run(args: TopArgs) -> anyhow::Result<()> {
    if args.runs == 0 || args.seconds == 0 || args.emps == 0 || args.variables < args.emps {
        bail!("--runs, --seconds and --emps must be at least 1, and --variables at least --emps");
    }
    let dir = tempfile::Builder::new().prefix("dosmos-bench").tempdir()?;
    output::note(&format!(
        "starting {} event managers with {} variables",
        args.emps, args.variables
    ));
    let load = Load::start(
        dir.path(),
        Size {
            managers: args.emps,
            variables: args.variables,
            rate: args.rate,
        },
    )?;
    let mut runs: Vec<Vec<Measured>> = Vec::new();
    for i in 0..args.runs {
        output::note(&format!("run {} of {}", i + 1, args.runs));
        let mut screens = Vec::new();
        for (screen, key) in SCREENS {
            screens.push(measure(&load, &args, screen, key).await?);
        }
        runs.push(screens);
    }
    load.stop()?;
    print(&args, &runs)
}

async fn measure(
    load: &Load,
    args: &TopArgs,
    screen: Screen,
    key: KeyCode,
) -> anyhow::Result<Measured> {
    let managers = load.topology.event_managers().iter();
    let sources = managers
        .map(|e| Arc::new(RemoteSource::named(e.name.clone(), load.book.clone())) as _)
        .collect();
    let drawn: Arc<Mutex<Vec<(Instant, Drawn)>>> = Arc::default();
    let seen = drawn.clone();
    let digit = Screen::ALL.iter().position(|s| *s == screen).unwrap_or(0) + 1;
    let keys = tui::keys(
        // To the screen, sorted by the last column but one; then the key, again and again.
        [
            KeyCode::Char(char::from_digit(digit as u32, 10).unwrap_or('1')),
            KeyCode::Char('S'),
        ],
        key,
        KEYS,
        WARM_UP + Duration::from_secs(args.seconds),
    );
    let options = Options {
        refresh: Duration::from_millis(args.refresh),
        drawn: Some(Box::new(move |d| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push((Instant::now(), d));
        })),
        ..Options::default()
    };
    let began = Instant::now();
    let run = Run::of(Arc::new(Fused::new(sources)), "");
    tui::headless(run, (args.columns, args.rows), keys, options).await?;
    let all = drawn.lock().unwrap_or_else(PoisonError::into_inner);
    let counted: Vec<Drawn> = all
        .iter()
        .filter(|(at, _)| *at >= began + WARM_UP)
        .map(|(_, d)| *d)
        .collect();
    let (Some(first), Some(last)) = (counted.first(), counted.last()) else {
        bail!("nothing was drawn");
    };
    let seconds = began.elapsed().saturating_sub(WARM_UP).as_secs_f64();
    let mut took: Vec<f64> = counted.iter().map(|d| 1e3 * d.took.as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    let answers = last.answers - first.answers;
    Ok(Measured {
        redraws_a_second: counted.len() as f64 / seconds,
        answers_a_second: answers as f64 / seconds,
        redraw_median_ms: took[took.len() / 2],
        redraw_max_ms: took[took.len() - 1],
        kilobytes_a_second: (last.received - first.received) as f64 / seconds / 1e3,
    })
}

/// A column of the table.
type Figure = (&'static str, fn(&Measured) -> f64, usize);

const FIGURES: [Figure; 5] = [
    ("redraws/s", |m| m.redraws_a_second, 1),
    ("answers/s", |m| m.answers_a_second, 1),
    ("redraw, median (ms)", |m| m.redraw_median_ms, 2),
    ("redraw, worst (ms)", |m| m.redraw_max_ms, 2),
    ("received (kB/s)", |m| m.kilobytes_a_second, 0),
];

fn print(args: &TopArgs, runs: &[Vec<Measured>]) -> anyhow::Result<()> {
    let mut titles = vec!["screen"];
    for (title, _, _) in FIGURES {
        titles.extend([title, "spread"]);
    }
    let mut table = Table::new(&titles);
    for (i, (screen, _)) in SCREENS.iter().enumerate() {
        let mut cells = vec![screen.name().to_owned()];
        for (_, of, digits) in FIGURES {
            let mut values: Vec<f64> = runs.iter().map(|r| of(&r[i])).collect();
            values.sort_by(f64::total_cmp);
            cells.push(format!("{:.digits$}", values[values.len() / 2]));
            let (low, high) = (values[0], values[values.len() - 1]);
            cells.push(format!("{low:.digits$}–{high:.digits$}"));
        }
        table.row(cells);
    }
    match args.format {
        Format::Json => {
            let screens = SCREENS.iter().enumerate().map(|(i, (screen, _))| {
                let its: Vec<Measured> = runs.iter().map(|r| r[i]).collect();
                serde_json::json!({ "screen": screen.name(), "runs": its })
            });
            let all = serde_json::json!({
                "machine": machine(),
                "screens": screens.collect::<Vec<_>>(),
            });
            output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        }
        format => output::text(&format!(
            "{}\n{} event managers, {} variables, {} records/s; terminal {}×{}, a key every {} ms\n\n{}",
            machine(),
            args.emps,
            args.variables,
            args.rate,
            args.columns,
            args.rows,
            KEYS.as_millis(),
            table.render(format)
        )),
    }
    Ok(())
}
