//! What keys do to the line being typed.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use dosmos_trace::query::table::NamePattern;

use super::State;
use super::complete::completions;
use super::keys;
use super::prompt::{Asked, Prompt};

impl State {
    /// A key, whatever is on the screen.
    pub fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.message = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            self.quit = true;
        } else if self.prompt.is_some() {
            self.type_key(key.code, control);
        } else if let Some(action) = keys::action(key) {
            self.handle(action);
        }
    }

    pub(super) fn ask_for(&mut self, asked: Asked) {
        self.help = None;
        let text = match (asked, &self.filter) {
            (Asked::Filter, Some(filter)) => filter.typed(),
            _ => String::new(),
        };
        self.prompt = Some(Prompt {
            asked,
            text,
            wrong: None,
            completion: None,
            before: self.filter.clone(),
        });
    }

    fn type_key(&mut self, code: KeyCode, control: bool) {
        let Some(mut prompt) = self.prompt.take() else {
            return;
        };
        match code {
            KeyCode::Esc => {
                if prompt.asked == Asked::Filter {
                    self.filter = prompt.before;
                    self.refresh();
                }
                return;
            }
            KeyCode::Enter => return self.end_prompt(&prompt),
            KeyCode::Backspace if prompt.text.is_empty() => return,
            KeyCode::Backspace => {
                prompt.text.pop();
            }
            KeyCode::Char('u') if control => prompt.text.clear(),
            KeyCode::Char('w') if control => {
                let kept = prompt.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                prompt.text.truncate(kept);
            }
            KeyCode::Tab if prompt.asked == Asked::Command => {
                self.complete(&mut prompt);
                self.prompt = Some(prompt);
                return;
            }
            KeyCode::Char(c) if !control => prompt.text.push(c),
            _ => {}
        }
        prompt.completion = None;
        if prompt.asked == Asked::Filter {
            self.filter_as_typed(&mut prompt);
        }
        self.prompt = Some(prompt);
    }

    /// A filter works while it is typed, as far as it makes sense.
    fn filter_as_typed(&mut self, prompt: &mut Prompt) {
        match NamePattern::parse(&prompt.text) {
            Ok(filter) => {
                prompt.wrong = None;
                self.filter = filter;
                self.refresh();
            }
            Err(why) => prompt.wrong = Some(why.to_string()),
        }
    }

    fn end_prompt(&mut self, prompt: &Prompt) {
        match (prompt.asked, &prompt.wrong) {
            (Asked::Filter, Some(why)) => self.complain(why.clone()),
            (Asked::Filter, None) => {}
            (Asked::Command, _) => self.command(&prompt.text),
        }
    }

    fn complete(&self, prompt: &mut Prompt) {
        let completion = match prompt.completion.take() {
            Some((all, at)) => {
                let next = (at + 1) % all.len().max(1);
                (all, next)
            }
            None => (completions(&prompt.text, self), 0),
        };
        if let Some(text) = completion.0.get(completion.1) {
            prompt.text.clone_from(text);
            prompt.completion = Some(completion);
        }
    }
}
