//! Every command in the documents is one that this program understands. Tests only; what else documents claim is checked in
//! `docs/check`.

use clap::Parser;
use dosmos_documents::{commands, documents};

use crate::args::Cli;

/// How this program is called in a document.
const PROGRAMS: [&str; 2] = ["dosmos ", "cargo run --release -- "];

#[test]
fn every_command_in_the_documents_is_understood() {
    let mut tried = 0;
    for document in documents() {
        for (line, words) in commands(&document.text, &PROGRAMS) {
            let all = std::iter::once("dosmos".to_owned()).chain(words);
            if let Err(e) = Cli::try_parse_from(all) {
                let help = clap::error::ErrorKind::DisplayHelp;
                assert!(e.kind() == help, "{}: {line}\n{e}", document.path);
            }
            tried += 1;
        }
    }
    assert!(tried > 20, "only {tried} commands were found");
}
