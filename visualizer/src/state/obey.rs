//! Commands carried out.

use dosmos_proto::Nanos;
use dosmos_trace::query::TimeRange;
use dosmos_trace::query::table::NamePattern;

use super::command::{self, Command};
use super::window::Window;
use super::{Effect, Page, Place, Screen, State};

impl State {
    /// Does what a typed command says, or says what is wrong with it.
    pub fn command(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match command::parse(text) {
            Ok(command) => self.obey(command),
            Err(why) => self.complain(why.to_string()),
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Quit => self.quit = true,
            Command::Help => self.help = Some(Page::Commands),
            Command::View(screen) => self.show(screen),
            Command::Filter(text) => match NamePattern::parse(&text) {
                Ok(filter) => {
                    self.filter = filter;
                    self.refresh();
                }
                Err(why) => self.complain(why.to_string()),
            },
            Command::Sort(key, reverse) => self.sort_by(key, reverse),
            Command::Variable(name, object) => self.look_at(&name, object),
            Command::Process(name) => match self.data.catalog.topology.find_ap(&name) {
                Some(ap) => self.drill(Place {
                    screen: Screen::ProcessHistory,
                    process: Some(ap),
                    ..self.place
                }),
                None => self.complain(format!("there is no application process called {name}")),
            },
            Command::Only(op) => {
                self.op = None;
                self.only(op);
            }
            Command::GoTo(seconds) => {
                let extent = self.data.extent();
                let at = extent.from + nanos(seconds);
                self.point_at(at.min((extent.to - Nanos(1)).max(extent.from)));
            }
            Command::Window(seconds) => self.show_span(nanos(seconds)),
            Command::Whole => self.window = Window::Whole,
            Command::Follow => self.window = self.window.following(),
            Command::Pause => self.pause(),
            Command::Record(None) => self.say(self.recorded()),
            Command::Record(Some(selection)) => self.record(selection),
            Command::Save(file) => self.save(&file),
            Command::Palette(palette) => self.look.palette = palette,
            Command::Ascii(ascii) => self.look.ascii = ascii,
        }
    }

    /// What is recorded now, as far as the event managers were told by a terminal.
    pub fn recorded(&self) -> String {
        let managers = self.data.status.event_managers.iter();
        let mut told: Vec<String> = managers
            .map(|m| match &m.selection {
                Some(selection) => command::typed(selection),
                None => "as the cluster file says".to_owned(),
            })
            .collect();
        told.sort();
        told.dedup();
        match told.is_empty() {
            true => "no event manager is running: nothing is being recorded".to_owned(),
            false => format!("recording: {}", told.join(" / ")),
        }
    }

    fn record(&mut self, selection: dosmos_trace::selection::Selection) {
        if !self.data.catalog.live {
            return self.complain("this run has ended: nothing is being recorded");
        }
        self.say(format!(
            "changing the selection to: {}",
            command::typed(&selection)
        ));
        self.effects.push(Effect::Record(selection));
    }

    fn save(&mut self, file: &str) {
        let known = [".svg", ".csv"];
        if known.iter().any(|end| file.ends_with(end)) {
            self.effects.push(Effect::Save(file.into()));
        } else {
            self.complain(format!("{file}: the file name must end in .svg or .csv"));
        }
    }

    /// A window of this length: around the cursor, or at the end of a live run, or where it is.
    fn show_span(&mut self, span: Nanos) {
        let extent = self.data.extent();
        if span == Nanos::ZERO || span >= extent.length() {
            return self.window = Window::Whole;
        }
        let shown = self.window.resolve(extent);
        let middle = shown.from + Nanos(shown.length().0 / 2);
        self.window = match (self.cursor, self.window) {
            (None, Window::Whole | Window::Latest(_)) => Window::Latest(span),
            (cursor, _) => {
                let about = cursor.unwrap_or(middle);
                let from = (about - Nanos(span.0 / 2)).max(extent.from);
                Window::Fixed(TimeRange {
                    from,
                    to: from + span,
                })
            }
        };
    }
}

fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}
