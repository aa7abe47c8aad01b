//! Going from screen to screen, and through what a screen lists.

use dosmos_proto::Nanos;
use dosmos_trace::query::TimeRange;

use super::lanes::LaneKey;
use super::list::List;
use super::tree::Node;
use super::window::Window;
use super::{Place, Screen, State};

impl State {
    pub(super) fn show(&mut self, screen: Screen) {
        self.help = None;
        self.back.clear();
        self.go(Place {
            screen,
            ..self.place
        });
    }

    /// Goes to `place`; answers about another target are forgotten.
    pub(super) fn go(&mut self, place: Place) {
        if place != self.place {
            self.place = place;
            self.data.histogram = None;
            self.data.history = None;
            self.lane_list = List::default();
            self.known_lanes.clear();
            self.lanes.clear();
        }
    }

    /// Takes away what lies above: the cursor first, then the way here.
    pub(super) fn go_back(&mut self) {
        if self.cursor.is_some() && self.place.screen.is_chart() {
            self.cursor = None;
        } else if let Some(place) = self.back.pop() {
            self.go(place);
        } else if self.filter.is_some() {
            self.filter = None;
            self.refresh();
        }
    }

    pub(super) fn drill(&mut self, place: Place) {
        if self.place != place {
            self.back.push(self.place);
            self.go(place);
        }
    }

    pub(super) fn enter(&mut self) {
        match self.place.screen {
            Screen::Overview => self.enter_tree(),
            Screen::Variables => {
                if let Some(row) = self.selected_variable() {
                    self.drill(Place {
                        screen: Screen::Histogram,
                        variable: Some(row.id),
                        object: None,
                        ..self.place
                    });
                }
            }
            Screen::Histogram => self.drill(Place {
                screen: Screen::VariableHistory,
                ..self.place
            }),
            Screen::VariableHistory | Screen::ProcessHistory => self.enter_lane(),
            Screen::Findings => self.enter_finding(),
            Screen::Groups => self.proposed = !self.proposed,
            Screen::Health => {}
        }
    }

    fn enter_tree(&mut self) {
        match self.tree.get(self.tree_list.selected).map(|row| row.node) {
            Some(Node::Group(group)) => {
                if !self.folded.remove(&group) {
                    self.folded.insert(group);
                }
                self.refresh();
            }
            Some(Node::Ap(ap)) => self.drill(Place {
                screen: Screen::ProcessHistory,
                process: Some(ap),
                ..self.place
            }),
            Some(Node::Mp(_)) | None => {}
        }
    }

    fn enter_lane(&mut self) {
        match self.lanes.get(self.lane_list.selected).map(|lane| lane.key) {
            Some(LaneKey::Ap(ap)) => self.drill(Place {
                screen: Screen::ProcessHistory,
                process: Some(ap),
                ..self.place
            }),
            Some(LaneKey::Object(object)) => self.drill(Place {
                screen: Screen::VariableHistory,
                variable: Some(object.var),
                object: Some(object.index),
                ..self.place
            }),
            Some(LaneKey::Barrier(_)) | None => {}
        }
    }

    /// To the history of what the selected finding is about, at its time: of the variable if it names
    /// one, otherwise of the first process it names; the group view for findings about groups alone.
    fn enter_finding(&mut self) {
        let Some(finding) = self.selected_finding().cloned() else {
            return;
        };
        let variables = self.data.catalog.variables.iter();
        let named = finding.variable.as_deref();
        let variable = named.and_then(|name| variables.clone().find(|v| v.spec().name() == name));
        let topology = &self.data.catalog.topology;
        let process = finding.aps.first().and_then(|name| topology.find_ap(name));
        let place = match (variable, process) {
            (Some(variable), _) => Place {
                screen: Screen::VariableHistory,
                variable: Some(variable.id()),
                object: finding.object,
                ..self.place
            },
            (None, Some(process)) if named.is_none() => Place {
                screen: Screen::ProcessHistory,
                process: Some(process),
                ..self.place
            },
            _ => Place {
                screen: Screen::Groups,
                ..self.place
            },
        };
        let extent = self.data.extent();
        let range = TimeRange {
            from: Nanos(finding.from_ns).max(extent.from),
            to: Nanos(finding.to_ns).min(extent.to),
        };
        if range.from < range.to {
            self.window = Window::Fixed(range);
        }
        self.drill(place);
    }

    pub(super) fn step(&mut self, by: isize) {
        if self.place.screen == Screen::Histogram {
            // Its variable is another with `v`.
            return;
        }
        let (list, length) = self.list();
        list.step(by, length);
    }

    /// The list of the screen shown, and its length.
    pub(super) fn list(&mut self) -> (&mut List, usize) {
        let groups = self.data.analysed.as_ref();
        let groups = groups.map_or(0, |a| a.analysis.groups.aps.len());
        match self.place.screen {
            Screen::Overview => (&mut self.tree_list, self.tree.len()),
            Screen::Variables | Screen::Histogram => {
                let matched = usize::try_from(self.data.table.matched).unwrap_or(usize::MAX);
                (&mut self.variable_list, matched)
            }
            Screen::VariableHistory | Screen::ProcessHistory => {
                (&mut self.lane_list, self.lanes.len())
            }
            Screen::Findings => (&mut self.finding_list, self.findings.len()),
            Screen::Groups => (&mut self.group_list, groups),
            Screen::Health => (&mut self.health_list, self.health.len()),
        }
    }

    /// Entries that a page key moves by: what fits, less one.
    pub(super) fn page(&self) -> isize {
        let rows = match self.place.screen {
            Screen::VariableHistory | Screen::ProcessHistory => self.size.1 / 3,
            _ => self.size.1,
        };
        isize::try_from(rows.saturating_sub(8).max(2)).unwrap_or(2) - 1
    }

    pub(super) fn scroll_groups(&mut self, by: isize) {
        let groups = self.data.analysed.as_ref().map(|a| &a.analysis.groups);
        let columns = groups.map_or(0, |g| g.variables.len());
        let to = self.group_column.saturating_add_signed(by);
        self.group_column = to.min(columns.saturating_sub(1));
    }
}
