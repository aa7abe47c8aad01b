//! Colours and what stands for them where there are none: DOSMOS-Trace (docs/bibliography.md#dosmos-trace) draws local accesses green,
//! intra-group ones yellow, inter-group ones red. Marks in histories are plain, underlined and reversed besides; in
//! bars without colours the three are `l`, `i` and `X`.

use dosmos_trace::Origin;
use ratatui::style::{Modifier, Style};

use crate::state::{Colours, Look, Palette, Rgb, drawn};

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

    fn fg(self, of: fn(&Colours) -> Rgb) -> Style {
        match self.palette.colours() {
            Some(colours) => Style::new().fg(drawn(of(&colours))),
            None => Style::new(),
        }
    }

    /// Bars and figures of an origin.
    pub fn origin(self, origin: Origin) -> Style {
        self.fg(match origin {
            Origin::Local => |c| c.local,
            Origin::Intra => |c| c.intra,
            Origin::Inter => |c| c.inter,
        })
    }

    /// The part of a character that a bar of this origin leaves to another.
    pub fn on_origin(self, style: Style, origin: Origin) -> Style {
        match self.origin(origin).fg {
            Some(colour) => style.bg(colour),
            None => style,
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

    /// A mark in a history: its origin is told by an attribute, too.
    pub fn mark(self, origin: Origin) -> Style {
        let style = self.origin(origin);
        match origin {
            Origin::Local => style,
            Origin::Intra => style.add_modifier(Modifier::UNDERLINED),
            Origin::Inter => style.add_modifier(Modifier::REVERSED),
        }
    }

    /// Waiting.
    pub fn wait(self) -> Style {
        self.fg(|c| c.wait)
    }

    /// An exclusive section.
    pub fn section(self) -> Style {
        self.fg(|c| c.section)
    }

    /// What gives way to the rest.
    pub fn faint(self) -> Style {
        self.fg(|c| c.faint)
    }

    /// Titles of columns.
    pub fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The selected entry.
    pub fn selected(self) -> Style {
        match self.palette.colours() {
            Some(colours) => Style::new().bg(drawn(colours.selected)),
            None => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    /// The tab one is on, the state of the display, the time cursor.
    pub fn active(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What must not be overlooked.
    pub fn warning(self) -> Style {
        match self.palette.colours() {
            Some(colours) => Style::new()
                .fg(drawn(colours.background))
                .bg(drawn(colours.intra)),
            None => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// What is wrong.
    pub fn bad(self) -> Style {
        self.fg(|c| c.bad).add_modifier(Modifier::BOLD)
    }

    /// What is well.
    pub fn good(self) -> Style {
        self.fg(|c| c.good)
    }
}
