//! Random damage to sound inputs of every kind: nothing panics, and nothing takes more memory than it may.

#![allow(clippy::unwrap_used)] // a test may

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dosmos_inputs::{ALL, Entry, named};
use dosmos_testseeds::child;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

/// Set in the process that takes the inputs: the name of their kind.
const CHILD: &str = "DOSMOS_TEST_INPUTS";

/// One change of an input.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Cut(Index),
    /// Bytes in the place of others.
    Noise(Index, Vec<u8>),
    /// A number that is often a limit, in the place of as many bytes.
    Limit(Index, [u8; 8], usize),
    /// A part of the input, once more, elsewhere.
    Repeat(Index, Index, usize),
    Remove(Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let place = any::<Index>;
    let limits = prop::sample::select(vec![
        0u64,
        1,
        0x7f,
        0xff,
        u64::from(u32::MAX),
        u64::MAX,
        u64::MAX - 1,
        i64::MAX as u64,
        1 << 40,
    ]);
    prop_oneof![
        4 => (place(), 0u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        1 => place().prop_map(Change::Cut),
        2 => (place(), prop::collection::vec(any::<u8>(), 1..12)).prop_map(|(at, b)| Change::Noise(at, b)),
        3 => (place(), limits, 1usize..=8).prop_map(|(at, n, length)| Change::Limit(at, n.to_le_bytes(), length)),
        1 => (place(), place(), 1usize..200).prop_map(|(from, to, n)| Change::Repeat(from, to, n)),
        1 => (place(), 1usize..30).prop_map(|(at, n)| Change::Remove(at, n)),
    ]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        if length == 0 {
            return;
        }
        let end = |at: usize, n: usize| length.min(at + n);
        match self {
            Self::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::Noise(at, noise) => {
                let at = at.index(length);
                bytes.splice(at..end(at, noise.len()), noise.iter().copied());
            }
            Self::Limit(at, number, n) => {
                let at = at.index(length);
                bytes.splice(at..end(at, *n), number[..*n].iter().copied());
            }
            Self::Repeat(from, to, n) => {
                let from = from.index(length);
                let part = bytes[from..end(from, *n)].to_vec();
                let to = to.index(length);
                bytes.splice(to..to, part);
            }
            Self::Remove(at, n) => {
                let at = at.index(length);
                bytes.drain(at..end(at, *n));
            }
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Takes that many changed inputs of a kind.
fn take_changed(entry: Entry, cases: u32) {
    dosmos_inputs::limit_memory();
    let seeds = (entry.seeds)();
    seeds.iter().for_each(|seed| (entry.take)(seed));
    let inputs = (
        prop::sample::select(seeds),
        prop::collection::vec(change(), 0..6),
    );
    let mut runner = TestRunner::new(dosmos_testseeds::config(cases));
    let outcome = runner.run(&inputs, |(mut bytes, changes)| {
        changes.iter().for_each(|c| c.apply(&mut bytes));
        let taken = catch_unwind(AssertUnwindSafe(|| (entry.take)(&bytes)));
        prop_assert!(taken.is_ok(), "the input: {}", hexadecimal(&bytes));
        Ok(())
    });
    outcome.unwrap_or_else(|e| panic!("{}: {e}", entry.name));
}

/// In a process of its own, as the limit of memory is that of a process.
fn check(name: &str, cases: u32) {
    match std::env::var(CHILD) {
        Ok(name) => take_changed(named(&name), cases),
        Err(_) => child::succeeds(&mut child::again(CHILD, name)),
    }
}

#[test]
fn messages_are_taken_or_refused() {
    check("messages", 20_000);
}

#[test]
fn streams_of_messages_are_read_alike_however_they_are_cut() {
    check("frames", 5_000);
}

#[test]
fn calls_are_read_alike_however_their_bytes_are_cut() {
    check("calls", 5_000);
}

#[test]
fn processes_survive_whatever_application_processes_and_peers_say() {
    check("requests", 4_000);
}

#[test]
fn batches_are_folded_and_stored_or_refused() {
    check("batches", 3_000);
}

#[test]
fn chunks_whose_checksums_hold_are_read_or_refused() {
    check("chunks", 5_000);
}

#[test]
fn logs_whose_checksums_hold_are_read_or_refused() {
    check("logs", 1_500);
}

#[test]
fn files_of_stores_whose_checksums_hold_are_read_or_refused() {
    check("store_files", 1_500);
}

#[test]
fn cluster_files_are_taken_or_refused() {
    check("cluster_files", 3_000);
}

#[test]
fn traces_in_lines_are_imported_or_refused() {
    check("jsonl", 300);
}

#[test]
fn archives_are_imported_or_refused() {
    check("otf2", 300);
}

#[test]
fn every_kind_has_a_fuzz_target() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/fuzz_targets");
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let names = entries.map(|e| e.file_name().into_string().unwrap());
    let mut targets: Vec<String> = names.collect();
    targets.sort();
    let mut kinds: Vec<String> = ALL.iter().map(|e| format!("{}.rs", e.name)).collect();
    kinds.sort();
    assert_eq!(targets, kinds);
}
