//! The way from place to place, and back.

use super::screen::{Place, Screen};
use super::window::Window;

/// The place shown, and those that Esc goes back to.
#[derive(Clone, Debug, Default)]
pub struct Navigation {
    place: Place,
    /// The way here; with the time shown there, if it is to be shown again.
    back: Vec<(Place, Option<Window>)>,
}

impl Navigation {
    /// The view, and what it shows.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The view.
    pub fn screen(&self) -> Screen {
        self.place.screen
    }

    /// Whether there is a place to go back to.
    pub fn can_go_back(&self) -> bool {
        !self.back.is_empty()
    }

    /// Opens a view; the way here is forgotten.
    pub(super) fn show(&mut self, screen: Screen) {
        self.back.clear();
        self.place.screen = screen;
    }

    /// Shows something else in the same view. Esc does not return to what was shown before.
    pub(super) fn replace(&mut self, place: Place) {
        self.place = place;
    }

    /// Goes to `place`, from where Esc comes back.
    pub(super) fn drill(&mut self, place: Place) {
        if self.place != place {
            self.back.push((self.place, None));
            self.place = place;
        }
    }

    /// The same for a place that shows another time: `window` is what was shown before.
    pub(super) fn drill_in_time(&mut self, place: Place, window: Window) {
        self.drill(place);
        if let Some((_, before)) = self.back.last_mut() {
            *before = Some(window);
        }
    }

    /// Goes back to the place before; the time to show there, if it was another.
    pub(super) fn go_back(&mut self) -> Option<Window> {
        let (place, window) = self.back.pop()?;
        self.place = place;
        window
    }

    /// The places that lead here, the first one first.
    pub fn trail(&self) -> impl Iterator<Item = Place> + '_ {
        self.back.iter().map(|(place, _)| *place)
    }
}
