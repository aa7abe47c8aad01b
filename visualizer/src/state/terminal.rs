//! The state of the terminal: its parts, and what answers do to them.

use dosmos_proto::ApId;
use dosmos_trace::query::Completeness;
use dosmos_trace::query::table::NamePattern;

use super::analysis::Analysis;
use super::charts::Charts;
use super::data::Data;
use super::filters::{Filters, Scrolled};
use super::health;
use super::help::Help;
use super::keymap::Keymap;
use super::leaving::Leaving;
use super::list::Rows;
use super::look::{Look, Palettes};
use super::navigation::Navigation;
use super::output::Output;
use super::path::PathRows;
use super::phases::Phases;
use super::prompt::Prompt;
use super::question::{Answer, Found, Update, same_target};
use super::runs::RunList;
use super::screen::{Place, Screen};
use super::table::VariableTable;
use super::timeline::Timeline;
use super::tree::Tree;

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
    pub help: Option<Help>,
    /// The runs of a folder lie above the screen.
    pub runs: RunList,
    /// All palettes by name.
    pub palettes: Palettes,
    /// Which key does what.
    pub keymap: Keymap,
    /// A filter or a command is being typed.
    pub prompt: Option<Prompt>,
    /// What is said to the user and asked of the loop.
    pub output: Output,
    /// Answers are held back.
    pub paused: bool,
    /// Whether the user wants to leave.
    pub leaving: Leaving,
    /// What was run has ended; how.
    pub finished: Option<String>,
    /// The filters of the views.
    pub filters: Filters,
    /// Columns scrolled over in the tables.
    pub scrolled: Scrolled,
    /// The view, and the way back.
    pub navigation: Navigation,
    /// The part of the run shown, and the cursor.
    pub timeline: Timeline,
    /// What is known of the run as a whole.
    pub data: Data,
    /// The overview.
    pub tree: Tree,
    /// The phases, in the overview.
    pub phases: Phases,
    /// The table of variables.
    pub variables: VariableTable,
    /// Histogram and histories.
    pub charts: Charts,
    /// Findings and groups.
    pub analysis: Analysis,
    /// The critical path and the delays, in place of the findings.
    pub path: PathRows,
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

    /// The filter of the view shown.
    pub fn filter(&self) -> Option<&NamePattern> {
        self.filters.of(self.navigation.screen())
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
                self.phases.take(breakdown, &self.data.catalog);
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
        if let (Some(query), Some(detail)) = (update.request.event, reply.event) {
            self.charts.take_detail(query, detail);
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
            _ => {}
        }
        self.refresh();
    }

    /// Takes what a search for findings brought.
    pub fn take_found(&mut self, found: Found) {
        let first = self.analysis.part().is_none();
        if self.paused && !first && self.analysed() == found.scope {
            return;
        }
        self.data.meet(found.variables);
        self.analysis.take(found.scope, found.result);
        self.refresh();
    }

    /// The run has ended.
    pub fn finish(&mut self, message: impl Into<String>) {
        self.finished = Some(message.into());
        self.leaving.ends(None);
    }

    /// Shows only names that this lets through, in the view shown.
    pub(super) fn filter_by(&mut self, filter: Option<NamePattern>) {
        let screen = self.navigation.screen();
        self.filters.set(screen, filter);
        self.refresh();
    }

    /// Works out rows and lanes again; what is selected stays selected.
    pub(super) fn refresh(&mut self) {
        let screen = self.navigation.screen();
        let by_process = screen == Screen::VariableHistory;
        let of_tree = self.filters.passes(Screen::Overview);
        self.tree.refresh(&self.data, &of_tree);
        let scope = self.analysed();
        let of_findings = self.filters.passes(Screen::Findings);
        self.analysis.refresh(scope, &of_findings);
        let analysed = self.analysis.part().map(|part| &part.analysis);
        self.path.refresh(analysed, &of_findings);
        let of_health = self.filters.passes(Screen::Health);
        let rows = health::rows(&self.data, &of_health);
        self.health.replace(rows);
        let of_lanes = self.filters.passes(screen);
        self.charts
            .refresh(&self.data.catalog, by_process, &of_lanes);
    }
}
