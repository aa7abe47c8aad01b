//! Every key there is: the one table behind what a key does, what the help and the footer say of it, and the table of the
//! guide.

use crossterm::event::KeyCode;

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
    Phases,
    Path,
    Filter,
    Command,
    Cursor,
    CursorLeft,
    CursorRight,
    CursorFarLeft,
    CursorFarRight,
    NextEvent,
    PreviousEvent,
    CopyPatch,
    Runs,
    Help,
    Quit,
}

impl Action {
    /// How far it moves in a list of which `page` lines are seen, if it moves in lists.
    pub(super) fn lines(self, page: isize) -> Option<isize> {
        Some(match self {
            Self::Up => -1,
            Self::Down => 1,
            Self::PageUp => -page,
            Self::PageDown => page,
            Self::Top => isize::MIN,
            Self::Bottom => isize::MAX,
            _ => return None,
        })
    }
}

/// One action with its name in the settings and the keys it has if the settings do not say otherwise.
#[derive(Debug)]
pub struct Bound {
    /// What it does.
    pub action: Action,
    /// What the settings call it.
    pub name: &'static str,
    /// Its keys.
    pub keys: &'static [KeyCode],
}

/// Actions that belong together.
#[derive(Debug)]
pub struct Binding {
    /// What they do.
    pub does: &'static str,
    /// Each of them.
    pub actions: &'static [Bound],
}

const fn c(key: char) -> KeyCode {
    KeyCode::Char(key)
}

const fn bound(action: Action, name: &'static str, keys: &'static [KeyCode]) -> Bound {
    Bound { action, name, keys }
}

/// Every key there is.
pub const BINDINGS: &[Binding] = &[
    Binding {
        does: "open a view",
        actions: &[
            bound(Action::Show(Screen::Overview), "overview", &[c('1')]),
            bound(Action::Show(Screen::Variables), "variables", &[c('2')]),
            bound(Action::Show(Screen::Histogram), "histogram", &[c('3')]),
            bound(
                Action::Show(Screen::VariableHistory),
                "variable-history",
                &[c('4')],
            ),
            bound(
                Action::Show(Screen::ProcessHistory),
                "process-history",
                &[c('5')],
            ),
            bound(Action::Show(Screen::Findings), "findings", &[c('6')]),
            bound(Action::Show(Screen::Groups), "groups", &[c('7')]),
            bound(Action::Show(Screen::Health), "health", &[c('8')]),
        ],
    },
    Binding {
        does: "next, previous view",
        actions: &[
            bound(Action::NextScreen, "next-view", &[KeyCode::Tab]),
            bound(Action::PreviousScreen, "previous-view", &[KeyCode::BackTab]),
        ],
    },
    Binding {
        does: "select, scroll",
        actions: &[
            bound(Action::Up, "up", &[KeyCode::Up, c('k')]),
            bound(Action::Down, "down", &[KeyCode::Down, c('j')]),
            bound(Action::PageUp, "page-up", &[KeyCode::PageUp]),
            bound(Action::PageDown, "page-down", &[KeyCode::PageDown]),
        ],
    },
    Binding {
        does: "first, last entry",
        actions: &[
            bound(Action::Top, "first", &[c('g'), KeyCode::Home]),
            bound(Action::Bottom, "last", &[c('G'), KeyCode::End]),
        ],
    },
    Binding {
        does: "details: variable, histogram, history, process, object; 1: fold a group; 6: the evidence, or what was waited for; 7: proposed groups",
        actions: &[bound(Action::Enter, "details", &[KeyCode::Enter])],
    },
    Binding {
        does: "remove the cursor, go back, remove the filter",
        actions: &[bound(
            Action::Back,
            "back",
            &[KeyCode::Esc, KeyCode::Backspace],
        )],
    },
    Binding {
        does: "zoom in, out (in time); at the cursor if there is one",
        actions: &[
            bound(Action::ZoomIn, "zoom-in", &[c('+'), c('=')]),
            bound(Action::ZoomOut, "zoom-out", &[c('-'), c('_')]),
        ],
    },
    Binding {
        does: "charts: earlier, later (a live run is rewound on the screen); tables: other columns",
        actions: &[
            bound(Action::Earlier, "earlier", &[KeyCode::Left, c('h')]),
            bound(Action::Later, "later", &[KeyCode::Right, c('l')]),
        ],
    },
    Binding {
        does: "show the whole run",
        actions: &[bound(Action::Whole, "whole", &[c('0')])],
    },
    Binding {
        does: "follow the end of a running program again",
        actions: &[bound(Action::Follow, "follow", &[c('f')])],
    },
    Binding {
        does: "pause the display (keys still work); again: continue",
        actions: &[bound(Action::Pause, "pause", &[c('p'), c(' ')])],
    },
    Binding {
        does: "next, previous variable (5: process), in the order of the table",
        actions: &[
            bound(Action::NextTarget, "next-target", &[c('v')]),
            bound(Action::PreviousTarget, "previous-target", &[c('V')]),
        ],
    },
    Binding {
        does: "next, previous object of the variable (3, 4)",
        actions: &[
            bound(Action::NextObject, "next-object", &[c('o')]),
            bound(Action::PreviousObject, "previous-object", &[c('O')]),
        ],
    },
    Binding {
        does: "show only reads, writes, acquires; again: all (3 to 5)",
        actions: &[
            bound(Action::Reads, "reads", &[c('r')]),
            bound(Action::Writes, "writes", &[c('w')]),
            bound(Action::Acquires, "acquires", &[c('a')]),
        ],
    },
    Binding {
        does: "sort by the next column, reverse (2)",
        actions: &[
            bound(Action::Sort, "sort", &[c('s')]),
            bound(Action::Reverse, "reverse", &[c('S')]),
        ],
    },
    Binding {
        does: "the efficiency of each phase below the processes; again: not (1)",
        actions: &[bound(Action::Phases, "phases", &[c('e')])],
    },
    Binding {
        does: "the critical path and who was waited for why, in place of the findings; again: the findings (6)",
        actions: &[bound(Action::Path, "path", &[c('d')])],
    },
    Binding {
        does: "time cursor",
        actions: &[bound(Action::Cursor, "cursor", &[c('c')])],
    },
    Binding {
        does: "move the cursor by one column, by ten",
        actions: &[
            bound(Action::CursorLeft, "cursor-left", &[c('<'), c(',')]),
            bound(Action::CursorRight, "cursor-right", &[c('>'), c('.')]),
            bound(Action::CursorFarLeft, "cursor-far-left", &[c('{')]),
            bound(Action::CursorFarRight, "cursor-far-right", &[c('}')]),
        ],
    },
    Binding {
        does: "next, previous event of the lane (4, 5); what it was stands below",
        actions: &[
            bound(Action::NextEvent, "next-event", &[c('n')]),
            bound(Action::PreviousEvent, "previous-event", &[c('N')]),
        ],
    },
    Binding {
        does: "copy the patch of the finding to the clipboard of the terminal (6)",
        actions: &[bound(Action::CopyPatch, "copy-patch", &[c('y')])],
    },
    Binding {
        does: "list the runs of the folder; details opens the selected one in this terminal",
        actions: &[bound(Action::Runs, "runs", &[c('R')])],
    },
    Binding {
        does: "filter this view by name; applies while you type, Enter keeps it, Esc restores the old one",
        actions: &[bound(Action::Filter, "filter", &[c('/')])],
    },
    Binding {
        does: "command; Tab completes",
        actions: &[bound(Action::Command, "command", &[c(':')])],
    },
    Binding {
        does: "help: scroll with the arrows, search with the key of the filter",
        actions: &[bound(Action::Help, "help", &[c('?')])],
    },
    Binding {
        does: "quit; so does Ctrl-C, always",
        actions: &[bound(Action::Quit, "quit", &[c('q')])],
    },
];

/// Every action with its name and keys.
pub fn all() -> impl Iterator<Item = &'static Bound> {
    BINDINGS.iter().flat_map(|binding| binding.actions)
}
