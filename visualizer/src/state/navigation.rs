//! The way from place to place, and back.

use super::screen::{Place, Screen};

/// The place shown, and those that Esc goes back to.
#[derive(Clone, Debug, Default)]
pub struct Navigation {
    place: Place,
    back: Vec<Place>,
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
            self.back.push(self.place);
            self.place = place;
        }
    }

    /// Goes back to the place before.
    pub(super) fn go_back(&mut self) {
        if let Some(place) = self.back.pop() {
            self.place = place;
        }
    }
}
