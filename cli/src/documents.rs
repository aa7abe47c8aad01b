//! What the documentation says is tried: every command in it is one this program understands, every link leads
//! somewhere. Tests only.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::args::Cli;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All documents: path and text.
fn documents() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root(), root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && folder != root() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
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

/// The commands for this program on a line of a document.
fn commands(line: &str) -> Vec<Vec<String>> {
    let of_one = |part: &str| {
        let part = part.trim().trim_start_matches("$ ");
        let part = part.rsplit(" | ").next().unwrap_or(part);
        let rest = part
            .strip_prefix("dosmos ")
            .or_else(|| part.strip_prefix("cargo run --release -- "))?;
        let words = words(rest);
        // What stands for something else cannot be tried.
        let template = words.iter().any(|w| w.contains(['…', '<', '[', '{']));
        (!words.is_empty() && !template).then_some(words)
    };
    let parts = line.split(" && ").flat_map(|p| p.split("; "));
    parts.filter_map(of_one).collect()
}

#[test]
fn every_command_in_the_documents_is_understood() {
    let mut tried = 0;
    for (path, text) in documents() {
        let mut fenced = false;
        for line in text.replace("\\\n", " ").lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            for words in commands(line).into_iter().filter(|_| fenced) {
                let all = std::iter::once("dosmos".to_owned()).chain(words);
                if let Err(e) = Cli::try_parse_from(all) {
                    let help = clap::error::ErrorKind::DisplayHelp;
                    assert!(e.kind() == help, "{}: {line}\n{e}", path.display());
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "only {tried} commands were found");
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut followed = 0;
    for (path, text) in documents() {
        let folder = path.parent().unwrap();
        for part in text.split("](").skip(1) {
            let Some((target, _)) = part.split_once(')') else {
                continue;
            };
            if target.contains("://") || target.contains(char::is_whitespace) {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() {
                path.clone()
            } else {
                folder.join(file)
            };
            let from = path.display();
            assert!(file.exists(), "{from}: there is no {target}");
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(&file).unwrap();
                let headings = text.lines().filter(|l| l.starts_with('#')).map(slug);
                let known: Vec<String> = headings.collect();
                assert!(
                    known.iter().any(|h| h == anchor),
                    "{from}: {target}: {known:?}"
                );
            }
            followed += 1;
        }
    }
    assert!(followed > 20, "only {followed} links were found");
}

/// How a heading is linked to.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || "-_".contains(c) => Some(c),
            _ => None,
        })
        .collect()
}
