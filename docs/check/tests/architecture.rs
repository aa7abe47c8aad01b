//! `ARCHITECTURE.md` names files that exist, has a line for each dependency, and stays short. Which crate depends on which is
//! compared with the manifests in `tidy/`.

use std::collections::BTreeSet;

use dosmos_documents::{documents, root};
use regex::Regex;

fn architecture() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap_or_else(|e| panic!("{e}"))
}

fn manifest(path: &str) -> toml::Table {
    let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.parse().unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Folders of the crates of the workspace.
fn members() -> Vec<String> {
    let workspace = manifest("Cargo.toml");
    let members = workspace["workspace"]["members"].as_array().cloned();
    let members = members.expect("members").into_iter();
    members
        .map(|m| m.as_str().expect("a folder").to_owned())
        .collect()
}

#[test]
fn it_is_short() {
    let lines = architecture().lines().count();
    assert!(lines <= 500, "{lines} lines");
}

#[test]
fn every_crate_has_a_row_with_an_invariant() {
    let text = architecture();
    for member in members() {
        let row = text
            .lines()
            .find(|l| l.starts_with(&format!("| `{member}/` |")));
        let row = row.unwrap_or_else(|| panic!("there is no row for {member}"));
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 3, "{row}");
        assert!(!cells[2].is_empty(), "{member} has no invariant");
    }
}

/// External crates that a member depends on.
fn dependencies() -> BTreeSet<String> {
    let workspace = manifest("Cargo.toml");
    let shared = workspace["workspace"]["dependencies"].as_table().cloned();
    let shared = shared.expect("dependencies of the workspace");
    let is_own = |name: &str| shared.get(name).is_some_and(|d| d.get("path").is_some());
    let mut found = BTreeSet::new();
    for member in members() {
        let manifest = manifest(&format!("{member}/Cargo.toml"));
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let listed = manifest.get(section).and_then(toml::Value::as_table);
            let names = listed.into_iter().flat_map(toml::Table::keys);
            found.extend(names.filter(|n| !is_own(n)).cloned());
        }
    }
    found
}

#[test]
fn every_dependency_has_a_line_and_no_other() {
    let text = architecture();
    let (_, table) = text.split_once("## Dependencies").expect("dependencies");
    let table = table.split("\n## ").next().expect("a section");
    let rows = table.lines().filter_map(|l| l.strip_prefix("| "));
    let first = rows.filter_map(|row| row.split(" | ").next());
    let without_notes = Regex::new(r"\([^)]*\)").unwrap();
    let named: BTreeSet<String> = first
        .filter(|cell| *cell != "crate" && !cell.starts_with("---"))
        .flat_map(|cell| {
            let plain = without_notes.replace_all(cell, "").replace('`', "");
            let names: Vec<String> = plain.split(',').map(|n| n.trim().to_owned()).collect();
            names
        })
        .collect();
    let used = dependencies();
    let missing: Vec<_> = used.difference(&named).collect();
    let unused: Vec<_> = named.difference(&used).collect();
    assert!(
        missing.is_empty() && unused.is_empty(),
        "without a line: {missing:?}; not used: {unused:?}"
    );
}

/// Whether a path of the repository exists, as a file, a folder, or a Rust module of either form.
fn exists(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    root().join(path).exists() || root().join(format!("{path}.rs")).exists()
}

/// Whether a folder at the root is what builds and runs leave there.
fn is_ignored(folder: &str) -> bool {
    let ignored = std::fs::read_to_string(root().join(".gitignore")).expect("a .gitignore");
    ignored
        .lines()
        .filter_map(|line| line.strip_prefix('/'))
        .any(|name| match name.strip_suffix('*') {
            Some(start) => folder.starts_with(start),
            None => folder == name,
        })
}

/// The README's first command makes `dosmos-run`; its second runs the tests.
#[test]
fn what_runs_leave_is_no_folder_of_the_repository() {
    assert!(is_ignored("dosmos-run") && is_ignored("target"));
    assert!(!is_ignored("docs") && !is_ignored("trace"));
}

/// A path in backticks that begins with a folder of the repository.
#[test]
fn every_path_named_in_the_documents_exists() {
    let path = Regex::new(r"`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+/?)`").unwrap();
    let mut checked = 0;
    let mut wrong = Vec::new();
    for document in documents() {
        for (number, line) in document.numbered_lines() {
            for found in path.captures_iter(line) {
                let named = &found[1];
                let folder = named.split('/').next().unwrap_or_default();
                if folder.len() < 3 || !root().join(folder).is_dir() || is_ignored(folder) {
                    continue;
                }
                checked += 1;
                if !exists(named) {
                    wrong.push(format!("{}:{number}: there is no {named}", document.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 40, "only {checked} paths were found");
}

/// The ways of a read, a lock, a record and a finding: `crate  file.rs → other.rs`, where a line without a crate at its
/// beginning goes on with the crate of the line before.
#[test]
fn every_file_on_the_ways_exists() {
    let members = members();
    let file = Regex::new(r"[a-z0-9_/-]+\.rs").unwrap();
    let text = architecture();
    let mut checked = 0;
    let mut wrong = Vec::new();
    let mut fenced = false;
    let mut current: Option<&String> = None;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
            current = None;
        }
        if !fenced {
            continue;
        }
        if let Some(word) = line
            .split_whitespace()
            .next()
            .filter(|w| line.starts_with(*w))
        {
            current = members.iter().find(|m| *m == word).or(current);
        }
        for found in file.find_iter(line) {
            let named = found.as_str();
            let whole = members
                .iter()
                .any(|m| named.starts_with(&format!("{m}/src/")));
            let path = match current {
                _ if whole => named.to_owned(),
                Some(folder) => format!("{folder}/src/{named}"),
                None => continue,
            };
            checked += 1;
            if !exists(&path) {
                wrong.push(format!("{path}: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 40, "only {checked} files were found");
}
