//! The screen as a picture.

use std::fmt::Write;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use crate::state::{Palette, Rgb, State, contrast, parts};
use crate::view::{self, Theme};

/// Size of a character in the picture.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 17.0;

/// The colours of a terminal that the palette is made for: background, text.
#[derive(Clone)]
struct Grounds {
    back: String,
    text: String,
}

impl Grounds {
    fn of(palette: Palette) -> Self {
        let back = palette.colours().map_or((0, 0, 0), |c| c.background);
        let [light, dark] = [(213, 216, 222), (28, 28, 28)];
        let text = match contrast(light, back) >= contrast(dark, back) {
            true => light,
            false => dark,
        };
        Self {
            back: hex(back),
            text: hex(text),
        }
    }
}

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
    let grounds = Grounds::of(state.look.palette);
    picture(&buffer, height.saturating_sub(1), &grounds)
}

fn picture(buffer: &Buffer, rows: u16, grounds: &Grounds) -> String {
    let back = &grounds.back;
    let columns = buffer.area.width;
    let (w, h) = (
        f64::from(columns) * WIDTH + 16.0,
        f64::from(rows) * HEIGHT + 16.0,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" \
         viewBox=\"0 0 {w:.0} {h:.0}\" font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" \
         font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{back}\"/>\n"
    );
    for y in 0..rows.min(buffer.area.height) {
        let mut x = 0;
        while x < columns {
            x = run(&mut out, buffer, (x, y), grounds);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// One run of characters of one look from `x` on; where the next begins.
fn run(out: &mut String, buffer: &Buffer, (x, y): (u16, u16), grounds: &Grounds) -> u16 {
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
    let (mut fg, mut bg) = (colour(first.fg, &grounds.text), colour(first.bg, ""));
    if first.modifier.contains(Modifier::REVERSED) {
        bg = std::mem::replace(
            &mut fg,
            if bg.is_empty() {
                grounds.back.clone()
            } else {
                bg
            },
        );
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

/// A colour as the picture shows it.
fn colour(colour: Color, reset: &str) -> String {
    parts(colour).map_or_else(|| reset.to_owned(), hex)
}

fn hex((r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
