//! The user guide says of the terminal what the terminal does: every key, every command, every column.

#![allow(clippy::unwrap_used)] // a test may

use std::collections::BTreeSet;
use std::path::Path;

use crossterm::event::KeyCode;
use dosmos_visualizer::state::command::COMMANDS;
use dosmos_visualizer::state::keys::{BINDINGS, Binding};

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn guide() -> String {
    read("../docs/guide/terminal.md")
}

/// As the guide calls it.
fn name(key: KeyCode) -> String {
    match key {
        KeyCode::Char(' ') => "Space".into(),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Up => "↑".into(),
        KeyCode::Down => "↓".into(),
        KeyCode::Left => "←".into(),
        KeyCode::Right => "→".into(),
        KeyCode::PageUp => "PgUp".into(),
        KeyCode::PageDown => "PgDn".into(),
        KeyCode::BackTab => "Shift-Tab".into(),
        other => format!("{other:?}"),
    }
}

/// What stands between the nth backticks of a text, word by word.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .flat_map(str::split_whitespace)
}

#[test]
fn the_table_of_keys_has_every_key_and_no_other() {
    let guide = guide();
    let table = guide.split("## Keys").nth(1).unwrap();
    let table = table.split("\n\n").nth(1).unwrap();
    let first = table.lines().filter_map(|line| line.split(" | ").next());
    let mut said: BTreeSet<String> = first
        .flat_map(|cell| code(cell).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    // `1` … `8`
    said.extend((1..=8).map(|n| n.to_string()));
    let bound = BINDINGS.iter().flat_map(Binding::codes);
    let mut there: BTreeSet<String> = bound.map(name).collect();
    there.insert("Ctrl-C".into());
    let missing: Vec<_> = there.difference(&said).collect();
    let invented: Vec<_> = said.difference(&there).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "not in the guide: {missing:?}; not in the program: {invented:?}"
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
