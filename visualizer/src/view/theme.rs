//! Colours and what stands for them where there are none: 001 §7.1 draws local accesses green,
//! intra-group ones yellow, inter-group ones red. With `NO_COLOR` the three are `l`, `i` and `X` in
//! bars, and plain, underlined and reversed marks in histories.

use dosmos_trace::Origin;
use ratatui::style::{Color, Modifier, Style};

/// How things look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Colours may be used.
    pub colour: bool,
}

impl Theme {
    fn fg(self, colour: Color) -> Style {
        if self.colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// Bars and figures of an origin.
    pub fn origin(self, origin: Origin) -> Style {
        self.fg(Self::colour_of(origin))
    }

    /// The colour that stands for an origin.
    pub fn colour_of(origin: Origin) -> Color {
        match origin {
            Origin::Local => Color::Green,
            Origin::Intra => Color::Yellow,
            Origin::Inter => Color::Red,
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
        let style = match (self.colour, origin) {
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
        if self.colour {
            Style::new().bg(Color::Indexed(238))
        } else {
            Style::new().add_modifier(Modifier::BOLD)
        }
    }

    /// The tab one is on, and the state of the display.
    pub fn active(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What must not be overlooked.
    pub fn warning(self) -> Style {
        if self.colour {
            Style::new().fg(Color::Black).bg(Color::Yellow)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    /// What is wrong.
    pub fn bad(self) -> Style {
        self.fg(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What is well.
    pub fn good(self) -> Style {
        self.fg(Color::Green)
    }
}
