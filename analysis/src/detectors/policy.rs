//! **Policy mismatch**: the other copy policy would cost fewer messages.
//!
//! With *invalidate*, a memory process that reads some version of an object through a copy costs four
//! messages for that version: the fetch and its reply, the invalidation and its acknowledgement. With
//! *update*, every new version made elsewhere costs two for every memory process that has read one. Holds when the
//! variable's own policy costs at least `least_accesses` messages, more than the other by at least `policy_messages`
//! of them, and
//! the messages saved, at the mean cost of an intra-group access, are worth `worth_saying` of process time.

use dosmos_proto::{CopyPolicy, ObjectId, VarId};
use dosmos_trace::record::Origin;

use crate::detectors::candidate::Candidate;
use crate::finding::{Finding, Kind};
use crate::profile::{ObjectProfile, Profile};
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut findings = Vec::new();
    for (id, objects) in profile.by_variable() {
        let Some(policy) = policy_of(profile, id) else {
            continue;
        };
        let (mut invalidate, mut update) = (0, 0);
        for &(object, used) in &objects {
            let costs = messages(profile, object, used);
            invalidate += costs.0;
            update += costs.1;
        }
        let (own, other, better) = match policy {
            CopyPolicy::Invalidate => (invalidate, update, CopyPolicy::Update),
            CopyPolicy::Update => (update, invalidate, CopyPolicy::Invalidate),
        };
        let saved = own.saturating_sub(other) as f64;
        // A fetch is two messages on the way of a read.
        let lost =
            profile.fraction(profile.scaled(saved / 2.0 * profile.costs.mean(Origin::Intra)));
        let few = own < t.least_accesses || saved < t.policy_messages * own as f64;
        if few || lost < t.worth_saying {
            continue;
        }
        let finding = describe(profile, id, (own, other), better, lost);
        let records = objects.iter().map(|(_, used)| used.counts().total()).sum();
        let objects = objects.iter().map(|(id, _)| *id);
        let mut candidate = Candidate::new(finding, objects, records, t.worth_saying);
        candidate.ratio = Some((saved / own as f64, t.policy_messages));
        findings.push(candidate);
    }
    findings
}

fn policy_of(profile: &Profile, id: VarId) -> Option<CopyPolicy> {
    Some(profile.variable(id)?.spec.policy)
}

/// Messages under *invalidate* and under *update*.
fn messages(profile: &Profile, id: ObjectId, used: &ObjectProfile) -> (u64, u64) {
    let Some(owner) = profile.owner(id) else {
        return (0, 0);
    };
    let mut sums = (0, 0);
    for (&mp, here) in &used.by_mp {
        // Copies live in the owner's group only; elsewhere both policies cost the same.
        if let Some(first) = here.first_version_read
            && profile.origin(mp, owner) == Origin::Intra
        {
            let told = used.versions_from(first).saturating_sub(here.own_versions);
            sums.0 += 4 * here.versions_read;
            sums.1 += 2 + 2 * told;
        }
    }
    sums
}

fn describe(
    profile: &Profile,
    id: VarId,
    (own, other): (u64, u64),
    better: CopyPolicy,
    lost: f64,
) -> Finding {
    let name = profile.catalog.name_of(id);
    let mut finding = Finding::new(Kind::PolicyMismatch, profile.window)
        .with("messages", own)
        .with("messages_with_other_policy", other);
    finding.severity = lost;
    finding.predicted_gain = Some(lost);
    finding.advice = format!(
        "declare {name} with policy {better}: {other} instead of {own} messages for its copies"
    );
    finding.patch = Some(crate::patch::policy(&name, better));
    finding.variable = Some(name);
    finding
}
