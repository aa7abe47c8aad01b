//! What is wrong, worst first: what it costs, what to change, and the numbers behind it.

use dosmos_analysis::{Analysis, Dismissed, Finding, GainFrom, Kind};
use dosmos_plot::{Block, Color, Table};

pub(super) fn blocks(analysis: &Analysis) -> Vec<Block> {
    let mut blocks: Vec<Block> = analysis.findings.iter().map(card).collect();
    if blocks.is_empty() {
        blocks.push(Block::text(
            "No finding: no shared variable, lock, group or owner costs time that another arrangement would save. What \
             the processes did instead of computing is below.",
        ));
    }
    if !analysis.dismissed.is_empty() {
        let of = |d: &Dismissed| format!("{} of {} (saves {})", d.kind, d.target, percent(d.gain));
        let all: Vec<String> = analysis.dismissed.iter().map(of).collect();
        blocks.push(Block::text(format!(
            "Not advised, because the run is not faster with it in a replay: {}.",
            all.join(", ")
        )));
    }
    for withheld in &analysis.withheld {
        let (kind, target, why) = (withheld.kind, &withheld.target, &withheld.why);
        blocks.push(Block::Warning(format!("Withheld: {kind}, {target}: {why}")));
    }
    let unlooked = (!analysis.races.looked).then(|| "Data races were not looked for.".to_owned());
    let undecided = analysis.races.undecided.iter();
    let undecided = undecided.map(|why| format!("Not decided: {why}"));
    blocks.extend(unlooked.into_iter().chain(undecided).map(Block::Warning));
    blocks
}

/// The findings as one table: for comments, where a card each is too much.
pub(super) fn table(analysis: &Analysis) -> Option<Block> {
    let mut table = Table::new(["finding", "of", "lost", "gain", "advice"]);
    for f in &analysis.findings {
        let gain = f.predicted_gain.map_or("–".to_owned(), percent);
        table.row([
            f.kind.name().to_owned(),
            f.target(),
            percent(f.severity),
            gain,
            f.advice.clone(),
        ]);
    }
    (!table.is_empty()).then_some(Block::Table(table))
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

fn card(finding: &Finding) -> Block {
    let mut badge = match finding.kind {
        Kind::DataRace => "what the program computes may be wrong".to_owned(),
        _ => format!("{} of process time lost", percent(finding.severity)),
    };
    if let Some(gain) = finding.predicted_gain {
        let from = match finding.gain_from {
            Some(GainFrom::Replay) => "by a replay of the run",
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
    let mut advice = vec![Block::text(&finding.advice)];
    if let Some(patch) = finding.patch_in_short() {
        advice.push(Block::Verbatim(patch));
    }
    let who = [("processes", &finding.aps), ("groups", &finding.groups)];
    let mut evidence = Table::new(["evidence", ""]);
    for (what, names) in who {
        if !names.is_empty() {
            evidence.row([what.to_owned(), names.join(", ")]);
        }
    }
    for (name, value) in dosmos_client::evidence(finding) {
        evidence.row([name, value]);
    }
    let inside = match evidence.is_empty() {
        true => advice,
        false => vec![Block::Columns(vec![advice, vec![Block::Table(evidence)]])],
    };
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
