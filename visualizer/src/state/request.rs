//! What the screen shown needs to know.

use dosmos_trace::query::{HistogramQuery, HistoryPoint, HistoryQuery, TimeRange};

use super::event::EventQuery;
use super::question::{Question, Request};
use super::screen::Screen;
use super::terminal::State;
use super::window::{Scale, Window};

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
        let (scale, shown) = (self.scale(), self.target());
        let window = self.timeline.window();
        let question = match shown.screen {
            Screen::Overview => Question::Overview,
            Screen::Variables | Screen::Health | Screen::Findings | Screen::Groups => {
                Question::Nothing
            }
            _ if self.data.catalog.extent.is_none() => Question::Nothing,
            Screen::Histogram => Question::Histogram(HistogramQuery {
                filter: self.charts.filter(shown, scale),
                buckets: u32::from(scale.columns),
            }),
            Screen::VariableHistory if shown.variable.is_none() => Question::Nothing,
            Screen::ProcessHistory if shown.process.is_none() => Question::Nothing,
            Screen::VariableHistory | Screen::ProcessHistory => Question::History(HistoryQuery {
                filter: self.charts.filter(shown, scale),
                max_points: POINTS_PER_COLUMN * u32::from(scale.columns),
            }),
        };
        let findings_shown = matches!(shown.screen, Screen::Findings | Screen::Groups);
        Request {
            question,
            analysis: self.analysed().filter(|_| findings_shown),
            findings_shown,
            page: self.variables.query(
                shown.screen,
                self.size.1,
                self.filters.of(Screen::Variables),
            ),
            event: self.event().and_then(EventQuery::of),
            find: self.find.as_ref().map(|(name, _)| name.clone()),
            scale,
            moving: window.follows(),
            repeat: !self.paused,
        }
    }

    /// The event of the selected lane at the cursor.
    pub fn event(&self) -> Option<&HistoryPoint> {
        let by_process = match self.navigation.screen() {
            Screen::VariableHistory => true,
            Screen::ProcessHistory => false,
            _ => return None,
        };
        self.charts.event(self.timeline.cursor()?, by_process)
    }

    /// The part of the run whose findings are shown; none: the usual one.
    pub(super) fn analysed(&self) -> Option<TimeRange> {
        let window = self.timeline.window();
        match window {
            Window::Fixed(range) => Some(range),
            Window::Latest(_) if !self.data.catalog.live => {
                Some(window.resolve(self.data.extent()))
            }
            _ => None,
        }
    }

    /// How the window's times fall onto the columns there are.
    pub fn scale(&self) -> Scale {
        let label = match self.navigation.screen() {
            Screen::Histogram => HISTOGRAM_LABEL,
            _ => lane_label(self.size.0),
        };
        let columns = self.size.0.saturating_sub(label + 1).max(1);
        let extent = self.data.extent();
        let shown = self.timeline.window().resolve(extent);
        Scale::new(shown, extent.from, columns)
    }
}
