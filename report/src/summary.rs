//! The figures at the top, and what the data lack.

use dosmos_analysis::Analysis;
use dosmos_plot::{Block, Table};
use dosmos_trace::Op;
use dosmos_trace::query::{Completeness, Filter, OriginCounts, QueryError};

use crate::asked::Asked;
use dosmos_client::{Launch, text};

pub(super) fn subtitle(asked: &Asked<'_>) -> String {
    let at = chrono::DateTime::from_timestamp_nanos(asked.extent.from.0 as i64);
    let topology = &asked.catalog.topology;
    let memory = topology.memory_processes().iter().filter(|m| !m.link);
    let parts = [
        if asked.catalog.extent.is_some() {
            at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
        } else {
            "nothing recorded".to_owned()
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
    let troubles = launch.troubles(asked.catalog.live);
    let mut blocks: Vec<Block> = lacks(&asked.catalog.completeness, troubles)
        .map(Block::Warning)
        .into_iter()
        .collect();
    let mut started =
        Table::new(["", "how the run was started and how it ended"].map(str::to_owned));
    for (what, is) in launch.lines() {
        started.row([what.to_owned(), is]);
    }
    if asked.catalog.extent.is_some() {
        blocks.insert(0, Block::text(sentence(&analysis.verdict)));
    }
    blocks.push(Block::Table(started));
    if asked.catalog.extent.is_none() {
        blocks.push(Block::text("No access has been recorded."));
        return Ok(blocks);
    }
    let mut all = OriginCounts::default();
    let mut tiles = vec![(
        "Duration".to_owned(),
        text::time(asked.extent.length()),
        "first to last access".to_owned(),
    )];
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
    Ok(blocks)
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

/// What is known to be lacking, in words.
fn lacks(c: &Completeness, troubles: Vec<String>) -> Option<String> {
    let mut parts = c.reasons();
    parts.extend(troubles);
    (!parts.is_empty()).then(|| format!("Incomplete: {}.", parts.join("; ")))
}
