//! How many accesses share a mark of a history: one is a sign, more are a block as high as their number, up to the largest
//! number on the screen, of reads and of writes. Without colours or blocks a digit `n` stands for 2ⁿ or more.

use ratatui::style::Style;

use super::theme::Theme;
use crate::state::lanes::{Lane, Mark};
use dosmos_client::text;

const BLOCKS: [char; 7] = ['▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Of cached reads.
const SHADES: [char; 3] = ['░', '▒', '▓'];

/// Most reads and most writes that share a mark.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Most {
    pub(super) reads: u64,
    pub(super) writes: u64,
}

impl Most {
    /// Of all lanes.
    pub(super) fn of(lanes: &[Lane]) -> Self {
        let cells = || lanes.iter().flat_map(|lane| &lane.cells);
        let most = |marks: &mut dyn Iterator<Item = Mark>| marks.map(|m| m.count).max();
        Self {
            reads: most(&mut cells().filter_map(|cell| cell.read)).unwrap_or(0),
            writes: most(&mut cells().filter_map(|cell| cell.write)).unwrap_or(0),
        }
    }
}

/// Character and style of a mark; `sign` stands for one access.
pub(super) fn mark(mark: &Mark, sign: char, most: u64, theme: Theme) -> (char, Style) {
    if mark.count <= 1 {
        return (sign, theme.mark(mark.origin));
    }
    if theme.letters() {
        // `+` stands for cached reads, however many.
        let digit = char::from_digit(mark.count.ilog2().min(9), 10).unwrap_or(sign);
        let shown = if mark.all_cached() { sign } else { digit };
        return (shown, theme.mark(mark.origin));
    }
    let level = match mark.all_cached() {
        true => SHADES[step(mark.count, most, SHADES.len())],
        false => BLOCKS[step(mark.count, most, BLOCKS.len())],
    };
    (level, theme.origin(mark.origin))
}

/// Which step of a scale up to `most` a count is on.
fn step(count: u64, most: u64, steps: usize) -> usize {
    let share = count as f64 / most.max(1) as f64;
    ((share * steps as f64).ceil() as usize).clamp(1, steps) - 1
}

/// What the marks of several accesses mean.
pub(super) fn legend(most: Most, theme: Theme) -> String {
    match (most.reads.max(most.writes), theme.letters()) {
        (0..=1, _) => String::new(),
        (_, true) => "n: 2^n accesses".to_owned(),
        (_, false) => format!(
            "█ {} x, {} *",
            text::count(most.reads),
            text::count(most.writes)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Palette;
    use dosmos_trace::Origin;

    fn drawn(count: u64, cached: u64, theme: Theme) -> char {
        let origin = Origin::Local;
        let mark = Mark {
            origin,
            count,
            cached,
        };
        super::mark(&mark, if cached == count { '+' } else { 'x' }, 1_000, theme).0
    }

    #[test]
    fn the_more_accesses_the_higher_the_mark() {
        let colour = Theme::default();
        let marks = [1, 100, 500, 1_000].map(|n| drawn(n, 0, colour));
        assert_eq!(marks, ['x', '▂', '▅', '█']);
        let marks = [1, 2, 1_000].map(|n| drawn(n, n, colour));
        assert_eq!(marks, ['+', '░', '▓']);
        let mono = Theme {
            palette: Palette::Mono,
            ..colour
        };
        let marks = [1, 2, 9, 1_000].map(|n| drawn(n, 0, mono));
        assert_eq!(marks, ['x', '1', '3', '9']);
        assert_eq!(drawn(1_000, 1_000, mono), '+');
    }
}
