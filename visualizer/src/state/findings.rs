//! Which findings are listed, and in which order: that of the time they cost.

use dosmos_analysis::Finding;
use dosmos_proto::Nanos;

use dosmos_client::Part;

/// Positions of the findings that a filter lets through by kind, target or process.
pub fn shown(all: &[Finding], passes: impl Fn(&str) -> bool) -> Vec<usize> {
    let listed = |f: &Finding| {
        let words = format!("{} {} {}", f.kind, f.target(), f.aps.join(" "));
        passes(&words)
    };
    let mut shown: Vec<usize> = (0..all.len()).filter(|&i| listed(&all[i])).collect();
    shown.sort_by(|&a, &b| all[b].severity.total_cmp(&all[a].severity));
    shown
}

/// The process time that a finding says is lost: its severity of the time of all processes.
pub fn time_lost(finding: &Finding, analysed: &Part, processes: usize) -> Nanos {
    let all = analysed.range.length().0 as f64 * processes.max(1) as f64;
    Nanos((finding.severity * all).max(0.0) as u64)
}
