//! Saving what is shown: the screen as a picture, its figures as a table.

use std::fmt::Write;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use crate::state::health::Row as HealthRow;
use crate::state::{Screen, State};
use crate::view::{self, Theme};

/// Size of a character in the picture.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 17.0;
const BACKGROUND: &str = "#14171c";
const FOREGROUND: &str = "#d5d8de";

/// The screen as a self-contained SVG, without the line of keys.
pub fn svg(state: &State) -> String {
    let mut state = state.clone();
    (state.prompt, state.message, state.help) = (None, None, None);
    let (width, height) = state.size;
    let drawn = Terminal::new(TestBackend::new(width, height)).and_then(|mut terminal| {
        let theme = Theme::from(state.look);
        terminal.draw(|frame| view::render(frame, &state, theme))?;
        Ok(terminal.backend().buffer().clone())
    });
    // A backend in memory does not fail.
    let buffer = drawn.unwrap_or_default();
    picture(&buffer, height.saturating_sub(1))
}

fn picture(buffer: &Buffer, rows: u16) -> String {
    let columns = buffer.area.width;
    let (w, h) = (
        f64::from(columns) * WIDTH + 16.0,
        f64::from(rows) * HEIGHT + 16.0,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" \
         viewBox=\"0 0 {w:.0} {h:.0}\" font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" \
         font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n"
    );
    for y in 0..rows.min(buffer.area.height) {
        let mut x = 0;
        while x < columns {
            x = run(&mut out, buffer, x, y);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// One run of characters of one look from `x` on; where the next begins.
fn run(out: &mut String, buffer: &Buffer, x: u16, y: u16) -> u16 {
    let first = &buffer[(x, y)];
    let mut end = x + 1;
    let mut text = first.symbol().to_owned();
    let alike = |c: &Cell| (c.fg, c.bg, c.modifier) == (first.fg, first.bg, first.modifier);
    let block = block_part(first.symbol()).is_some();
    while end < buffer.area.width {
        let cell = &buffer[(end, y)];
        if !alike(cell) || (block_part(cell.symbol()).is_some()) != block || block {
            break;
        }
        text.push_str(cell.symbol());
        end += 1;
    }
    let (left, top) = (8.0 + f64::from(x) * WIDTH, 8.0 + f64::from(y) * HEIGHT);
    let width = f64::from(end - x) * WIDTH;
    let (mut fg, mut bg) = (colour(first.fg, FOREGROUND), colour(first.bg, ""));
    if first.modifier.contains(Modifier::REVERSED) {
        bg = std::mem::replace(&mut fg, if bg.is_empty() { BACKGROUND.into() } else { bg });
    }
    // Writing to a string does not fail.
    if !bg.is_empty() {
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{bg}\"/>"
        );
    }
    if let Some(part) = block_part(first.symbol()) {
        let tall = HEIGHT * part;
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" fill=\"{fg}\"/>",
            top + HEIGHT - tall,
            WIDTH + 0.3,
        );
    } else if !text.trim().is_empty() {
        let bold = first.modifier.contains(Modifier::BOLD);
        let weight = if bold { " font-weight=\"bold\"" } else { "" };
        let _ = writeln!(
            out,
            "<text x=\"{left:.1}\" y=\"{:.1}\" fill=\"{fg}\"{weight} xml:space=\"preserve\" \
             textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>",
            top + 13.0,
            escaped(&text),
        );
    }
    end
}

/// The part of its height that a block character fills from below.
fn block_part(symbol: &str) -> Option<f64> {
    let c = symbol.chars().next()?;
    let eighths = "▁▂▃▄▅▆▇█".chars().position(|b| b == c)?;
    Some((eighths + 1) as f64 / 8.0)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A terminal's colour as the picture shows it.
fn colour(colour: Color, reset: &str) -> String {
    let named = match colour {
        Color::Reset => return reset.to_owned(),
        Color::Black => "#14171c",
        Color::Red => "#e5534b",
        Color::Green => "#4fb06a",
        Color::Yellow => "#e0b640",
        Color::Magenta => "#c678dd",
        Color::Cyan => "#56b6c2",
        Color::DarkGray => "#7a818e",
        Color::Indexed(39) => "#00afff",
        Color::Indexed(227) => "#ffff5f",
        Color::Indexed(202) => "#ff5f00",
        Color::Indexed(238) => "#343a46",
        _ => FOREGROUND,
    };
    named.to_owned()
}

/// The figures on the screen, comma-separated, with a line of titles; times in nanoseconds.
pub fn csv(state: &State) -> String {
    let mut table = Table::default();
    match state.place.screen {
        Screen::Overview => overview(&mut table, state),
        Screen::Variables => variables(&mut table, state),
        Screen::Histogram => histogram(&mut table, state),
        Screen::VariableHistory | Screen::ProcessHistory => history(&mut table, state),
        Screen::Findings => findings(&mut table, state),
        Screen::Groups => groups(&mut table, state),
        Screen::Health => health(&mut table, state),
    }
    table.0
}

#[derive(Default)]
struct Table(String);

impl Table {
    fn row<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(|c| quoted(&c.to_string()));
        self.0.push_str(&cells.collect::<Vec<_>>().join(","));
        self.0.push('\n');
    }
}

/// As RFC 4180 wants it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

fn overview(table: &mut Table, state: &State) {
    table.row([
        "name",
        "depth",
        "accesses",
        "rate_per_s",
        "local",
        "intra",
        "inter",
        "lost",
    ]);
    for row in &state.tree {
        let f = &row.figures;
        let origins = f.origins.unwrap_or_default().map(|n| n.to_string());
        let [local, intra, inter] = origins;
        let rate = f.rate.map_or_else(String::new, |r| format!("{r:.1}"));
        let (depth, accesses) = (row.depth.to_string(), f.accesses.to_string());
        let lost = f.dropped.to_string();
        table.row([
            row.label.clone(),
            depth,
            accesses,
            rate,
            local,
            intra,
            inter,
            lost,
        ]);
    }
}

fn variables(table: &mut Table, state: &State) {
    table.row([
        "variable",
        "type",
        "group",
        "owners",
        "objects",
        "copies",
        "reads",
        "reads_on_copies",
        "writes",
        "acquires",
        "delayed",
        "mean_wait_ns",
        "mean_hold_ns",
        "local",
        "intra",
        "inter",
    ]);
    for v in &state.variables {
        let words = [&v.name, &v.layout, &v.group, &v.owners];
        let mut cells: Vec<String> = words.into_iter().cloned().collect();
        let counts = [
            v.objects,
            v.copies,
            v.reads_main,
            v.reads_copies,
            v.writes,
            v.acquires,
            v.delayed,
        ];
        cells.extend(counts.iter().map(u64::to_string));
        let mean = |t: Option<dosmos_proto::Nanos>| t.map_or_else(String::new, |t| t.0.to_string());
        cells.extend([mean(v.wait), mean(v.hold)]);
        cells.extend(v.origins.iter().map(u64::to_string));
        table.row(cells);
    }
}

fn histogram(table: &mut Table, state: &State) {
    table.row(["from_ns", "to_ns", "local", "intra", "inter", "optimized"]);
    let Some(charted) = &state.data.histogram else {
        return;
    };
    let per = charted.scale.per_column.0;
    for (i, b) in (0u64..).zip(&charted.answer.buckets) {
        let first = (charted.scale.from - charted.scale.start).0;
        let from = first.saturating_add(i.saturating_mul(per));
        let to = from.saturating_add(per);
        table.row([from, to, b.local, b.intra, b.inter, b.optimized]);
    }
}

fn history(table: &mut Table, state: &State) {
    table.row([
        "start_ns",
        "duration_ns",
        "wait_ns",
        "op",
        "origin",
        "optimized",
        "process",
        "variable",
        "object",
        "count",
    ]);
    let Some(charted) = &state.data.history else {
        return;
    };
    let catalog = &state.data.catalog;
    let start = state.data.extent().from;
    for p in &charted.answer.points {
        table.row([
            (p.start - start).0.to_string(),
            p.duration.0.to_string(),
            p.wait.0.to_string(),
            p.op.to_string(),
            p.origin.to_string(),
            p.optimized.to_string(),
            catalog.topology.ap_name(p.ap),
            catalog.name_of(p.object.var),
            p.object.index.to_string(),
            p.count.to_string(),
        ]);
    }
}

fn findings(table: &mut Table, state: &State) {
    table.row([
        "kind",
        "subject",
        "severity",
        "predicted_gain",
        "completeness",
        "processes",
        "groups",
        "from_ns",
        "to_ns",
        "advice",
    ]);
    let Some(analysed) = &state.data.analysed else {
        return;
    };
    let start = state.data.extent().from.0;
    for f in state
        .findings
        .iter()
        .map(|&i| &analysed.analysis.findings[i])
    {
        let gain = f
            .predicted_gain
            .map_or_else(String::new, |g| format!("{g:.4}"));
        table.row([
            f.kind.to_string(),
            f.subject(),
            format!("{:.4}", f.severity),
            gain,
            format!("{:.4}", f.completeness),
            f.aps.join(" "),
            f.groups.join(" "),
            f.from_ns.saturating_sub(start).to_string(),
            f.to_ns.saturating_sub(start).to_string(),
            f.advice.clone(),
        ]);
    }
}

fn groups(table: &mut Table, state: &State) {
    let Some(analysed) = &state.data.analysed else {
        return;
    };
    let m = &analysed.analysis.groups;
    let name = |g: usize| m.groups.get(g).cloned().unwrap_or_default();
    let titles = ["process", "group_today", "group_proposed"].map(str::to_owned);
    table.row(
        titles
            .into_iter()
            .chain(m.variables.iter().map(|v| v.name.clone())),
    );
    for (ap, accesses) in m.aps.iter().zip(&m.accesses) {
        let head = [ap.name.clone(), name(ap.today), name(ap.proposed)];
        table.row(head.into_iter().chain(accesses.iter().map(u64::to_string)));
    }
}

fn health(table: &mut Table, state: &State) {
    table.row([
        "name",
        "records",
        "lost",
        "lag_ns",
        "unsaved",
        "cpu_ns",
        "monitor_ns",
        "clock_offset_ns",
        "clock_error_ns",
    ]);
    let lag = |t: Option<dosmos_proto::Nanos>| t.map_or_else(String::new, |t| t.0.to_string());
    for row in &state.health {
        match row {
            HealthRow::Manager(m) => {
                let (records, lost) = (m.records.to_string(), m.lost.to_string());
                let pending = m.pending.to_string();
                let none = String::new;
                let head = [m.name.clone(), records, lost, lag(m.lag), pending];
                table.row(head.into_iter().chain([none(), none(), none(), none()]));
            }
            HealthRow::Process(p) => table.row([
                p.name.clone(),
                p.recorded.to_string(),
                p.lost.to_string(),
                lag(p.lag),
                p.unsent.to_string(),
                p.cpu.0.to_string(),
                p.monitor.0.to_string(),
                p.offset.to_string(),
                p.clock_error.0.to_string(),
            ]),
        }
    }
}
