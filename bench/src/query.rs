//! `dosmos-bench query`: how long questions to a large trace store take, asked of the directory as after a
//! run, with everything in memory that stays there between questions.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use dosmos_proto::{ApId, EmpId, MpId, Nanos};
use dosmos_testkit::reference::{self, Workload};
use dosmos_trace::query::{
    Catalog, Filter, HistogramQuery, HistoryQuery, OriginCounts, TimeRange, TraceSource,
};
use dosmos_trace::record::Op;
use dosmos_trace::store::{BatchMark, Commit, Event, Identity, StoreSource, StoreWriter};
use serde_json::json;

use crate::args::QueryArgs;
use crate::machine::machine;
use crate::statistics::spread;

/// Records in a commit of the store that is built.
const COMMIT: usize = 65_536;
/// What fits on a screen.
const COLUMNS: u32 = 200;
const POINTS: u32 = 500;

/// One question, and how fast it is to be answered.
struct Question {
    name: &'static str,
    about: &'static str,
    goal_ms: Option<f64>,
    kind: Kind,
    filter: Filter,
}

enum Kind {
    Histogram,
    History,
    Records,
}

pub(crate) async fn run(args: &QueryArgs) -> anyhow::Result<()> {
    if args.runs == 0 || args.records == 0 {
        bail!("--runs and --records must be at least 1");
    }
    let temporary;
    let path = match &args.store {
        Some(path) => path.as_path(),
        None => {
            temporary = tempfile::tempdir().context("no place for the store")?;
            temporary.path()
        }
    };
    if !path.join("manifest.json").exists() {
        build(path, args.records, args.seed)?;
    }
    let begin = Instant::now();
    let source = StoreSource::open(path)?;
    let open_ms = begin.elapsed().as_secs_f64() * 1e3;
    let catalog = source.catalog().await?;
    ensure!(
        catalog.records == args.records,
        "{} holds {} records, not {}; choose another directory",
        path.display(),
        catalog.records,
        args.records
    );
    let questions = questions(&catalog)?;
    let mut measured = vec![Vec::new(); questions.len()];
    for round in 0..=args.runs {
        for (question, times) in questions.iter().zip(&mut measured) {
            let begin = Instant::now();
            question.ask(&source).await?;
            if round > 0 {
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    print(args, open_ms, &questions, measured)
}

/// Makes a store of the reference workload.
pub(super) fn build(path: &Path, records: u64, seed: u64) -> anyhow::Result<()> {
    let identity = Identity {
        run: dosmos_trace::run::RunId::from_bits(1),
        event_manager: "emp0".to_owned(),
        emp: EmpId(0),
        topology: reference::topology(),
    };
    let (mut store, _) = StoreWriter::open(path, &identity)?;
    let mut workload = Workload::new(seed);
    let (mut left, mut sequence, mut said) = (records, 0, 0);
    let mut events: Vec<(u32, Event)> = reference::variables()
        .into_iter()
        .map(|v| (0, Event::Variable(v)))
        .collect();
    while left > 0 {
        let here = left.min(COMMIT as u64);
        left -= here;
        sequence += 1;
        store.commit(&Commit {
            marks: vec![BatchMark {
                mp: MpId(0),
                incarnation: 1,
                sequence,
                until: Default::default(),
            }],
            records: workload.take_records(here as usize),
            events: std::mem::take(&mut events),
        })?;
        let tenths = 10 - left * 10 / records;
        if tenths > said {
            said = tenths;
            output::note(&format!("building the store: {tenths}0 %"));
        }
    }
    Ok(store.close()?)
}

fn questions(catalog: &Catalog) -> anyhow::Result<Vec<Question>> {
    let extent = catalog.extent.context("the store is empty")?;
    let part = |from: f64, share: f64| {
        let at = |share: f64| extent.from + Nanos((extent.length().0 as f64 * share) as u64);
        Some(TimeRange {
            from: at(from),
            to: at(from + share),
        })
    };
    let variable = |name: &str| {
        let found = catalog.variable(name).map(dosmos_proto::Variable::id);
        found.into_iter().collect::<Vec<_>>()
    };
    let ranged = |range| Filter {
        range,
        ..Filter::default()
    };
    let (popular, rare) = (variable("v00"), variable("v63"));
    let question = |name, about, goal_ms, kind, filter| Question {
        name,
        about,
        goal_ms,
        kind,
        filter,
    };
    Ok(vec![
        question(
            "histogram",
            "histogram, whole run, all variables",
            Some(50.0),
            Kind::Histogram,
            Filter::default(),
        ),
        question(
            "histogram_variable",
            "histogram, whole run, reads of one variable",
            Some(50.0),
            Kind::Histogram,
            Filter {
                variables: popular.clone(),
                ops: vec![Op::Read],
                ..Filter::default()
            },
        ),
        question(
            "histogram_tenth",
            "histogram, a tenth of the run",
            Some(50.0),
            Kind::Histogram,
            ranged(part(0.37, 0.1)),
        ),
        question(
            "histogram_thousandth",
            "histogram, a thousandth",
            Some(50.0),
            Kind::Histogram,
            ranged(part(0.37, 0.001)),
        ),
        question(
            "history",
            "history, whole run, all variables",
            Some(100.0),
            Kind::History,
            Filter::default(),
        ),
        question(
            "history_variable",
            "history, whole run, one popular variable",
            Some(100.0),
            Kind::History,
            Filter {
                variables: popular.clone(),
                ..Filter::default()
            },
        ),
        question(
            "history_rare",
            "history, whole run, one rare variable",
            Some(100.0),
            Kind::History,
            Filter {
                variables: rare,
                ..Filter::default()
            },
        ),
        question(
            "history_process",
            "history, a hundredth, one process",
            Some(100.0),
            Kind::History,
            Filter {
                aps: vec![ApId(3)],
                ..ranged(part(0.37, 0.01))
            },
        ),
        question(
            "history_both",
            "history, whole run, one variable and one process",
            None,
            Kind::History,
            Filter {
                variables: popular.clone(),
                aps: vec![ApId(3)],
                ..Filter::default()
            },
        ),
        question(
            "history_screen",
            "history, 1/100,000: every access",
            Some(100.0),
            Kind::History,
            ranged(part(0.37, 0.000_01)),
        ),
        question(
            "records",
            "the first 500 writes to one variable after a third",
            Some(100.0),
            Kind::Records,
            Filter {
                variables: popular,
                ops: vec![Op::Write],
                ..ranged(part(0.33, 0.67))
            },
        ),
    ])
}

impl Question {
    async fn ask(&self, source: &dyn TraceSource) -> anyhow::Result<()> {
        let filter = self.filter.clone();
        let found = match self.kind {
            Kind::Histogram => {
                let query = HistogramQuery {
                    filter,
                    buckets: COLUMNS,
                };
                let counts = source.histogram(&query).await?.buckets;
                counts.iter().map(OriginCounts::total).sum()
            }
            Kind::History => {
                let query = HistoryQuery {
                    filter,
                    max_points: POINTS,
                };
                source.history(&query).await?.matched
            }
            Kind::Records => source.records(&filter, POINTS.into()).await?.len() as u64,
        };
        ensure!(found > 0, "nothing was found for: {}", self.about);
        Ok(())
    }
}

fn print(
    args: &QueryArgs,
    open_ms: f64,
    questions: &[Question],
    measured: Vec<Vec<f64>>,
) -> anyhow::Result<()> {
    let mut table = Table::new(&["question", "median (ms)", "spread", "goal", ""]);
    let mut items = Vec::new();
    for (question, times) in questions.iter().zip(measured) {
        let [low, median, high] = spread(times);
        let goal = question.goal_ms.map(|g| (format!("≤ {g}"), median <= g));
        let (goal, met) = match goal {
            Some((goal, true)) => (goal, "met"),
            Some((goal, false)) => (goal, "NOT MET"),
            None => (String::new(), ""),
        };
        table.row([
            question.about.to_owned(),
            format!("{median:.2}"),
            format!("{low:.2}–{high:.2}"),
            goal,
            met.to_owned(),
        ]);
        items.push(json!({
            "question": question.name, "about": question.about, "goal_ms": question.goal_ms,
            "ms": { "median": median, "min": low, "max": high },
        }));
    }
    match args.format {
        Format::Json => {
            let all = json!({
                "machine": machine(), "records": args.records, "runs": args.runs,
                "open_ms": open_ms, "questions": items,
            });
            output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        }
        format => output::text(&format!(
            "{}; {} records; opening the store took {open_ms:.0} ms\n\n{}",
            machine(),
            args.records,
            table.render(format)
        )),
    }
    Ok(())
}
