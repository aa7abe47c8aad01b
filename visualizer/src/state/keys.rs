//! Keys to actions. The one table behind both what a key does and what the help says it does.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::Screen;

/// What a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the table below says what each does
pub enum Action {
    Show(Screen),
    NextScreen,
    PreviousScreen,
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Enter,
    Back,
    ZoomIn,
    ZoomOut,
    Whole,
    Earlier,
    Later,
    Follow,
    Pause,
    NextTarget,
    PreviousTarget,
    NextObject,
    PreviousObject,
    Reads,
    Writes,
    Acquires,
    Sort,
    Reverse,
    Filter,
    Command,
    Cursor,
    CursorLeft,
    CursorRight,
    CursorFarLeft,
    CursorFarRight,
    Help,
    Quit,
}

/// A group of keys that belong together, as the help shows them.
#[derive(Debug)]
pub struct Binding {
    /// How the keys are called.
    pub keys: &'static str,
    /// What they do.
    pub does: &'static str,
    /// Each key with its action.
    actions: &'static [(KeyCode, Action)],
}

impl Binding {
    /// Each of the keys.
    pub fn codes(&self) -> impl Iterator<Item = KeyCode> {
        self.actions.iter().map(|(code, _)| *code)
    }
}

const fn c(key: char) -> KeyCode {
    KeyCode::Char(key)
}

/// Every key there is.
pub const BINDINGS: &[Binding] = &[
    Binding {
        keys: "1 … 8, Tab",
        does: "open a view; the next view",
        actions: &[
            (c('1'), Action::Show(Screen::Overview)),
            (c('2'), Action::Show(Screen::Variables)),
            (c('3'), Action::Show(Screen::Histogram)),
            (c('4'), Action::Show(Screen::VariableHistory)),
            (c('5'), Action::Show(Screen::ProcessHistory)),
            (c('6'), Action::Show(Screen::Findings)),
            (c('7'), Action::Show(Screen::Groups)),
            (c('8'), Action::Show(Screen::Health)),
            (KeyCode::Tab, Action::NextScreen),
            (KeyCode::BackTab, Action::PreviousScreen),
        ],
    },
    Binding {
        keys: "↑ ↓ (k j), PgUp PgDn",
        does: "select, scroll",
        actions: &[
            (KeyCode::Up, Action::Up),
            (c('k'), Action::Up),
            (KeyCode::Down, Action::Down),
            (c('j'), Action::Down),
            (KeyCode::PageUp, Action::PageUp),
            (KeyCode::PageDown, Action::PageDown),
        ],
    },
    Binding {
        keys: "g G (Home End)",
        does: "first, last entry",
        actions: &[
            (c('g'), Action::Top),
            (KeyCode::Home, Action::Top),
            (c('G'), Action::Bottom),
            (KeyCode::End, Action::Bottom),
        ],
    },
    Binding {
        keys: "Enter",
        does: "details; fold a group; 7: proposed groups",
        actions: &[(KeyCode::Enter, Action::Enter)],
    },
    Binding {
        keys: "Esc",
        does: "back; remove cursor or filter",
        actions: &[
            (KeyCode::Esc, Action::Back),
            (KeyCode::Backspace, Action::Back),
        ],
    },
    Binding {
        keys: "+ -",
        does: "zoom in, out (in time); at the cursor if there is one",
        actions: &[
            (c('+'), Action::ZoomIn),
            (c('='), Action::ZoomIn),
            (c('-'), Action::ZoomOut),
            (c('_'), Action::ZoomOut),
        ],
    },
    Binding {
        keys: "← → (h l)",
        does: "earlier, later (live: f returns to the end); 7: columns",
        actions: &[
            (KeyCode::Left, Action::Earlier),
            (c('h'), Action::Earlier),
            (KeyCode::Right, Action::Later),
            (c('l'), Action::Later),
        ],
    },
    Binding {
        keys: "0",
        does: "the whole run",
        actions: &[(c('0'), Action::Whole)],
    },
    Binding {
        keys: "f",
        does: "follow the end of a running program",
        actions: &[(c('f'), Action::Follow)],
    },
    Binding {
        keys: "p, Space",
        does: "pause the display; again: continue",
        actions: &[(c('p'), Action::Pause), (c(' '), Action::Pause)],
    },
    Binding {
        keys: "v V",
        does: "next, previous variable (5: process)",
        actions: &[
            (c('v'), Action::NextTarget),
            (c('V'), Action::PreviousTarget),
        ],
    },
    Binding {
        keys: "o O",
        does: "next, previous object of the variable (3, 4)",
        actions: &[
            (c('o'), Action::NextObject),
            (c('O'), Action::PreviousObject),
        ],
    },
    Binding {
        keys: "r w a",
        does: "only reads, writes, acquires; again: all (3 to 5)",
        actions: &[
            (c('r'), Action::Reads),
            (c('w'), Action::Writes),
            (c('a'), Action::Acquires),
        ],
    },
    Binding {
        keys: "s S",
        does: "sort by the next column, reverse (2)",
        actions: &[(c('s'), Action::Sort), (c('S'), Action::Reverse)],
    },
    Binding {
        keys: "c, < > { }",
        does: "time cursor; move it by one column, by ten",
        actions: &[
            (c('c'), Action::Cursor),
            (c('<'), Action::CursorLeft),
            (c(','), Action::CursorLeft),
            (c('>'), Action::CursorRight),
            (c('.'), Action::CursorRight),
            (c('{'), Action::CursorFarLeft),
            (c('}'), Action::CursorFarRight),
        ],
    },
    Binding {
        keys: "/",
        does: "filter names by a regular expression; ! negates it",
        actions: &[(c('/'), Action::Filter)],
    },
    Binding {
        keys: ":",
        does: "command; Tab completes, :help lists all",
        actions: &[(c(':'), Action::Command)],
    },
    Binding {
        keys: "?",
        does: "this help",
        actions: &[(c('?'), Action::Help)],
    },
    Binding {
        keys: "q, Ctrl-C",
        does: "quit",
        actions: &[(c('q'), Action::Quit)],
    },
];

/// What `key` asks for; nothing if it is released or means nothing.
pub fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == c('c')).then_some(Action::Quit);
    }
    let bound = BINDINGS.iter().flat_map(|b| b.actions);
    bound
        .into_iter()
        .find_map(|(code, action)| (*code == key.code).then_some(*action))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        let all: Vec<KeyCode> = BINDINGS
            .iter()
            .flat_map(|b| b.actions.iter().map(|(code, _)| *code))
            .collect();
        for (i, code) in all.iter().enumerate() {
            assert!(!all[..i].contains(code), "{code:?} is bound twice");
        }
    }

    #[test]
    fn control_c_quits_and_a_released_key_does_nothing() {
        let key = KeyEvent::new(c('c'), KeyModifiers::CONTROL);
        assert_eq!(action(key), Some(Action::Quit));
        let mut key = KeyEvent::new(c('q'), KeyModifiers::NONE);
        assert_eq!(action(key), Some(Action::Quit));
        key.kind = KeyEventKind::Release;
        assert_eq!(action(key), None);
        assert_eq!(action(KeyEvent::new(c('q'), KeyModifiers::CONTROL)), None);
    }
}
