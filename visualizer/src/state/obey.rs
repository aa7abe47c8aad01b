//! Commands carried out.

use dosmos_proto::{Nanos, Variable};
use dosmos_trace::query::table::NamePattern;

use super::command::{self, Command};
use super::health::recorded;
use super::help::Help;
use super::keys::Action;
use super::screen::Screen;
use super::terminal::State;

impl State {
    /// Does what a typed command says, or says what is wrong with it.
    pub fn command(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match command::parse(text) {
            Ok(command) => self.obey(command),
            Err(why) => self.output.complain(why),
        }
    }

    fn obey(&mut self, command: Command) {
        let extent = self.data.extent();
        match command {
            Command::Quit => self.handle(Action::Quit),
            Command::Help => {
                let screen = self.navigation.screen();
                self.help = Some(Help::at_commands(screen, &self.keymap, self.size));
            }
            Command::View(screen) => self.handle(Action::Show(screen)),
            Command::Filter(text) => match NamePattern::parse(&text) {
                Ok(filter) => self.filter_by(filter),
                Err(why) => self.output.complain(why.to_string()),
            },
            Command::Sort(key, reverse) => self.variables.sort_by(key, reverse),
            Command::Variable(name, object) => self.look_at(name, object),
            Command::Process(name) => match self.data.catalog.topology.find_ap(&name) {
                Some(ap) => self.go(|navigation| {
                    navigation.drill(navigation.place().process_history(ap));
                }),
                None => self
                    .output
                    .complain(format!("there is no application process called {name}")),
            },
            Command::Only(op) => self.charts.only(op),
            Command::GoTo(seconds) => self.timeline.go_to(extent.from + nanos(seconds), extent),
            Command::Window(seconds) => self.timeline.show_span(nanos(seconds), extent),
            Command::Whole => self.handle(Action::Whole),
            Command::Follow => self.handle(Action::Follow),
            Command::Pause => self.handle(Action::Pause),
            Command::Record(None) => self.output.say(recorded(&self.data.status)),
            Command::Record(Some(_)) if !self.data.catalog.live => self
                .output
                .complain("this run has ended: nothing is being recorded"),
            Command::Record(Some(selection)) => self.output.record(selection),
            Command::Save(file) => self.output.save(&file),
            Command::Palette(name) => match self.palettes.find(&name) {
                Ok(palette) => self.look.palette = palette,
                Err(why) => self.output.complain(why),
            },
            Command::Runs => self.handle(Action::Runs),
            Command::Ascii(ascii) => self.look.ascii = ascii,
        }
    }

    /// To the history (or, from there, the histogram) of a variable by name; asked for if unknown.
    pub(super) fn look_at(&mut self, name: String, object: Option<u32>) {
        let mut known = self.data.catalog.variables.iter();
        match known.find(|v| v.spec().name() == name).cloned() {
            Some(variable) => self.open(&name, object, Some(&variable)),
            None => self.find = Some((name, object)),
        }
    }

    /// To the history or histogram of the variable found by this name.
    pub(super) fn open(&mut self, name: &str, object: Option<u32>, found: Option<&Variable>) {
        let Some(variable) = found else {
            let text = format!("there is no variable called {name}");
            return self.output.complain(text);
        };
        let objects = variable.spec().layout().objects();
        if object.is_some_and(|o| o >= objects) {
            let text = format!("{name} has objects 0 to {}", objects - 1);
            return self.output.complain(text);
        }
        let here = self.navigation.place();
        let history = here.variable_history(variable.id(), object);
        let to = match here.screen {
            Screen::Histogram => history.on(Screen::Histogram),
            _ => history,
        };
        self.go(|navigation| navigation.drill(to));
    }
}

fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}
