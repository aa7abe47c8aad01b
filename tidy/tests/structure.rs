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

/// The lints of a manifest, by tool, without those about unsafe code.
fn lints(of: Option<&toml::Value>) -> Vec<(String, toml::Table)> {
    let tables = of.and_then(toml::Value::as_table).into_iter().flatten();
    let without = |(tool, lints): (&String, &toml::Value)| {
        let mut lints = lints.as_table().unwrap().clone();
        lints.remove("unsafe_code");
        lints.remove("undocumented_unsafe_blocks");
        (tool.clone(), lints)
    };
    tables.map(without).collect()
}

#[test]
fn every_crate_has_the_lints_of_the_workspace_and_one_unsafe_code() {
    let manifest = |folder: &str| -> toml::Table {
        let path = root().join(folder).join("Cargo.toml");
        std::fs::read_to_string(path).unwrap().parse().unwrap()
    };
    let workspace = manifest("");
    let of_workspace = lints(workspace["workspace"].get("lints"));
    assert_eq!(of_workspace.len(), 2, "those of rustc and clippy");
    for member in crates() {
        let own = manifest(&member.folder);
        let taken = own["lints"].get("workspace").is_some();
        let alike = member.folder == "shm" && lints(own.get("lints")) == of_workspace;
        assert!(taken || alike, "{}/Cargo.toml", member.folder);
    }
    let shm = std::fs::read_dir(root().join("shm/src")).unwrap();
    let with_unsafe = shm.map(|entry| entry.unwrap().path()).filter(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.contains("unsafe_code") || text.contains("unsafe {")
    });
    let expected = [root().join("shm/src/mapped.rs")];
    assert_eq!(with_unsafe.collect::<Vec<_>>(), expected);
}
