//! Stacked bars: a column's counts by origin as characters, local accesses at the bottom, the far
//! ones on top, in steps of an eighth of a character.

use dosmos_trace::Origin;
use dosmos_trace::query::OriginCounts;
use ratatui::style::Style;

use super::theme::Theme;

/// Lower blocks of 0 to 8 eighths.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The characters of a bar of `rows` rows, bottom first, where a full one stands for `most` accesses.
pub(super) fn bar(counts: &OriginCounts, most: u64, rows: u16, theme: Theme) -> Vec<(char, Style)> {
    let parts = eighths(counts, most, u64::from(rows) * 8);
    let mut done = [0u64; 3];
    (0..rows)
        .map(|row| {
            let mut room = 8;
            let mut inside = [0u64; 3];
            for i in 0..3 {
                inside[i] = (parts[i] - done[i]).min(room);
                done[i] += inside[i];
                room -= inside[i];
            }
            character(inside, row == 0, theme)
        })
        .collect()
}

/// How many of `full` eighths each origin gets. Something is never nothing.
fn eighths(counts: &OriginCounts, most: u64, full: u64) -> [u64; 3] {
    let total = counts.total();
    if total == 0 || most == 0 || full == 0 {
        return [0; 3];
    }
    let scaled = |n: u64, of: u64, to: u64| {
        let rounded = (u128::from(n) * u128::from(to) * 2 + u128::from(of)) / (2 * u128::from(of));
        rounded as u64
    };
    let height = scaled(total.min(most), most, full).clamp(1, full);
    let near = scaled(counts.local, total, height);
    let middle = scaled(counts.local + counts.intra, total, height);
    let mut parts = [near, middle - near, height - middle];
    for (i, n) in [counts.local, counts.intra, counts.inter]
        .iter()
        .enumerate()
    {
        let largest = (0..3).max_by_key(|&j| parts[j]).unwrap_or(0);
        if *n > 0 && parts[i] == 0 && parts[largest] > 1 {
            parts[largest] -= 1;
            parts[i] += 1;
        }
    }
    parts
}

/// One character with this many eighths of each origin, from the bottom.
fn character(inside: [u64; 3], bottom: bool, theme: Theme) -> (char, Style) {
    let filled: u64 = inside.iter().sum();
    if filled == 0 {
        return (' ', Style::new());
    }
    // Where two are equal, the farther one.
    let main = (0..3).max_by_key(|&i| inside[i]).unwrap_or(0);
    let main = Origin::ALL[main];
    if theme.letters() {
        let shown = filled >= 4 || bottom;
        let letter = if shown { Theme::letter(main) } else { ' ' };
        return (letter, theme.origin(main));
    }
    let lowest = (0..3).find(|&i| inside[i] > 0).unwrap_or(0);
    let highest = (0..3).rev().find(|&i| inside[i] > 0).unwrap_or(0);
    if filled < 8 || lowest == highest {
        // Two colours and an empty part do not go into one character.
        return (BLOCKS[filled.min(8) as usize], theme.origin(main));
    }
    let style = theme.origin(Origin::ALL[lowest]);
    let style = theme.on_origin(style, Origin::ALL[highest]);
    (BLOCKS[inside[lowest].min(8) as usize], style)
}

/// One character per value, as high as its share of the largest one.
pub(super) fn sparkline(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let block = |value: &f64| match most > 0.0 && *value > 0.0 {
        true => BLOCKS[((value / most * 8.0).ceil() as usize).clamp(1, 8)],
        false => BLOCKS[0],
    };
    values.iter().map(block).collect()
}

/// A horizontal bar of `width` characters: the shares of the origins.
pub(super) fn shares(origins: [u64; 3], width: u16, theme: Theme) -> Vec<(String, Style)> {
    let [local, intra, inter] = origins;
    let counts = OriginCounts {
        local,
        intra,
        inter,
        optimized: 0,
        in_process: 0,
    };
    let parts = eighths(&counts, counts.total(), u64::from(width));
    Origin::ALL
        .into_iter()
        .zip(parts)
        .map(|(origin, n)| {
            let c = if theme.letters() {
                Theme::letter(origin)
            } else {
                '█'
            };
            let text = std::iter::repeat_n(c, n as usize).collect();
            (text, theme.origin(origin))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Palette;
    use proptest::prelude::*;

    const COLOUR: Theme = Theme {
        palette: Palette::Classic,
        ascii: false,
    };

    fn counts(local: u64, intra: u64, inter: u64) -> OriginCounts {
        OriginCounts {
            local,
            intra,
            inter,
            optimized: 0,
            in_process: 0,
        }
    }

    #[test]
    fn a_rare_far_access_is_seen() {
        assert_eq!(eighths(&counts(999, 0, 1), 1_000, 80), [79, 0, 1]);
        assert_eq!(eighths(&counts(1, 0, 0), 1_000_000, 80), [1, 0, 0]);
        assert_eq!(eighths(&counts(0, 0, 0), 10, 80), [0, 0, 0]);
    }

    #[test]
    fn two_origins_share_a_character() {
        let drawn = bar(&counts(4, 0, 12), 16, 2, COLOUR);
        assert_eq!(drawn[0].0, '▄');
        assert_eq!(drawn[0].1.fg, COLOUR.origin(Origin::Local).fg);
        assert_eq!(drawn[0].1.bg, COLOUR.origin(Origin::Inter).fg);
        assert_eq!(drawn[1].0, '█');
    }

    #[test]
    fn a_sparkline_is_as_high_as_its_values() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0]), " ▁▄█");
        assert_eq!(sparkline(&[0.0, 0.0]), "  ");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn without_colours_letters_tell() {
        let theme = Theme {
            palette: Palette::Mono,
            ..COLOUR
        };
        let text: String = bar(&counts(8, 8, 8), 24, 3, theme)
            .into_iter()
            .map(|(c, _)| c)
            .collect();
        assert_eq!(text, "liX");
    }

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        #[test]
        fn parts_fill_the_height(
            local in 0u64..1_000_000, intra in 0u64..1_000_000, inter in 0u64..1_000_000,
            most in 1u64..3_000_000, rows in 1u16..60,
        ) {
            let c = counts(local, intra, inter);
            let parts = eighths(&c, most, u64::from(rows) * 8);
            let sum: u64 = parts.iter().sum();
            prop_assert!(sum <= u64::from(rows) * 8);
            prop_assert_eq!(sum == 0, c.total() == 0);
            prop_assert_eq!(bar(&c, most, rows, COLOUR).len(), usize::from(rows));
        }
    }
}
