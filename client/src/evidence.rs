//! The evidence of a finding as people read it: times with their unit, shares in percent, lists in words.

use dosmos_analysis::Finding;
use dosmos_proto::Nanos;
use serde_json::Value;

use crate::text;

/// Items of a list that are named.
const NAMED: usize = 12;

/// What keys mean, where the key itself does not say it.
const WORDS: [(&str, &str); 24] = [
    ("access_cost_ns", "cost of these accesses"),
    ("access_cost_then_ns", "their cost after the change"),
    ("access_ns", "time in accesses"),
    ("hand_over_ns", "time of all hand-overs"),
    ("hand_overs", "hand-overs"),
    ("mean_hand_over_ns", "mean hand-over"),
    ("mean_work_ns", "mean other work while held"),
    ("returns", "returns to the holder before the last"),
    ("mean_waiting", "mean number waiting"),
    ("mean_queue", "mean number waiting while any waits"),
    (
        "share_of_remote",
        "its share of the cost of remote accesses",
    ),
    ("mean_sequence", "mean number in a row"),
    ("mean_overhead_ns", "mean time of the last to arrive"),
    ("mean_between_ns", "mean work between barriers"),
    ("part_begins_after_ns", "the part of the run begins after"),
    ("part_length_ns", "and lasts"),
    ("records", "records it is based on"),
    ("symptoms", "also explains"),
    ("circle", "who waits"),
    ("without_processor_ns", "between calls without a processor"),
    ("mean_of_others_ns", "mean of the others without one"),
    ("began_after_ns", "began after the first by"),
    ("waited_ns", "the others waited for that"),
    ("races", "times that this was seen of the variable"),
];

/// Numbers that are fractions.
const SHARES: [&str; 5] = [
    "share_of_remote",
    "returns",
    "imbalance_by_phase",
    "imbalance_in_all",
    "severity_in_part",
];

/// The evidence of a finding: names and values, without what is empty.
pub fn evidence(finding: &Finding) -> Vec<(String, String)> {
    let all = finding.evidence.iter();
    let filled = all.filter(|(_, value)| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Null => false,
        _ => true,
    });
    filled
        .map(|(key, value)| (name(key), said(key, value)))
        .collect()
}

fn name(key: &str) -> String {
    let known = WORDS.iter().find(|(k, _)| *k == key);
    known.map_or_else(
        || key.trim_end_matches("_ns").replace('_', " "),
        |(_, words)| (*words).to_owned(),
    )
}

fn said(key: &str, value: &Value) -> String {
    match value {
        Value::Number(n) => {
            let x = n.as_f64().unwrap_or_default();
            match n.as_u64() {
                _ if key.ends_with("_ns") => text::time(Nanos(x.max(0.0) as u64)),
                _ if SHARES.contains(&key) => format!("{:.0} %", 100.0 * x),
                Some(whole) => text::count(whole),
                None => format!("{x:.2}"),
            }
        }
        Value::String(text) => text::clean_line(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "–".to_owned(),
        Value::Array(items) => match numbers(items) {
            Some(numbers) => ranges(&numbers),
            None => list(items.iter().map(|item| said(key, item))),
        },
        Value::Object(map) => match symptom(map) {
            Some(text) => text,
            None => list(map.iter().map(|(who, value)| {
                let who = text::clean_line(who);
                format!("{who} {}", said(key, value))
            })),
        },
    }
}

/// `KIND of TARGET (12.3 %)`, of what another finding would have been.
fn symptom(map: &serde_json::Map<String, Value>) -> Option<String> {
    let text = |key: &str| map.get(key)?.as_str().map(text::clean_line);
    let severity = 100.0 * map.get("severity")?.as_f64()?;
    Some(format!(
        "{} of {} ({severity:.1} %)",
        text("kind")?,
        text("target")?
    ))
}

fn list(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(NAMED);
    let mut shown: Vec<String> = items.take(NAMED).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

fn numbers(items: &[Value]) -> Option<Vec<u64>> {
    items.iter().map(Value::as_u64).collect()
}

/// Neighbours as `3 to 7`.
fn ranges(numbers: &[u64]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for n in sorted {
        match runs.last_mut() {
            Some((_, last)) if n <= *last + 1 => *last = n,
            _ => runs.push((n, n)),
        }
    }
    list(runs.into_iter().map(|(from, to)| match to - from {
        0 => from.to_string(),
        1 => format!("{from}, {to}"),
        _ => format!("{from} to {to}"),
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests may
mod tests {
    use dosmos_analysis::Kind;
    use dosmos_trace::query::TimeRange;
    use serde_json::json;

    use super::*;

    fn finding(evidence: &Value) -> Finding {
        let mut finding = Finding::new(Kind::BadGroup, TimeRange::ALL);
        finding.evidence = evidence.as_object().unwrap().clone();
        finding
    }

    #[test]
    fn evidence_is_words_and_no_json() {
        let finding = finding(&json!({
            "access_cost_ns": 9.0e9, "busy_ns": { "ap0": 1_500_000, "ap1": 2_000 }, "returns": 0.5,
            "acquires": 12_345, "mean_waiting": 2.345, "objects": [4, 0, 1, 2, 9], "variables": ["grid", "sum"],
            "moved_processes": [], "broken_by_deadline": true,
            "symptoms": [{ "kind": "ping-pong", "target": "grid[3]", "severity": 0.123 }],
        }));
        let all: Vec<String> = evidence(&finding)
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let mut expected = [
            "cost of these accesses: 9.00 s",
            "busy: ap0 1.50 ms, ap1 2.00 µs",
            "returns to the holder before the last: 50 %",
            "acquires: 12.3k",
            "mean number waiting: 2.35",
            "objects: 0 to 2, 4, 9",
            "variables: grid, sum",
            "broken by deadline: yes",
            "also explains: ping-pong of grid[3] (12.3 %)",
        ];
        let mut all = all;
        all.sort();
        expected.sort_unstable();
        assert_eq!(all, expected);
        for line in &all {
            assert!(!line.contains(['{', '"', '_']), "{line}");
        }
    }

    #[test]
    fn long_lists_are_cut() {
        let many: Vec<String> = (0..20).map(|i| format!("v{i}")).collect();
        let shown = evidence(&finding(&json!({ "variables": many })));
        assert!(shown[0].1.ends_with("v11, and 8 more"), "{}", shown[0].1);
    }
}
