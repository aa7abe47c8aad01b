//! **Policy mismatch**: the other copy policy would cost fewer messages.
//!
//! With *invalidate*, a memory process that reads some version of an object through a copy costs four
//! messages for that version: the fetch and its reply, the invalidation and its acknowledgement. With
//! *update*, every new version costs two for every memory process that ever read it. Holds when the
//! variable's own policy costs more than the other by at least `policy_messages` of its messages, and
//! the messages saved, at the mean cost of an intra-group read, are worth `worth_saying` of process time.

use dosmos_proto::{CopyPolicy, VarId};
use dosmos_trace::record::{Op, Origin};

use crate::finding::{Finding, Kind};
use crate::profile::{ObjectProfile, Profile};
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, objects) in profile.by_variable() {
        let Some(policy) = policy_of(profile, id) else {
            continue;
        };
        let (mut invalidate, mut update) = (0, 0);
        for (object, used) in objects {
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
        let lost = profile.fraction(saved / 2.0 * profile.costs.mean(Op::Read, Origin::Intra));
        if saved < t.policy_messages * own as f64 || lost < t.worth_saying {
            continue;
        }
        findings.push(describe(profile, id, (own, other), better, lost));
    }
    findings
}

fn policy_of(profile: &Profile, id: VarId) -> Option<CopyPolicy> {
    let variable = profile.catalog.variables.iter().find(|v| v.id == id)?;
    Some(variable.spec.policy)
}

/// Messages under *invalidate* and under *update*.
fn messages(profile: &Profile, id: dosmos_proto::ObjectId, used: &ObjectProfile) -> (u64, u64) {
    let Some(owner) = profile.owner(id) else {
        return (0, 0);
    };
    let changes = used.new_versions();
    let mut sums = (0, 0);
    for (&mp, here) in &used.by_mp {
        // Copies live in the owner's group only; elsewhere both policies cost the same.
        if here.versions_read > 0 && profile.origin(mp, owner) == Origin::Intra {
            sums.0 += 4 * here.versions_read;
            sums.1 += 2 + 2 * changes;
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
