//! The user guide says of the terminal what the terminal does: every key, every command, every column.

#![allow(clippy::unwrap_used)] // a test may

use std::collections::BTreeSet;
use std::path::Path;

use dosmos_visualizer::state::command::COMMANDS;
use dosmos_visualizer::state::keymap;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn guide() -> String {
    read("../docs/guide/terminal.md")
}

#[test]
fn the_table_of_keys_is_that_of_the_program() {
    let table = keymap::guide();
    assert!(
        guide().contains(&table),
        "put this into docs/guide/terminal.md:\n{table}"
    );
}

#[test]
fn every_command_stands_in_the_guide() {
    let guide = guide();
    for command in COMMANDS {
        assert!(
            guide.contains(&format!("`:{}", command.name)),
            "{}",
            command.name
        );
    }
}

#[test]
fn every_column_of_every_screen_stands_in_the_guide() {
    let guide = guide();
    let known: BTreeSet<&str> = guide.split(|c: char| !c.is_alphanumeric()).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let mut screens = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("screens__")
        {
            continue;
        }
        screens += 1;
        let snapshot = std::fs::read_to_string(&path).unwrap();
        let screen = snapshot.split("\n---\n").nth(1).unwrap();
        let words = screen.split(|c: char| !c.is_alphanumeric());
        let capitals = |w: &&str| w.len() > 2 && w.chars().all(|c| c.is_ascii_uppercase());
        // Bars without colours are made of letters.
        let drawn = |w: &&str| w.chars().all(|c| w.starts_with(c));
        for word in words.filter(capitals).filter(|w| !drawn(w)) {
            assert!(known.contains(word), "{word} of {}", path.display());
        }
    }
    assert!(screens > 20);
}
