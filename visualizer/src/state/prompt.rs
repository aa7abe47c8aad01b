//! The input line: a filter or a command being typed.

use crossterm::event::KeyCode;
use dosmos_trace::query::table::NamePattern;

use super::complete::{Names, completions};

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
    asked: Asked,
    text: String,
    wrong: Option<String>,
    /// What Tab goes through: the ways to go on, and which of them is chosen.
    completion: Option<(Vec<String>, usize)>,
    /// The filter before.
    before: Option<NamePattern>,
}

/// What a key did.
pub(super) enum Typed {
    /// Typing goes on.
    More,
    /// Typing goes on; the filter works already.
    Filter(Option<NamePattern>),
    /// The line is closed; a filter stays as it was last.
    Closed,
    /// The line is closed, with the filter from before.
    Restored(Option<NamePattern>),
    /// The line is closed; it makes no sense as a filter.
    Wrong(String),
    /// The line is closed, with a command.
    Command(String),
}

impl Prompt {
    /// A line for a command, or for another filter than this.
    pub(super) fn new(asked: Asked, filter: Option<&NamePattern>) -> Self {
        let text = match asked {
            Asked::Filter => filter.map(NamePattern::typed).unwrap_or_default(),
            Asked::Command => String::new(),
        };
        Self {
            asked,
            text,
            wrong: None,
            completion: None,
            before: filter.cloned(),
        }
    }

    /// What for.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// What was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why that makes no sense as a filter, so far.
    pub fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    /// The ways to go on, and which of them Tab has chosen.
    pub fn completions(&self) -> Option<(&[String], usize)> {
        self.completion.as_ref().map(|(all, at)| (&all[..], *at))
    }

    /// Takes a key. `names` are what commands may go on with.
    pub(super) fn key(&mut self, code: KeyCode, control: bool, names: &Names<'_>) -> Typed {
        match code {
            KeyCode::Esc => {
                return match self.asked {
                    Asked::Filter => Typed::Restored(self.before.take()),
                    Asked::Command => Typed::Closed,
                };
            }
            KeyCode::Enter => {
                return match (self.asked, self.wrong.take()) {
                    (Asked::Filter, Some(why)) => Typed::Wrong(why),
                    (Asked::Filter, None) => Typed::Closed,
                    (Asked::Command, _) => Typed::Command(std::mem::take(&mut self.text)),
                };
            }
            KeyCode::Backspace if self.text.is_empty() => return Typed::Closed,
            KeyCode::Backspace => {
                self.text.pop();
            }
            KeyCode::Char('u') if control => self.text.clear(),
            KeyCode::Char('w') if control => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.truncate(kept);
            }
            KeyCode::Tab if self.asked == Asked::Command => {
                self.complete(names);
                return Typed::More;
            }
            KeyCode::Char(c) if !control => self.text.push(c),
            _ => {}
        }
        self.completion = None;
        match self.asked {
            Asked::Filter => self.filter(),
            Asked::Command => Typed::More,
        }
    }

    /// A filter works while it is typed, as far as it makes sense.
    fn filter(&mut self) -> Typed {
        match NamePattern::parse(&self.text) {
            Ok(filter) => {
                self.wrong = None;
                Typed::Filter(filter)
            }
            Err(why) => {
                self.wrong = Some(why.to_string());
                Typed::More
            }
        }
    }

    fn complete(&mut self, names: &Names<'_>) {
        let completion = match self.completion.take() {
            Some((all, at)) => {
                let next = (at + 1) % all.len().max(1);
                (all, next)
            }
            None => (completions(&self.text, names), 0),
        };
        if let Some(text) = completion.0.get(completion.1) {
            self.text.clone_from(text);
            self.completion = Some(completion);
        }
    }
}
