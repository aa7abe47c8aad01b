//! Everything that decides what is drawn, and what keys and answers do to it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use dosmos_proto::{GroupId, Nanos};
use dosmos_trace::Op;
use dosmos_trace::query::table::{NamePattern, SortKey};
use dosmos_trace::selection::Selection;

use super::data::{Answer, Charted, Data, Update, same_target};
use super::keys::Action;
use super::lanes::{Lane, LaneKey};
use super::list::List;
use super::look::Look;
use super::prompt::{Asked, Prompt};
use super::screen::{Place, Screen};
use super::variables::VariableRow;
use super::window::Window;
use super::{health, tree};

/// What the loop is to do for the state, which does nothing itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Tell all event managers what to record from now on.
    Record(Selection),
    /// Write what is shown to this file; the name's end says in which format.
    Save(PathBuf),
}

/// A page of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Every key.
    Keys,
    /// Every command.
    Commands,
}

/// A sentence in the last line, until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub text: String,
    /// Something went wrong.
    pub bad: bool,
}

/// Everything that decides what is drawn.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// What is shown, said in the header.
    pub title: String,
    /// Colours and characters.
    pub look: Look,
    /// The view, and what it shows.
    pub place: Place,
    /// The places that Esc goes back to.
    pub back: Vec<Place>,
    /// The help lies above the screen.
    pub help: Option<Page>,
    /// A filter or a command is being typed.
    pub prompt: Option<Prompt>,
    /// Said in the last line.
    pub message: Option<Message>,
    /// Answers are held back.
    pub paused: bool,
    /// The user wants to leave.
    pub quit: bool,
    /// What was run has ended; how.
    pub finished: Option<String>,
    /// The part of the run shown.
    pub window: Window,
    /// The marked instant.
    pub cursor: Option<Nanos>,
    /// Only this operation in histogram and histories.
    pub op: Option<Op>,
    /// Only names that this lets through, in every list.
    pub filter: Option<NamePattern>,
    /// Selection in the tree.
    pub tree_list: List,
    /// Groups whose content is hidden.
    pub folded: BTreeSet<GroupId>,
    /// Selection in the table of variables, by position in its order.
    pub variable_list: List,
    /// What that is sorted by.
    pub sort: SortKey,
    /// In reverse.
    pub reverse: bool,
    /// Selection among the lanes.
    pub lane_list: List,
    /// Selection among the findings.
    pub finding_list: List,
    /// Selection among the rows of the group view.
    pub group_list: List,
    /// First variable shown in the group view.
    pub group_column: usize,
    /// The group view is drawn as proposed, not as it is today.
    pub proposed: bool,
    /// Selection in the health view.
    pub health_list: List,
    /// What is known.
    pub data: Data,
    /// Rows of the tree.
    pub tree: Vec<tree::Row>,
    /// Rows of the page of the table.
    pub variables: Vec<VariableRow>,
    /// Lanes of the history.
    pub lanes: Vec<Lane>,
    /// Positions of the findings that the filter lets through.
    pub findings: Vec<usize>,
    /// Rows of the health view.
    pub health: Vec<health::Row>,
    /// Lanes seen so far of the target of the history.
    pub(super) known_lanes: BTreeSet<LaneKey>,
    /// A variable to go to, once its number is known.
    pub(super) find: Option<(String, Option<u32>)>,
    /// What the loop is to do.
    pub(super) effects: Vec<Effect>,
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
        let reply = match update.result {
            Ok(reply) => *reply,
            Err(why) => {
                self.data.error = Some(why);
                return;
            }
        };
        self.data.error = None;
        let first = !self.data.answered;
        if self.data.catalog.live && !reply.catalog.live {
            self.say("the run has ended; this is read from its stores");
        }
        self.data.launch = reply.launch;
        if !self.paused || first {
            self.data
                .take_base(reply.catalog, reply.status, reply.received);
            if let Some(breakdown) = &reply.breakdown {
                self.data.take_times(breakdown);
            }
        }
        self.data.meet(reply.variables);
        if let Some(table) = reply.table
            && (!self.paused || first || update.request.page != wanted.page || !self.has_page())
        {
            self.take_table(table);
        }
        if update.request.find.is_some() && update.request.find == wanted.find {
            self.take_found(reply.found);
        }
        let scale = update.request.scale;
        let still_wanted = same_target(&update.request.question, &wanted.question);
        match reply.answer {
            Answer::Overview(aps) if !self.paused || self.tree.is_empty() => {
                self.data.take_aps(aps);
            }
            // of an old target, or held back: but what was asked for while paused is shown.
            Answer::Histogram(answer) if still_wanted => {
                self.data.histogram = Some(Charted { answer, scale });
            }
            Answer::History(answer) if still_wanted => {
                self.data.history = Some(Charted { answer, scale });
            }
            Answer::Analysis(analysed) if !self.paused || self.data.analysed.is_none() => {
                self.data.analysed = Some(analysed);
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

    /// What the loop is to do now; it is told once.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Says something in the last line.
    pub fn say(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.message = Some(Message { text, bad: false });
    }

    /// Says that something went wrong.
    pub fn complain(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.message = Some(Message { text, bad: true });
    }

    /// Does what a key asks for.
    pub fn handle(&mut self, action: Action) {
        match action {
            Action::Quit => self.quit = true,
            Action::Help => {
                self.help = match self.help {
                    None => Some(Page::Keys),
                    Some(Page::Keys) => Some(Page::Commands),
                    Some(Page::Commands) => None,
                }
            }
            Action::Back if self.help.is_some() => self.help = None,
            Action::Back => self.go_back(),
            Action::Show(screen) => self.show(screen),
            Action::NextScreen => self.show(self.place.screen.step(1)),
            Action::PreviousScreen => {
                self.show(self.place.screen.step(Screen::ALL.len() - 1));
            }
            Action::Enter if self.help.is_none() => self.enter(),
            Action::Enter => self.help = None,
            Action::Pause => self.pause(),
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-self.page()),
            Action::PageDown => self.step(self.page()),
            Action::Top => self.step(isize::MIN),
            Action::Bottom => self.step(isize::MAX),
            Action::Sort => self.sort_by(self.sort.next(), false),
            Action::Reverse => self.sort_by(self.sort, !self.reverse),
            Action::NextTarget => self.step_target(1),
            Action::PreviousTarget => self.step_target(-1),
            Action::NextObject => self.step_object(1),
            Action::PreviousObject => self.step_object(-1),
            Action::Reads => self.only(Some(Op::Read)),
            Action::Writes => self.only(Some(Op::Write)),
            Action::Acquires => self.only(Some(Op::Acquire)),
            Action::Filter => self.ask_for(Asked::Filter),
            Action::Command => self.ask_for(Asked::Command),
            Action::Cursor => self.toggle_cursor(),
            Action::CursorLeft => self.move_cursor(-1),
            Action::CursorRight => self.move_cursor(1),
            Action::CursorFarLeft => self.move_cursor(-10),
            Action::CursorFarRight => self.move_cursor(10),
            Action::Earlier if self.place.screen == Screen::Groups => self.scroll_groups(-1),
            Action::Later if self.place.screen == Screen::Groups => self.scroll_groups(1),
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
            Action::ZoomIn => self.window.zoomed_in(extent, live, self.cursor),
            Action::ZoomOut => self.window.zoomed_out(extent, self.cursor),
            Action::Whole => Window::Whole,
            Action::Earlier => self.window.earlier(extent),
            Action::Later => self.window.later(extent, live),
            _ => self.window.following(),
        };
    }

    pub(super) fn pause(&mut self) {
        self.paused = !self.paused;
        if !self.paused {
            // Over the pause a rate would be an average of the past.
            self.data.forget_rates();
        }
    }

    pub(super) fn sort_by(&mut self, key: SortKey, reverse: bool) {
        (self.sort, self.reverse) = (key, reverse);
    }

    pub(super) fn only(&mut self, op: Option<Op>) {
        self.op = if self.op == op { None } else { op };
        self.data.histogram = None;
        self.data.history = None;
    }

    /// What the filter lets through.
    pub(crate) fn passes(&self) -> impl Fn(&str) -> bool + use<> {
        let matcher = self.filter.as_ref().map(NamePattern::matcher);
        move |name| matcher.as_ref().is_none_or(|m| m(name))
    }
}
