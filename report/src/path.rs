//! The critical path, and who was waited for why.

use dosmos_analysis::{Analysis, CriticalPath, Delay};
use dosmos_client::text;
use dosmos_plot::{Block, Cell, Color, Table};
use dosmos_proto::Nanos;

/// Rows of each table.
const ROWS: usize = 8;
/// Of the path or of process time, what is less is not shown.
const SHOWN: f64 = 0.005;

pub(super) fn blocks(analysis: &Analysis) -> Vec<Block> {
    let Some(path) = &analysis.critical_path else {
        return Vec::new();
    };
    let mut blocks = vec![
        Block::text(format!("Critical path: {}.", path.summary)),
        Block::Table(parts(path)),
    ];
    blocks.extend(delays(&analysis.delays).map(Block::Table));
    blocks
}

fn parts(path: &CriticalPath) -> Table {
    let mut table = Table::new(["on the critical path", "does", "of", "time", "share"]);
    let shown = path.parts.iter().filter(|p| p.share >= SHOWN);
    for part in shown.take(ROWS) {
        let several = || "several".to_owned();
        table.row([
            Cell::from(part.process.clone().unwrap_or_else(several)),
            part.doing.into(),
            part.of.clone().unwrap_or_default().into(),
            text::time(Nanos(part.time_ns)).into(),
            Cell::shaded(percent(part.share), Color::Intra, part.share),
        ]);
    }
    table
}

fn delays(delays: &[Delay]) -> Option<Table> {
    let mut table = Table::new(["waits for others", "process time"]);
    let shown = delays.iter().filter(|d| d.share >= SHOWN);
    for delay in shown.take(ROWS) {
        let share = Cell::shaded(percent(delay.share), Color::Inter, delay.share);
        table.row([Cell::from(delay.text.clone()), share]);
    }
    (!table.is_empty()).then_some(table)
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}
