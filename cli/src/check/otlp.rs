//! Findings as log records of OTLP: one JSON object that the OpenTelemetry collector reads as it reads its own files.

use dosmos_analysis::{Finding, GainFrom, Level, Withheld};
use dosmos_interchange::otlp::schema::{
    AnyValue, KeyValue, LogRecord, LogsData, Resource, ResourceLogs, SERVICE, Scope, ScopeLogs,
    Severity, UnixNano,
};
use dosmos_proto::Nanos;
use dosmos_trace::query::Catalog;

use super::answer::{Answer, Judged};
use super::show;

/// The verdict, each finding, and each reason why not everything could be looked at.
pub(super) fn logs(answer: &Answer<'_>, catalog: &Catalog) -> LogsData {
    let range = (answer.from_ns, answer.to_ns);
    let mut records = vec![verdict(answer)];
    records.extend(answer.findings.iter().map(|judged| finding(answer, judged)));
    records.extend(answer.withheld.iter().map(|w| withheld(w, range)));
    let mut open: Vec<String> = answer.incomplete.to_vec();
    if !answer.races.looked {
        open.push("data races were not looked for".to_owned());
    }
    open.extend(answer.races.undecided.iter().cloned());
    let incomplete = |why: String| {
        let kind = ("dosmos.incomplete", Severity::Warn);
        record(kind, range, format!("incomplete: {why}"), Vec::new())
    };
    records.extend(open.into_iter().map(incomplete));
    LogsData {
        resource_logs: vec![ResourceLogs {
            resource: Resource::of(SERVICE, catalog.topology.name(), catalog.run),
            scope_logs: vec![ScopeLogs {
                scope: Scope::dosmos(),
                log_records: records,
            }],
        }],
    }
}

fn verdict(answer: &Answer<'_>) -> LogRecord {
    let attributes = vec![
        KeyValue::number("dosmos.findings", answer.findings.len() as u64),
        KeyValue::new("dosmos.completeness", AnyValue::Double(answer.complete)),
    ];
    let range = (answer.from_ns, answer.to_ns);
    let kind = ("dosmos.verdict", Severity::Info);
    record(kind, range, answer.verdict.to_owned(), attributes)
}

fn finding(answer: &Answer<'_>, judged: &Judged<'_>) -> LogRecord {
    let f = judged.finding;
    let level = f.level();
    let severity = match level {
        Level::Low => Severity::Info,
        Level::Medium => Severity::Warn,
        Level::High => Severity::Error,
    };
    let kind = ("dosmos.finding", severity);
    let made = record(
        kind,
        (f.from_ns, f.to_ns),
        show::headline(f),
        attributes(judged),
    );
    LogRecord {
        observed: UnixNano(Nanos(answer.to_ns)),
        severity_text: level.name(),
        ..made
    }
}

/// What is known of a finding: the keys of the JSON answer, below `dosmos`; of a long patch what is shown of it elsewhere, since
/// backends limit the length of attributes.
fn attributes(judged: &Judged<'_>) -> Vec<KeyValue> {
    let f: &Finding = judged.finding;
    let names = |names: &[String]| AnyValue::array(names.iter().cloned().map(AnyValue::Text));
    let mut all = vec![
        KeyValue::text("dosmos.kind", f.kind.name()),
        KeyValue::text("dosmos.target", f.target()),
        KeyValue::new("dosmos.processes", names(&f.aps)),
        KeyValue::new("dosmos.groups", names(&f.groups)),
        KeyValue::number("dosmos.to_ns", f.to_ns),
        KeyValue::new("dosmos.severity", AnyValue::Double(f.severity)),
        KeyValue::number("dosmos.lost_ns", f.lost_ns),
        KeyValue::new("dosmos.completeness", AnyValue::Double(f.completeness)),
        KeyValue::text("dosmos.advice", f.advice.clone()),
    ];
    let mut add = |key, value: Option<AnyValue>| {
        all.extend(value.map(|value| KeyValue::new(key, value)));
    };
    add("dosmos.variable", f.variable.clone().map(AnyValue::Text));
    add(
        "dosmos.object",
        f.object.map(|n| AnyValue::number(n.into())),
    );
    add(
        "dosmos.predicted_gain",
        f.predicted_gain.map(AnyValue::Double),
    );
    let range = f
        .gain_range
        .map(|r| AnyValue::array(r.map(AnyValue::Double)));
    add("dosmos.gain_range", range);
    let from = f.gain_from.map(|from| match from {
        GainFrom::Replay => "replay",
        GainFrom::Costs => "costs",
    });
    add(
        "dosmos.gain_from",
        from.map(|f| AnyValue::Text(f.to_owned())),
    );
    add("dosmos.patch", f.patch_in_short().map(AnyValue::Text));
    let change = judged.change.map(|c| show::change(Some(c)).to_owned());
    add("dosmos.change", change.map(AnyValue::Text));
    let evidence = f.evidence.iter().filter_map(|(key, value)| {
        let value = AnyValue::of_json(value)?;
        Some(KeyValue::new(format!("dosmos.evidence.{key}"), value))
    });
    all.extend(evidence);
    all
}

fn withheld(w: &Withheld, range: (u64, u64)) -> LogRecord {
    let attributes = vec![
        KeyValue::text("dosmos.kind", w.kind.name()),
        KeyValue::text("dosmos.target", w.target.clone()),
    ];
    let text = format!("withheld: {} of {}: {}", w.kind, w.target, w.why);
    record(("dosmos.withheld", Severity::Warn), range, text, attributes)
}

fn record(
    (event_name, severity_number): (&'static str, Severity),
    (from, to): (u64, u64),
    body: String,
    attributes: Vec<KeyValue>,
) -> LogRecord {
    LogRecord {
        time: UnixNano(Nanos(from)),
        observed: UnixNano(Nanos(to)),
        severity_number,
        severity_text: match severity_number {
            Severity::Info => "info",
            Severity::Warn => "warning",
            Severity::Error => "error",
        },
        event_name,
        body: AnyValue::Text(body),
        attributes,
    }
}

#[cfg(test)]
mod tests {
    use dosmos_analysis::{Kind, RaceSearch};
    use dosmos_trace::query::TimeRange;

    use super::super::baseline::Change;
    use super::*;

    #[test]
    fn findings_become_records_with_their_severity_and_what_is_open_is_said() {
        let range = TimeRange {
            from: Nanos(1_000),
            to: Nanos(5_000),
        };
        let mut found = Finding::new(Kind::PingPong, range).with("hand_overs", 7);
        found.variable = Some("x".to_owned());
        found.object = Some(3);
        (found.severity, found.lost_ns) = (0.25, 2_000_000_000);
        (found.predicted_gain, found.gain_from) = (Some(0.125), Some(GainFrom::Replay));
        let answer = Answer {
            run: None,
            incomplete: &["a store is missing".to_owned()],
            complete: 0.5,
            from_ns: 1_000,
            to_ns: 9_000,
            efficiency: None,
            verdict: "it waits",
            critical_path: None,
            delays: &[],
            findings: vec![Judged {
                finding: &found,
                change: Some(Change::Worse),
            }],
            oversubscribed: None,
            dismissed: &[],
            withheld: &[Withheld {
                kind: Kind::Deadlock,
                target: "y".to_owned(),
                why: "records are missing".to_owned(),
            }],
            races: &RaceSearch {
                looked: true,
                undecided: vec!["z".to_owned()],
            },
        };
        let json = serde_json::to_value(logs(&answer, &Catalog::default())).unwrap();
        let of = &json["resourceLogs"][0];
        assert_eq!(
            of["resource"]["attributes"][0]["value"]["stringValue"],
            "dosmos"
        );
        let records = of["scopeLogs"][0]["logRecords"].as_array().unwrap();
        let said: Vec<_> = records
            .iter()
            .map(|r| r["body"]["stringValue"].as_str().unwrap())
            .collect();
        assert_eq!(
            said,
            [
                "it waits",
                "ping-pong of x[3]: 2.000 s of process time",
                "withheld: deadlock of y: records are missing",
                "incomplete: a store is missing",
                "incomplete: z",
            ]
        );
        let severities: Vec<_> = records
            .iter()
            .map(|r| r["severityNumber"].as_u64().unwrap())
            .collect();
        assert_eq!(severities, [9, 17, 13, 13, 13]);
        let record = &records[1];
        assert_eq!(
            (&record["timeUnixNano"], &record["severityText"]),
            (&"1000".into(), &"high".into())
        );
        let attributes = record["attributes"].as_array().unwrap();
        let attribute = |key: &str| {
            attributes
                .iter()
                .find(|a| a["key"] == key)
                .map(|a| &a["value"])
                .unwrap()
        };
        assert_eq!(attribute("dosmos.kind")["stringValue"], "ping-pong");
        assert_eq!(attribute("dosmos.object")["intValue"], "3");
        assert_eq!(attribute("dosmos.predicted_gain")["doubleValue"], 0.125);
        assert_eq!(attribute("dosmos.evidence.hand_overs")["intValue"], "7");
        assert_eq!(attribute("dosmos.change")["stringValue"], "worse");
    }
}
