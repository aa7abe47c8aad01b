//! The user guide says of findings what the code does: every threshold with its default, every kind and all evidence.

#![allow(clippy::unwrap_used)] // a test may

use std::collections::BTreeSet;

use dosmos_analysis::{Input, Kind, ProfileBuilder, Thresholds, analyse, conclude};
use dosmos_testkit::labelled::{VARIED, Variation, generate, varied};

fn guide() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/findings.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_threshold_stands_in_the_guide_with_its_default() {
    let guide = guide();
    let defaults = serde_json::to_value(Thresholds::default()).unwrap();
    for (key, default) in defaults.as_object().unwrap() {
        let mentions: Vec<f64> = guide
            .split(&format!("`{key}` "))
            .skip(1)
            .filter_map(|after| {
                let number = after
                    .split(|c: char| !c.is_ascii_digit() && c != '.')
                    .next();
                number
                    .unwrap_or_default()
                    .trim_end_matches('.')
                    .parse()
                    .ok()
            })
            .collect();
        assert!(!mentions.is_empty(), "{key} is not in the guide");
        let default = default.as_f64().unwrap();
        assert!(
            mentions.iter().all(|said| *said == default),
            "{key} is {default}, the guide says {mentions:?}"
        );
    }
}

#[test]
fn every_kind_and_all_evidence_stand_in_the_guide() {
    let guide = guide();
    for kind in Kind::ALL {
        assert!(guide.contains(&format!("\n| `{kind}` | ")), "{kind}");
    }
    let mut seen = BTreeSet::new();
    let mixed = (3_000_000..3_000_040).map(generate);
    let each = VARIED.into_iter().zip(3_100_000..).map(|(kind, seed)| {
        let all_the_time = Variation {
            kind: Some(kind),
            processes: 8,
            bursts: 1,
            begins: 0.0,
            lasts: 1.0,
        };
        varied(seed, all_the_time)
    });
    for trace in mixed.chain(each) {
        let input = Input {
            catalog: trace.catalog,
            records: &mut trace.records.into_iter(),
            window: None,
        };
        for finding in analyse(input, &Thresholds::default()).findings {
            seen.insert(finding.kind);
            for key in finding.evidence.keys() {
                assert!(
                    guide.contains(&format!("`{key}`")),
                    "{}: {key}",
                    finding.kind
                );
            }
        }
    }
    for seed in 7_500_000..7_500_012 {
        let all_the_time = Variation {
            kind: Some(Kind::SlowProcess),
            processes: 8,
            bursts: 1,
            begins: 0.0,
            lasts: 1.0,
        };
        let trace = varied(seed, all_the_time);
        let mut profile = ProfileBuilder::new(trace.catalog.clone());
        trace.records.iter().for_each(|record| profile.add(record));
        profile.times(trace.times);
        for finding in conclude(&profile.finish(None), &Thresholds::default()).findings {
            seen.insert(finding.kind);
            let told = |key: &String| guide.contains(&format!("`{key}`"));
            assert!(finding.evidence.keys().all(told), "{finding:#?}");
        }
    }
    // Data races are found by others: client/tests/races.rs.
    seen.insert(Kind::DataRace);
    assert_eq!(seen.len(), Kind::ALL.len(), "only {seen:?} occur");
}
