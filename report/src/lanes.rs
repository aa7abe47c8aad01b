//! Histories (DOSMOS-Trace, figures 10 and 11): a lane for each process, or object; `x` read and `+` cached read above the
//! line, `*` write below it, full bars for waiting for a lock, half bars for waiting for a release, thin
//! ones for the section between.

use std::collections::BTreeMap;

use dosmos_plot::{Axis, Block, Chart, Color, Layer, Mark};
use dosmos_proto::{Nanos, ObjectId};
use dosmos_trace::{Op, Origin, Record};

use crate::asked::{Asked, seconds};
use crate::figures::WIDE;
use dosmos_client::text;

/// How to read the diagrams.
pub(super) const LEGEND: &str = "Histories: x read, + cached read, * write; green local, yellow intra-group, \
    red inter-group. Full bars: waiting for the lock; half bars: for a release; grey: at a barrier; thin blue: in the \
    section.";

/// Most lanes of a diagram; those with the most accesses are shown.
const LANES: usize = 16;

/// What was done to a variable: one lane per process.
pub(super) fn of_variable(asked: &Asked<'_>, name: &str, records: &[Record]) -> Option<Block> {
    let topology = &asked.catalog.topology;
    let title = format!("History of {name}");
    history(asked, &title, records, |r| {
        (u64::from(r.ap.0), topology.ap_name(r.ap))
    })
}

/// What a process did: one lane per object.
pub(super) fn of_process(asked: &Asked<'_>, name: &str, records: &[Record]) -> Option<Block> {
    let title = format!("History of {name}");
    history(asked, &title, records, |r| match r.op {
        // A barrier's index is its generation: one lane for all of them.
        Op::Barrier => (
            u64::from(r.object.var.0) << 32,
            asked.catalog.name_of(r.object.var),
        ),
        _ => (r.object.to_wire(), asked.object_name(r.object)),
    })
}

/// The marks of one kind.
#[derive(Default)]
struct Marks {
    reads: [Vec<(f64, f64)>; 3],
    optimized: [Vec<(f64, f64)>; 3],
    writes: [Vec<(f64, f64)>; 3],
    acquiring: Vec<(f64, f64, f64, f64)>,
    releasing: Vec<(f64, f64, f64, f64)>,
    at_barrier: Vec<(f64, f64, f64, f64)>,
    holding: Vec<(f64, f64, f64, f64)>,
}

fn history(
    asked: &Asked<'_>,
    title: &str,
    records: &[Record],
    lane: impl Fn(&Record) -> (u64, String),
) -> Option<Block> {
    let first = records.iter().map(|r| r.start).min()?;
    let last = records.iter().map(Record::end).max()?;
    let mut lanes: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    for record in records {
        let (key, name) = lane(record);
        lanes.entry(key).or_insert((name, 0)).1 += record.accesses();
    }
    let all = lanes.len();
    let mut kept: Vec<(u64, (String, u64))> = lanes.into_iter().collect();
    kept.sort_by_key(|(key, (_, n))| (std::cmp::Reverse(*n), *key));
    kept.truncate(LANES);
    kept.sort_by_key(|(key, _)| *key);
    // The first lane on top.
    let rows: BTreeMap<u64, usize> = kept.iter().rev().map(|l| l.0).zip(0..).collect();
    let row = |r: &Record| rows.get(&lane(r).0).map(|&row| row as f64);
    let marks = marks(records, (first, last), row);

    let y = Axis::new("").categories(kept.iter().rev().map(|(_, (name, _))| name.clone()));
    let length = last - first;
    let (per_unit, unit) = match length.0 {
        0..10_000_000 => (1e6, "µs"),
        10_000_000..10_000_000_000 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    let at = first - asked.extent.from;
    let x = Axis::new(format!("{unit} from +{}", text::time(at)))
        .range(0.0, seconds(length) * per_unit * 1.001 + 1e-9);
    let height = 90 + 56 * kept.len() as u32;
    let mut chart = draw(Chart::new(title, x, y).size(WIDE, height), &marks, per_unit);
    for record in records {
        let Some(y) = row(record) else { continue };
        let at = |t: Nanos| seconds(t - first) * per_unit;
        let (low, high) = match record.op {
            Op::Read => (y + 0.14, y + 0.42),
            Op::Write => (y - 0.42, y - 0.14),
            _ => (y - 0.14, y + 0.14),
        };
        let words = words(asked, record);
        chart = chart.tip_at((at(record.start), at(record.end())), (low, high), words);
    }
    let mut caption = format!(
        "{} from +{} to +{}.",
        text::plural(records.iter().map(Record::accesses).sum(), "access"),
        text::time(at),
        text::time(last - asked.extent.from),
    );
    if all > kept.len() {
        caption += &format!(" {} more lanes are not shown.", all - kept.len());
    }
    Some(Block::chart(chart, caption))
}

/// An access in words: who, what, from where, when, how long, and how long of that it waited.
fn words(asked: &Asked<'_>, record: &Record) -> String {
    let topology = &asked.catalog.topology;
    let (ap, what) = (topology.ap_name(record.ap), record.op.name());
    let n = record.accesses();
    let times = match n {
        1 => String::new(),
        n => format!("{} × ", text::count(n)),
    };
    let object = match record.op {
        Op::Barrier => asked.catalog.name_of(record.object.var),
        _ => asked.object_name(record.object),
    };
    let at = text::time(record.start - asked.extent.from);
    let mut words = format!(
        "{ap}: {times}{what} {object}, {}, at +{at}, took {}",
        record.origin,
        text::time(record.duration)
    );
    if record.wait > Nanos::ZERO {
        words += &format!(", waited {}", text::time(record.wait));
    }
    if record.op != Op::Barrier {
        words += &format!(", version {}", record.version);
    }
    words
}

/// Accesses of one record drawn at most.
const DRAWN: u64 = 100;

/// When the accesses of a record began, as far as they are drawn.
fn begins(record: &Record) -> impl Iterator<Item = Nanos> {
    let spread = record.spread();
    let drawn = spread.count().min(DRAWN);
    let last = spread.count() - 1;
    (0..drawn).map(move |i| spread.at(i * last / drawn.saturating_sub(1).max(1)))
}

fn marks(
    records: &[Record],
    (first, last): (Nanos, Nanos),
    row: impl Fn(&Record) -> Option<f64>,
) -> Marks {
    let mut marks = Marks::default();
    // Since when, and in which lane.
    let mut held: BTreeMap<(u32, ObjectId), (f64, f64)> = BTreeMap::new();
    let time = |t: Nanos| seconds(t - first);
    for record in records {
        let Some(y) = row(record) else { continue };
        let (start, end) = (time(record.start), time(record.end()));
        let far = record.origin as usize - Origin::Local as usize;
        let holder = (record.ap.0, record.object);
        match record.op {
            Op::Read if record.flags.optimized || record.flags.in_process => {
                marks.optimized[far].extend(begins(record).map(|at| (time(at), y + 0.28)));
            }
            Op::Read => marks.reads[far].extend(begins(record).map(|at| (time(at), y + 0.28))),
            Op::Write => marks.writes[far].extend(begins(record).map(|at| (time(at), y - 0.28))),
            // Several sections: how long each was held is not known, that they were is.
            Op::Acquire if record.count > 1 => marks.holding.push((start, end, y - 0.03, y + 0.03)),
            Op::Release if record.count > 1 => {}
            Op::Barrier => marks.at_barrier.push((start, end, y - 0.1, y + 0.1)),
            Op::Acquire => {
                marks.acquiring.push((start, end, y - 0.14, y + 0.14));
                held.insert(holder, (end, y));
            }
            Op::Release => {
                let since = held.remove(&holder).map_or(0.0, |h| h.0);
                marks.holding.push((since, start, y - 0.03, y + 0.03));
                marks.releasing.push((start, end, y - 0.14, y));
            }
        }
    }
    for (since, y) in held.into_values() {
        let section = (since, time(last), y - 0.03, y + 0.03);
        marks.holding.push(section);
    }
    marks
}

fn draw(chart: Chart, marks: &Marks, per_unit: f64) -> Chart {
    let scaled = |points: &[(f64, f64)]| points.iter().map(|p| (p.0 * per_unit, p.1)).collect();
    let bars = |color, boxes: &[(f64, f64, f64, f64)]| Layer::Boxes {
        label: String::new(),
        color,
        boxes: boxes
            .iter()
            .map(|b| (b.0 * per_unit, b.1 * per_unit, b.2, b.3))
            .collect(),
    };
    let mut chart = chart
        .with(bars(Color::Series(0), &marks.holding))
        .with(bars(Color::Faint, &marks.at_barrier))
        .with(bars(Color::Text, &marks.acquiring))
        .with(bars(Color::Text, &marks.releasing));
    for (far, color) in [Color::Local, Color::Intra, Color::Inter]
        .into_iter()
        .enumerate()
    {
        chart = chart
            .marks("", color, Mark::Cross, scaled(&marks.reads[far]))
            .marks("", color, Mark::Plus, scaled(&marks.optimized[far]))
            .marks("", color, Mark::Star, scaled(&marks.writes[far]));
    }
    chart
}
