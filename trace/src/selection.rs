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

fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|p| glob(p, name))
}

/// Whether `pattern` matches the whole of `name`: `*` stands for any text, also none and also with `/`
/// in it; `?` for any one character; everything else, brackets too, for itself. Takes at most
/// `pattern × name` steps.
pub fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on if the last `*` has to take one more character.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match retry {
                Some((after, taken)) => {
                    retry = Some((after, taken + 1));
                    (p, n) = (after, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        for (pattern, yes, no) in [
            ("", vec![""], vec!["a"]),
            ("a", vec!["a"], vec!["", "aa", "b"]),
            ("*", vec!["", "a", "ocean/h[3]"], vec![]),
            ("a*b", vec!["ab", "aab", "abab"], vec!["a", "abc", "ba"]),
            ("*a?", vec!["ab", "aaé"], vec!["a", "b", "abc"]),
            ("h[3]", vec!["h[3]"], vec!["h3", "h"]),
            ("**x*", vec!["x", "axb"], vec!["", "ab"]),
        ] {
            for name in yes {
                assert!(glob(pattern, name), "{pattern} {name}");
            }
            for name in no {
                assert!(!glob(pattern, name), "{pattern} {name}");
            }
        }
        assert!(!glob(&"*a".repeat(200), &"a".repeat(199)), "and in no time");
    }

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
