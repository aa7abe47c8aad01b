//! What the terminal asks for, and what comes back.

use std::collections::BTreeMap;

use dosmos_client::{Launch, Part};
use dosmos_proto::{ApId, Variable};
use dosmos_trace::meta::OpCounts;
use dosmos_trace::query::table::{Table, TableQuery};
use dosmos_trace::query::{
    Breakdown, Catalog, Filter, Histogram, HistogramQuery, History, HistoryQuery, Status, TimeRange,
};

use super::event::{EventDetail, EventQuery};
use super::window::Scale;

/// What a screen needs beside catalog, status and table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Nothing.
    Nothing,
    /// Accesses of every application process, where no status tells them.
    Overview,
    /// One bucket a column.
    Histogram(HistogramQuery),
    /// Points enough for the columns.
    History(HistoryQuery),
}

/// What the terminal wants to know now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// For the screen shown.
    pub question: Question,
    /// What is to be searched for findings; none: the recent part of a live run, all of a finished one.
    pub analysis: Option<TimeRange>,
    /// The findings are looked at: ask for them more often.
    pub findings_shown: bool,
    /// The rows of the table of variables that are seen, or that the next keys choose from.
    pub page: Option<TableQuery>,
    /// A variable to be found by its name.
    pub find: Option<String>,
    /// The access that is looked at closer.
    pub event: Option<EventQuery>,
    /// How its times fall onto columns (histogram and history).
    pub scale: Scale,
    /// The window moves with the end of the run.
    pub moving: bool,
    /// Ask again from time to time; not while paused.
    pub repeat: bool,
}

impl Request {
    /// Whether this is another request than `old` only because the run went on: then it can wait for the
    /// next round. (Else a window that follows would be asked for again as soon as it was answered.)
    pub fn only_moved(&self, old: &Self) -> bool {
        let shape = |r: &Self| (r.scale.per_column, r.scale.columns, r.moving, r.repeat);
        self.moving
            && shape(self) == shape(old)
            && (&self.page, &self.find) == (&old.page, &old.find)
            && self.event == old.event
            && (self.analysis, self.findings_shown) == (old.analysis, old.findings_shown)
            && same_target(&self.question, &old.question)
    }
}

/// Whether two questions are about the same, whatever the time.
pub(super) fn same_target(a: &Question, b: &Question) -> bool {
    let timeless = |f: &Filter| Filter {
        range: None,
        ..f.clone()
    };
    match (a, b) {
        (Question::Histogram(a), Question::Histogram(b)) => {
            timeless(&a.filter) == timeless(&b.filter)
        }
        (Question::History(a), Question::History(b)) => timeless(&a.filter) == timeless(&b.filter),
        (a, b) => a == b,
    }
}

/// Accesses of an application process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApFigures {
    /// By operation.
    pub counts: OpCounts,
    /// By origin.
    pub origins: [u64; 3],
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To nothing, or to a question that status answers.
    None,
    /// To [`Question::Overview`], of a run without a status.
    Overview(BTreeMap<ApId, ApFigures>),
    /// To [`Question::Histogram`].
    Histogram(Histogram),
    /// To [`Question::History`].
    History(History),
}

/// What was found in a part of the run.
#[derive(Clone, Debug)]
pub struct Found {
    /// What had been asked for: [`Request::analysis`].
    pub scope: Option<TimeRange>,
    /// What was found, or why nothing could be.
    pub result: Result<Box<Part>, String>,
    /// The variables that findings name.
    pub variables: Vec<Variable>,
}

/// What one round of asking brought.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Processes, extent; no variables. Without topology if it is known.
    pub catalog: Catalog,
    /// State of the processes.
    pub status: Status,
    /// To the question.
    pub answer: Answer,
    /// To the page.
    pub table: Option<Table>,
    /// The variables that the answers speak of.
    pub variables: Vec<Variable>,
    /// The variable to be found; none if there is none of that name.
    pub found: Option<Variable>,
    /// What is known of the access that is looked at closer.
    pub event: Option<EventDetail>,
    /// Where the processes' time went, if it was asked for.
    pub breakdown: Option<Breakdown>,
    /// How the run was started and how it ended.
    pub launch: Launch,
    /// Bytes received over a network since the source was opened.
    pub received: u64,
}

/// The end of one round of asking.
#[derive(Clone, Debug)]
pub struct Update {
    /// What had been wanted.
    pub request: Request,
    /// What it brought, or why it brought nothing.
    pub result: Result<Box<Reply>, String>,
}

/// A chart's answer with its scale.
#[derive(Clone, Debug)]
pub struct Charted<T> {
    /// The answer.
    pub answer: T,
    /// How its times fall onto columns.
    pub scale: Scale,
}
