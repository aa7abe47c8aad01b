//! `docs/reliability.md` names the test of each promise: every one of them exists.

use dosmos_documents::{documents, root};
use regex::Regex;

/// The rows of all tables of promises, which begin with a number, as cells without surrounding spaces.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut promises = false;
    let is_row = |line: &&str| {
        promises = line.starts_with('|') && (promises || line.starts_with("| no. |"));
        promises && !line.starts_with("|---")
    };
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_matches('|');
        inner.split('|').map(|c| c.trim().to_owned()).collect()
    };
    text.lines().filter(is_row).map(cells).collect()
}

/// Why a test named as `path::function`, or a script named by its path, is not there; none if it is.
fn absent(name: &str) -> Option<String> {
    let (path, function) = match name.split_once("::") {
        Some((path, function)) => (path, Some(function)),
        None => (name, None),
    };
    let Ok(text) = std::fs::read_to_string(root().join(path)) else {
        return Some(format!("{name}: there is no file {path}"));
    };
    let function = function?;
    let test = format!(
        r"(?s)(#\[(tokio::)?test[^\]]*\]|proptest!).*\bfn {}\b",
        regex::escape(function)
    );
    let found = Regex::new(&test).expect("a pattern").is_match(&text);
    (!found).then(|| format!("{name}: there is no such test in {path}"))
}

#[test]
fn every_test_named_for_a_promise_exists() {
    let mut pages = documents().into_iter();
    let page = pages.find(|d| d.path == "docs/reliability.md");
    let page = page.expect("the page of promises");
    let name = Regex::new(r"`([^`]+)`").unwrap();
    let states = ["open", "partial", "done"];
    let mut numbers = Vec::new();
    let mut wrong = Vec::new();
    for row in rows(&page.text).iter().filter(|r| r[0] != "no.") {
        let [number, subject, promise, tests, _, state] = &row[..] else {
            panic!("a row of {} cells instead of 6: {row:?}", row.len());
        };
        numbers.push(number.parse::<u32>().expect("a number"));
        assert!(!promise.is_empty(), "{number} {subject}: no promise");
        assert!(
            states.contains(&state.as_str()),
            "{number}: state {state:?}"
        );
        let named: Vec<&str> = name
            .captures_iter(tests)
            .map(|c| c.get(1).unwrap().as_str())
            .collect();
        if state != "open" && named.is_empty() {
            wrong.push(format!("{number} {subject}: {state}, but no test is named"));
        }
        wrong.extend(named.into_iter().filter_map(absent));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(numbers.len() >= 27, "only {} promises", numbers.len());
}

#[test]
fn a_test_that_does_not_exist_is_noticed() {
    assert!(absent("docs/check/tests/promises.rs::no_such_test").is_some());
    assert!(absent("docs/check/tests/nowhere.rs::no_such_test").is_some());
    let this = "docs/check/tests/promises.rs::a_test_that_does_not_exist_is_noticed";
    assert_eq!(absent(this), None);
}
