//! How things are to look: which colours, and whether only ASCII characters may be used.

use ratatui::style::Color;

/// A colour with its parts, so that its contrast is known whatever the terminal makes of names.
pub type Rgb = (u8, u8, u8);

/// Colours by what they stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colours {
    /// What they are to be read on.
    pub background: Rgb,
    /// The selected row.
    pub selected: Rgb,
    /// Local accesses.
    pub local: Rgb,
    /// Accesses within the group.
    pub intra: Rgb,
    /// Accesses of other groups.
    pub inter: Rgb,
    /// Waiting.
    pub wait: Rgb,
    /// Exclusive sections, and what explains.
    pub section: Rgb,
    /// What gives way to the rest.
    pub faint: Rgb,
    /// What is well.
    pub good: Rgb,
    /// What is wrong.
    pub bad: Rgb,
}

/// Lowest contrast of a colour with the background (WCAG 2.1, level AAA: docs/bibliography.md#wcag).
pub(super) const CONTRAST: f64 = 7.0;
/// The same with the selected row, which the marker tells, too.
pub(super) const CONTRAST_SELECTED: f64 = 4.5;

const BLACK: Rgb = (0, 0, 0);

/// Green, yellow, red, as in docs/bibliography.md#dosmos-trace.
const CLASSIC: Colours = Colours {
    background: BLACK,
    selected: (38, 38, 38),
    local: (95, 215, 95),
    intra: (255, 215, 95),
    inter: (255, 95, 95),
    wait: (255, 135, 255),
    section: (95, 215, 215),
    faint: (168, 168, 168),
    good: (95, 215, 95),
    bad: (255, 95, 95),
};

/// Blue, yellow, vermilion: told apart by colour-blind people, too (after Okabe and Ito).
const SAFE: Colours = Colours {
    local: (95, 175, 255),
    intra: (255, 255, 95),
    inter: (255, 135, 95),
    good: (95, 175, 255),
    bad: (255, 135, 95),
    ..CLASSIC
};

/// Dark green, blue, red, for a light background.
const LIGHT: Colours = Colours {
    background: (255, 255, 255),
    selected: (228, 228, 228),
    local: (0, 95, 0),
    intra: (0, 0, 175),
    inter: (135, 0, 0),
    wait: (135, 0, 135),
    section: (0, 95, 95),
    faint: (78, 78, 78),
    good: (0, 95, 0),
    bad: (135, 0, 0),
};

impl Colours {
    /// Each colour of text with its name in the settings.
    pub fn named(&self) -> [(&'static str, Rgb); 8] {
        [
            ("local", self.local),
            ("intra", self.intra),
            ("inter", self.inter),
            ("wait", self.wait),
            ("section", self.section),
            ("faint", self.faint),
            ("good", self.good),
            ("bad", self.bad),
        ]
    }

    /// The colour with this name in the settings.
    pub(super) fn by_name(&mut self, name: &str) -> Option<&mut Rgb> {
        Some(match name {
            "background" => &mut self.background,
            "selected" => &mut self.selected,
            "local" => &mut self.local,
            "intra" => &mut self.intra,
            "inter" => &mut self.inter,
            "wait" => &mut self.wait,
            "section" => &mut self.section,
            "faint" => &mut self.faint,
            "good" => &mut self.good,
            "bad" => &mut self.bad,
            _ => return None,
        })
    }

    /// Refuses colours that are hard to read.
    ///
    /// # Errors
    /// Names the first one and its contrast.
    pub fn check(&self) -> Result<(), String> {
        let grounds = [
            ("background", self.background, CONTRAST),
            ("selected", self.selected, CONTRAST_SELECTED),
        ];
        for (name, colour) in self.named() {
            for (ground, on, least) in grounds {
                let is = contrast(colour, on);
                if is < least {
                    return Err(format!(
                        "{name} on {ground} has a contrast of {is:.1}:1; choose a colour with at least {least}:1"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The contrast of two colours, 1 to 21 (WCAG 2.1: docs/bibliography.md#wcag).
pub fn contrast(a: Rgb, b: Rgb) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        match part <= 0.03928 {
            true => part / 12.92,
            false => ((part + 0.055) / 1.055).powf(2.4),
        }
    };
    let luminance = |(r, g, b): Rgb| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The colours of a screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// Green, yellow, red.
    #[default]
    Classic,
    /// For colour-blind people.
    Safe,
    /// For a light background.
    Light,
    /// None: letters and attributes instead.
    Mono,
    /// From the settings.
    Own(Colours),
}

impl Palette {
    /// Those that are always there, with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("classic", Self::Classic),
        ("safe", Self::Safe),
        ("light", Self::Light),
        ("mono", Self::Mono),
    ];

    /// Its colours; none if there are none.
    pub fn colours(self) -> Option<Colours> {
        match self {
            Self::Classic => Some(CLASSIC),
            Self::Safe => Some(SAFE),
            Self::Light => Some(LIGHT),
            Self::Mono => None,
            Self::Own(colours) => Some(colours),
        }
    }
}

/// All palettes by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palettes(Vec<(String, Palette)>);

impl Default for Palettes {
    fn default() -> Self {
        let all = Palette::ALL.into_iter();
        Self(all.map(|(name, p)| (name.to_owned(), p)).collect())
    }
}

impl Palettes {
    /// Adds one; it hides another one of the same name.
    pub(super) fn add(&mut self, name: String, colours: Colours) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, Palette::Own(colours)));
    }

    /// The palette of this name.
    ///
    /// # Errors
    /// If there is none; says which there are.
    pub fn find(&self, name: &str) -> Result<Palette, String> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, palette)| *palette).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            format!(
                "there is no palette {name:?}; palettes: {}",
                names.join(", ")
            )
        })
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// The steps of the colour cube that terminals with 256 colours have (numbers 16 to 231).
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// As the terminal draws it: by its number among the 256 colours, if it is one of these. All palettes of this program
/// have only such colours, since not every terminal knows others.
pub(crate) fn drawn((r, g, b): Rgb) -> Color {
    let step = |part: u8| (0u8..).zip(CUBE).find(|(_, c)| *c == part).map(|(i, _)| i);
    match (step(r), step(g), step(b)) {
        (Some(r), Some(g), Some(b)) => Color::Indexed(16 + 36 * r + 6 * g + b),
        _ if r == g && g == b && (8..=238).contains(&r) && (r - 8).is_multiple_of(10) => {
            Color::Indexed(232 + (r - 8) / 10)
        }
        _ => Color::Rgb(r, g, b),
    }
}

/// The parts of a colour that [`drawn`] has made.
pub(crate) fn parts(colour: Color) -> Option<Rgb> {
    Some(match colour {
        Color::Rgb(r, g, b) => (r, g, b),
        Color::Indexed(n @ 16..=231) => {
            let at = |i: u8| CUBE[usize::from(i % 6)];
            (at((n - 16) / 36), at((n - 16) / 6), at(n - 16))
        }
        Color::Indexed(n @ 232..) => {
            let grey = 8 + 10 * (n - 232);
            (grey, grey, grey)
        }
        _ => return None,
    })
}

/// How things are to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Colours.
    pub palette: Palette,
    /// Nothing but ASCII.
    pub ascii: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_palette_is_easy_to_read() {
        for (name, palette) in Palette::ALL {
            let checked = palette.colours().map_or(Ok(()), |c| c.check());
            assert_eq!(checked, Ok(()), "{name}");
        }
    }

    #[test]
    fn colours_are_the_same_however_they_are_drawn() {
        for (name, palette) in Palette::ALL {
            let Some(colours) = palette.colours() else {
                continue;
            };
            for (part, rgb) in colours.named() {
                assert_eq!(parts(drawn(rgb)), Some(rgb), "{name} {part}");
                assert!(matches!(drawn(rgb), Color::Indexed(_)), "{name} {part}");
            }
        }
        assert_eq!(parts(drawn((1, 2, 3))), Some((1, 2, 3)));
        assert_eq!(parts(Color::Reset), None);
    }

    #[test]
    fn contrast_is_that_of_the_standard() {
        assert!((contrast(BLACK, (255, 255, 255)) - 21.0).abs() < 1e-9);
        assert!((contrast((119, 119, 119), (255, 255, 255)) - 4.48).abs() < 0.01);
        let dim = Colours {
            faint: (90, 90, 90),
            ..CLASSIC
        };
        let why = dim.check().unwrap_err();
        assert!(
            why.starts_with("faint on background has a contrast of 3.0:1"),
            "{why}"
        );
    }
}
