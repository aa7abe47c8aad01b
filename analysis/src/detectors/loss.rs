//! What was not recorded: which findings it could explain.
//!
//! *Unseen* is the fraction of accesses whose records were dropped or are at an event manager that did
//! not answer; nobody knows which they were. *Sampling* leaves out evenly, so sums are scaled up, and what
//! is uncertain is chance. Withheld are
//!
//! * all findings, below the threshold `completeness`;
//! * no sharing with anything lacking (another process's accesses may be what is missing), and false sharing with
//!   anything unseen (as may be the write that overlaps);
//! * a misplaced owner, with as many accesses unseen as it rests on: they may be the owner's own;
//! * ping-pong among more than two with anything lacking: leaving out makes any order look like coming back;
//! * imbalance with anything lacking, unless it shows in the processor time: the time of an access that is not known
//!   looks like work;
//! * what rests on records of which some are lacking silently, as their numbers show;
//! * read-only locking with anything lacking: the write in a section may be what is missing;
//! * deadlock when sampling: the release may be what was left out;
//! * what rests on a ratio that the unseen accesses could overturn, if all of them spoke against it;
//! * when sampling, severities not above their threshold by two standard errors.
//!
//! What stands is downgraded: its severity is multiplied by the fraction seen.

use super::candidate::Candidate;
use crate::finding::{Finding, Kind, Withheld};
use crate::profile::Profile;
use crate::thresholds::Thresholds;

/// What stands, downgraded; or why it does not.
pub(super) fn judge(
    profile: &Profile,
    t: &Thresholds,
    candidate: Candidate,
) -> Result<Finding, Withheld> {
    if let Some(why) = doubt(profile, t, &candidate) {
        return Err(Withheld {
            kind: candidate.finding.kind,
            target: candidate.finding.target(),
            why,
        });
    }
    let mut finding = candidate.finding.with("records", candidate.records);
    let seen = 1.0 - profile.unseen();
    finding.completeness = profile.completeness();
    finding.severity *= seen;
    finding.predicted_gain = finding.predicted_gain.map(|gain| gain * seen);
    finding.lost_ns = (finding.severity * profile.process_time()) as u64;
    Ok(finding)
}

fn doubt(profile: &Profile, t: &Thresholds, c: &Candidate) -> Option<String> {
    let (unseen, sampling) = (profile.unseen(), profile.sampling());
    let percent = |x: f64| format!("{:.1} %", 100.0 * x);
    if profile.completeness() < t.completeness {
        let seen = percent(profile.completeness());
        return Some(format!("only {seen} of the accesses were recorded"));
    }
    if c.lacking.is_some() {
        return c.lacking.clone();
    }
    let lacking = unseen > 0.0 || sampling < 1.0 || !profile.catalog.completeness.is_complete();
    let many = c.aps.len() > 2;
    match c.finding.kind {
        Kind::NoSharing if lacking => {
            return Some("another process's accesses may not have been recorded".into());
        }
        Kind::FalseSharing if unseen > 0.0 => {
            return Some("writes of the same elements may not have been recorded".into());
        }
        Kind::MisplacedOwner if unseen > 0.0 && profile.unseen_accesses() >= c.records as f64 => {
            return Some("as many accesses as these were not recorded, perhaps the owner's".into());
        }
        Kind::PingPong if lacking && many => {
            return Some("holders in between may not have been recorded".into());
        }
        Kind::Imbalance if lacking && !c.finding.evidence.contains_key("processor_ns") => {
            return Some("what looks like work may be waiting that was not recorded".into());
        }
        Kind::ReadOnlyLocking if lacking => {
            return Some("what else was done in these sections may not have been recorded".into());
        }
        Kind::Deadlock if sampling < 1.0 => {
            return Some("with sampling, a release may not have been recorded".into());
        }
        _ => {}
    }
    if let Some((value, threshold)) = c.ratio
        && unseen > 0.0
        && value * (1.0 - unseen) - unseen < threshold
    {
        return Some(format!(
            "the {} of the accesses that were not recorded could explain it",
            percent(unseen)
        ));
    }
    let chance = 2.0 / (c.records.max(1) as f64).sqrt();
    if sampling < 1.0 && c.finding.severity * (1.0 - chance) < c.floor {
        return Some(format!("{} sampled records could be chance", c.records));
    }
    None
}
