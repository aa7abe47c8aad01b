//! What the table is sorted by, and which names are in it.

use std::cmp::Ordering;

use dosmos_proto::VarId;
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;
use crate::query::{BadPattern, UnknownColumn};

/// What the table is sorted by. Names ascend, figures descend; reversed, the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)] // the columns' names
pub enum SortKey {
    Name,
    /// Time of all accesses together: what costs most comes first.
    #[default]
    Time,
    Objects,
    Copies,
    Reads,
    ReadsCopies,
    Writes,
    Acquires,
    Delayed,
    /// Mean wait of an acquire.
    Wait,
    /// Mean time from grant to release.
    Hold,
    /// Share of the accesses that left their group.
    Inter,
}

impl SortKey {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 12] = [
        Self::Name,
        Self::Time,
        Self::Objects,
        Self::Copies,
        Self::Reads,
        Self::ReadsCopies,
        Self::Writes,
        Self::Acquires,
        Self::Delayed,
        Self::Wait,
        Self::Hold,
        Self::Inter,
    ];

    /// What it is called in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Time => "time",
            Self::Objects => "objects",
            Self::Copies => "copies",
            Self::Reads => "reads",
            Self::ReadsCopies => "cached",
            Self::Writes => "writes",
            Self::Acquires => "acquires",
            Self::Delayed => "delayed",
            Self::Wait => "wait",
            Self::Hold => "hold",
            Self::Inter => "inter",
        }
    }

    /// The next column's.
    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|k| *k == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// Whether the merged key of a split variable is the sum of the parts' keys (and not a ratio of sums).
    pub fn adds_up(self) -> bool {
        self.at_most_the_sum() && self != Self::Copies
    }

    /// Whether the merged key of a split variable is at most the sum of the parts' keys. Copies are the larger of two sums.
    pub fn at_most_the_sum(self) -> bool {
        !matches!(
            self,
            Self::Name | Self::Objects | Self::Wait | Self::Hold | Self::Inter
        )
    }
}

impl std::str::FromStr for SortKey {
    type Err = UnknownColumn;
    fn from_str(text: &str) -> Result<Self, UnknownColumn> {
        let known = Self::ALL.into_iter();
        known
            .clone()
            .find(|k| k.name() == text)
            .ok_or_else(|| UnknownColumn {
                name: text.to_owned(),
                known: known.map(Self::name).collect(),
            })
    }
}

/// Which names a filter lets through. The patterns are those of [`Pattern`], but one without `*`, `?` and `re:` is looked for
/// anywhere in the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    /// The pattern.
    pub text: String,
    /// Names that it does not match.
    pub negate: bool,
}

impl NamePattern {
    /// As a user types it: `!` in front negates. Empty: none.
    ///
    /// # Errors
    /// If what follows `re:` is not a regular expression; says why.
    pub fn parse(typed: &str) -> Result<Option<Self>, BadPattern> {
        let negate = typed.starts_with('!');
        let text = typed.strip_prefix('!').unwrap_or(typed);
        if text.is_empty() {
            return Ok(None);
        }
        let pattern = Self {
            text: text.to_owned(),
            negate,
        };
        Pattern::parse(text)?;
        Ok(Some(pattern))
    }

    /// As a user would type it.
    pub fn typed(&self) -> String {
        format!("{}{}", if self.negate { "!" } else { "" }, self.text)
    }

    /// Whether it lets a name through. One that makes no sense lets nothing through.
    pub fn matcher(&self) -> impl Fn(&str) -> bool + use<> {
        let compiled = self.compile().ok();
        move |name| compiled.as_ref().is_some_and(|passes| passes(name))
    }

    /// The names that are exactly this.
    pub fn exactly(name: &str) -> Self {
        Self {
            text: format!("re:^{}$", regex_lite::escape(name)),
            negate: false,
        }
    }

    /// Whether a name is let through.
    pub(super) fn compile(&self) -> Result<impl Fn(&str) -> bool + use<>, BadPattern> {
        let pattern = Pattern::parse(&self.text)?;
        let negate = self.negate;
        Ok(move |name: &str| {
            let matches = match &pattern {
                Pattern::Glob(part) if !pattern.is_general() => name.contains(part.as_str()),
                pattern => pattern.matches(name),
            };
            matches != negate
        })
    }
}

/// What comes first in the table: by key, then by name, then by number.
pub fn order(
    sort: SortKey,
    reverse: bool,
    a: (f64, &str, VarId),
    b: (f64, &str, VarId),
) -> Ordering {
    let forward = match sort {
        SortKey::Name => Ordering::Equal,
        _ => b.0.total_cmp(&a.0),
    };
    let forward = forward
        .then_with(|| a.1.cmp(b.1))
        .then_with(|| a.2.cmp(&b.2));
    if reverse { forward.reverse() } else { forward }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_typed_with_an_exclamation_mark_to_negate() {
        let pattern = NamePattern::parse("!^grid").unwrap().unwrap();
        assert!(pattern.negate);
        assert_eq!(pattern.typed(), "!^grid");
        assert_eq!(NamePattern::parse("").unwrap(), None);
        assert_eq!(NamePattern::parse("!").unwrap(), None);
        let error = NamePattern::parse("re:a(").unwrap_err();
        assert!(error.to_string().contains("a("), "{error}");
    }

    #[test]
    fn filters_are_patterns_that_words_are_looked_for_with() {
        let names = ["grid", "old/grid[1]", "force"];
        for (typed, through) in [
            ("grid", vec!["grid", "old/grid[1]"]),
            ("grid*", vec!["grid"]),
            ("*grid*", vec!["grid", "old/grid[1]"]),
            ("!*d", vec!["old/grid[1]", "force"]),
            ("[1]", vec!["old/grid[1]"]),
            ("re:^g|f", vec!["grid", "force"]),
            ("^g", vec![]),
        ] {
            let passes = NamePattern::parse(typed).unwrap().unwrap().matcher();
            let those: Vec<&str> = names.into_iter().filter(|n| passes(n)).collect();
            assert_eq!(those, through, "{typed}");
        }
        let exactly = NamePattern::exactly("grid").matcher();
        assert_eq!(names.map(exactly), [true, false, false]);
    }

    #[test]
    fn columns_have_the_names_that_commands_use() {
        for key in SortKey::ALL {
            assert_eq!(key.name().parse(), Ok(key));
        }
        let error = "nonsense".parse::<SortKey>().unwrap_err();
        assert!(error.to_string().contains("inter"), "{error}");
    }

    #[test]
    fn figures_descend_and_equal_ones_go_by_name() {
        let (a, b) = ((1.0, "a", VarId(1)), (2.0, "b", VarId(2)));
        assert_eq!(order(SortKey::Writes, false, a, b), Ordering::Greater);
        assert_eq!(order(SortKey::Writes, true, a, b), Ordering::Less);
        assert_eq!(order(SortKey::Name, false, a, b), Ordering::Less);
        let c = (1.0, "c", VarId(0));
        assert_eq!(order(SortKey::Writes, false, a, c), Ordering::Less);
    }
}
