//! The input line: a filter or a command.

use dosmos_trace::query::table::NamePattern;

/// What is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Which names.
    Filter,
    /// What to do.
    Command,
}

/// The line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// What for.
    pub asked: Asked,
    /// What was typed.
    pub text: String,
    /// Why that makes no sense as a filter, so far.
    pub wrong: Option<String>,
    /// What Tab goes through: the text before it, and the ways to go on.
    pub(super) completion: Option<(Vec<String>, usize)>,
    /// The filter before.
    pub(super) before: Option<NamePattern>,
}

impl Prompt {
    /// The ways to go on, and which of them Tab has chosen.
    pub fn completions(&self) -> Option<(&[String], usize)> {
        self.completion.as_ref().map(|(all, at)| (&all[..], *at))
    }
}
