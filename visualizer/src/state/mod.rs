//! What the terminal shows, without a terminal: keys and answers go in, requests come out.
//!
//! Invariant: nothing here draws, waits, or reads a clock; so every behaviour of the screens is
//! tested by feeding it keys and answers.

pub mod data;
pub mod keys;
pub mod lanes;
pub mod list;
mod request;

pub mod tree;
pub mod variables;
pub mod window;

use std::collections::BTreeSet;

use dosmos_proto::{ApId, GroupId, VarId};
use dosmos_trace::Op;

pub use data::{Answer, Charted, Data, Question, Request, Update};
pub use keys::Action;
use lanes::{Lane, LaneKey};
use list::List;
pub(crate) use request::{HISTOGRAM_LABEL, lane_label};
use tree::Node;
use variables::{SortKey, VariableRow};
use window::Window;

/// The screens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Screen {
    /// Groups, processes, event managers.
    #[default]
    Overview,
    /// The table of variables.
    Variables,
    /// Accesses over time by origin.
    Histogram,
    /// What was done to a variable, by whom.
    VariableHistory,
    /// What a process did, to what.
    ProcessHistory,
}

impl Screen {
    /// All of them, in the order of their keys.
    pub const ALL: [Self; 5] = [
        Self::Overview,
        Self::Variables,
        Self::Histogram,
        Self::VariableHistory,
        Self::ProcessHistory,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Variables => "Variables",
            Self::Histogram => "Histogram",
            Self::VariableHistory => "Variable history",
            Self::ProcessHistory => "Process history",
        }
    }

    /// The one `by` further round.
    fn step(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|s| *s == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// Where one is: the screen and what it is about. What Esc goes back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The screen.
    pub screen: Screen,
    /// The variable of histogram and history; none: all (history: the first one).
    pub variable: Option<VarId>,
    /// The object of that variable; none: all.
    pub object: Option<u32>,
    /// The process of the process history; none: the first one.
    pub process: Option<ApId>,
}

/// Everything that decides what is drawn.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// What is shown, said in the header.
    pub title: String,
    /// Where one is.
    pub place: Place,
    /// Where one came from, by drilling.
    pub back: Vec<Place>,
    /// The help lies above the screen.
    pub help: bool,
    /// Answers are held back.
    pub paused: bool,
    /// The user wants to leave.
    pub quit: bool,
    /// What was run has ended; how.
    pub finished: Option<String>,
    /// The part of the run shown.
    pub window: Window,
    /// Only this operation in histogram and histories.
    pub op: Option<Op>,
    /// Selection in the tree.
    pub tree_list: List,
    /// Groups whose content is hidden.
    pub folded: BTreeSet<GroupId>,
    /// Selection in the table of variables.
    pub variable_list: List,
    /// What that is sorted by.
    pub sort: SortKey,
    /// In reverse.
    pub reverse: bool,
    /// Selection among the lanes.
    pub lane_list: List,
    /// What is known.
    pub data: Data,
    /// Rows of the tree.
    pub tree: Vec<tree::Row>,
    /// Rows of the table.
    pub variables: Vec<VariableRow>,
    /// Lanes of the history.
    pub lanes: Vec<Lane>,
    /// Lanes seen so far of the history's subject.
    known_lanes: BTreeSet<LaneKey>,
}

impl State {
    /// The first screen, before the first answer.
    pub fn new(title: impl Into<String>, size: (u16, u16)) -> Self {
        Self {
            title: title.into(),
            size,
            ..Self::default()
        }
    }

    /// Takes what a round of asking brought.
    pub fn apply(&mut self, update: Update) {
        let wanted = self.request();
        let (catalog, status, answer) = match update.result {
            Ok(parts) => parts,
            Err(why) => {
                self.data.error = Some(why);
                return;
            }
        };
        self.data.error = None;
        if !self.paused || !self.data.answered {
            self.data.take_base(catalog, status);
        }
        let scale = update.request.scale;
        let still_wanted = same_subject(&update.request.question, &wanted.question);
        match answer {
            Answer::Overview(metas, origins) if !self.paused || self.tree.is_empty() => {
                self.data.origins.extend(origins);
                self.data.take_metas(metas);
            }
            Answer::Variables(metas) if !self.paused || self.data.metas.primaries.is_empty() => {
                self.data.take_metas(metas);
            }
            // Of an old subject, or held back: but what was asked for while paused is shown.
            Answer::Histogram(answer) if still_wanted => {
                self.data.histogram = Some(Charted { answer, scale });
            }
            Answer::History(answer) if still_wanted => {
                self.data.history = Some(Charted { answer, scale });
            }
            _ => {}
        }
        self.refresh();
    }

    /// The run has ended.
    pub fn finish(&mut self, message: impl Into<String>) {
        self.finished = Some(message.into());
    }

    /// The terminal has another size.
    pub fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
    }

    /// Does what a key asks for.
    pub fn handle(&mut self, action: Action) {
        match action {
            Action::Quit => self.quit = true,
            Action::Help => self.help = !self.help,
            Action::Back if self.help => self.help = false,
            Action::Back => self.go_back(),
            Action::Show(screen) => self.show(screen),
            Action::NextScreen => self.show(self.place.screen.step(1)),
            Action::PreviousScreen => {
                self.show(self.place.screen.step(Screen::ALL.len() - 1));
            }
            Action::Enter if !self.help => self.enter(),
            Action::Enter => self.help = false,
            Action::Pause => self.pause(),
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-self.page()),
            Action::PageDown => self.step(self.page()),
            Action::Top => self.step(isize::MIN),
            Action::Bottom => self.step(isize::MAX),
            Action::Sort => self.sort_by(self.sort.next(), false),
            Action::Reverse => self.sort_by(self.sort, !self.reverse),
            Action::NextSubject => self.step_subject(1),
            Action::PreviousSubject => self.step_subject(-1),
            Action::NextObject => self.step_object(1),
            Action::PreviousObject => self.step_object(-1),
            Action::Reads => self.only(Op::Read),
            Action::Writes => self.only(Op::Write),
            Action::Acquires => self.only(Op::Acquire),
            Action::ZoomIn
            | Action::ZoomOut
            | Action::Whole
            | Action::Earlier
            | Action::Later
            | Action::Follow => self.move_window(action),
        }
    }

    fn move_window(&mut self, action: Action) {
        let extent = self.data.extent();
        let live = self.data.catalog.live;
        self.window = match action {
            Action::ZoomIn => self.window.zoomed_in(extent, live),
            Action::ZoomOut => self.window.zoomed_out(extent),
            Action::Whole => Window::Whole,
            Action::Earlier => self.window.earlier(extent),
            Action::Later => self.window.later(extent, live),
            _ => self.window.following(),
        };
    }

    fn pause(&mut self) {
        self.paused = !self.paused;
        if !self.paused {
            // Over the pause a rate would be an average of the past.
            self.data.forget_rates();
        }
    }

    fn show(&mut self, screen: Screen) {
        self.help = false;
        self.back.clear();
        self.go(Place {
            screen,
            ..self.place
        });
    }

    /// Goes to `place`; answers about another subject are forgotten.
    fn go(&mut self, place: Place) {
        if place != self.place {
            self.place = place;
            self.data.histogram = None;
            self.data.history = None;
            self.lane_list = List::default();
            self.known_lanes.clear();
            self.lanes.clear();
        }
    }

    fn go_back(&mut self) {
        if let Some(place) = self.back.pop() {
            self.go(place);
        }
    }

    fn drill(&mut self, place: Place) {
        if self.place != place {
            self.back.push(self.place);
            self.go(place);
        }
    }

    fn enter(&mut self) {
        match self.place.screen {
            Screen::Overview => self.enter_tree(),
            Screen::Variables => {
                if let Some(row) = self.variables.get(self.variable_list.selected) {
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

    fn step(&mut self, by: isize) {
        let (list, length) = match self.place.screen {
            Screen::Overview => (&mut self.tree_list, self.tree.len()),
            Screen::Variables => (&mut self.variable_list, self.variables.len()),
            Screen::Histogram => return,
            Screen::VariableHistory | Screen::ProcessHistory => {
                (&mut self.lane_list, self.lanes.len())
            }
        };
        list.step(by, length);
    }

    /// Entries that a page key moves by: what fits, less one.
    fn page(&self) -> isize {
        let rows = match self.place.screen {
            Screen::VariableHistory | Screen::ProcessHistory => self.size.1 / 3,
            _ => self.size.1,
        };
        isize::try_from(rows.saturating_sub(8).max(2)).unwrap_or(2) - 1
    }

    fn sort_by(&mut self, key: SortKey, reverse: bool) {
        (self.sort, self.reverse) = (key, reverse);
        self.refresh();
    }

    fn only(&mut self, op: Op) {
        self.op = if self.op == Some(op) { None } else { Some(op) };
        self.data.histogram = None;
        self.data.history = None;
    }

    /// The variable shown: the one chosen; for the history, the first if none is.
    pub fn variable(&self) -> Option<VarId> {
        let first = || self.data.catalog.variables.first().map(|v| v.id);
        match self.place.screen {
            Screen::VariableHistory => self.place.variable.or_else(first),
            _ => self.place.variable,
        }
    }

    /// The process shown by the process history.
    pub fn process(&self) -> Option<ApId> {
        let any = !self.data.catalog.topology.application_processes.is_empty();
        self.place.process.or(any.then_some(ApId(0)))
    }

    fn step_subject(&mut self, by: isize) {
        let place = match self.place.screen {
            Screen::Overview | Screen::Variables => return self.step(by),
            Screen::ProcessHistory => {
                let aps = self.data.catalog.topology.application_processes.len();
                let at = self.process().map(ApId::index);
                Place {
                    process: cycle(at, by, aps, false).map(|i| ApId(i as u32)),
                    ..self.place
                }
            }
            screen => {
                let variables = &self.data.catalog.variables;
                let shown = self.variable();
                let at = variables.iter().position(|v| Some(v.id) == shown);
                let none_too = screen == Screen::Histogram;
                let next = cycle(at, by, variables.len(), none_too);
                Place {
                    variable: next.map(|i| variables[i].id),
                    object: None,
                    ..self.place
                }
            }
        };
        self.go(place);
    }

    fn step_object(&mut self, by: isize) {
        let screen = self.place.screen;
        if !matches!(screen, Screen::Histogram | Screen::VariableHistory) {
            return;
        }
        let shown = self.variable();
        let variables = &self.data.catalog.variables;
        let Some(variable) = variables.iter().find(|v| Some(v.id) == shown) else {
            return;
        };
        let objects = variable.spec.layout.objects() as usize;
        let at = self.place.object.map(|o| o as usize);
        let object = cycle(at, by, objects, true).map(|i| i as u32);
        self.go(Place {
            variable: shown,
            object,
            ..self.place
        });
    }

    /// Works out rows and lanes anew; the selected ones stay selected.
    fn refresh(&mut self) {
        let node = self.tree.get(self.tree_list.selected).map(|r| r.node);
        self.tree = tree::rows(&self.data, &self.folded);
        if let Some(at) = self.tree.iter().position(|r| Some(r.node) == node) {
            self.tree_list.selected = at;
        }
        let id = self
            .variables
            .get(self.variable_list.selected)
            .map(|r| r.id);
        self.variables = variables::rows(&self.data, self.sort, self.reverse);
        if let Some(at) = self.variables.iter().position(|r| Some(r.id) == id) {
            self.variable_list.selected = at;
        }
        self.refresh_lanes();
    }

    fn refresh_lanes(&mut self) {
        let Some(history) = &self.data.history else {
            self.lanes.clear();
            return;
        };
        let key = self.lanes.get(self.lane_list.selected).map(|l| l.key);
        self.lanes = lanes::lanes(
            &history.answer,
            &self.data.catalog,
            history.scale,
            self.place.screen == Screen::VariableHistory,
            self.known_lanes.iter().copied(),
        );
        self.known_lanes.extend(self.lanes.iter().map(|l| l.key));
        if let Some(at) = self.lanes.iter().position(|l| Some(l.key) == key) {
            self.lane_list.selected = at;
        }
    }
}

/// Whether two questions are about the same, whatever the time.
fn same_subject(a: &Question, b: &Question) -> bool {
    let timeless = |f: &dosmos_trace::query::Filter| {
        let mut f = f.clone();
        f.range = None;
        f
    };
    match (a, b) {
        (Question::Histogram(a), Question::Histogram(b)) => {
            timeless(&a.filter) == timeless(&b.filter)
        }
        (Question::History(a), Question::History(b)) => timeless(&a.filter) == timeless(&b.filter),
        (a, b) => a == b,
    }
}

/// The position `by` (1 or -1) from `at` in a ring of `length`, with "none" as one more station if
/// `none_too`.
fn cycle(at: Option<usize>, by: isize, length: usize, none_too: bool) -> Option<usize> {
    if length == 0 {
        return None;
    }
    match (at, by > 0) {
        (None, true) => Some(0),
        (None, false) => Some(length - 1),
        (Some(i), true) if i + 1 < length => Some(i + 1),
        (Some(i), false) if i > 0 => Some(i.min(length) - 1),
        _ if none_too => None,
        (_, true) => Some(0),
        (_, false) => Some(length - 1),
    }
}
