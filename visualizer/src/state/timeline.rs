//! The time shown: the window, and the cursor, a marked instant in the charts. The cursor stays where it is from
//! chart to chart, and zooming goes to it.

use dosmos_proto::Nanos;
use dosmos_trace::query::TimeRange;

use super::keys::Action;
use super::window::Window;

/// Window and cursor. What lies in the run is told to it: `extent` is the run's first start and last end.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    window: Window,
    cursor: Option<Nanos>,
    /// The ends of what the pointer is drawn over.
    drag: Option<(Nanos, Nanos)>,
}

impl Timeline {
    /// The part of the run shown.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The marked instant.
    pub fn cursor(&self) -> Option<Nanos> {
        self.cursor
    }

    /// Moves the cursor, by columns of this length, or the window, as the key says.
    pub(super) fn handle(
        &mut self,
        action: Action,
        per_column: Nanos,
        extent: TimeRange,
        live: bool,
    ) {
        let (window, cursor) = (self.window, self.cursor);
        match action {
            Action::Cursor => self.toggle_cursor(extent),
            Action::CursorLeft => self.move_cursor(-1, per_column, extent),
            Action::CursorRight => self.move_cursor(1, per_column, extent),
            Action::CursorFarLeft => self.move_cursor(-10, per_column, extent),
            Action::CursorFarRight => self.move_cursor(10, per_column, extent),
            Action::ZoomIn => self.window = window.zoomed_in(extent, live, cursor),
            Action::ZoomOut => self.window = window.zoomed_out(extent, cursor),
            Action::Whole => self.window = Window::Whole,
            Action::Earlier => self.window = window.earlier(extent),
            Action::Later => self.window = window.later(extent, live),
            Action::Follow => self.window = window.following(),
            _ => {}
        }
    }

    /// Zooms to an instant other than the cursor, in small steps.
    pub(super) fn zoom_at(&mut self, at: Nanos, closer: bool, extent: TimeRange, live: bool) {
        let step = if closer { (4, 5) } else { (5, 4) };
        self.window = self.window.zoomed(step, extent, live, Some(at));
    }

    /// Shows this window.
    pub(super) fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Shows this part of the run.
    pub(super) fn show(&mut self, range: TimeRange) {
        self.window = Window::Fixed(range);
    }

    /// A window of this length: around the cursor, or at the end of the run, or where it is.
    pub(super) fn show_span(&mut self, span: Nanos, extent: TimeRange) {
        if span == Nanos::ZERO || span >= extent.length() {
            self.window = Window::Whole;
            return;
        }
        self.window = match (self.cursor, self.window) {
            (None, Window::Whole | Window::Latest(_)) => Window::Latest(span),
            (cursor, window) => around(cursor.unwrap_or(middle(window, extent)), span, extent),
        };
    }

    /// Sets the cursor in the middle of the window, or removes it.
    fn toggle_cursor(&mut self, extent: TimeRange) {
        if !self.remove_cursor() {
            self.cursor = Some(middle(self.window, extent));
        }
    }

    /// Removes the cursor. Whether there was one.
    pub(super) fn remove_cursor(&mut self) -> bool {
        self.cursor.take().is_some()
    }

    /// Moves the cursor by this many columns; at the edge the window moves along, and stays inside the run.
    fn move_cursor(&mut self, columns: i64, per_column: Nanos, extent: TimeRange) {
        let Some(at) = self.cursor else {
            return self.toggle_cursor(extent);
        };
        let by = Nanos(per_column.0.saturating_mul(columns.unsigned_abs()));
        self.go_to(if columns < 0 { at - by } else { at + by }, extent);
    }

    /// Points at the instant of the run that is nearest to `at`.
    pub(super) fn go_to(&mut self, at: Nanos, extent: TimeRange) {
        let last = (extent.to - Nanos(1)).max(extent.from);
        self.point_at(at.clamp(extent.from, last), extent);
    }

    /// What the pointer is drawn over, from its earlier to its later end.
    pub fn dragged(&self) -> Option<TimeRange> {
        let (a, b) = self.drag.filter(|(a, b)| a != b)?;
        Some(TimeRange {
            from: a.min(b),
            to: a.max(b),
        })
    }

    /// The button went down at an instant.
    pub(super) fn press(&mut self, at: Nanos) {
        self.drag = Some((at, at));
    }

    /// The pointer was drawn to an instant.
    pub(super) fn drag_to(&mut self, at: Nanos) {
        if let Some((_, end)) = &mut self.drag {
            *end = at;
        }
    }

    /// The button was let go: what the pointer was drawn over is shown, if that is at least `least`.
    pub(super) fn release(&mut self, least: Nanos) {
        let dragged = self.dragged().filter(|range| range.length() >= least);
        self.drag = None;
        if let Some(range) = dragged {
            self.cursor = None;
            self.show(range);
        }
    }

    /// Points at an instant, and shows it.
    pub(super) fn point_at(&mut self, at: Nanos, extent: TimeRange) {
        self.cursor = Some(at);
        let shown = self.window.resolve(extent);
        if !shown.contains(at) {
            self.window = around(at, shown.length(), extent);
        }
    }
}

/// The middle of what a window shows.
fn middle(window: Window, extent: TimeRange) -> Nanos {
    let shown = window.resolve(extent);
    shown.from + Nanos(shown.length().0 / 2)
}

/// A window of this length with `about` in the middle, not before the run.
fn around(about: Nanos, span: Nanos, extent: TimeRange) -> Window {
    let from = (about - Nanos(span.0 / 2)).max(extent.from);
    let to = from + span;
    Window::Fixed(TimeRange { from, to })
}
