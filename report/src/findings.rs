//! What is wrong, worst first: what it costs, what to change, and the numbers behind it.

use dosmos_analysis::{Analysis, Finding, GainFrom};
use dosmos_plot::{Block, Color, Table};
use serde_json::Value;

pub(super) fn blocks(analysis: &Analysis) -> Vec<Block> {
    let mut blocks: Vec<Block> = analysis.findings.iter().map(card).collect();
    if blocks.is_empty() {
        blocks.push(Block::text(
            "Nothing found: no shared variable, lock, group or owner costs time that another arrangement would save.",
        ));
    }
    for withheld in &analysis.withheld {
        let (kind, target, why) = (withheld.kind, &withheld.target, &withheld.why);
        blocks.push(Block::Warning(format!("Withheld: {kind}, {target}: {why}")));
    }
    blocks
}

fn card(finding: &Finding) -> Block {
    let percent = |f: f64| format!("{:.1} %", f * 100.0);
    let mut badge = format!("{} of process time lost", percent(finding.severity));
    if let Some(gain) = finding.predicted_gain {
        let from = match finding.gain_from {
            Some(GainFrom::Model) => "predicted by the model of the run",
            _ => "estimated from the costs of accesses",
        };
        badge += &format!(
            " · projected gain {} of the run time, {from}",
            percent(gain)
        );
    }
    if finding.completeness < 1.0 {
        badge += &format!(" · from {} of the accesses", percent(finding.completeness));
    }
    let mut inside = vec![Block::text(&finding.advice)];
    if let Some(patch) = &finding.patch {
        inside.push(Block::Verbatim(patch.clone()));
    }
    let who = [("processes", &finding.aps), ("groups", &finding.groups)];
    let mut evidence = Table::new(["evidence", ""]);
    for (what, names) in who {
        if !names.is_empty() {
            evidence.row([what.to_owned(), names.join(", ")]);
        }
    }
    for (key, value) in &finding.evidence {
        evidence.row([key.replace('_', " "), plain(value)]);
    }
    if !evidence.is_empty() {
        inside.push(Block::Details {
            summary: "Evidence".to_owned(),
            blocks: vec![Block::Table(evidence)],
        });
    }
    Block::Card {
        heading: format!("{}: {}", finding.kind, finding.target()),
        badge,
        color: match finding.severity {
            s if s >= 0.2 => Color::Inter,
            s if s >= 0.05 => Color::Intra,
            _ => Color::Series(0),
        },
        blocks: inside,
    }
}

/// A value as people write it: numbers short, lists with commas.
fn plain(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(f)) if f.abs() >= 1000.0 => format!("{f:.0}"),
            (None, Some(f)) => format!("{f:.3}"),
            (None, None) => n.to_string(),
        },
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(map) => map
            .iter()
            .map(|(k, v)| format!("{}: {}", k.replace('_', " "), plain(v)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}
