//! A verdict as text and as JSON.

use dosmos_client::Verified;
use dosmos_verify::{Looked, Violation};
use serde_json::{Value, json};

use crate::args::Format;
use crate::output::Table;
use crate::query::listed;

/// One row per violation.
pub(super) fn table(verified: &Verified) -> Table {
    let mut table = Table::new(&["kind", "target", "why", "records", "more"]);
    for v in &verified.verdict.violations {
        table.row([
            v.kind.to_string(),
            v.target.clone(),
            v.why.clone(),
            v.records.len().to_string(),
            v.more.to_string(),
        ]);
    }
    table
}

/// Everything: the verdict, each counter-example with its records, and what is undecided.
pub(super) fn report(verified: &Verified) -> String {
    let lines = verified.launch.lines().into_iter();
    let mut text: String = lines.map(|(what, is)| format!("{what:12}{is}\n")).collect();
    let verdict = &verified.verdict;
    text += &format!("{}: {}\n", verdict.state.name(), looked(&verdict.looked));
    for violation in &verdict.violations {
        text += &in_words(verified, violation);
    }
    if !verdict.doubts.is_empty() {
        text += "\nnot decided:\n";
    }
    for doubt in &verdict.doubts {
        let times = match doubt.count {
            1 => String::new(),
            n => format!(" ({n} times)"),
        };
        text += &format!(
            "  {}{times}: {}\n    would decide it: {}\n",
            doubt.question, doubt.why, doubt.decided_by
        );
    }
    text
}

fn looked(looked: &Looked) -> String {
    format!(
        "{} records of {} accesses to {} objects; {} reads, {} sections and {} openings of barriers compared",
        looked.records,
        looked.accesses,
        looked.objects,
        looked.reads,
        looked.sections,
        looked.barriers
    )
}

fn in_words(verified: &Verified, violation: &Violation) -> String {
    let mut text = format!(
        "\n{} of {}: {}\n",
        violation.kind, violation.target, violation.why
    );
    text += &format!("  contract  {}\n", violation.kind.rule());
    if violation.more > 0 {
        text += &format!("  more      {} like it\n", violation.more);
    }
    let (table, _) = listed(&verified.catalog, &violation.records);
    for (i, line) in table.render(Format::Table).lines().enumerate() {
        let head = if i == 0 { "records" } else { "" };
        text += &format!("  {head:10}{line}\n");
    }
    text
}

pub(super) fn json(verified: &Verified) -> anyhow::Result<String> {
    let verdict = &verified.verdict;
    let violations: Vec<Value> = verdict
        .violations
        .iter()
        .map(|v| {
            let (_, records) = listed(&verified.catalog, &v.records);
            json!({
                "kind": v.kind, "contract": v.kind.rule(), "target": v.target, "why": v.why, "more": v.more,
                "records": records,
            })
        })
        .collect();
    let answer = json!({
        "verdict": verdict.state,
        "run": verified.launch.metadata(),
        "looked": verdict.looked,
        "violations": violations,
        "undecided": verdict.doubts,
    });
    Ok(serde_json::to_string_pretty(&answer)?)
}
