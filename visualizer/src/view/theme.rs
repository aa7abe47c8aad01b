//! Colours and what stands for them where there are none: DOSMOS-Trace (docs/bibliography.md#dosmos-trace) draws local accesses green,
//! intra-group ones yellow, inter-group ones red. Without colours the three are `l`, `i` and `X` in
//! bars, and plain, underlined and reversed marks in histories.

use dosmos_trace::Origin;
use ratatui::style::{Color, Modifier, Style};

use crate::state::{Look, Palette};

/// How things look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Colours.
    pub palette: Palette,
    /// Nothing but ASCII.
    pub ascii: bool,
}

impl From<Look> for Theme {
    fn from(look: Look) -> Self {
        Self {
            palette: look.palette,
            ascii: look.ascii,
        }
    }
}

impl Theme {
    /// Whether there are colours.
    pub fn colour(self) -> bool {
        self.palette != Palette::Mono
    }

    /// Whether bars are drawn with the letters of the origins: where neither colours nor fractions of
    /// blocks tell them apart.
    pub fn letters(self) -> bool {
        self.ascii || !self.colour()
    }

    fn fg(self, colour: Color) -> Style {
        if self.colour() {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// Bars and figures of an origin.
    pub fn origin(self, origin: Origin) -> Style {
        self.fg(self.colour_of(origin))
    }

    /// The colour that stands for an origin.
    pub fn colour_of(self, origin: Origin) -> Color {
        match (self.palette, origin) {
            (Palette::Safe, Origin::Local) => Color::Indexed(39),
            (Palette::Safe, Origin::Intra) => Color::Indexed(227),
            (Palette::Safe, Origin::Inter) => Color::Indexed(202),
            (_, Origin::Local) => Color::Green,
            (_, Origin::Intra) => Color::Yellow,
            (_, Origin::Inter) => Color::Red,
        }
    }

    /// The letter that stands for an origin without colours.
    pub fn letter(origin: Origin) -> char {
        match origin {
            Origin::Local => 'l',
            Origin::Intra => 'i',
            Origin::Inter => 'X',
        }
    }

    /// A mark in a history.
    pub fn mark(self, origin: Origin, several: bool) -> Style {
        let style = match (self.colour(), origin) {
            (true, _) => self.origin(origin),
            (false, Origin::Local) => Style::new(),
            (false, Origin::Intra) => Style::new().add_modifier(Modifier::UNDERLINED),
            (false, Origin::Inter) => Style::new().add_modifier(Modifier::REVERSED),
        };
        if several {
            style.add_modifier(Modifier::BOLD)
        } else {
            style
        }
    }

    /// Waiting.
    pub fn wait(self) -> Style {
        self.fg(Color::Magenta)
    }

    /// An exclusive section.
    pub fn section(self) -> Style {
        self.fg(Color::Cyan)
    }

    /// What gives way to the rest.
    pub fn faint(self) -> Style {
        self.fg(Color::DarkGray)
    }

    /// Titles of columns.
    pub fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The selected entry.
    pub fn selected(self) -> Style {
        if self.colour() {
            Style::new().bg(Color::Indexed(238))
        } else {
            Style::new().add_modifier(Modifier::BOLD)
        }
    }

    /// The tab one is on, the state of the display, the time cursor.
    pub fn active(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What must not be overlooked.
    pub fn warning(self) -> Style {
        if self.colour() {
            Style::new().fg(Color::Black).bg(Color::Yellow)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    /// What is wrong.
    pub fn bad(self) -> Style {
        let red = match self.palette {
            Palette::Safe => Color::Indexed(202),
            _ => Color::Red,
        };
        self.fg(red).add_modifier(Modifier::BOLD)
    }

    /// What is well.
    pub fn good(self) -> Style {
        let green = match self.palette {
            Palette::Safe => Color::Indexed(39),
            _ => Color::Green,
        };
        self.fg(green)
    }
}
