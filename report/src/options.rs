//! What is on the page.

use dosmos_client::Launch;

/// What to put on the page.
#[derive(Clone, Debug)]
pub struct Options {
    /// What was run, as the page's title.
    pub title: String,
    /// Show diagrams of this many variables: those of findings first, then the most accessed.
    pub variables: usize,
    /// Show the history of this many processes: those of findings first.
    pub processes: usize,
    /// Accesses in one history diagram; more cannot be told apart.
    pub accesses: u64,
    /// How the run was started and how it ended.
    pub launch: Launch,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: "A run".to_owned(),
            variables: 4,
            processes: 2,
            accesses: 120,
            launch: Launch::default(),
        }
    }
}
