//! The ASCII mode: everything drawn, with ASCII characters in place of all others. One pass over the
//! finished screen, so that nothing can be forgotten.

use ratatui::buffer::Buffer;

/// Replaces what is not ASCII, each by one character; what a character stood for in names becomes `?`.
pub(super) fn replace(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let c = cell.symbol().chars().next().map_or(' ', plain);
            cell.set_char(c);
        }
    }
}

fn plain(c: char) -> char {
    match c {
        '█' | '▓' => '#',
        '▇' | '▆' | '▅' => '=',
        '▄' | '▃' => '-',
        '▂' | '▁' => '_',
        '▒' | '░' => '%',
        '▏' => '_',
        '─' | '–' | '−' | '—' => '-',
        '│' | '┤' | '┐' | '└' | '┘' | '┌' => '|',
        '┬' => '+',
        '▶' | '▸' | '→' | '›' | '≥' => '>',
        '▾' | '↓' => 'v',
        '▴' | '↑' => '^',
        '←' | '‹' => '<',
        '·' | '…' => '.',
        'µ' => 'u',
        '×' => 'x',
        '±' => '~',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn nothing_but_ascii_is_left() {
        let area = Rect::new(0, 0, 20, 1);
        let mut buffer = Buffer::empty(area);
        buffer.set_string(0, 0, "▶ 3 µs ±2 ▇█ 温度", Style::new());
        replace(&mut buffer);
        let text: String = buffer
            .content
            .iter()
            .map(ratatui::buffer::Cell::symbol)
            .collect();
        assert!(text.is_ascii(), "{text}");
        assert!(text.starts_with("> 3 us ~2 =#"), "{text}");
    }
}
