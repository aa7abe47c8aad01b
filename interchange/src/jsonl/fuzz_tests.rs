//! Damaged files: whatever is done to the lines, they are taken or refused, and nothing else happens.

use proptest::prelude::*;

use super::ImportError;
use super::importer::Importer;

const WHOLE: &str = concat!(
    r#"{"type":"run","name":"r","start":"2026-01-01T00:00:00Z","end_ns":60000000000,"owner_records":true}"#,
    "\n",
    r#"{"type":"group","path":"/a/b"}"#,
    "\n",
    r#"{"type":"mp","name":"mp0","group":"/a/b","clock":{"event_manager":"e","offset_ns":-5,"drift_ppb":7,"error_ns":900}}"#,
    "\n",
    r#"{"type":"mp","name":"lp","group":"/a/b","link":true}"#,
    "\n",
    r#"{"type":"ap","name":"ap0","mp":"mp0","group":"/a/b"}"#,
    "\n",
    r#"{"type":"variable","name":"x","objects":4,"owner":["mp0","mp0"],"bytes":64,"policy":"update","layout":{"element":"f64","rows":2,"columns":4,"row_parts":2,"column_parts":2}}"#,
    "\n",
    r#"{"type":"barrier","name":"phase","group":"/a"}"#,
    "\n",
    r#"{"type":"record","t_ns":1000,"dur_ns":80000,"wait_ns":70,"service_ns":5,"op":"write","var":"x","object":3,"ap":"ap0","mp":"mp0","owner":"lp","origin":"inter","optimized":false,"bytes":8,"version":3,"range":[0,1],"side":"owner","sampled":true}"#,
    "\n",
    r#"{"type":"record","t_ns":2000,"op":"barrier","barrier":"phase","barrier_group":"/a","ap":"ap0"}"#,
    "\n",
    r#"{"type":"hand_over","var":"x","object":1,"mp":"mp0","dropped":true}"#,
    "\n",
    r#"{"type":"record","t_ns":3000,"op":"acquire","var":"x","ap":"ap0","pending":true}"#,
    "\n",
    r#"{"type":"completeness","recorded":9,"dropped":6,"sampling":0.5,"missing":["emp1"],"corrupt_chunks":1,"notes":["n"]}"#,
    "\n",
);

/// What can befall a file.
#[derive(Clone, Debug)]
enum Damage {
    Truncated(usize),
    Flipped(usize, u8),
    Cut(usize, usize),
    Inserted(usize, Vec<u8>),
    Repeated(usize, usize),
    Number(usize, String),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = 0..WHOLE.len();
    prop_oneof![
        at.clone().prop_map(Damage::Truncated),
        (at.clone(), 0u8..8).prop_map(|(at, bit)| Damage::Flipped(at, bit)),
        (at.clone(), 1usize..200).prop_map(|(at, n)| Damage::Cut(at, n)),
        (at.clone(), proptest::collection::vec(any::<u8>(), 1..20))
            .prop_map(|(at, bytes)| Damage::Inserted(at, bytes)),
        (at.clone(), 1usize..400).prop_map(|(at, n)| Damage::Repeated(at, n)),
        (at, numbers()).prop_map(|(at, n)| Damage::Number(at, n)),
    ]
}

/// Numbers that do not fit, or just fit.
fn numbers() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        Just("4294967295".to_owned()),
        Just("18446744073709551615".to_owned()),
        Just("1e999".to_owned()),
    ]
}

impl Damage {
    fn befall(&self, text: &mut Vec<u8>) {
        let within = |at: usize| at.min(text.len());
        match self {
            Self::Truncated(at) => text.truncate(*at),
            Self::Flipped(at, bit) => {
                if let Some(byte) = text.get_mut(*at) {
                    *byte ^= 1 << bit;
                }
            }
            Self::Cut(at, n) => {
                let range = within(*at)..within(at + n);
                text.drain(range);
            }
            Self::Inserted(at, bytes) => {
                let at = within(*at);
                text.splice(at..at, bytes.iter().copied());
            }
            Self::Repeated(at, n) => {
                let piece = text[within(*at)..within(at + n)].to_vec();
                let at = within(*at);
                text.splice(at..at, piece);
            }
            Self::Number(at, number) => {
                // The next number after that place.
                let digit = |from: usize, is: bool| {
                    let found = text[from..].iter().position(|b| b.is_ascii_digit() == is);
                    found.map_or(text.len(), |i| from + i)
                };
                let from = digit(within(*at), true);
                let to = digit(from, false);
                text.splice(from..to, number.bytes());
            }
        }
    }
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(4000))]

    #[test]
    fn damaged_lines_are_taken_or_refused(damages in proptest::collection::vec(damage(), 1..4)) {
        let mut text = WHOLE.as_bytes().to_vec();
        for damage in &damages {
            damage.befall(&mut text);
        }
        let mut importer = Importer::new(dosmos_testseeds::scratch());
        let (mut lines, mut refused) = (0, 0);
        for line in text.split(|&b| b == b'\n') {
            lines += 1;
            if let Err(trouble) = importer.line(line.trim_ascii()) {
                refused += 1;
                let error = trouble.at(lines);
                let ImportError::Line { line: number, why } = &error else {
                    panic!("{error}");
                };
                prop_assert_eq!(*number, lines);
                prop_assert_eq!(error.to_string(), format!("line {lines}: {why}"));
                importer.skip(lines, why);
            }
        }
        prop_assert!(importer.records + refused <= lines);
        prop_assert_eq!(importer.skipped().lines, refused);
    }
}

#[test]
fn undamaged_lines_are_taken() {
    let mut importer = Importer::new(dosmos_testseeds::scratch());
    for (i, line) in WHOLE.lines().enumerate() {
        let taken = importer.line(line.as_bytes());
        assert!(taken.is_ok(), "{}", taken.err().unwrap().at(i as u64 + 1));
    }
    assert_eq!(importer.records, 3);
}
