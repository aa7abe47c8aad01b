//! The detectors: each a pure function from a profile to findings, with its definition. Then, over all of
//! them: one cause gives one finding ([`explain`]), and what was not recorded explains nothing ([`loss`]).

mod barrier_overhead;
mod bottleneck;
mod candidate;
mod crowded;
mod deadlock;
mod explain;
mod false_sharing;
mod fine_grained;
mod group;
mod imbalance;
mod loss;
mod no_sharing;
mod owner;
mod ping_pong;
mod policy;
mod polling;
mod read_only_locking;
mod scan;
mod slow_process;

use crate::finding::{Finding, Withheld};
use crate::groups::GroupMatrix;
use crate::profile::Profile;
use crate::thresholds::Thresholds;

/// What the detectors say together.
#[derive(Debug)]
pub(crate) struct Detected {
    pub(crate) findings: Vec<Finding>,
    /// Those that stand only if a replay confirms them.
    pub(crate) suspected: Vec<Finding>,
    pub(crate) withheld: Vec<Withheld>,
    pub(crate) groups: GroupMatrix,
}

/// Runs every detector; sorted by severity, highest first.
///
/// Findings rest on what was recorded: each carries the completeness of its data, is downgraded by what was not
/// seen, and withheld if that could explain it.
pub fn detect(profile: &Profile, thresholds: &Thresholds) -> Vec<Finding> {
    run(profile, thresholds).findings
}

pub(crate) fn run(profile: &Profile, t: &Thresholds) -> Detected {
    let private = no_sharing::detect(profile, t);
    let apart = false_sharing::detect(profile, t);
    let unshared = private
        .iter()
        .chain(&apart)
        .flat_map(|c| c.objects.iter().map(|o| o.var))
        .collect();
    let (grouping, groups) = group::detect(profile, t, &unshared);
    let mut candidates = private;
    candidates.extend(grouping);
    candidates.extend(bottleneck::detect(profile, t));
    candidates.extend(ping_pong::detect(profile, t));
    candidates.extend(policy::detect(profile, t));
    candidates.extend(apart);
    candidates.extend(owner::detect(profile, t));
    candidates.extend(imbalance::detect(profile, t));
    candidates.extend(deadlock::detect(profile));
    candidates.extend(crowded::detect(profile, t));
    candidates.extend(fine_grained::detect(profile, t));
    candidates.extend(barrier_overhead::detect(profile, t));
    candidates.extend(polling::detect(profile, t));
    candidates.extend(read_only_locking::detect(profile, t));
    candidates.extend(slow_process::detect(profile, t));
    scan::add(profile, t, &mut candidates);
    let mut detected = Detected {
        findings: Vec::new(),
        suspected: Vec::new(),
        withheld: Vec::new(),
        groups,
    };
    let judged = |mut candidate: candidate::Candidate| {
        candidate.tell_the_cure();
        loss::judge(profile, t, candidate)
    };
    let suspected = barrier_overhead::suspect(profile, t).into_iter();
    detected.suspected = suspected.map(judged).filter_map(Result::ok).collect();
    for mut candidate in explain::explain(candidates) {
        let explained = std::mem::take(&mut candidate.explained);
        match judged(candidate) {
            Ok(mut finding) => {
                finding.explained = explained
                    .into_iter()
                    .map(judged)
                    .filter_map(Result::ok)
                    .collect();
                detected.findings.push(finding);
            }
            Err(withheld) => detected.withheld.push(withheld),
        }
    }
    detected
        .findings
        .sort_by(|a, b| b.severity.total_cmp(&a.severity));
    detected
}
