//! Every view as text at three sizes and in all palettes. What a palette must not change is compared, not stored: only the
//! lines that are different without colours, and the colours at the smallest size, are.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use std::fmt::Write;

use dosmos_proto::Nanos;
use dosmos_visualizer::state::{Action, Colours, Palette, Screen, State};
use dosmos_visualizer::view::{self, Theme};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use support::{after, answer};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// A run in which the view has something to show.
fn state(screen: Screen, size: (u16, u16)) -> State {
    let mut keys = vec![Action::Show(screen)];
    match screen {
        Screen::Overview | Screen::Health => {
            let mut state = after(&support::live(Nanos(300_000_000)), size, &keys);
            answer(&mut state, &support::live(Nanos(590_000_000)));
            state
        }
        Screen::Findings | Screen::Groups => after(&support::crowded_lock(), size, &keys),
        Screen::VariableHistory | Screen::ProcessHistory => {
            keys.extend([Action::ZoomIn, Action::ZoomIn, Action::NextEvent]);
            after(&support::finished(), size, &keys)
        }
        Screen::Variables | Screen::Histogram => after(&support::finished(), size, &keys),
    }
}

fn drawn(state: &State, palette: Palette, ascii: bool) -> Buffer {
    let theme = Theme { palette, ascii };
    let mut terminal = Terminal::new(TestBackend::new(state.size.0, state.size.1)).unwrap();
    terminal.draw(|f| view::render(f, state, theme)).unwrap();
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer, of: impl Fn(&ratatui::buffer::Cell) -> char) -> Vec<String> {
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    let line = |row: &[ratatui::buffer::Cell]| row.iter().map(&of).collect::<String>();
    rows.map(|row| line(row).trim_end().to_owned()).collect()
}

fn text(buffer: &Buffer) -> Vec<String> {
    lines(buffer, |cell| cell.symbol().chars().next().unwrap_or(' '))
}

/// What each character's colour stands for; where two mean the same colour, the first one.
fn roles(buffer: &Buffer, palette: Palette) -> Vec<String> {
    let theme = Theme {
        palette,
        ascii: false,
    };
    use dosmos_trace::Origin;
    let known: [(char, Style); 6] = [
        ('l', theme.origin(Origin::Local)),
        ('i', theme.origin(Origin::Intra)),
        ('x', theme.origin(Origin::Inter)),
        ('w', theme.wait()),
        ('s', theme.section()),
        ('f', theme.faint()),
    ];
    lines(buffer, |cell| {
        let colour = Some(cell.fg).filter(|c| *c != Color::Reset);
        let role = known.iter().find(|(_, style)| style.fg == colour);
        match role.filter(|_| colour.is_some()) {
            _ if cell.symbol() == " " && cell.bg == Color::Reset => ' ',
            Some((role, _)) => *role,
            None if cell.modifier.contains(Modifier::REVERSED) => '#',
            None if cell.bg != Color::Reset => 'b',
            None => ' ',
        }
    })
}

#[test]
fn every_view_at_every_size_in_every_palette() {
    let own = Palette::Own(Colours {
        local: (255, 255, 255),
        good: (255, 255, 255),
        ..Palette::Classic.colours().unwrap()
    });
    for (width, height) in SIZES {
        for screen in Screen::ALL {
            let what = format!("{width}x{height} {}", screen.short());
            let state = state(screen, (width, height));
            let classic = drawn(&state, Palette::Classic, false);
            let (words, colours) = (text(&classic), roles(&classic, Palette::Classic));
            for palette in [Palette::Safe, Palette::Light, own] {
                let buffer = drawn(&state, palette, false);
                assert_eq!(text(&buffer), words, "{what} {palette:?}");
                assert_eq!(roles(&buffer, palette), colours, "{what} {palette:?}");
            }
            for palette in [Palette::Classic, Palette::Mono] {
                let plain = text(&drawn(&state, palette, true)).join("\n");
                assert!(plain.is_ascii(), "{what}:\n{plain}");
            }
            let mono = drawn(&state, Palette::Mono, false);
            assert!(
                mono.content
                    .iter()
                    .all(|c| c.fg == Color::Reset && c.bg == Color::Reset)
            );
            let mut golden = words.join("\n");
            golden += "\n---- without colours:\n";
            for (y, line) in text(&mono).iter().enumerate() {
                if *line != words[y] {
                    writeln!(golden, "{y:2}|{line}").unwrap();
                }
            }
            if width == SIZES[0].0 {
                golden += "---- colours:\n";
                for (y, line) in colours.iter().enumerate().filter(|(_, l)| !l.is_empty()) {
                    writeln!(golden, "{y:2}|{line}").unwrap();
                }
            }
            insta::with_settings!({ omit_expression => true }, {
                insta::assert_snapshot!(what, golden);
            });
        }
    }
}
