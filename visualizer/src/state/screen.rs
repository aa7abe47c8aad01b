//! The views, and the place in them.

use dosmos_proto::{ApId, VarId};

/// Columns of the table of variables beside the name.
pub(crate) const VARIABLE_COLUMNS: usize = 17;
/// Columns of the overview beside the name.
const OVERVIEW_COLUMNS: usize = 11;

/// The screens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Screen {
    /// Groups, processes, event managers.
    #[default]
    Overview,
    /// The table of variables.
    Variables,
    /// Accesses over time by origin.
    Histogram,
    /// What was done to a variable, by whom.
    VariableHistory,
    /// What a process did, to what.
    ProcessHistory,
    /// What is wrong, what it costs, what to change.
    Findings,
    /// Who uses what, and in which group each stands: today and as proposed.
    Groups,
    /// The monitoring itself: lag, losses, sizes, what it costs.
    Health,
}

impl Screen {
    /// All of them, in the order of their keys.
    pub const ALL: [Self; 8] = [
        Self::Overview,
        Self::Variables,
        Self::Histogram,
        Self::VariableHistory,
        Self::ProcessHistory,
        Self::Findings,
        Self::Groups,
        Self::Health,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Variables => "Variables",
            Self::Histogram => "Histogram",
            Self::VariableHistory => "Variable history",
            Self::ProcessHistory => "Process history",
            Self::Findings => "Findings",
            Self::Groups => "Groups",
            Self::Health => "Health",
        }
    }

    /// A shorter one, which is also what commands call it.
    pub fn short(self) -> &'static str {
        match self {
            Self::Variables => "Vars",
            Self::VariableHistory => "Variable",
            Self::ProcessHistory => "Process",
            other => other.name(),
        }
    }

    /// Its time axis shows columns of time.
    pub fn is_chart(self) -> bool {
        matches!(
            self,
            Self::Histogram | Self::VariableHistory | Self::ProcessHistory
        )
    }

    /// Columns that its table can be scrolled over.
    pub(super) fn columns(self) -> usize {
        match self {
            Self::Overview => OVERVIEW_COLUMNS,
            Self::Variables => VARIABLE_COLUMNS,
            _ => 0,
        }
    }

    /// Entries that a page key moves by on a terminal of this height: what fits, less one.
    pub(super) fn page(self, height: u16) -> isize {
        let rows = match self {
            Self::VariableHistory | Self::ProcessHistory => height / 3,
            _ => height,
        };
        isize::try_from(rows.saturating_sub(8).max(2)).unwrap_or(2) - 1
    }

    /// The one `by` further round.
    pub(super) fn step(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|s| *s == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// A place: the view and what it shows. Esc goes back to the place before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The screen.
    pub screen: Screen,
    /// The variable of histogram and history; none: all (history: the selected one of the table).
    pub variable: Option<VarId>,
    /// The object of that variable; none: all.
    pub object: Option<u32>,
    /// The process of the process history; none: the first one.
    pub process: Option<ApId>,
}

impl Place {
    /// The same in another view.
    pub(super) fn on(self, screen: Screen) -> Self {
        Self { screen, ..self }
    }

    /// The history of a process.
    pub(super) fn process_history(self, ap: ApId) -> Self {
        Self {
            process: Some(ap),
            ..self.on(Screen::ProcessHistory)
        }
    }

    /// The history of a variable, or of one of its objects.
    pub(super) fn variable_history(self, variable: VarId, object: Option<u32>) -> Self {
        Self {
            variable: Some(variable),
            object,
            ..self.on(Screen::VariableHistory)
        }
    }
}
