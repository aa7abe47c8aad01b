//! The crates of the workspace, as their manifests say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Table;

use crate::circles::Graph;

/// A crate of the workspace.
#[derive(Debug)]
pub struct Crate {
    /// Its folder, relative to the root of the workspace.
    pub folder: String,
    /// Folders of the crates that it depends on.
    pub depends_on: Vec<String>,
    /// Folders of the crates that only its tests depend on.
    pub tests_depend_on: Vec<String>,
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn manifest(path: &Path) -> Table {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.parse()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All crates of the workspace, in the order of its manifest.
pub fn crates() -> Vec<Crate> {
    let workspace = manifest(&root().join("Cargo.toml"));
    let shared = workspace["workspace"]["dependencies"].as_table().unwrap();
    let own: BTreeMap<&str, &str> = shared
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.get("path")?.as_str()?)))
        .collect();
    let among = |manifest: &Table, section: &str| -> Vec<String> {
        let listed = manifest.get(section).and_then(toml::Value::as_table);
        let folders = listed
            .into_iter()
            .flatten()
            .filter_map(|(name, _)| own.get(name.as_str()));
        let mut folders: Vec<String> = folders.map(|f| (*f).to_owned()).collect();
        folders.sort();
        folders
    };
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let members = members.iter().map(|m| m.as_str().unwrap());
    members
        .map(|folder| {
            let manifest = manifest(&root().join(folder).join("Cargo.toml"));
            Crate {
                folder: folder.to_owned(),
                depends_on: among(&manifest, "dependencies"),
                tests_depend_on: among(&manifest, "dev-dependencies"),
            }
        })
        .collect()
}

/// What generates traces for the tests of the crates that it builds them with. Cargo allows that circle: the tests are
/// built after both.
const TESTKIT: &str = "testkit";

/// Which crate depends on which, those that only tests need included, without what tests take from the test kit.
pub fn graph(crates: &[Crate]) -> Graph<String> {
    let all = |c: &Crate| {
        let tests = c.tests_depend_on.iter().filter(|d| *d != TESTKIT);
        c.depends_on.iter().chain(tests).cloned().collect()
    };
    crates.iter().map(|c| (c.folder.clone(), all(c))).collect()
}
