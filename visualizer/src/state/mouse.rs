//! What a click and the wheel do to what they hit. Where things are on the screen, the view knows.

use dosmos_proto::Nanos;
use dosmos_trace::query::table::SortKey;

use super::{Action, Screen, State};

/// What lies under the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hit {
    /// A tab.
    Screen(Screen),
    /// An entry of the list shown.
    Row(usize),
    /// The title of a column of the table of variables.
    Column(SortKey),
    /// An instant on a time axis, and the lane it belongs to.
    Time(Nanos, Option<usize>),
}

impl State {
    /// The left button went down on it. What is selected already is looked at closer.
    pub fn click(&mut self, hit: Hit) {
        self.message = None;
        match hit {
            Hit::Screen(screen) => self.show(screen),
            Hit::Column(key) => self.sort_by(key, key == self.sort && !self.reverse),
            Hit::Row(at) => {
                let (list, length) = self.list();
                if at >= length {
                    return;
                }
                if list.selected == at {
                    return self.enter();
                }
                list.selected = at;
            }
            Hit::Time(at, lane) => {
                if let Some(lane) = lane.filter(|at| *at < self.lanes.len()) {
                    self.lane_list.selected = lane;
                }
                self.point_at(at);
            }
        }
    }

    /// The wheel turned on it: lists scroll, charts zoom to the pointer.
    pub fn wheel(&mut self, up: bool, hit: Option<Hit>) {
        if let Some(Hit::Time(at, _)) = hit {
            let cursor = self.cursor.replace(at);
            self.handle(if up { Action::ZoomIn } else { Action::ZoomOut });
            self.cursor = cursor;
        } else {
            self.step(if up { -3 } else { 3 });
        }
    }
}
