//! What charts are about: a variable, one of its objects, a process.

use dosmos_proto::{ApId, VarId, Variable};

use super::{Place, Screen, State};

impl State {
    /// The variable shown: the one chosen; for the history, the selected one of the table if none is.
    pub fn variable(&self) -> Option<VarId> {
        let selected = || self.selected_variable().map(|row| row.id);
        match self.place.screen {
            Screen::VariableHistory => self.place.variable.or_else(selected),
            _ => self.place.variable,
        }
    }

    /// The process shown by the process history.
    pub fn process(&self) -> Option<ApId> {
        let any = !self
            .data
            .catalog
            .topology
            .application_processes()
            .is_empty();
        self.place.process.or(any.then_some(ApId(0)))
    }

    pub(super) fn step_target(&mut self, by: isize) {
        match self.place.screen {
            Screen::ProcessHistory => {
                let aps = self.data.catalog.topology.application_processes().len();
                let at = self.process().map(ApId::index);
                self.go(Place {
                    process: cycle(at, by, aps, false).map(|i| ApId(i as u32)),
                    ..self.place
                });
            }
            Screen::Histogram | Screen::VariableHistory => self.step_variable(by),
            _ => self.step(by),
        }
    }

    /// The next variable in the order of the table.
    fn step_variable(&mut self, by: isize) {
        let matched = usize::try_from(self.data.table.matched).unwrap_or(usize::MAX);
        let shown = self.variable();
        let here = self.variables.iter().find(|row| Some(row.id) == shown);
        // One that is not on the page (it was found by name): on from where the selection is.
        let at = shown.map(|_| here.map_or(self.variable_list.selected, |row| row.position));
        let none_too = self.place.screen == Screen::Histogram;
        let next = cycle(at, by, matched, none_too);
        let variable = match next {
            None => None,
            Some(position) => match self.variables.iter().find(|row| row.position == position) {
                Some(row) => Some(row.id),
                // Not fetched yet: it is with the next answer.
                None => return self.variable_list.selected = position,
            },
        };
        self.variable_list.selected = next.unwrap_or(self.variable_list.selected);
        self.go(Place {
            variable,
            object: None,
            ..self.place
        });
    }

    pub(super) fn step_object(&mut self, by: isize) {
        let screen = self.place.screen;
        if !matches!(screen, Screen::Histogram | Screen::VariableHistory) {
            return;
        }
        let shown = self.variable();
        let Some(variable) = shown.and_then(|id| self.data.variable(id)) else {
            return;
        };
        let objects = variable.spec().layout().objects() as usize;
        let at = self.place.object.map(|o| o as usize);
        let object = cycle(at, by, objects, true).map(|i| i as u32);
        self.go(Place {
            variable: shown,
            object,
            ..self.place
        });
    }

    /// To the history (or, from there, the histogram) of a variable by name; asked for if unknown.
    pub(super) fn look_at(&mut self, name: &str, object: Option<u32>) {
        let known = self.data.catalog.variables.iter();
        match known.clone().find(|v| v.spec().name() == name).cloned() {
            Some(variable) => self.open(&variable, object),
            None => self.find = Some((name.to_owned(), object)),
        }
    }

    /// The answer to the search for a variable.
    pub(super) fn take_found(&mut self, found: Option<Variable>) {
        let Some((name, object)) = self.find.take() else {
            return;
        };
        match found {
            Some(variable) => {
                self.data.meet(vec![variable.clone()]);
                self.open(&variable, object);
            }
            None => self.complain(format!("there is no variable called {name}")),
        }
    }

    fn open(&mut self, variable: &Variable, object: Option<u32>) {
        let objects = variable.spec().layout().objects();
        if object.is_some_and(|o| o >= objects) {
            let name = variable.spec().name();
            return self.complain(format!("{name} has objects 0 to {}", objects - 1));
        }
        let screen = match self.place.screen {
            Screen::Histogram => Screen::Histogram,
            _ => Screen::VariableHistory,
        };
        self.drill(Place {
            screen,
            variable: Some(variable.id()),
            object,
            ..self.place
        });
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
