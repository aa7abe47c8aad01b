//! The structure of the source code: no circle of imports between files or crates, and crates that depend on each other
//! as `ARCHITECTURE.md` says.
#![allow(clippy::unwrap_used)] // a test may

use std::fmt::Write;
use std::path::{Path, PathBuf};

use dosmos_tidy::circles::{Graph, circles};
use dosmos_tidy::crates::{crates, graph, root};
use dosmos_tidy::imports::arrows;
use dosmos_tidy::modules::modules;

fn roots(folder: &str) -> Vec<PathBuf> {
    let source = root().join(folder).join("src");
    ["lib.rs", "main.rs"]
        .map(|f| source.join(f))
        .into_iter()
        .filter(|f| f.exists())
        .collect()
}

/// The arrows inside a circle, one line per file.
fn drawn(circle: &std::collections::BTreeSet<PathBuf>, arrows: &Graph<PathBuf>) -> String {
    let root = root();
    let short = |p: &Path| p.strip_prefix(&root).unwrap_or(p).display().to_string();
    let mut text = String::new();
    for from in circle {
        let to: Vec<String> = arrows[from]
            .intersection(circle)
            .map(|p| short(p))
            .collect();
        writeln!(text, "  {} → {}", short(from), to.join(", ")).unwrap();
    }
    text
}

#[test]
fn imports_have_no_circles() {
    let mut found = String::new();
    for member in crates() {
        for root in roots(&member.folder) {
            let arrows = arrows(&modules(&root));
            for circle in circles(&arrows) {
                writeln!(found, "{}", drawn(&circle, &arrows)).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "files in circles of imports:\n{found}");
}

#[test]
fn crates_have_no_circles() {
    let found = circles(&graph(&crates()));
    assert!(found.is_empty(), "{found:?}");
}

/// The block of `ARCHITECTURE.md` that says which crate depends on which.
const BEGINS: &str = "Each crate depends on those named behind it:\n\n```text\n";

#[test]
fn crates_depend_on_each_other_as_documented() {
    let mut expected = String::new();
    for member in crates() {
        let listed = member.depends_on.join(", ");
        writeln!(expected, "{}: {listed}", member.folder).unwrap();
    }
    let expected = expected.replace(": \n", ":\n");
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, documented) = text.split_once(BEGINS).expect("the block of crates");
    let (documented, _) = documented.split_once("```").unwrap();
    assert!(
        documented == expected,
        "ARCHITECTURE.md should say:\n{expected}"
    );
}
