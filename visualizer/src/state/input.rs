//! What keys, clicks and the wheel do. Where things are on the screen, the view knows.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use dosmos_proto::{ApId, Nanos};
use dosmos_trace::Op;
use dosmos_trace::query::table::SortKey;

use super::complete::Names;
use super::help::{Handled, Help};
use super::keys::Action;
use super::list::{List, cycle};
use super::navigation::Navigation;
use super::output::Effect;
use super::path::Leads;
use super::prompt::{self, Prompt, Typed};
use super::runs::Asked;
use super::screen::{Place, Screen};
use super::terminal::State;

/// What lies under the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hit {
    /// A tab, or the number of findings.
    Screen(Screen),
    /// An entry of the list shown.
    Row(usize),
    /// The title of a column of the table of variables.
    Column(SortKey),
    /// An instant on a time axis, and the lane it belongs to.
    Time(Nanos, Option<usize>),
}

impl State {
    /// A key, whatever is on the screen.
    pub fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.output.clear_message();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return self.leaving.at_once();
        }
        let yes = matches!(key.code, KeyCode::Char('y' | 'Y'));
        if self.leaving.answer(yes) {
            return;
        }
        if let Some(prompt) = self.prompt.take() {
            self.type_key(prompt, key.code, control);
        } else if let Some(help) = self.help.as_mut().filter(|help| help.search().1) {
            help.type_key(key.code, control);
        } else if let Some(action) = self.keymap.action(key) {
            self.handle(action);
        }
    }

    /// What a key asks of what lies above the screen: the help, the runs. Whether it means something there: the rest is
    /// for the screen.
    fn handle_above(&mut self, action: Action) -> bool {
        if let Some(help) = &mut self.help {
            let done = help.handle(action, self.navigation.screen(), &self.keymap, self.size);
            if matches!(done, Handled::Closed | Handled::Passed) {
                self.help = None;
            }
            if matches!(done, Handled::Here | Handled::Closed) {
                return true;
            }
        }
        let page = Screen::Overview.page(self.size.1);
        match self.runs.handle(action, page) {
            Asked::Elsewhere => return false,
            Asked::Here => {}
            Asked::Leave => self.leaving.wants(),
            Asked::Open(path) => self.output.ask(Effect::OpenRun(path)),
        }
        true
    }

    /// Lists the runs of the folder, without a run below the list if `alone`.
    pub fn choose_run(&mut self, alone: bool) {
        if self.leaving.would_end() {
            let text =
                "this terminal ends with the run that it started; use `dosmos top` in another one";
            return self.output.complain(text);
        }
        self.runs.show(alone);
        self.output.ask(Effect::ListRuns);
    }

    fn type_key(&mut self, mut prompt: Prompt, code: KeyCode, control: bool) {
        let names = Names {
            variables: self.variables.rows(),
            topology: &self.data.catalog.topology,
            palettes: &self.palettes,
        };
        match prompt.key(code, control, &names) {
            Typed::More => self.prompt = Some(prompt),
            Typed::Filter(filter) => {
                self.filter_by(filter);
                self.prompt = Some(prompt);
            }
            Typed::Closed => {}
            Typed::Restored(filter) => self.filter_by(filter),
            Typed::Wrong(why) => self.output.complain(why),
            Typed::Command(text) => self.command(&text),
        }
    }

    /// The left button went down on it. What is selected already is looked at closer.
    pub fn click(&mut self, hit: Hit) {
        self.output.clear_message();
        match hit {
            Hit::Screen(screen) => self.handle(Action::Show(screen)),
            Hit::Column(key) => self.variables.sort_or_reverse(key),
            Hit::Row(at) => match self.list() {
                (_, length) if at >= length => {}
                (list, _) if list.selected() == at => self.handle(Action::Enter),
                (list, _) => list.select(at),
            },
            Hit::Time(at, lane) => {
                let (lanes, length) = self.charts.list();
                if let Some(lane) = lane.filter(|at| *at < length) {
                    lanes.select(lane);
                }
                self.timeline.point_at(at, self.data.extent());
                self.timeline.press(at);
            }
        }
    }

    /// The pointer was drawn to it with the button down.
    pub fn drag(&mut self, hit: Hit) {
        if let Hit::Time(at, _) = hit {
            self.timeline.drag_to(at);
        }
    }

    /// The button was let go: charts show what the pointer was drawn over, if that is more than two columns.
    pub fn release(&mut self) {
        let least = Nanos(self.scale().per_column.0.saturating_mul(2));
        self.timeline.release(least);
        self.refresh();
    }

    /// The wheel turned on it: lists scroll, charts zoom to the pointer.
    pub fn wheel(&mut self, up: bool, hit: Option<Hit>) {
        let by = if up { Action::Up } else { Action::Down };
        if self.handle_above(by) {
            return;
        }
        if let Some(Hit::Time(at, _)) = hit {
            let (extent, live) = (self.data.extent(), self.data.catalog.live);
            self.timeline.zoom_at(at, up, extent, live);
        } else {
            self.step(if up { -3 } else { 3 });
        }
    }

    /// Does what a key asks for.
    pub fn handle(&mut self, action: Action) {
        let screen = self.navigation.screen();
        let page = screen.page(self.size.1);
        if self.handle_above(action) {
            return;
        }
        match action {
            Action::Runs => self.choose_run(false),
            Action::Quit => self.leaving.wants(),
            Action::Help => self.help = Some(Help::default()),
            Action::CopyPatch if screen == Screen::Findings && !self.path.shown() => {
                self.analysis.copy_patch(&mut self.output);
            }
            Action::CopyPatch => {}
            Action::Back => self.go_back(),
            Action::Enter => self.enter(),
            Action::Show(screen) => {
                self.go(|navigation| navigation.show(screen));
            }
            Action::NextScreen => self.handle(Action::Show(screen.step(1))),
            Action::PreviousScreen => {
                self.handle(Action::Show(screen.step(Screen::ALL.len() - 1)));
            }
            Action::Pause => {
                self.paused = !self.paused;
                if !self.paused {
                    // Over the pause a rate would be an average of the past.
                    self.data.forget_rates();
                }
            }
            Action::Up
            | Action::Down
            | Action::PageUp
            | Action::PageDown
            | Action::Top
            | Action::Bottom => self.step(action.lines(page).unwrap_or(0)),
            Action::Sort => self.variables.sort_by(self.variables.sort().next(), false),
            Action::Reverse => self.variables.sort_or_reverse(self.variables.sort()),
            Action::Phases if screen == Screen::Overview => self.phases.toggle(),
            Action::Phases => {}
            Action::Path if screen == Screen::Findings => self.path.toggle(),
            Action::Path => {}
            Action::NextTarget => self.step_target(1),
            Action::PreviousTarget => self.step_target(-1),
            Action::NextObject => self.step_object(1),
            Action::PreviousObject => self.step_object(-1),
            Action::Reads => self.charts.toggle(Op::Read),
            Action::Writes => self.charts.toggle(Op::Write),
            Action::Acquires => self.charts.toggle(Op::Acquire),
            Action::Filter | Action::Command => {
                let asked = match action {
                    Action::Filter => prompt::Asked::Filter,
                    _ => prompt::Asked::Command,
                };
                self.help = None;
                self.prompt = Some(Prompt::new(asked, self.filter()));
            }
            Action::NextEvent => self.step_event(1),
            Action::PreviousEvent => self.step_event(-1),
            Action::Earlier if screen == Screen::Groups => self.analysis.scroll(-1),
            Action::Later if screen == Screen::Groups => self.analysis.scroll(1),
            Action::Earlier if screen.columns() > 0 => self.scrolled.by(screen, -1),
            Action::Later if screen.columns() > 0 => self.scrolled.by(screen, 1),
            Action::Cursor
            | Action::CursorLeft
            | Action::CursorRight
            | Action::CursorFarLeft
            | Action::CursorFarRight
            | Action::ZoomIn
            | Action::ZoomOut
            | Action::Whole
            | Action::Earlier
            | Action::Later
            | Action::Follow => {
                let (per_column, extent) = (self.scale().per_column, self.data.extent());
                let live = self.data.catalog.live;
                self.timeline.handle(action, per_column, extent, live);
            }
        }
    }

    /// Goes elsewhere; what charts show of another place is forgotten.
    pub(super) fn go<T>(&mut self, way: impl FnOnce(&mut Navigation) -> T) -> T {
        let before = self.navigation.place();
        let done = way(&mut self.navigation);
        if self.navigation.place() != before {
            self.charts.clear();
            self.refresh();
        }
        done
    }

    /// Takes away what lies above: the cursor first, then the way here.
    fn go_back(&mut self) {
        if self.navigation.screen().is_chart() && self.timeline.remove_cursor() {
            return;
        }
        if self.navigation.can_go_back() {
            if let Some(window) = self.go(Navigation::go_back) {
                self.timeline.set_window(window);
                self.refresh();
            }
        } else if self.filter().is_some() {
            self.filter_by(None);
        }
    }

    /// Opens what is selected.
    fn enter(&mut self) {
        let here = self.navigation.place();
        let window = self.timeline.window();
        let to = match here.screen {
            Screen::Overview if self.phases.shown() => {
                let range = self.phases.range();
                range.map(|range| {
                    self.timeline.show(range);
                    Place {
                        variable: None,
                        object: None,
                        ..here.on(Screen::Histogram)
                    }
                })
            }
            Screen::Overview => {
                if self.tree.toggle() {
                    self.refresh();
                }
                self.tree.opens(here)
            }
            Screen::Variables => self.variables.opens(here),
            Screen::Histogram => Some(here.on(Screen::VariableHistory)),
            Screen::VariableHistory | Screen::ProcessHistory => self.charts.opens(here),
            Screen::Findings if self.path.shown() => {
                match self.path.leads(&self.data.catalog.topology) {
                    Some(Leads::Variable(name, object)) => {
                        self.look_at(name, object);
                        None
                    }
                    Some(Leads::Process(ap)) => Some(here.process_history(ap)),
                    None => None,
                }
            }
            Screen::Findings => {
                let to = self.analysis.opens(here, &self.data.catalog);
                if to.is_some_and(|to| to.screen == Screen::Groups) {
                    // The matrix is that of the same part of the run.
                    self.analysis.point_at_evidence();
                } else if let Some(range) = self.analysis.range(self.data.extent()) {
                    self.timeline.show(range);
                }
                to
            }
            Screen::Groups => {
                self.analysis.toggle_proposed();
                None
            }
            Screen::Health => None,
        };
        let Some(to) = to else { return };
        if self.timeline.window() == window {
            self.go(|navigation| navigation.drill(to));
        } else {
            self.go(|navigation| navigation.drill_in_time(to, window));
        }
    }

    /// Moves the selection in the list shown.
    fn step(&mut self, by: isize) {
        // The histogram's variable is another with `v`.
        if self.navigation.screen() != Screen::Histogram {
            let (list, length) = self.list();
            list.step(by, length);
        }
    }

    /// The list of the screen shown, and its length.
    fn list(&mut self) -> (&mut List, usize) {
        match self.navigation.screen() {
            _ if self.runs.shown() => self.runs.list(),
            Screen::Overview if self.phases.shown() => self.phases.list(),
            Screen::Overview => self.tree.list(),
            Screen::Variables | Screen::Histogram => self.variables.list(),
            Screen::VariableHistory | Screen::ProcessHistory => self.charts.list(),
            Screen::Findings if self.path.shown() => self.path.list(),
            Screen::Findings => self.analysis.findings_list(),
            Screen::Groups => self.analysis.processes_list(),
            Screen::Health => self.health.list(),
        }
    }

    /// Shows the next variable or process.
    fn step_target(&mut self, by: isize) {
        let (here, shown) = (self.navigation.place(), self.target());
        let to = match here.screen {
            Screen::ProcessHistory => {
                let aps = self.data.catalog.topology.application_processes().len();
                let next = cycle(shown.process.map(ApId::index), by, aps, false);
                Place {
                    process: next.map(|i| ApId(i as u32)),
                    ..here
                }
            }
            Screen::Histogram | Screen::VariableHistory => {
                let none_too = here.screen == Screen::Histogram;
                let Some(variable) = self.variables.cycle(shown.variable, by, none_too) else {
                    return;
                };
                Place {
                    variable,
                    object: None,
                    ..here
                }
            }
            _ => return self.step(by),
        };
        self.go(|navigation| navigation.replace(to));
    }

    /// Puts the cursor on the next event of the selected lane.
    fn step_event(&mut self, by: isize) {
        let screen = self.navigation.screen();
        if !matches!(screen, Screen::VariableHistory | Screen::ProcessHistory) {
            return;
        }
        let by_process = screen == Screen::VariableHistory;
        let cursor = self.timeline.cursor();
        match self.charts.step_event(cursor, by, by_process) {
            Some(start) => self.timeline.point_at(start, self.data.extent()),
            None => {
                let (which, key) = if by > 0 {
                    ("later", "→")
                } else {
                    ("earlier", "←")
                };
                let text = format!("no {which} event of this lane on the screen; {key} moves it");
                self.output.say(text);
            }
        }
    }

    /// Shows the next object of the variable.
    fn step_object(&mut self, by: isize) {
        let (here, variable) = (self.navigation.place(), self.target().variable);
        if !matches!(here.screen, Screen::Histogram | Screen::VariableHistory) {
            return;
        }
        let Some(known) = variable.and_then(|id| self.data.variable(id)) else {
            return;
        };
        let objects = known.spec().layout().objects() as usize;
        let next = cycle(here.object.map(|o| o as usize), by, objects, true);
        let object = next.map(|i| i as u32);
        self.go(|navigation| {
            navigation.replace(Place {
                variable,
                object,
                ..here
            });
        });
    }
}
