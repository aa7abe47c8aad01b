//! What is recorded: `off | counters | events`, sampling, and filters by variable, operation and
//! process. Set by the cluster file, changeable while running.

use serde::{Deserialize, Serialize};

use crate::record::Op;

/// How much is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing.
    Off,
    /// Only counters per process: no records, no meta-objects.
    Counters,
    /// Records of the selected accesses.
    #[default]
    Events,
}

/// What is recorded. An empty list means "all"; names may be glob patterns (`*`, `?`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// How much.
    pub mode: Mode,
    /// Every n-th access of each kind is recorded; 1 = all.
    pub sample_one_in: u32,
    /// Names of variables.
    pub variables: Vec<String>,
    /// Operations.
    pub ops: Vec<Op>,
    /// Names of application processes.
    pub processes: Vec<String>,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            mode: Mode::Events,
            sample_one_in: 1,
            variables: Vec::new(),
            ops: Vec::new(),
            processes: Vec::new(),
        }
    }
}

impl Selection {
    /// Whether variables called `name` are selected.
    pub fn variable(&self, name: &str) -> bool {
        matches_any(&self.variables, name)
    }

    /// Whether the application process called `name` is selected.
    pub fn process(&self, name: &str) -> bool {
        matches_any(&self.processes, name)
    }

    /// Whether operations of this kind are selected.
    pub fn op(&self, op: Op) -> bool {
        self.ops.is_empty() || self.ops.contains(&op)
    }

    /// Fraction of the selected accesses that is recorded.
    pub fn sampling(&self) -> f64 {
        1.0 / f64::from(self.sample_one_in.max(1))
    }
}

fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|p| glob_match::glob_match(p, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_names() {
        let selection = Selection {
            variables: vec!["grid*".into(), "n".into()],
            ops: vec![Op::Read],
            ..Selection::default()
        };
        assert!(selection.variable("grid.halo") && selection.variable("n"));
        assert!(!selection.variable("nn"));
        assert!(selection.process("ap0"), "no pattern selects all");
        assert!(selection.op(Op::Read) && !selection.op(Op::Write));
    }
}
