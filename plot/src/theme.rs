//! Colours, by what they mean; what they look like on a light and on a dark page.
//!
//! `plotters` writes colours as numbers, so each meaning is drawn in a number of its own, which is then
//! replaced by a CSS variable.

use plotters::style::RGBColor;

/// What a colour means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Local accesses (green in figure 8 of docs/bibliography.md#dosmos-trace).
    Local,
    /// Intra-group accesses (yellow).
    Intra,
    /// Inter-group accesses (red).
    Inter,
    /// Text and axes.
    Text,
    /// Grid lines and what is in the background.
    Faint,
    /// The `n`-th of several series; eight are told apart, then they repeat.
    Series(usize),
}

/// Name, light, dark. The first entries are those of [`Color`] in order, then eight series (Okabe and Ito's
/// palette, told apart by most colour-blind readers).
const PALETTE: [(&str, &str, &str); 13] = [
    ("local", "#2a9d4a", "#4cc46c"),
    ("intra", "#d9a400", "#f2c83c"),
    ("inter", "#cc3333", "#ff6b6b"),
    ("text", "#222222", "#dddddd"),
    ("faint", "#d8d8d8", "#444444"),
    ("s0", "#0072b2", "#56a8e0"),
    ("s1", "#d55e00", "#ff9248"),
    ("s2", "#009e73", "#3ccfa4"),
    ("s3", "#cc79a7", "#e6a3c8"),
    ("s4", "#a08000", "#e0c040"),
    ("s5", "#56b4e9", "#8fd0ff"),
    ("s6", "#6a4c93", "#a98bd8"),
    ("s7", "#666666", "#aaaaaa"),
];

impl Color {
    fn index(self) -> usize {
        match self {
            Self::Local => 0,
            Self::Intra => 1,
            Self::Inter => 2,
            Self::Text => 3,
            Self::Faint => 4,
            Self::Series(n) => 5 + n % 8,
        }
    }

    /// The CSS variable that holds it.
    pub(crate) fn variable(self) -> String {
        format!("var(--plot-{})", PALETTE[self.index()].0)
    }

    /// The number it is drawn in.
    pub(crate) fn rgb(self) -> RGBColor {
        RGBColor(1, 2, self.index() as u8)
    }
}

/// Puts variables in the place of numbers.
pub(crate) fn with_variables(svg: &str) -> String {
    let mut svg = svg.to_owned();
    for (i, (name, ..)) in PALETTE.iter().enumerate() {
        let number = format!("\"#0102{i:02X}\"");
        svg = svg.replace(&number, &format!("\"var(--plot-{name})\""));
    }
    svg
}

/// The values of the variables. A page may set `data-theme` to `light` or `dark` on its root element;
/// otherwise the viewer's preference decides.
pub(crate) fn style() -> String {
    let values = |which: fn(&(&str, &'static str, &'static str)) -> &'static str| {
        let each = PALETTE
            .iter()
            .map(|c| format!("--plot-{}:{};", c.0, which(c)));
        each.collect::<String>()
    };
    let (light, dark) = (values(|c| c.1), values(|c| c.2));
    format!(
        "<style>:root{{{light}}}\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\
         :root[data-theme=dark]{{{dark}}}@media print{{:root:root{{{light}}}}}</style>"
    )
}
