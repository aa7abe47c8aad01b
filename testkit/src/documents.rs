//! The commands in the documentation, so that each program can try those that are its own.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Path and text of every document: Markdown at the root and below `docs`.
///
/// # Errors
/// What cannot be read.
pub fn all() -> std::io::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut folders = vec![root(), root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() && folder != root() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                let text = std::fs::read_to_string(&path)?;
                found.push((path, text));
            }
        }
    }
    Ok(found)
}

/// Arguments of every command in a fenced block of `text` that begins with one of `programs` (`"dosmos "`), with
/// the line that it stands in. Commands that hold a placeholder (`…`, `<`, `[`, `{`) are left out.
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
    let template = words.iter().any(|w| w.contains(['…', '<', '[', '{']));
    (!words.is_empty() && !template).then_some(words)
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
