//! The changes that cargo-mutants would make, as it lists them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// A place in a file; lines and columns from 1.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Span {
    pub start: Position,
}

/// What kind of change it is.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

/// A change.
#[derive(Clone, Debug, Deserialize)]
pub struct Mutant {
    pub name: String,
    pub file: String,
    pub genre: Genre,
    /// What replaces the text of the span.
    pub replacement: String,
    pub span: Span,
    pub function: Option<Function>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Function {
    return_type: String,
}

impl Mutant {
    /// What all changes of one place have in common.
    pub fn place(&self) -> (&str, Position, Genre) {
        (&self.file, self.span.start, self.genre)
    }

    /// Whether it returns from a function whose one hidden type the change would not have.
    pub fn hides_its_type(&self) -> bool {
        let hides = |f: &Function| f.return_type.contains("impl ");
        self.genre == Genre::FnValue && self.function.as_ref().is_some_and(hides)
    }
}

/// The changes of a package in the files of this folder.
///
/// # Errors
/// If cargo-mutants cannot be run, or says something else.
pub fn of(root: &Path, package: &str, folder: &str) -> Result<Vec<Mutant>> {
    let mut command = Command::new("cargo");
    command.current_dir(root);
    command.args(["mutants", "--list", "--json", "--package", package]);
    command.args(["--file", &format!("{folder}/**/*.rs")]);
    let output = command.output().context("cargo mutants")?;
    if !output.status.success() {
        bail!(
            "cargo mutants: {}; if it is missing: cargo install cargo-mutants",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("the list of cargo mutants")
}
