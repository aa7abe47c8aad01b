//! The figures at the top, and what the data lack.

use dosmos_analysis::Analysis;
use dosmos_plot::{Block, Cell, Color, Table};
use dosmos_proto::Nanos;
use dosmos_trace::Op;
use dosmos_trace::query::{Filter, OriginCounts, QueryError};
use dosmos_trace::selection::Selection;

use crate::asked::Asked;
use dosmos_client::{Launch, text};

pub(super) fn subtitle(asked: &Asked<'_>) -> String {
    let topology = &asked.catalog.topology;
    let memory = topology.memory_processes().iter().filter(|m| !m.link);
    let parts = [
        match asked.catalog.extent {
            Some(extent) => clock(extent.from),
            None => "nothing recorded".to_owned(),
        },
        text::plural(topology.groups().len() as u64, "group"),
        text::plural(memory.count() as u64, "memory process"),
        text::plural(
            topology.application_processes().len() as u64,
            "application process",
        ),
        text::plural(asked.catalog.event_managers.len() as u64, "event manager"),
    ];
    parts.join(" · ")
}

pub(super) async fn blocks(
    asked: &Asked<'_>,
    analysis: &Analysis,
    launch: &Launch,
) -> Result<Vec<Block>, QueryError> {
    let mut blocks = head(asked, analysis, launch);
    if asked.catalog.extent.is_none() {
        blocks.push(Block::Table(facts(asked, launch)));
        blocks.push(Block::text("No access has been recorded."));
        return Ok(blocks);
    }
    let mut all = OriginCounts::default();
    let mut tiles = efficiency(analysis);
    tiles.push((
        "Duration".to_owned(),
        text::time(asked.extent.length()),
        "first to last access".to_owned(),
    ));
    for op in [Op::Read, Op::Write, Op::Acquire] {
        let filter = Filter {
            ops: vec![op],
            ..Filter::default()
        };
        let counts = asked.histogram(&filter, 1).await?.buckets[0];
        all.add(&counts);
        let of = match op {
            Op::Read => format!(
                "{} cached",
                text::percent(counts.optimized + counts.in_process, counts.total())
            ),
            _ => format!(
                "{} inter-group",
                text::percent(counts.inter, counts.total())
            ),
        };
        tiles.push((format!("{op:?}s"), text::count(counts.total()), of));
    }
    for (name, part) in [
        ("Local", all.local),
        ("Intra-group", all.intra),
        ("Inter-group", all.inter),
    ] {
        let share = text::percent(part, all.total());
        tiles.push((name.to_owned(), share, "of these accesses".to_owned()));
    }
    let findings = analysis.findings.len() as u64;
    let worst = analysis.findings.first();
    tiles.push((
        "Findings".to_owned(),
        findings.to_string(),
        worst.map_or("nothing found".to_owned(), |f| {
            format!("worst: {:.0} % of the time", f.severity * 100.0)
        }),
    ));
    blocks.push(Block::Tiles(tiles));
    let mut columns = vec![vec![Block::Table(facts(asked, launch))]];
    columns.extend(lost(analysis).map(|table| vec![Block::Table(table)]));
    blocks.push(Block::Columns(columns));
    Ok(blocks)
}

/// The verdict, and what is missing.
pub(super) fn head(asked: &Asked<'_>, analysis: &Analysis, launch: &Launch) -> Vec<Block> {
    let mut blocks = Vec::new();
    if asked.catalog.extent.is_some() {
        blocks.push(Block::text(sentence(&analysis.verdict)));
    }
    if let Some(oversubscribed) = &analysis.oversubscribed {
        blocks.push(Block::text(sentence(&oversubscribed.sentence())));
    }
    let lacks = lacking(asked, launch);
    if !lacks.is_empty() {
        blocks.push(Block::Warning(format!("Incomplete: {}.", lacks.join("; "))));
    }
    blocks
}

fn efficiency(analysis: &Analysis) -> Vec<(String, String, String)> {
    let Some(e) = &analysis.efficiency else {
        return Vec::new();
    };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    vec![
        (
            "Efficiency".to_owned(),
            percent(e.parallel),
            "of the time was computing".to_owned(),
        ),
        (
            "Load balance".to_owned(),
            percent(e.load_balance),
            "mean / longest computing".to_owned(),
        ),
    ]
}

/// What the processes did instead of computing.
pub(super) fn lost(analysis: &Analysis) -> Option<Table> {
    let efficiency = analysis.efficiency.as_ref()?;
    let mut table = Table::new(["where the rest of the time went", "share"]);
    for lost in efficiency.lost.iter().filter(|l| l.share >= 0.001) {
        let share = format!("{:.1} %", 100.0 * lost.share);
        table.row([
            Cell::from(lost.to.words()),
            Cell::shaded(share, Color::Inter, lost.share),
        ]);
    }
    (!table.is_empty()).then_some(table)
}

/// What was run, where, how it ended, and how much of it was recorded.
pub(super) fn facts(asked: &Asked<'_>, launch: &Launch) -> Table {
    let mut table = Table::new(["the run", ""]);
    for (what, is) in launch.lines() {
        table.row([what.to_owned(), is]);
    }
    if let Some(m) = launch.metadata() {
        let ended = m.ended.map(|ended| text::time(ended - m.started));
        let length = ended.unwrap_or_else(|| "not known: nobody saw its end".to_owned());
        table.row(["started", &clock(m.started)].map(str::to_owned));
        table.row(["ran".to_owned(), length]);
    }
    let c = &asked.catalog.completeness;
    let left_out = c.selections.iter().filter_map(Selection::leaves_out);
    let mut mode: Vec<String> = left_out.collect();
    if c.sampling < 1.0 {
        mode.push(format!("one access in {:.0}", 1.0 / c.sampling));
    }
    let mode = match mode.is_empty() {
        true => "every access".to_owned(),
        false => mode.join("; "),
    };
    table.row(["recorded".to_owned(), mode]);
    let whole = match lacking(asked, launch).len() {
        0 => format!("yes, {}", text::plural(c.recorded, "record")),
        n => format!("no, {} (above)", text::plural(n as u64, "reason")),
    };
    table.row(["complete".to_owned(), whole]);
    table
}

fn clock(at: Nanos) -> String {
    let at = chrono::DateTime::from_timestamp_nanos(at.0 as i64);
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Why the data are not those of a whole run.
pub(super) fn lacking(asked: &Asked<'_>, launch: &Launch) -> Vec<String> {
    let mut reasons = asked.catalog.completeness.reasons();
    reasons.extend(launch.troubles(asked.catalog.live));
    reasons
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}
