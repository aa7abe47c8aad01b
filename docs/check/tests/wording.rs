//! Phrases that readers stumble over are not used: a list of patterns, each with what to write instead.
//!
//! A check of this kind finds habits, not bad prose. Reading a page aloud is not replaced by it.

use dosmos_documents::texts_for_people;
use regex::Regex;

/// How many are left: exactly these, so that the number is lowered in the change that lowers it.
const LEFT: usize = 10;

/// Here the rules themselves stand.
const THIS: &str = "docs/check/tests/wording.rs";

struct Rules(Vec<(Regex, &'static str)>);

impl Rules {
    fn new() -> Self {
        let counted = "bytes|records?|rows?|ns|µs|messages?|one|readers?|keys?|lanes?|entry|entries|words?|steps?|streams?|\
             managers?|barriers?|times|requests?|references|cycles?|redraws|rounds?|lines?|columns?|files?|chunks?|points?|\
             operations|rate|randomly";
        let each = "record|object|group|process|version|second|host|run|line|variable|chunk|store|column|side|kind|peer|batch|node|\
             phase|file|row|access|message|database|barrier|commit|element|bucket|non-zero|thread|level";
        let rules = [
            (
                format!(r"(?i)\b({counted}) an? ({each})\b"),
                "per ('bytes per record')",
            ),
            (
                r"(?i)(^|[^a-z])(which|that|it|what|this|they|these|those|\}|one|none|[a-z]+s) (is|are) no [a-z]+".to_owned(),
                "is not a",
            ),
            (r"(?i)\bso many\b".to_owned(), "the number of, at most N, one in N"),
            (r"(?i)\bwhat is lacking\b".to_owned(), "what is missing"),
            (r"(?i)\blittle of\b".to_owned(), "a smoke test; few"),
            (r"(?i)\bmatter of\b".to_owned(), "say what it depends on"),
            (r"(?i)\bfrom so far\b|\bonly so far\b".to_owned(), "filter by origin"),
            (
                r"(?i)\b(one|two|three|[0-9]+) at least\b".to_owned(),
                "at least N",
            ),
            (
                r"(?i)\ba (band|byte|cluster|column|group|line|lock|queue|row|total) each\b".to_owned(),
                "one per",
            ),
            (
                r#"(?i)\b(reads?|those|accesses) on (a copy|copies)\b|"on copies""#.to_owned(),
                "cached reads",
            ),
            (r"(?i)\blately\b".to_owned(), "recently"),
            (r"(?i)\blets? (none|no [a-z]+) through\b".to_owned(), "matches"),
            (
                r"//.*[a-z], else (a|all|at|by|it|of|the|those|to|where)\b".to_owned(),
                "otherwise",
            ),
            (
                r#""(GIVEN|TAKEN|UNSAVED|SUBJECT|closer)""#.to_owned(),
                "the name in docs/glossary.md",
            ),
            (
                r"(?i)\b(patience|sieve|sighting|givers|worth_saying|oncopy)\b|GIVEN/TAKEN".to_owned(),
                "the name in docs/glossary.md",
            ),
        ];
        let compile =
            |(rule, instead): (String, _)| (Regex::new(&rule).expect("a pattern"), instead);
        Self(rules.into_iter().map(compile).collect())
    }

    /// What to write instead of a phrase in `line`; none if all is well.
    fn instead_of(&self, line: &str) -> Option<&'static str> {
        let mut broken = self.0.iter().filter(|(rule, _)| rule.is_match(line));
        broken.next().map(|(_, instead)| *instead)
    }
}

#[test]
fn phrases_are_those_of_the_field() {
    let rules = Rules::new();
    let mut found = Vec::new();
    for text in texts_for_people().into_iter().filter(|t| t.path != THIS) {
        for (number, line) in text.numbered_lines() {
            if let Some(instead) = rules.instead_of(line) {
                found.push(format!(
                    "{}:{number}: {} (write: {instead})",
                    text.path,
                    line.trim()
                ));
            }
        }
    }
    assert!(
        found.len() == LEFT,
        "{} phrases, {LEFT} are known:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn the_rules_tell_dialect_from_english() {
    let rules = Rules::new();
    let dialect = [
        "bytes a record, encoded",
        "one a process that takes part",
        "{text:?} is no kind of finding",
        "work in a section that is no work",
        "Only accesses from so far: local, intra, inter",
        "Keep one record in so many",
        "Little of everything, to see that it works",
        "give 3 at least",
        "a queue each process",
        "{} of the local ones are reads on copies",
        "/// The processes if they are few, else the groups",
    ];
    for line in dialect {
        assert!(rules.instead_of(line).is_some(), "{line}");
    }
    let fine = [
        "8 bytes per record",
        "there is no process of this name",
        "why there is no export",
        "accesses so far",
        "a row of a table",
        "the time of a run",
        "at least 3 of them",
        "let x = if a { b } else { the_other };",
    ];
    for line in fine {
        assert!(rules.instead_of(line).is_none(), "{line}");
    }
}
