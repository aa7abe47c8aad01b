//! Accesses over time by origin (DOSMOS-Trace, figures 8 and 9), and the table of variables.

use std::collections::BTreeMap;

use dosmos_plot::{Axis, Block, Chart, Color, Layer, Table};
use dosmos_proto::{Nanos, VarId};
use dosmos_trace::Op;
use dosmos_trace::meta::OpCounts;
use dosmos_trace::query::{Filter, Histogram, OriginCounts, QueryError};

use crate::asked::{Asked, seconds};
use dosmos_client::text;

const BUCKETS: u32 = 80;
/// Rows of the table of variables.
const ROWS: usize = 20;

/// One histogram for each of reads, writes and acquires, of what `filter` asks for.
pub(super) async fn histograms(
    asked: &Asked<'_>,
    filter: &Filter,
    of: &str,
) -> Result<Vec<Block>, QueryError> {
    let mut blocks = Vec::new();
    for op in [Op::Read, Op::Write, Op::Acquire] {
        let filter = Filter {
            ops: vec![op],
            ..filter.clone()
        };
        let histogram = asked.histogram(&filter, BUCKETS).await?;
        let mut sum = OriginCounts::default();
        histogram.buckets.iter().for_each(|b| sum.add(b));
        if sum.total() == 0 {
            continue;
        }
        let caption = format!(
            "{of}: {} · {} local, {} intra-group, {} inter-group",
            text::plural(sum.total(), &format!("{op:?}").to_lowercase()),
            text::percent(sum.local, sum.total()),
            text::percent(sum.intra, sum.total()),
            text::percent(sum.inter, sum.total()),
        );
        blocks.push(Block::chart(chart(asked, &histogram, op), caption));
    }
    Ok(blocks)
}

fn chart(asked: &Asked<'_>, histogram: &Histogram, op: Op) -> Chart {
    let from = seconds(histogram.range.from - asked.extent.from);
    let width = seconds(histogram.range.length()) / histogram.buckets.len().max(1) as f64;
    let parts = [
        ("local", Color::Local),
        ("intra-group", Color::Intra),
        ("inter-group", Color::Inter),
    ];
    let mut tops = vec![0.0; histogram.buckets.len()];
    let highest = histogram.buckets.iter().map(OriginCounts::total).max();
    let title = format!("{op:?}s by origin");
    let unit = text::time(Nanos((width * 1e9) as u64));
    let x = Axis::new("time (s)").range(0.0, seconds(asked.extent.length()).max(1e-9));
    let y = Axis::new(format!("per {unit}")).range(0.0, highest.unwrap_or(1) as f64 * 1.05);
    let mut chart = Chart::new(title, x, y).size(860, 240);
    for (at, (label, color)) in parts.into_iter().enumerate() {
        let mut boxes = Vec::new();
        for (i, bucket) in histogram.buckets.iter().enumerate() {
            let height = [bucket.local, bucket.intra, bucket.inter][at] as f64;
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
    chart
}

/// The most accessed variables: counts, origins, waits.
pub(super) fn table(asked: &Asked<'_>) -> Block {
    #[derive(Default)]
    struct Row {
        counts: OpCounts,
        copies: u64,
        inter: u64,
        wait: Nanos,
        hold: Nanos,
    }
    let mut rows: BTreeMap<VarId, Row> = BTreeMap::new();
    for p in &asked.meta.primaries {
        let row = rows.entry(p.object.var).or_default();
        row.counts.add(&p.counts);
        row.copies += p.reads_on_copies;
        let far = &p.by_origin.inter;
        row.inter += far.reads + far.writes + far.acquires + far.releases;
        row.wait += p.wait;
        row.hold += p.hold;
    }
    for s in &asked.meta.secondaries {
        rows.entry(s.object.var).or_default().copies += s.reads;
    }
    let accesses = asked.accesses();
    let mut order: Vec<(VarId, Row)> = rows.into_iter().collect();
    order.sort_by_key(|(v, _)| std::cmp::Reverse(accesses.get(v).copied().unwrap_or(0)));
    let mut table = Table::new([
        "variable",
        "layout",
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
        let far = row.inter as f64 / all.max(1) as f64;
        table.row([
            asked.catalog.name_of(*var).into(),
            asked.layout_of(*var).into(),
            text::count(row.counts.reads + row.copies).into(),
            text::count(row.copies).into(),
            text::count(row.counts.writes).into(),
            text::count(row.counts.acquires).into(),
            dosmos_plot::Cell::shaded(text::percent(row.inter, all), Color::Inter, far),
            text::time(row.wait).into(),
            text::time(row.hold).into(),
        ]);
    }
    Block::Table(table)
}
