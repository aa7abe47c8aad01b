//! What is recorded: `off | counters | events`, sampling, and filters by variable, operation and
//! process. Set by the cluster file, changeable while running.

use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;
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

/// What is recorded. An empty list means "all"; names may be patterns ([`Pattern`]).
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
        chosen(&self.variables, name)
    }

    /// Whether the application process called `name` is selected.
    pub fn process(&self, name: &str) -> bool {
        chosen(&self.processes, name)
    }

    /// Whether operations of this kind are selected.
    pub fn op(&self, op: Op) -> bool {
        self.ops.is_empty() || self.ops.contains(&op)
    }

    /// What it leaves out, for people; none if every access is recorded (or, of those sampled, one in N).
    pub fn leaves_out(&self) -> Option<String> {
        match self.mode {
            Mode::Off => return Some("the mode is off".to_owned()),
            Mode::Counters => return Some("the mode is counters".to_owned()),
            Mode::Events => {}
        }
        let ops: Vec<String> = self.ops.iter().map(ToString::to_string).collect();
        let lists = [
            ("variables", &self.variables),
            ("operations", &ops),
            ("processes", &self.processes),
        ];
        let only = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let only: Vec<String> = only
            .map(|(what, list)| format!("only {what} {}", list.join(", ")))
            .collect();
        (!only.is_empty()).then(|| only.join("; "))
    }

    /// Fraction of the selected accesses that is recorded.
    pub fn sampling(&self) -> f64 {
        1.0 / f64::from(self.sample_one_in.max(1))
    }
}

/// Whether one of `patterns` matches `name`, or there is none. One that is not valid matches nothing.
pub fn chosen(patterns: &[String], name: &str) -> bool {
    let matches = |p: &String| Pattern::parse(p).is_ok_and(|p| p.matches(name));
    patterns.is_empty() || patterns.iter().any(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_says_what_it_leaves_out() {
        assert_eq!(Selection::default().leaves_out(), None);
        let some = Selection {
            variables: vec!["grid*".into()],
            ops: vec![Op::Read, Op::Write],
            ..Selection::default()
        };
        let said = some.leaves_out().unwrap();
        assert_eq!(said, "only variables grid*; only operations read, write");
    }

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
