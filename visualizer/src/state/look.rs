//! How things are to look: which colours, and whether only ASCII characters may be used.

/// Colours of the three origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// Green, yellow, red, as in docs/bibliography.md#dosmos-trace.
    #[default]
    Classic,
    /// Blue, yellow, vermilion: told apart by colour-blind people, too (after Okabe and Ito).
    Safe,
    /// None: letters and attributes instead.
    Mono,
}

impl Palette {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Classic, Self::Safe, Self::Mono];

    /// What it is called in commands and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Safe => "safe",
            Self::Mono => "mono",
        }
    }
}

impl std::str::FromStr for Palette {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|p| p.name() == text);
        known.ok_or_else(|| format!("there is no palette {text:?}; palettes: classic, safe, mono"))
    }
}

/// How things are to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Colours.
    pub palette: Palette,
    /// Nothing but ASCII.
    pub ascii: bool,
}
