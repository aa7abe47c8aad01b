//! A file with all its changes in it, of which the environment chooses one.
//!
//! Text is only inserted, so that places of errors and panics stay on their lines. What is inserted for a change is between
//! `/*mN*/` and `/*m*/`, so that an error of the compiler tells which changes cannot be had.

use std::ops::Range;

use anyhow::Result;

use crate::list::{Genre, Mutant};
use crate::sites::{Site, Sites};

/// How a change is asked for; every changed crate has this module.
const ON: &str = "crate::mutant::on";
const END: &str = "/*m*/";

/// Changes that are made in one place.
struct Place {
    range: Range<usize>,
    /// What is taken away at its beginning.
    instead_of: usize,
    before: String,
    /// What is in the place of an operator.
    inside: Vec<(Range<usize>, String)>,
    after: String,
}

/// A change with its number.
pub type Numbered<'a> = (usize, &'a Mutant);

/// The text with these changes, and those that are not possible this way.
///
/// # Errors
/// If the text is not Rust.
pub fn with(text: &str, mutants: &[Numbered<'_>]) -> Result<(String, Vec<usize>)> {
    let sites = Sites::of(text)?;
    let mut places = Vec::new();
    let mut left = Vec::new();
    for group in mutants.chunk_by(|a, b| a.1.place() == b.1.place()) {
        match place(text, &sites, group) {
            Some(place) => places.push(place),
            None => left.extend(group.iter().map(|m| m.0)),
        }
    }
    Ok((apply(text, places), left))
}

fn mark(numbers: impl Iterator<Item = usize>) -> String {
    let numbers: Vec<String> = numbers.map(|n| n.to_string()).collect();
    format!("/*m{}*/", numbers.join(","))
}

fn choose(alternatives: impl Iterator<Item = (usize, String)>, else_: &str) -> String {
    let mut text = String::new();
    for (n, alternative) in alternatives {
        text += &format!(
            "if {ON}({n}) {{ {}{alternative}{END} }} else ",
            mark([n].into_iter())
        );
    }
    format!("{text}{{ {else_} }}")
}

fn place(text: &str, sites: &Sites, group: &[Numbered<'_>]) -> Option<Place> {
    let first = group.first()?.1;
    let start = sites.byte(first.span.start);
    let mark = mark(group.iter().map(|m| m.0));
    let n = group[0].0;
    if first.genre == Genre::FnValue {
        let returns = group
            .iter()
            .map(|(n, m)| format!("if {ON}({n}) {{ /*m{n}*/return {};{END} }} ", m.replacement));
        // Before everything else in the body.
        return Some(Place {
            range: start..text.len(),
            instead_of: 0,
            before: returns.collect(),
            inside: Vec::new(),
            after: String::new(),
        });
    }
    let place = |range: Range<usize>,
                 before: String,
                 inside: Vec<(Range<usize>, String)>,
                 after: String| {
        Some(Place {
            range,
            instead_of: 0,
            before: mark.clone() + &before,
            inside,
            after: after + END,
        })
    };
    match sites.at(first.genre, start)? {
        Site::Binary { binds: true, .. } => None,
        Site::Binary {
            left,
            operator,
            right,
            ..
        } => {
            let range = left.start..right.end;
            let was = &text[operator.clone()];
            let others = |l: &str, r: &str| {
                let others = group
                    .iter()
                    .map(|(n, m)| (*n, format!("{l} {} {r}", m.replacement)));
                choose(others, &format!("l {was} r"))
            };
            let between = operator.clone();
            match was {
                "&&" if group.len() == 1 => place(
                    range,
                    "(if (".into(),
                    vec![(between, format!(") != {ON}({n}) {{"))],
                    format!("}} else {{ {ON}({n}) }})"),
                ),
                "||" if group.len() == 1 => place(
                    range,
                    "(if (".into(),
                    vec![(between, format!(") != {ON}({n}) {{ !{ON}({n}) }} else {{"))],
                    "})".into(),
                ),
                "==" | "!=" if group.len() == 1 => {
                    place(range, "((".into(), Vec::new(), format!(") != {ON}({n}))"))
                }
                "<" | ">" | "<=" | ">=" => place(
                    range,
                    "(match (&(".into(),
                    vec![(between, "), &(".into())],
                    format!(")) {{ (l, r) => {} }})", others("l", "r")),
                ),
                "+" | "-" | "*" | "/" | "%" | "<<" | ">>" | "&" | "|" | "^" => place(
                    range,
                    "(match ((".into(),
                    vec![(between, "), (".into())],
                    format!(")) {{ (l, r) => {} }})", others("l", "r")),
                ),
                _ if was.ends_with('=') => {
                    let (l, r) = (&text[left.clone()], &text[right.clone()]);
                    let others = group
                        .iter()
                        .map(|(n, m)| (*n, format!("{l} {} {r}", m.replacement)));
                    let before = choose(others, "");
                    let before = before.trim_end_matches([' ', '}']);
                    place(range, format!("({before} "), Vec::new(), " })".into())
                }
                _ => None,
            }
        }
        Site::Unary { operator, operand } => {
            let was = &text[operator.clone()];
            let after = format!(") {{ v => if {ON}({n}) {{ v }} else {{ {was}v }} }})");
            let place = place(
                operator.start..operand.end,
                "(match (".into(),
                Vec::new(),
                after,
            );
            place.map(|p| Place {
                instead_of: was.len(),
                ..p
            })
        }
        Site::Arm { pattern, guard } => match (first.genre, guard) {
            (Genre::MatchArm, None) => place(
                pattern.clone(),
                String::new(),
                Vec::new(),
                format!(" if !{ON}({n})"),
            ),
            (Genre::MatchArm, Some(guard)) => place(
                guard.clone(),
                format!("(!{ON}({n}) && ("),
                Vec::new(),
                "))".into(),
            ),
            (_, Some(guard)) => {
                let of = |value: &str| {
                    group
                        .iter()
                        .find(|m| m.1.replacement == value)
                        .map_or(0, |m| m.0)
                };
                let (yes, no) = (of("true"), of("false"));
                place(
                    guard.clone(),
                    format!("({ON}({yes}) || !{ON}({no}) && ("),
                    Vec::new(),
                    "))".into(),
                )
            }
            (_, None) => None,
        },
        Site::Field {
            value,
            member,
            of,
            base,
        } => {
            let name = &text[member.clone()];
            // A field that is named like its value.
            let named = if value == member {
                format!("{name}: ")
            } else {
                String::new()
            };
            let (of, base) = (&text[of.clone()], &text[base.clone()]);
            let before =
                format!("{named}if {ON}({n}) {{ let base: {of} = {base}; base.{name} }} else {{ ");
            place(value.clone(), before, Vec::new(), " }".into())
        }
    }
}

/// Text that takes the place of a range, mostly of an empty one.
struct Edit {
    /// Where; what ends there (0) before what begins there (1); of what ends the inner first, of what begins the outer first.
    order: (usize, u8, usize, usize),
    range: Range<usize>,
    text: String,
}

/// The text with all these places changed.
fn apply(text: &str, places: Vec<Place>) -> String {
    let mut edits = Vec::new();
    for (number, p) in places.into_iter().enumerate() {
        let (start, end) = (p.range.start, p.range.end);
        // What takes something away is the innermost of its place.
        let number = number + (p.instead_of << 32);
        edits.push(Edit {
            order: (start, 1, usize::MAX - end, number),
            range: start..start + p.instead_of,
            text: p.before,
        });
        edits.push(Edit {
            order: (end, 0, usize::MAX - start, usize::MAX - number),
            range: end..end,
            text: p.after,
        });
        // In the place of an operator, which nothing else begins or ends at.
        edits.extend(p.inside.into_iter().map(|(range, text)| Edit {
            order: (range.start, 0, usize::MAX, 0),
            range,
            text,
        }));
    }
    edits.sort_by_key(|e| e.order);
    let mut out = String::with_capacity(2 * text.len());
    let mut at = 0;
    for edit in edits {
        out.push_str(&text[at..edit.range.start]);
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::list::{Position, Span};
    use crate::switch;

    /// A function, what of it is changed into what, a call, and its results before and after.
    const CASES: &[(&str, Genre, &str, &str, &str, &str, &str)] = &[
        (
            "fn f() -> u8 { 3 + 4 }",
            Genre::FnValue,
            "3 + 4",
            "0",
            "f()",
            "7",
            "0",
        ),
        (
            "fn f() -> u8 { 3 + 4 }",
            Genre::BinaryOperator,
            "+",
            "*",
            "f()",
            "7",
            "12",
        ),
        (
            "fn f() -> u8 { 3 + 4 - 1 * 2 }",
            Genre::BinaryOperator,
            "- 1",
            "+",
            "f()",
            "5",
            "9",
        ),
        (
            "fn f(a: u8) -> bool { a < 3 }",
            Genre::BinaryOperator,
            "<",
            "==",
            "f(3)",
            "false",
            "true",
        ),
        (
            "fn f(a: u8) -> bool { a == 3 }",
            Genre::BinaryOperator,
            "==",
            "!=",
            "f(3)",
            "true",
            "false",
        ),
        (
            "fn f(a: u8) -> bool { a > 3 && a < 9 }",
            Genre::BinaryOperator,
            "&&",
            "||",
            "f(1)",
            "false",
            "true",
        ),
        (
            "fn f(a: u8) -> bool { a > 3 || a == 2 }",
            Genre::BinaryOperator,
            "||",
            "&&",
            "f(9)",
            "true",
            "false",
        ),
        (
            "fn f(mut a: u8) -> u8 { a += 3; a }",
            Genre::BinaryOperator,
            "+=",
            "-=",
            "f(5)",
            "8",
            "2",
        ),
        (
            "fn f(a: [u8; 2]) -> u8 { let mut a = a; a[1] <<= 1; a[1] }",
            Genre::BinaryOperator,
            "<<=",
            ">>=",
            "f([0, 4])",
            "8",
            "2",
        ),
        (
            "fn f(a: bool) -> bool { !a && true }",
            Genre::UnaryOperator,
            "!a",
            "",
            "f(true)",
            "false",
            "true",
        ),
        (
            "fn f(a: i8) -> i8 { -a }",
            Genre::UnaryOperator,
            "-a",
            "",
            "f(3)",
            "-3",
            "3",
        ),
        (
            "fn f(a: u8) -> u8 { match a { 1 => 10, _ => 20 } }",
            Genre::MatchArm,
            "1 => 10,",
            "",
            "f(1)",
            "10",
            "20",
        ),
        (
            "fn f(a: u8) -> u8 { match a { 1 if a < 2 => 10, _ => 20 } }",
            Genre::MatchArm,
            "1 if",
            "",
            "f(1)",
            "10",
            "20",
        ),
        (
            "fn f(a: u8) -> u8 { match a { n if !(n < 5) => n, _ => 20 } }",
            Genre::MatchArmGuard,
            "!(n < 5)",
            "true",
            "f(1)",
            "20",
            "1",
        ),
        (
            "fn f(a: u8) -> u8 { match a { n if n < 5 => n, _ => 20 } }",
            Genre::MatchArmGuard,
            "n < 5",
            "false",
            "f(1)",
            "1",
            "20",
        ),
        (
            "#[derive(Default)] struct S { a: u8, b: u8 } fn f(a: u8) -> u8 { let s = S { a, ..S::default() }; s.a + s.b }",
            Genre::StructField,
            "a, ..",
            "",
            "f(7)",
            "7",
            "0",
        ),
    ];

    #[test]
    fn one_change_is_made_where_it_is_asked_for() {
        let mut text = String::new();
        let mut mutants = Vec::new();
        for (i, (function, genre, what, replacement, call, ..)) in CASES.iter().enumerate() {
            let line = format!(
                "mod m{i} {{ {function} pub fn call() -> String {{ {call}.to_string() }} }}\n"
            );
            let column = line.find(what).map(|at| at + 1).unwrap_or_default();
            let start = Position {
                line: i + 1,
                column,
            };
            mutants.push(Mutant {
                name: (*what).to_owned(),
                file: String::new(),
                genre: *genre,
                replacement: (*replacement).to_owned(),
                span: Span { start },
                function: None,
            });
            text += &line;
        }
        let numbered: Vec<Numbered<'_>> = mutants
            .iter()
            .enumerate()
            .map(|(i, m)| (i + 1, m))
            .collect();
        let (mut changed, left) = with(&text, &numbered).unwrap();
        assert_eq!(left, [0; 0]);
        changed += "mod mutant;\nfn main() {\n";
        (0..CASES.len()).for_each(|i| changed += &format!("println!(\"{{}}\", m{i}::call());\n"));
        changed += "}\n";

        let folder = std::env::temp_dir().join(format!("dosmos-mutants-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("main.rs"), changed).unwrap();
        fs::write(folder.join("mutant.rs"), switch::module(CASES.len())).unwrap();
        let mut rustc = Command::new("rustc");
        rustc
            .current_dir(&folder)
            .args(["--edition=2024", "-Awarnings", "main.rs"]);
        assert!(rustc.status().unwrap().success());
        for on in 0..=CASES.len() {
            let mut main = Command::new(folder.join("main"));
            let output = main.env(switch::CHOSEN, on.to_string()).output().unwrap();
            let output = String::from_utf8(output.stdout).unwrap();
            let expected = CASES
                .iter()
                .enumerate()
                .map(|(i, case)| if i + 1 == on { case.6 } else { case.5 });
            assert_eq!(
                output.lines().collect::<Vec<_>>(),
                expected.collect::<Vec<_>>(),
                "{on}"
            );
        }
        // What would be asked for is told.
        let log = folder.join("reached");
        let mut main = Command::new(folder.join("main"));
        assert!(
            main.env(switch::REACHED, &log)
                .output()
                .unwrap()
                .status
                .success()
        );
        let mut reached: Vec<usize> = fs::read_to_string(&log)
            .unwrap()
            .lines()
            .map(|l| l.parse().unwrap())
            .collect();
        reached.sort_unstable();
        assert_eq!(reached, (1..=CASES.len()).collect::<Vec<_>>());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_binds_names_is_left_out() {
        let text =
            "fn f(a: Option<u8>) -> bool { if let Some(b) = a && b > 3 { true } else { false } }";
        let column = text.find("&&").unwrap() + 1;
        let mutant = Mutant {
            name: String::new(),
            file: String::new(),
            genre: Genre::BinaryOperator,
            replacement: "||".to_owned(),
            span: Span {
                start: Position { line: 1, column },
            },
            function: None,
        };
        let (changed, left) = with(text, &[(1, &mutant)]).unwrap();
        assert_eq!((changed.as_str(), left), (text, vec![1]));
    }
}
