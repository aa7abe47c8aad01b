//! What the screen shown needs to know.

use dosmos_trace::Op;
use dosmos_trace::query::table::TableQuery;
use dosmos_trace::query::{Filter, HistogramQuery, HistoryQuery};

use super::window::{Scale, Window};
use super::{Question, Request, Screen, State};

/// Columns left of a histogram's bars, for the counts.
pub(crate) const HISTOGRAM_LABEL: u16 = 8;
/// Columns left of a history's lanes, for the names, on a terminal of this width.
pub(crate) fn lane_label(width: u16) -> u16 {
    (width / 7).clamp(11, 26)
}

/// Points asked for per column: enough that the marks of dense lanes stay apart.
const POINTS_PER_COLUMN: u32 = 48;

/// Rows of the table kept around the selected one where a chart is shown, for the next keys.
const NEIGHBOURS: usize = 8;

impl State {
    /// What is wanted now.
    pub fn request(&self) -> Request {
        let scale = self.scale();
        let question = match self.place.screen {
            Screen::Overview => Question::Overview,
            Screen::Variables | Screen::Health => Question::Nothing,
            _ if self.data.catalog.extent.is_none() => Question::Nothing,
            Screen::Findings | Screen::Groups => Question::Analysis(match self.window {
                Window::Fixed(range) => Some(range),
                Window::Latest(_) if !self.data.catalog.live => {
                    Some(self.window.resolve(self.data.extent()))
                }
                _ => None,
            }),
            Screen::Histogram => Question::Histogram(HistogramQuery {
                filter: self.filter(scale),
                buckets: u32::from(scale.columns),
            }),
            Screen::VariableHistory if self.variable().is_none() => Question::Nothing,
            Screen::ProcessHistory if self.process().is_none() => Question::Nothing,
            Screen::VariableHistory | Screen::ProcessHistory => Question::History(HistoryQuery {
                filter: self.filter(scale),
                max_points: POINTS_PER_COLUMN * u32::from(scale.columns),
            }),
        };
        Request {
            question,
            page: self.page_wanted(),
            find: self.find.as_ref().map(|(name, _)| name.clone()),
            scale,
            moving: self.window.follows(),
            repeat: !self.paused,
        }
    }

    /// The rows of the table that are seen, and as many around them as half a screen; beside a chart
    /// only the neighbours of the selected one.
    fn page_wanted(&self) -> Option<TableQuery> {
        let rows = match self.place.screen {
            Screen::Variables => usize::from(self.size.1),
            Screen::Histogram | Screen::VariableHistory => NEIGHBOURS,
            _ => return None,
        };
        let offset = self.variable_list.selected.saturating_sub(rows);
        // On a grid, so that each step of the selection does not make another question.
        let grid = rows.div_ceil(2).max(1);
        let offset = offset / grid * grid;
        Some(TableQuery {
            pattern: self.filter.clone(),
            sort: self.sort,
            reverse: self.reverse,
            offset: u32::try_from(offset).unwrap_or(u32::MAX),
            limit: u32::try_from(2 * rows + grid).unwrap_or(u32::MAX),
        })
    }

    fn filter(&self, scale: Scale) -> Filter {
        // A histogram counts accesses to variables; arriving at a barrier is none.
        let all = match self.place.screen {
            Screen::Histogram => &Op::ALL[..4],
            _ => &[],
        };
        let mut filter = Filter {
            range: Some(scale.range()),
            ops: self.op.map_or_else(|| all.to_vec(), |op| vec![op]),
            ..Filter::default()
        };
        if self.place.screen == Screen::ProcessHistory {
            filter.aps.extend(self.process());
        } else if let Some(variable) = self.variable() {
            filter.variables.push(variable);
            filter.object = self.place.object;
        }
        filter
    }

    /// How the window's times fall onto the columns there are.
    pub fn scale(&self) -> Scale {
        let label = match self.place.screen {
            Screen::Histogram => HISTOGRAM_LABEL,
            _ => lane_label(self.size.0),
        };
        let columns = self.size.0.saturating_sub(label + 1).max(1);
        let extent = self.data.extent();
        Scale::new(self.window.resolve(extent), extent.from, columns)
    }
}
