//! What is shown.

use crate::{Axis, Color};

/// A chart: axes and layers, drawn in their order.
#[derive(Clone, Debug)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) size: (u32, u32),
    pub(crate) layers: Vec<Layer>,
    pub(crate) tips: Vec<Tip>,
}

/// Words for a part of the picture, shown where the pointer is.
#[derive(Clone, Debug)]
pub(crate) struct Tip {
    pub(crate) x: (f64, f64),
    /// None: the whole height.
    pub(crate) y: Option<(f64, f64)>,
    pub(crate) text: String,
}

/// One thing drawn. Points are (x, y) in the units of the axes. An empty label is not in the legend.
#[derive(Clone, Debug)]
pub enum Layer {
    /// A line through points.
    Line {
        /// For the legend.
        label: String,
        /// Its colour.
        color: Color,
        /// In the order they are joined.
        points: Vec<(f64, f64)>,
        /// Dashes, as for bounds.
        dashed: bool,
    },
    /// The area between two curves over the same x.
    Band {
        /// For the legend.
        label: String,
        /// Its colour, drawn pale.
        color: Color,
        /// (x, lower y, upper y).
        points: Vec<(f64, f64, f64)>,
    },
    /// Single points.
    Marks {
        /// For the legend.
        label: String,
        /// Their colour.
        color: Color,
        /// Their shape.
        mark: Mark,
        /// Where.
        points: Vec<(f64, f64)>,
    },
    /// Vertical whiskers from a lower to an upper y.
    Errors {
        /// Their colour.
        color: Color,
        /// (x, lower y, upper y).
        points: Vec<(f64, f64, f64)>,
    },
    /// Filled rectangles: bars, and spans of time.
    Boxes {
        /// For the legend.
        label: String,
        /// Their colour.
        color: Color,
        /// (x from, x to, y from, y to).
        boxes: Vec<(f64, f64, f64, f64)>,
    },
    /// A vertical line over the whole height.
    Upright {
        /// Its colour.
        color: Color,
        /// Where.
        x: f64,
    },
}

/// The shape of a mark; those of figures 10 and 11 of docs/bibliography.md#dosmos-trace among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `x`, a read.
    Cross,
    /// `*`, a write.
    Star,
    /// `+`, a cached read.
    Plus,
    /// A filled circle.
    Dot,
    /// A filled square.
    Square,
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to show.
    #[error("{title}: there is no point to draw")]
    Empty {
        /// The chart.
        title: String,
    },
    /// The drawing library refused.
    #[error("{title}: {why}")]
    Drawing {
        /// The chart.
        title: String,
        /// What it said.
        why: String,
    },
}

impl Chart {
    /// An empty chart of 720 × 360.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            size: (720, 360),
            layers: Vec::new(),
            tips: Vec::new(),
        }
    }
    /// Shows `text` while the pointer is between `from` and `to`.
    #[must_use]
    pub fn tip(mut self, from: f64, to: f64, text: impl Into<String>) -> Self {
        self.tips.push(Tip {
            x: (from, to),
            y: None,
            text: text.into(),
        });
        self
    }
    /// Shows `text` while the pointer is between these positions on both axes.
    #[must_use]
    pub fn tip_at(mut self, x: (f64, f64), y: (f64, f64), text: impl Into<String>) -> Self {
        self.tips.push(Tip {
            x,
            y: Some(y),
            text: text.into(),
        });
        self
    }
    /// Of another size, in pixels.
    #[must_use]
    pub fn size(self, width: u32, height: u32) -> Self {
        Self {
            size: (width.max(200), height.max(80)),
            ..self
        }
    }
    /// Adds a layer.
    #[must_use]
    pub fn with(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }
    /// Adds a line.
    #[must_use]
    pub fn line(self, label: impl Into<String>, color: Color, points: Vec<(f64, f64)>) -> Self {
        self.with(Layer::Line {
            label: label.into(),
            color,
            points,
            dashed: false,
        })
    }
    /// Adds a dashed line.
    #[must_use]
    pub fn dashed(self, label: impl Into<String>, color: Color, points: Vec<(f64, f64)>) -> Self {
        self.with(Layer::Line {
            label: label.into(),
            color,
            points,
            dashed: true,
        })
    }
    /// Adds single points.
    #[must_use]
    pub fn marks(
        self,
        label: impl Into<String>,
        color: Color,
        mark: Mark,
        points: Vec<(f64, f64)>,
    ) -> Self {
        self.with(Layer::Marks {
            label: label.into(),
            color,
            mark,
            points,
        })
    }
    /// Adds bars that stand on each other: for each series its height at the positions 0, 1, 2 … .
    #[must_use]
    pub fn stacked(mut self, series: &[(String, Color, Vec<f64>)]) -> Self {
        let positions = series.iter().map(|s| s.2.len()).max().unwrap_or(0);
        let mut tops = vec![0.0; positions];
        for (label, color, heights) in series {
            let mut boxes = Vec::new();
            for (i, height) in heights.iter().enumerate() {
                let x = i as f64;
                boxes.push((x - 0.35, x + 0.35, tops[i], tops[i] + height));
                tops[i] += height;
            }
            self.layers.push(Layer::Boxes {
                label: label.clone(),
                color: *color,
                boxes,
            });
        }
        self
    }
}

impl Layer {
    pub(crate) fn legend(&self) -> Option<(&str, Color)> {
        let (label, color) = match self {
            Self::Line { label, color, .. }
            | Self::Band { label, color, .. }
            | Self::Marks { label, color, .. }
            | Self::Boxes { label, color, .. } => (label.as_str(), *color),
            Self::Errors { .. } | Self::Upright { .. } => return None,
        };
        (!label.is_empty()).then_some((label, color))
    }

    /// All points that must be in the picture.
    pub(crate) fn extremes(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Line { points, .. } | Self::Marks { points, .. } => points.clone(),
            Self::Band { points, .. } | Self::Errors { points, .. } => points
                .iter()
                .flat_map(|&(x, low, high)| [(x, low), (x, high)])
                .collect(),
            Self::Boxes { boxes, .. } => boxes
                .iter()
                .flat_map(|&(a, b, low, high)| [(a, low), (b, high)])
                .collect(),
            Self::Upright { .. } => Vec::new(),
        }
    }
}
