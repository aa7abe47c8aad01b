//! Files that something has gone wrong with: whatever it is, import says so in a typed error and leaves nothing
//! behind, or takes what is whole and counts the rest.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::{SAMPLE, import, records};
use dosmos_interchange::jsonl::BadLines;
use dosmos_trace::store::StoreSource;
use proptest::prelude::*;
use proptest::sample::Index;

/// One thing that goes wrong with a file.
#[derive(Clone, Debug)]
enum Harm {
    Flip(Index, u8),
    Cut(Index),
    /// Bytes in the place of others.
    Noise(Index, Vec<u8>),
    /// Half of a line, twice.
    Repeat(Index, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        4 => (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        1 => any::<Index>().prop_map(Harm::Cut),
        1 => (any::<Index>(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, b)| Harm::Noise(at, b)),
        1 => (any::<Index>(), 1usize..200).prop_map(|(at, n)| Harm::Repeat(at, n)),
    ]
}

impl Harm {
    fn apply(&self, text: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let len = text.len();
        match self {
            Self::Flip(at, bit) => text[at.index(len)] ^= 1 << bit,
            Self::Cut(at) => text.truncate(at.index(len)),
            Self::Noise(at, bytes) => {
                let at = at.index(len);
                text.splice(at..len.min(at + bytes.len()), bytes.iter().copied());
            }
            Self::Repeat(at, n) => {
                let at = at.index(len);
                let again = text[at..len.min(at + n)].to_vec();
                text.splice(at..at, again);
            }
        }
    }
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(2_000))]

    #[test]
    fn damage_is_said_and_costs_only_what_it_touches(
        harms in prop::collection::vec(harm(), 1..5),
        skip in any::<bool>(),
    ) {
        let mut text = SAMPLE.as_bytes().to_vec();
        harms.iter().for_each(|h| h.apply(&mut text));
        let dir = dosmos_testseeds::scratch();
        let path = dir.path().join("store");
        let bad = if skip { BadLines::Skip } else { BadLines::Refuse };
        match import(&text, &path, bad) {
            Ok(imported) => {
                let store = StoreSource::open(&path).unwrap();
                prop_assert_eq!(records(&store).len() as u64, imported.records);
            }
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                let left = std::fs::read_dir(dir.path()).unwrap().count();
                prop_assert_eq!(left, 0, "{} left something behind", error);
            }
        }
    }
}
