//! What the documentation says is tried: every command in it is one this program understands, every link leads
//! somewhere. Tests only.

use clap::Parser;
use dosmos_testkit::documents;

use crate::args::Cli;

/// How this program is called in a document.
const PROGRAMS: [&str; 2] = ["dosmos ", "cargo run --release -- "];

#[test]
fn every_command_in_the_documents_is_understood() {
    let mut tried = 0;
    for (path, text) in documents::all().unwrap() {
        for (line, words) in documents::commands(&text, &PROGRAMS) {
            let all = std::iter::once("dosmos".to_owned()).chain(words);
            if let Err(e) = Cli::try_parse_from(all) {
                let help = clap::error::ErrorKind::DisplayHelp;
                assert!(e.kind() == help, "{}: {line}\n{e}", path.display());
            }
            tried += 1;
        }
    }
    assert!(tried > 20, "only {tried} commands were found");
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut followed = 0;
    for (path, text) in documents::all().unwrap() {
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
