//! Patterns of names, the same everywhere: globs, and regular expressions behind `re:`.

use regex_lite::{Regex, RegexBuilder};

use crate::query::BadPattern;

/// What stands before a regular expression.
const REGEX: &str = "re:";

/// Memory a compiled pattern may take, in bytes.
const BYTES: usize = 1 << 20;

/// Names of variables or processes, as a user writes them: a glob for whole names (`*` for any text, `?` for any one character,
/// everything else for itself), or `re:` and a regular expression that matches somewhere in the name.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// A glob.
    Glob(String),
    /// A regular expression.
    Regex(Regex),
}

impl Pattern {
    /// Reads one.
    ///
    /// # Errors
    /// If what follows `re:` is not a regular expression; says why.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        match text.strip_prefix(REGEX) {
            Some(regex) => Ok(Self::Regex(compile(regex)?)),
            None => Ok(Self::Glob(text.to_owned())),
        }
    }

    /// Whether it can match more than the one name that it is.
    pub fn is_general(&self) -> bool {
        match self {
            Self::Glob(glob) => glob.contains(['*', '?']),
            Self::Regex(_) => true,
        }
    }

    /// Whether it matches `name`.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Glob(pattern) => glob(pattern, name),
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

/// A regular expression of limited size.
fn compile(text: &str) -> Result<Regex, BadPattern> {
    let built = RegexBuilder::new(text).size_limit(BYTES).build();
    built.map_err(|source| BadPattern {
        text: text.to_owned(),
        source,
    })
}

/// Whether `pattern` matches the whole of `name`: `*` stands for any text, also none and also with `/`
/// in it; `?` for any one character; everything else, brackets too, for itself. Takes at most
/// `pattern × name` steps.
fn glob(pattern: &str, name: &str) -> bool {
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
    fn a_regular_expression_is_marked_as_one_and_matches_anywhere() {
        let pattern = Pattern::parse("re:^h[0-3]").unwrap();
        assert!(pattern.matches("h3/north") && !pattern.matches("h4") && pattern.is_general());
        let names = ["h[0]", "^h[0-3]"];
        let glob = Pattern::parse("^h[0-3]").unwrap();
        assert_eq!(names.map(|n| glob.matches(n)), [false, true]);
        assert!(!glob.is_general());
        let error = Pattern::parse("re:a(").unwrap_err().to_string();
        assert!(
            error.contains("\"a(\" is not a regular expression"),
            "{error}"
        );
    }
}
