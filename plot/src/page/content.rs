//! What stands on a page: sections of blocks.

use crate::{Chart, Color};

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) sections: Vec<Section>,
}

/// A part of a page, in its table of contents.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) blocks: Vec<Block>,
}

/// Views in a choice.
pub const CHOICES: usize = 6;

/// One thing on a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A paragraph nobody should overlook.
    Warning(String),
    /// Words as they are: commands, patches.
    Verbatim(String),
    /// Single figures: name, value, what it is of.
    Tiles(Vec<(String, String, String)>),
    /// A chart with the words below it.
    Chart(Box<Chart>, String),
    /// A table.
    Table(Table),
    /// Blocks that belong together: a heading, a short word beside it, and what stands below.
    Card {
        /// What it is about.
        heading: String,
        /// Beside the heading.
        badge: String,
        /// Colour of its edge.
        color: Color,
        /// What it says.
        blocks: Vec<Block>,
    },
    /// One of several views of the same thing, the first until the reader chooses another.
    Choice {
        /// What is chosen.
        name: String,
        /// The views: a label, and what is shown. At most [`CHOICES`].
        views: Vec<(String, Vec<Block>)>,
    },
    /// Blocks side by side where there is room, below each other where there is not.
    Columns(Vec<Vec<Block>>),
    /// Blocks that are shown when asked for.
    Details {
        /// What is always shown.
        summary: String,
        /// What is not.
        blocks: Vec<Block>,
    },
}

/// A table: columns of words to the left, of numbers to the right.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(crate) headers: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub(crate) text: String,
    pub(crate) shade: Option<(Color, f64)>,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: subtitle.into(),
            sections: Vec::new(),
        }
    }

    /// Adds a section; one without a block is left out.
    pub fn section(&mut self, heading: impl Into<String>, blocks: Vec<Block>) {
        if !blocks.is_empty() {
            self.sections.push(Section {
                heading: heading.into(),
                blocks,
            });
        }
    }
}

impl Block {
    /// A paragraph.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
    /// A chart with the words below it.
    pub fn chart(chart: Chart, caption: impl Into<String>) -> Self {
        Self::Chart(Box::new(chart), caption.into())
    }
}

impl Table {
    /// A table without rows.
    pub fn new<H: Into<String>>(headers: impl IntoIterator<Item = H>) -> Self {
        Self {
            headers: headers.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }
    /// Adds a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
    /// Whether column `i` is one of numbers.
    pub(crate) fn numeric(&self, i: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|r| r.get(i));
        !self.rows.is_empty() && cells.all(Cell::is_number)
    }
    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Cell {
    /// A cell on a ground of `color`, `share` of its strength (0 to 1).
    pub fn shaded(text: impl Into<String>, color: Color, share: f64) -> Self {
        Self {
            text: text.into(),
            shade: Some((color, share)),
        }
    }

    /// Whether it reads as a number, with or without a unit.
    pub(crate) fn is_number(&self) -> bool {
        let text = self
            .text
            .trim_start_matches(['-', '−', '+', '±', '×', '<', '≤']);
        text.is_empty() || text == "–" || text.starts_with(|c: char| c.is_ascii_digit())
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            shade: None,
        }
    }
}
