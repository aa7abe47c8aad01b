//! The screen as a picture.

use std::fmt::Write;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use crate::state::State;
use crate::view::{self, Theme};

/// Size of a character in the picture.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 17.0;
const BACKGROUND: &str = "#14171c";
const FOREGROUND: &str = "#d5d8de";

/// The screen as a self-contained SVG, without the line of keys.
pub fn svg(state: &State) -> String {
    let mut state = state.clone();
    (state.prompt, state.help) = (None, None);
    state.output.clear_message();
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
