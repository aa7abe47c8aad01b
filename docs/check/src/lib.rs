//! Finds the documents and the sources of this repository, for the tests that check what they claim.
//!
//! The tests of this crate need no other crate of the workspace, so `cargo test -p dosmos-documents` takes seconds. Whether
//! the commands in the documents are understood is tested in `cli/src/documents.rs`, where the command line is defined.
//!
//! Invariant: nothing here is part of a program; only tests use it.

use std::path::{Path, PathBuf};

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct Text {
    /// Where it is, relative to the root of the repository, with `/` between folders.
    pub path: String,
    /// What it says.
    pub text: String,
}

impl Text {
    /// Where it is in the file system.
    pub fn file(&self) -> PathBuf {
        root().join(&self.path)
    }

    /// Lines with their numbers, from 1.
    pub fn numbered_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(i, line)| (i + 1, line))
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All documents: Markdown files, generated ones included.
///
/// # Panics
///
/// If a folder or file of the repository cannot be read.
pub fn documents() -> Vec<Text> {
    texts(&["md"])
}

/// All files in which a person explains something: documents, Rust sources, interface definitions, manifests, scripts.
///
/// # Panics
///
/// If a folder or file of the repository cannot be read.
pub fn explanations() -> Vec<Text> {
    texts(&["md", "rs", "proto", "toml", "py", "sh"])
}

/// What people read about the project: documents and the comments, help texts and messages in Rust sources.
///
/// # Panics
///
/// If a folder or file of the repository cannot be read.
pub fn texts_for_people() -> Vec<Text> {
    texts(&["md", "rs"])
}

/// Arguments of every command in a fenced block of `text` that begins with one of `programs` (such as `"dosmos "`), with
/// the line that it stands in. Commands with a placeholder (`…`, `<`, `[`, `{`) are left out, and
/// titles of screens, in which the name of the program stands with spaces around it.
pub fn commands(text: &str, programs: &[&str]) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.replace("\\\n", " ").lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            let parts = line.split(" && ").flat_map(|p| p.split("; "));
            let words = parts.filter_map(|part| arguments(part, programs));
            found.extend(words.map(|w| (line.to_owned(), w)));
        }
    }
    found
}

fn arguments(command: &str, programs: &[&str]) -> Option<Vec<String>> {
    let command = command.trim().trim_start_matches("$ ");
    let command = command.rsplit(" | ").next().unwrap_or(command);
    let rest = programs.iter().find_map(|p| command.strip_prefix(p))?;
    let words = words(rest);
    let title = rest.starts_with(' ');
    let placeholder = words.iter().any(|w| w.contains(['…', '<', '[', '{']));
    (!words.is_empty() && !placeholder && !title).then_some(words)
}

/// Words of a shell line up to a comment or to what the shell does with the rest; quotes hold words together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        if "#|>&;".contains(first) {
            break;
        }
        let quote = Some(first).filter(|c| "'\"".contains(*c));
        let (word, after) = match quote {
            Some(q) => rest[1..].split_once(q).unwrap_or((&rest[1..], "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

/// The anchor of a heading: how GitHub derives it from the text.
pub fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || "-_".contains(c) => Some(c),
            _ => None,
        })
        .collect()
}

/// The anchors of a Markdown text, without those in fenced blocks.
pub fn anchors(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if line.starts_with('#') && !fenced {
            found.push(anchor(line));
        }
    }
    found
}

/// Files with one of these extensions, in order of their paths; build output and hidden folders but `.ci` are left out.
fn texts(extensions: &[&str]) -> Vec<Text> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder:?}: {e}"));
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                let skipped = name == "target" || (name.starts_with('.') && name != ".ci");
                if !skipped {
                    folders.push(path);
                }
            } else if let Some(text) = read(&path, extensions) {
                found.push(text);
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn read(file: &Path, extensions: &[&str]) -> Option<Text> {
    let extension = file.extension()?.to_str()?;
    if !extensions.contains(&extension) {
        return None;
    }
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{file:?}: {e}"));
    let relative = file.strip_prefix(root()).ok()?;
    let parts = relative.components();
    let parts: Vec<_> = parts.map(|c| c.as_os_str().to_string_lossy()).collect();
    let path = parts.join("/");
    Some(Text { path, text })
}
