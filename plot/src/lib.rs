//! Charts and pages for reports, guides and `--plot`: lines, steps, bands, bars, marks, spans.
//!
//! A [`Chart`] says what is shown; [`Chart::svg`] draws it with `plotters`. The result is one SVG element that
//! needs nothing else: no script, no font, no network. Its colours are CSS variables with a light and a dark
//! value, so it follows the page it stands on, or the viewer's preference if it stands alone. [`Chart::tip`] adds figures
//! that are shown where the pointer is.
//!
//! A [`Page`] puts charts among words and tables, as one HTML file.
//!
//! Invariant: what cannot be drawn (no point, an infinite value, a logarithm of nothing) is left out or is an
//! error with the chart's title, never a panic.

mod axis;
mod chart;
mod draw;
mod page;
mod theme;

pub use axis::Axis;
pub use chart::{Chart, Error, Layer, Mark};
pub use page::{Block, CHOICES, Cell, Page, Table};
pub use theme::Color;
