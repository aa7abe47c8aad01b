//! The runs of a folder, above the screen: one of them is chosen to be shown in this terminal.

use std::path::PathBuf;

use super::keys::Action;
use super::list::{List, Rows};

/// A run of the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedRun {
    /// Its directory.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// When it was started, in local time.
    pub started: String,
    /// The program; empty if nobody wrote what was run.
    pub program: String,
    /// How it ended, or that it goes on.
    pub end: String,
    /// It is the one shown.
    pub here: bool,
}

/// What is being waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Nothing,
    Listing,
    Opening(String),
}

/// What became of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The list is not shown: it is for the screen.
    Elsewhere,
    /// It was for the list.
    Here,
    /// The user wants to leave: there is nothing below the list.
    Leave,
    /// This run is to be opened.
    Open(PathBuf),
}

/// The list of the runs, as it lies above the screen.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    shown: bool,
    /// No run is shown below it.
    alone: bool,
    doing: Doing,
    folder: String,
    rows: Rows<ListedRun>,
    error: Option<String>,
}

impl RunList {
    /// Whether it is shown.
    pub fn shown(&self) -> bool {
        self.shown
    }

    /// Whether there is no run below it.
    pub fn alone(&self) -> bool {
        self.alone
    }

    /// The folder whose runs are listed.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// The runs, the latest first.
    pub fn rows(&self) -> &Rows<ListedRun> {
        &self.rows
    }

    /// What went wrong.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The run that is being opened.
    pub fn opening(&self) -> Option<&str> {
        match &self.doing {
            Doing::Opening(name) => Some(name),
            Doing::Nothing | Doing::Listing => None,
        }
    }

    /// Whether the folder is being read.
    pub fn listing(&self) -> bool {
        self.doing == Doing::Listing
    }

    /// Shows the list, without a run below it if `alone`; its runs are to be told.
    pub(super) fn show(&mut self, alone: bool) {
        *self = Self {
            shown: true,
            alone,
            doing: Doing::Listing,
            ..Self::default()
        };
    }

    /// Takes the runs of a folder, or why there are none.
    pub fn take(&mut self, folder: String, runs: Result<Vec<ListedRun>, String>) {
        if !self.listing() {
            return;
        }
        (self.doing, self.folder) = (Doing::Nothing, folder);
        match runs {
            Ok(runs) => {
                let here = runs.iter().position(|run| run.here);
                self.rows.replace(runs);
                self.rows.list().0.select(here.unwrap_or(0));
                self.error = None;
            }
            Err(why) => self.error = Some(why),
        }
    }

    /// What is being waited for cannot be had.
    pub fn fail(&mut self, why: String) {
        if self.doing != Doing::Nothing {
            (self.doing, self.error) = (Doing::Nothing, Some(why));
        }
    }

    /// The selection, and the number of runs.
    pub(super) fn list(&mut self) -> (&mut List, usize) {
        self.rows.list()
    }

    /// Moves the selection.
    pub(super) fn step(&mut self, by: isize) {
        let (list, length) = self.rows.list();
        list.step(by, length);
    }

    /// What a key asks for. The list is modal: what lies below it does not change unseen.
    pub(super) fn handle(&mut self, action: Action, page: isize) -> Asked {
        if !self.shown {
            return Asked::Elsewhere;
        }
        if let Some(lines) = action.lines(page) {
            self.step(lines);
        }
        match action {
            Action::Enter => return self.open(),
            Action::Back if self.opening().is_some() => self.doing = Doing::Nothing,
            Action::Back | Action::Runs | Action::Quit if self.alone => return Asked::Leave,
            Action::Back | Action::Runs | Action::Quit => *self = Self::default(),
            _ => {}
        }
        Asked::Here
    }

    /// Opens the selected run.
    fn open(&mut self) -> Asked {
        let Some(run) = self.rows.selected() else {
            return Asked::Here;
        };
        let path = run.path.clone();
        (self.doing, self.error) = (Doing::Opening(run.name.clone()), None);
        Asked::Open(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[&str]) -> RunList {
        let mut list = RunList::default();
        list.show(false);
        let run = |name: &&str| ListedRun {
            path: PathBuf::from("runs").join(name),
            name: (*name).to_owned(),
            here: *name == "b",
            ..ListedRun::default()
        };
        list.take("runs".into(), Ok(names.iter().map(run).collect()));
        list
    }

    #[test]
    fn the_run_that_is_shown_is_selected_and_another_is_opened() {
        let mut list = listed(&["c", "b", "a"]);
        assert_eq!(list.rows().position(), 1);
        list.handle(Action::Down, 10);
        let path = PathBuf::from("runs/a");
        assert_eq!(list.handle(Action::Enter, 10), Asked::Open(path));
        assert_eq!(list.opening(), Some("a"));
        // What went wrong is shown, and the list stays.
        list.fail("runs/a is not a run directory".into());
        assert_eq!(list.error(), Some("runs/a is not a run directory"));
        assert!(list.shown() && list.opening().is_none());
        // Back first gives up opening, then closes.
        list.handle(Action::Enter, 10);
        list.handle(Action::Back, 10);
        assert!(list.shown() && list.opening().is_none() && list.error().is_none());
        list.fail("of what was given up".into());
        assert!(list.error().is_none());
        list.handle(Action::Back, 10);
        assert!(!list.shown());
        assert_eq!(list.handle(Action::Down, 10), Asked::Elsewhere);
    }

    #[test]
    fn without_a_run_below_it_going_back_leaves() {
        let mut list = listed(&["a"]);
        assert_eq!(list.handle(Action::Quit, 10), Asked::Here);
        list.show(true);
        assert!(list.listing());
        assert_eq!(list.handle(Action::Enter, 10), Asked::Here, "no run yet");
        list.take("runs".into(), Err("permission denied".into()));
        assert_eq!(list.error(), Some("permission denied"));
        assert_eq!(list.handle(Action::Back, 10), Asked::Leave);
    }
}
