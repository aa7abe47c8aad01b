//! What the screen shown needs to know.

use dosmos_trace::Op;
use dosmos_trace::query::{Filter, HistogramQuery, HistoryQuery};

use super::window::Scale;
use super::{Question, Request, Screen, State};

/// Columns left of a histogram's bars, for the counts.
pub(crate) const HISTOGRAM_LABEL: u16 = 8;
/// Columns left of a history's lanes, for the names, on a terminal of this width.
pub(crate) fn lane_label(width: u16) -> u16 {
    (width / 7).clamp(11, 26)
}

/// Points asked for per column: enough that the marks of dense lanes stay apart.
const POINTS_PER_COLUMN: u32 = 48;

impl State {
    /// What is wanted now.
    pub fn request(&self) -> Request {
        let scale = self.scale();
        let question = match self.place.screen {
            Screen::Overview => Question::Overview,
            Screen::Variables => Question::Variables,
            _ if self.data.catalog.extent.is_none() => Question::Nothing,
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
            scale,
            repeat: !self.paused,
        }
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
