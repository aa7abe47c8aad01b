//! The state of the terminal: its parts, and what answers do to them.

use dosmos_proto::ApId;
use dosmos_trace::query::Completeness;
use dosmos_trace::query::table::NamePattern;

use super::analysis::Analysis;
use super::charts::Charts;
use super::data::Data;
use super::health;
use super::list::Rows;
use super::look::Look;
use super::navigation::Navigation;
use super::output::Output;
use super::prompt::Prompt;
use super::question::{Answer, Update, same_target};
use super::screen::{Place, Screen};
use super::table::VariableTable;
use super::timeline::Timeline;
use super::tree::Tree;

/// A page of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Every key.
    Keys,
    /// Every command.
    Commands,
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
    /// The help lies above the screen.
    pub help: Option<Page>,
    /// A filter or a command is being typed.
    pub prompt: Option<Prompt>,
    /// What is said to the user and asked of the loop.
    pub output: Output,
    /// Answers are held back.
    pub paused: bool,
    /// The user wants to leave.
    pub quit: bool,
    /// What was run has ended; how.
    pub finished: Option<String>,
    /// Only names that this lets through, in every list.
    pub filter: Option<NamePattern>,
    /// The view, and the way back.
    pub navigation: Navigation,
    /// The part of the run shown, and the cursor.
    pub timeline: Timeline,
    /// What is known of the run as a whole.
    pub data: Data,
    /// The overview.
    pub tree: Tree,
    /// The table of variables.
    pub variables: VariableTable,
    /// Histogram and histories.
    pub charts: Charts,
    /// Findings and groups.
    pub analysis: Analysis,
    /// Rows of the health view.
    pub health: Rows<health::Row>,
    /// A variable to go to, once its number is known.
    pub(super) find: Option<(String, Option<u32>)>,
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

    /// The place shown, with the variable and the process that charts show where none was chosen: the selected one of
    /// the table (in the history), the first one.
    pub fn target(&self) -> Place {
        let mut place = self.navigation.place();
        if place.screen == Screen::VariableHistory && place.variable.is_none() {
            place.variable = self.variables.selected().map(|row| row.id);
        }
        let aps = self.data.catalog.topology.application_processes();
        place.process = place.process.or((!aps.is_empty()).then_some(ApId(0)));
        place
    }

    /// What is missing in all that is shown.
    pub fn completeness(&self) -> Completeness {
        let table = &self.variables.page().completeness;
        let shown = self.charts.completeness().chain([table]);
        self.data.completeness(shown)
    }

    /// What the filter lets through.
    pub(crate) fn passes(&self) -> impl Fn(&str) -> bool + use<> {
        let matcher = self.filter.as_ref().map(NamePattern::matcher);
        move |name| matcher.as_ref().is_none_or(|m| m(name))
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
            self.output
                .say("the run has ended; this is read from its stores");
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
        let has_page = self.variables.selected().is_some();
        if let Some(page) = reply.table
            && (!self.paused || first || update.request.page != wanted.page || !has_page)
        {
            let variables = page.rows.iter().map(|r| r.variable.clone());
            self.data.meet(variables.collect());
            self.variables.take(page, &self.data.catalog.topology);
        }
        if update.request.find.is_some()
            && update.request.find == wanted.find
            && let Some((name, object)) = self.find.take()
        {
            self.data.meet(reply.found.iter().cloned().collect());
            self.open(&name, object, reply.found.as_ref());
        }
        let scale = update.request.scale;
        let still_wanted = same_target(&update.request.question, &wanted.question);
        match reply.answer {
            Answer::Overview(aps) if !self.paused || self.tree.rows().is_empty() => {
                self.data.take_aps(aps);
            }
            // of an old target, or held back: but what was asked for while paused is shown.
            Answer::Histogram(answer) if still_wanted => self.charts.take_histogram(answer, scale),
            Answer::History(answer) if still_wanted => self.charts.take_history(answer, scale),
            Answer::Analysis(part) if !self.paused || self.analysis.part().is_none() => {
                self.analysis.take(part);
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

    /// Shows only names that this lets through.
    pub(super) fn filter_by(&mut self, filter: Option<NamePattern>) {
        self.filter = filter;
        self.refresh();
    }

    /// Works out rows and lanes again; what is selected stays selected.
    pub(super) fn refresh(&mut self) {
        let passes = self.passes();
        let by_process = self.navigation.screen() == Screen::VariableHistory;
        self.tree.refresh(&self.data, &passes);
        self.analysis.refresh(&passes);
        self.health.replace(health::rows(&self.data, &passes));
        self.charts.refresh(&self.data.catalog, by_process, &passes);
    }
}
