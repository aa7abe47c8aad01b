//! What the state says to the user, and what it asks the loop to do, which does nothing itself.

use std::path::PathBuf;

use dosmos_trace::selection::Selection;

use super::command::typed;

/// What the loop is to do for the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Tell all event managers what to record from now on.
    Record(Selection),
    /// Put this text on the clipboard of the terminal.
    Copy(String),
    /// List the runs of the folder.
    ListRuns,
    /// Show the run in this directory instead.
    OpenRun(PathBuf),
    /// Write what is shown to this file; the name's end says in which format.
    Save(PathBuf),
}

/// A sentence in the last line, until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub text: String,
    /// Something went wrong.
    pub bad: bool,
}

/// The message in the last line, and the effects that were not carried out yet.
#[derive(Clone, Debug, Default)]
pub struct Output {
    message: Option<Message>,
    effects: Vec<Effect>,
}

impl Output {
    /// What is said in the last line.
    pub fn message(&self) -> Option<&Message> {
        self.message.as_ref()
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

    /// Removes the message.
    pub fn clear_message(&mut self) {
        self.message = None;
    }

    /// What the loop is to do now; it is told once.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Asks for a change of what is recorded.
    pub(super) fn record(&mut self, selection: Selection) {
        self.say(format!("changing the selection to: {}", typed(&selection)));
        self.effects.push(Effect::Record(selection));
    }

    /// Asks for a text on the clipboard.
    pub(super) fn copy(&mut self, text: String) {
        let lines = text.lines().count();
        self.say(format!(
            "copied the patch ({lines} lines) to the clipboard, if this terminal allows it (OSC 52)"
        ));
        self.effects.push(Effect::Copy(text));
    }

    /// Asks for something.
    pub(super) fn ask(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Asks for a file with what is shown.
    pub(super) fn save(&mut self, file: &str) {
        let known = [".svg", ".csv"];
        if known.iter().any(|end| file.ends_with(end)) {
            self.effects.push(Effect::Save(file.into()));
        } else {
            self.complain(format!("{file}: the file name must end in .svg or .csv"));
        }
    }
}
