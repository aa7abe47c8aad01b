//! The help: what the view shows, every key, every command; scrolled, and searched.

use crossterm::event::KeyCode;

use super::columns;
use super::command::COMMANDS;
use super::keymap::Keymap;
use super::keys::{Action, BINDINGS};
use super::screen::Screen;
use dosmos_client::text;

/// The widest the help gets.
const WIDTH: u16 = 100;
/// Columns of names.
const NAME: usize = 22;

/// A line of the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelpLine {
    /// The title of a part.
    Title(String),
    /// A name and what it stands for; the name is empty where the text goes on.
    Entry(String, String),
}

/// What the help made of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handled {
    /// It was for the help.
    Here,
    /// It closed the help.
    Closed,
    /// It closes the help, and is for the screen.
    Passed,
    /// It is for the screen.
    Not,
}

/// The help as it lies above the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Help {
    first: usize,
    search: String,
    /// What is searched for is being typed.
    typing: bool,
}

impl Help {
    /// At the part with the commands.
    pub(super) fn at_commands(screen: Screen, keymap: &Keymap, size: (u16, u16)) -> Self {
        let mut help = Self::default();
        let lines = help.lines(screen, keymap, size);
        let commands = |line: &HelpLine| *line == HelpLine::Title(COMMANDS_TITLE.to_owned());
        help.first = lines.iter().position(commands).unwrap_or(0);
        help.scroll(0, lines.len(), size);
        help
    }

    /// What is searched for, and whether it is being typed.
    pub fn search(&self) -> (&str, bool) {
        (&self.search, self.typing)
    }

    /// Columns and rows inside its frame, on a terminal of this size.
    pub fn room(size: (u16, u16)) -> (u16, u16) {
        let width = size.0.min(WIDTH).saturating_sub(4);
        (width, size.1.saturating_sub(2))
    }

    /// The first of `lines` lines that is seen.
    pub fn first(&self, lines: usize, size: (u16, u16)) -> usize {
        let (_, rows) = Self::room(size);
        self.first.min(lines.saturating_sub(usize::from(rows)))
    }

    /// Moves by this number of lines.
    pub(super) fn scroll(&mut self, by: isize, lines: usize, size: (u16, u16)) {
        let first = self.first(lines, size).saturating_add_signed(by);
        self.first = first;
        self.first = self.first(lines, size);
    }

    /// A key while something to search for is being typed.
    pub(super) fn type_key(&mut self, code: KeyCode, control: bool) {
        match code {
            KeyCode::Esc => {
                self.end_search();
            }
            KeyCode::Enter => self.typing = false,
            KeyCode::Backspace => self.type_char(None),
            KeyCode::Char(c) if !control => self.type_char(Some(c)),
            _ => {}
        }
    }

    /// What a key asks for. It is modal: what lies below it does not change unseen.
    pub(super) fn handle(
        &mut self,
        action: Action,
        screen: Screen,
        keymap: &Keymap,
        size: (u16, u16),
    ) -> Handled {
        let lines = self.lines(screen, keymap, size).len();
        let page = (Self::room(size).1 as isize - 1).max(1);
        if let Some(by) = action.lines(page) {
            self.scroll(by, lines, size);
        }
        match action {
            Action::Filter => self.begin(),
            Action::Back if self.end_search() => {}
            Action::Back | Action::Enter | Action::Help | Action::Quit => return Handled::Closed,
            Action::Show(_) | Action::NextScreen | Action::PreviousScreen => {
                return Handled::Passed;
            }
            Action::Command => return Handled::Not,
            _ => {}
        }
        Handled::Here
    }

    /// Begins to search.
    pub(super) fn begin(&mut self) {
        (self.typing, self.first) = (true, 0);
        self.search.clear();
    }

    /// A character more to search for; none: one less.
    pub(super) fn type_char(&mut self, c: Option<char>) {
        match c {
            Some(c) => self.search.push(c),
            None => self.typing = self.search.pop().is_some(),
        }
        self.first = 0;
    }

    /// Shows all again. Whether something was searched for.
    pub(super) fn end_search(&mut self) -> bool {
        self.typing = false;
        !std::mem::take(&mut self.search).is_empty()
    }

    /// All its lines, or those that have what is searched for, under the titles of their parts.
    pub fn lines(&self, screen: Screen, keymap: &Keymap, size: (u16, u16)) -> Vec<HelpLine> {
        let wanted = self.search.to_lowercase();
        let (width, _) = Self::room(size);
        let room = usize::from(width).saturating_sub(NAME + 1);
        let mut lines = Vec::new();
        for (title, entries) in parts(screen, keymap) {
            let has = |(name, does): &&(String, String)| {
                wanted.is_empty()
                    || name.to_lowercase().contains(&wanted)
                    || does.to_lowercase().contains(&wanted)
            };
            let mut found = entries.iter().filter(has).peekable();
            if found.peek().is_some() {
                lines.push(HelpLine::Title(title));
            }
            for (name, does) in found {
                let mut name = Some(name.clone());
                if name.as_ref().is_some_and(|n| text::width(n) > NAME) {
                    lines.push(HelpLine::Entry(
                        name.take().unwrap_or_default(),
                        String::new(),
                    ));
                }
                for line in text::wrap(does, room) {
                    lines.push(HelpLine::Entry(name.take().unwrap_or_default(), line));
                }
            }
        }
        if lines.is_empty() {
            lines.push(HelpLine::Title(format!("Nothing about {:?}", self.search)));
        }
        lines
    }

    /// The usual keys of the help itself, named in its frame.
    pub fn keys(keymap: &Keymap) -> String {
        format!(
            " {} scroll · {} search · {} close ",
            keymap.short(&[Action::Up, Action::Down]),
            keymap.short(&[Action::Filter]),
            keymap.short(&[Action::Back]),
        )
    }
}

const COMMANDS_TITLE: &str = "Commands";

type Part = (String, Vec<(String, String)>);

fn parts(screen: Screen, keymap: &Keymap) -> [Part; 4] {
    let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    let commands = COMMANDS.iter().map(|c| {
        let name = format!(":{} {}", c.name, c.takes);
        (name.trim_end().to_owned(), c.does.to_owned())
    });
    let keys = BINDINGS
        .iter()
        .map(|b| (keymap.names(b), b.does.to_owned()));
    [
        (
            format!("This view: {}", screen.name()),
            columns::of(screen).iter().map(owned).collect(),
        ),
        ("Keys".to_owned(), keys.collect()),
        (COMMANDS_TITLE.to_owned(), commands.collect()),
        (
            "Words".to_owned(),
            columns::WORDS.iter().map(owned).collect(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u16, u16) = (80, 24);

    #[test]
    fn the_help_scrolls_from_its_first_to_its_last_line() {
        let (map, mut help) = (Keymap::default(), Help::default());
        let lines = help.lines(Screen::Overview, &map, SIZE).len();
        let (_, rows) = Help::room(SIZE);
        assert!(lines > usize::from(rows), "there is something to scroll");
        help.scroll(-1, lines, SIZE);
        assert_eq!(help.first(lines, SIZE), 0);
        help.scroll(isize::MAX, lines, SIZE);
        assert_eq!(help.first(lines, SIZE), lines - usize::from(rows));
        help.scroll(-1, lines, SIZE);
        assert_eq!(help.first(lines, SIZE), lines - usize::from(rows) - 1);
    }

    #[test]
    fn a_search_keeps_matching_entries_under_their_titles() {
        let (map, mut help) = (Keymap::default(), Help::default());
        help.begin();
        "CURSOR".chars().for_each(|c| help.type_char(Some(c)));
        let lines = help.lines(Screen::Histogram, &map, SIZE);
        assert!(lines.contains(&HelpLine::Title("Keys".into())));
        let goto =
            |l: &HelpLine| matches!(l, HelpLine::Entry(name, _) if name.starts_with(":goto"));
        assert!(lines.iter().any(goto));
        let pause = |l: &HelpLine| matches!(l, HelpLine::Entry(name, _) if name.starts_with("p "));
        assert!(!lines.iter().any(pause));
        assert!(help.end_search() && !help.end_search());
        "zzz".chars().for_each(|c| help.type_char(Some(c)));
        let lines = help.lines(Screen::Histogram, &map, SIZE);
        assert_eq!(lines, [HelpLine::Title("Nothing about \"zzz\"".into())]);
    }

    #[test]
    fn no_line_is_wider_than_its_room() {
        let (map, help) = (Keymap::default(), Help::default());
        for screen in Screen::ALL {
            for size in [(60, 16), SIZE, (200, 60)] {
                let (width, _) = Help::room(size);
                for line in help.lines(screen, &map, size) {
                    let HelpLine::Entry(name, does) = line else {
                        continue;
                    };
                    let taken = match does.is_empty() {
                        true => text::width(&name),
                        false => text::width(&name).max(NAME) + 1 + text::width(&does),
                    };
                    assert!(taken <= usize::from(width), "{name} {does}");
                }
            }
        }
    }
}
