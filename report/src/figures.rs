//! Accesses over time by origin (DOSMOS-Trace, figures 8 and 9), and the table of variables.

use dosmos_plot::{Axis, Block, Chart, Color, Layer, Table};
use dosmos_proto::{Nanos, VarId};
use dosmos_trace::Op;
use dosmos_trace::query::table::{Sums, sums_of};
use dosmos_trace::query::{Filter, Histogram, OriginCounts, QueryError};

use crate::asked::{Asked, seconds};
use dosmos_client::text;

const BUCKETS: u32 = 120;
/// Width of a chart that takes the whole page.
pub(crate) const WIDE: u32 = 1320;
/// Rows of the table of variables.
const ROWS: usize = 20;

/// What `filter` asks for over time, by origin: all accesses together, or those of one operation.
pub(super) async fn histograms(
    asked: &Asked<'_>,
    filter: &Filter,
    of: &str,
) -> Result<Vec<Block>, QueryError> {
    let mut views = Vec::new();
    for op in [None, Some(Op::Read), Some(Op::Write), Some(Op::Acquire)] {
        let ops = op.map_or(vec![Op::Read, Op::Write, Op::Acquire], |op| vec![op]);
        let filter = Filter {
            ops,
            ..filter.clone()
        };
        let histogram = asked.histogram(&filter, BUCKETS).await?;
        let mut sum = OriginCounts::default();
        histogram.buckets.iter().for_each(|b| sum.add(b));
        if sum.total() == 0 {
            continue;
        }
        let what = op.map_or("access", Op::name);
        let caption = format!(
            "{of}: {} · {} local, {} intra-group, {} inter-group",
            text::plural(sum.total(), what),
            text::percent(sum.local, sum.total()),
            text::percent(sum.intra, sum.total()),
            text::percent(sum.inter, sum.total()),
        );
        let label = op.map_or("all".to_owned(), |op| format!("{}s", op.name()));
        let title = op.map_or("Accesses by origin".to_owned(), |op| {
            format!("{op:?}s by origin")
        });
        let chart = chart(asked, &histogram, title);
        views.push((label, vec![Block::chart(chart, caption)]));
    }
    Ok(match views.len() {
        0 => Vec::new(),
        // One operation only: it is all there is.
        1 | 2 => views.pop().map_or_else(Vec::new, |view| view.1),
        _ => vec![Block::Choice {
            name: format!("operations of {of}"),
            views,
        }],
    })
}

fn chart(asked: &Asked<'_>, histogram: &Histogram, title: String) -> Chart {
    let from = seconds(histogram.range.from - asked.extent.from);
    let width = seconds(histogram.range.length()) / histogram.buckets.len().max(1) as f64;
    let parts = [
        ("local", Color::Local),
        ("intra-group", Color::Intra),
        ("inter-group", Color::Inter),
    ];
    let of = |bucket: &OriginCounts| [bucket.local, bucket.intra, bucket.inter];
    let mut tops = vec![0.0; histogram.buckets.len()];
    let highest = histogram.buckets.iter().map(OriginCounts::total).max();
    let unit = text::time(Nanos((width * 1e9) as u64));
    let x = Axis::new("time (s)").range(0.0, seconds(asked.extent.length()).max(1e-9));
    let y = Axis::new(format!("per {unit}")).range(0.0, highest.unwrap_or(1) as f64 * 1.05);
    let mut chart = Chart::new(title, x, y).size(WIDE, 260);
    for (at, (label, color)) in parts.into_iter().enumerate() {
        let mut boxes = Vec::new();
        for (i, bucket) in histogram.buckets.iter().enumerate() {
            let height = of(bucket)[at] as f64;
            if height > 0.0 {
                let left = from + i as f64 * width;
                boxes.push((left, left + width, tops[i], tops[i] + height));
                tops[i] += height;
            }
        }
        if !boxes.is_empty() {
            chart = chart.with(Layer::Boxes {
                label: label.to_owned(),
                color,
                boxes,
            });
        }
    }
    for (i, bucket) in histogram.buckets.iter().enumerate() {
        if bucket.total() == 0 {
            continue;
        }
        let left = from + i as f64 * width;
        let counts = parts.iter().zip(of(bucket)).filter(|(_, n)| *n > 0);
        let counts: Vec<String> = counts
            .map(|((label, _), n)| format!("{} {label}", text::count(n)))
            .collect();
        let words = format!("{left:.3} to {:.3} s: {}", left + width, counts.join(", "));
        chart = chart.tip(left, left + width, words);
    }
    chart
}

/// The variables whose accesses took most time: times, counts, origins, waits.
pub(super) fn table(asked: &Asked<'_>) -> Block {
    let mut rows = sums_of(&asked.meta);
    // Barriers have times, too.
    rows.retain(|id, _| !asked.catalog.barriers.iter().any(|b| b.id == *id));
    let accesses = asked.accesses();
    let mut order: Vec<(VarId, Sums)> = rows.into_iter().collect();
    order.sort_by_key(|(v, row)| {
        let accesses = accesses.get(v).copied().unwrap_or(0);
        (std::cmp::Reverse((row.times.total(), accesses)), *v)
    });
    let process_time = asked.catalog.process_time().0;
    let mut table = Table::new([
        "variable",
        "layout",
        "time",
        "share",
        "p50",
        "p99",
        "max",
        "reads",
        "cached",
        "writes",
        "acquires",
        "inter-group",
        "waited",
        "held",
    ]);
    for (var, row) in order.iter().take(ROWS) {
        let all = accesses.get(var).copied().unwrap_or(0);
        let far = row.origins.inter as f64 / all.max(1) as f64;
        let times = row.times.all();
        table.row([
            asked.catalog.name_of(*var).into(),
            asked.layout_of(*var).into(),
            text::time(times.total).into(),
            text::percent(times.total.0, process_time).into(),
            text::time_or_dash(times.quantile(0.5)).into(),
            text::time_or_dash(times.quantile(0.99)).into(),
            text::time(times.longest).into(),
            text::count(row.reads()).into(),
            text::count(row.reads_on_copies).into(),
            text::count(row.counts.writes).into(),
            text::count(row.counts.acquires).into(),
            dosmos_plot::Cell::shaded(text::percent(row.origins.inter, all), Color::Inter, far),
            text::time(row.wait).into(),
            text::time(row.hold).into(),
        ]);
    }
    Block::Table(table)
}
