//! Which part of the terminal is for what.

use ratatui::layout::{Constraint, Layout, Rect};

use super::theme::Theme;
use super::{footer, header};
use crate::state::State;

/// The smallest terminal that shows anything of use.
pub const SMALLEST: (u16, u16) = (60, 16);

/// Header, body, footer.
pub(super) fn parts(head: usize, foot: usize, area: Rect) -> [Rect; 3] {
    let rows = [
        Constraint::Length(head as u16),
        Constraint::Min(0),
        Constraint::Length(foot as u16),
    ];
    Layout::vertical(rows).areas(area)
}

/// Where the screen itself is drawn; none if the terminal is too small for it.
pub(super) fn body_of(state: &State, area: Rect) -> Option<Rect> {
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        return None;
    }
    let theme = Theme::from(state.look);
    let head = header::lines(state, theme, area.width).len();
    let foot = footer::lines(state, theme, area.width).len();
    let [_, body, _] = parts(head, foot, area);
    Some(body)
}
