//! The time cursor: a marked instant in the charts. It stays where it is from chart to chart,
//! and zooming goes to it.

use dosmos_proto::Nanos;
use dosmos_trace::query::TimeRange;

use super::State;
use super::window::Window;

impl State {
    pub(super) fn toggle_cursor(&mut self) {
        let shown = self.window.resolve(self.data.extent());
        self.cursor = match self.cursor {
            Some(_) => None,
            None => Some(shown.from + Nanos(shown.length().0 / 2)),
        };
    }

    /// By this many columns; at the edge the window moves along, and stays inside the run.
    pub(super) fn move_cursor(&mut self, columns: i64) {
        let Some(at) = self.cursor else {
            return self.toggle_cursor();
        };
        let extent = self.data.extent();
        let by = Nanos(
            self.scale()
                .per_column
                .0
                .saturating_mul(columns.unsigned_abs()),
        );
        let to = if columns < 0 { at - by } else { at + by };
        let last = (extent.to - Nanos(1)).max(extent.from);
        self.point_at(to.clamp(extent.from, last));
    }

    /// Points at an instant, and shows it.
    pub(super) fn point_at(&mut self, at: Nanos) {
        self.cursor = Some(at);
        let extent = self.data.extent();
        let shown = self.window.resolve(extent);
        if shown.contains(at) {
            return;
        }
        let half = Nanos(shown.length().0 / 2);
        let from = (at - half).max(extent.from);
        self.window = Window::Fixed(TimeRange {
            from,
            to: from + shown.length(),
        });
    }
}
