//! Nothing cites what a reader of the repository cannot open: section signs, design notes kept elsewhere, papers by number.

use dosmos_documents::explanations;
use regex::Regex;

/// Here the rules themselves stand.
const THIS: &str = "docs/check/tests/citations.rs";

/// What cannot be followed, and what to write instead.
struct Rules(Vec<(Regex, &'static str)>);

impl Rules {
    fn new() -> Self {
        let rules = [
            (
                r"§",
                "docs/design/FILE.md#heading, or 'section' of a named source",
            ),
            (
                r"\b(DESIGN|MODELS|DELEGATION)\b([^_(]|$)",
                "docs/design/FILE.md#heading",
            ),
            // A number that stands alone: not part of 1,000, 0.004, db.000 or 2 000.
            (
                r"(?:^|[^\w.,/:{<#| -]|[^\d.,|] )(?:`00[0-4]`|00[0-4])(?:$|[^\w.%]|\.(?:$|\s))",
                "a source by name: docs/bibliography.md#NAME",
            ),
        ];
        let compile = |(rule, instead)| (Regex::new(rule).expect("a pattern"), instead);
        Self(rules.into_iter().map(compile).collect())
    }

    /// What to write instead of what `line` cites; none if all is well.
    fn instead_of(&self, line: &str) -> Option<&'static str> {
        let mut broken = self.0.iter().filter(|(rule, _)| rule.is_match(line));
        broken.next().map(|(_, instead)| *instead)
    }
}

#[test]
fn nothing_cites_what_is_not_in_the_repository() {
    let rules = Rules::new();
    let mut found = Vec::new();
    for text in explanations().into_iter().filter(|t| t.path != THIS) {
        for (number, line) in text.numbered_lines() {
            if let Some(instead) = rules.instead_of(line) {
                found.push(format!(
                    "{}:{number}: {} (write {instead})",
                    text.path,
                    line.trim()
                ));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_rule_tells_citations_from_numbers() {
    let rules = Rules::new();
    let cited = [
        "//! the trace store (001 §5.1).",
        "// MODELS B.4",
        "/// Grants in order (DESIGN, section 3).",
        "//! Paper 001, figures 8 to 11",
        "experiment (MODELS D; `002`). The",
        "\"003 figure 5: lost\"",
        "requests, as in 003.",
    ];
    for line in cited {
        assert!(rules.instead_of(line).is_some(), "{line}");
    }
    let fine = [
        "At most 10,000,000 records",
        "let file = home.join(\"s/db.000/db\");",
        "close(found, 0.001);",
        "const STEP: f64 = 0.004;",
        "| mad | 1 000 | 1.000 | 0.004 |",
        "docs/design/consistency.md#copies",
        "`db.001` …: databases",
    ];
    for line in fine {
        assert!(rules.instead_of(line).is_none(), "{line}");
    }
}
