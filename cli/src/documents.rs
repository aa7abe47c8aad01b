//! Every command in the documents is one that this program understands. Tests only; what else documents claim is checked in
//! `docs/check`.

use clap::Parser;
use dosmos_documents::documents;

use crate::args::Cli;

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
    for document in documents() {
        let mut fenced = false;
        for line in document.text.replace("\\\n", " ").lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            for words in commands(line).into_iter().filter(|_| fenced) {
                let all = std::iter::once("dosmos".to_owned()).chain(words);
                if let Err(e) = Cli::try_parse_from(all) {
                    let help = clap::error::ErrorKind::DisplayHelp;
                    assert!(e.kind() == help, "{}: {line}\n{e}", document.path);
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "only {tried} commands were found");
}
