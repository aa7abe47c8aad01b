//! **Policy mismatch**: the other copy policy would cost fewer messages, or let processes wait for fewer of them.
//!
//! With *invalidate*, a memory process that reads some version of an object through a copy costs four
//! messages for that version: the fetch and its reply, the invalidation and its acknowledgement. With
//! *update*, every new version made elsewhere costs two for every memory process that has read one. Processes wait for
//! fetches, and for the copies' answers to their releases, which come all at once. Holds when the
//! variable's own policy costs at least `least_accesses` messages, more than the other by at least `policy_messages`
//! of them (or that much more of what is waited for, and the other costs hardly more messages);
//! and the time saved is at least `patch_gain` of process time, or `their_loss` of the time of the processes that use
//! the variable. That time is the messages saved, at the mean cost
//! of an intra-group access; or, if it is more, what all save that wait at barriers for the readers, who fetch, or for the
//! writers, whose releases wait until the last copy is dealt with.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, CopyPolicy, MpId, ObjectId, VarId};
use dosmos_trace::record::Origin;

use crate::cure::Cure;
use crate::detectors::candidate::{self, Candidate};
use crate::finding::{Finding, Kind};
use crate::profile::{MpUse, ObjectProfile, Profile};
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut findings = Vec::new();
    for (id, objects) in profile.by_variable() {
        let Some(policy) = policy_of(profile, id) else {
            continue;
        };
        let [invalidate, update] = costs(profile, &objects);
        let (own, other, better) = match policy {
            CopyPolicy::Invalidate => (invalidate, update, CopyPolicy::Update),
            CopyPolicy::Update => (update, invalidate, CopyPolicy::Invalidate),
        };
        let Some(saving) = own.saving(&other, t) else {
            continue;
        };
        let saved = own.messages.saturating_sub(other.messages) as f64;
        let by_messages = saved / 2.0 * profile.costs.mean(Origin::Intra);
        let by_waiting = profile.lost_by_all(&waited(profile, &objects, policy));
        let lost = profile.fraction(profile.scaled(by_messages.max(by_waiting)));
        let users: BTreeSet<&ApId> = objects.iter().flat_map(|o| o.1.by_ap.keys()).collect();
        let floor = candidate::least_patched(profile, t, users.len());
        if lost < floor {
            continue;
        }
        let finding = describe(profile, id, (own, other), better, lost);
        let records = objects.iter().map(|(_, used)| used.counts().total()).sum();
        let objects = objects.iter().map(|(id, _)| *id);
        let mut candidate = Candidate::new(finding, objects, records, floor);
        candidate.ratio = Some((saving, t.policy_messages));
        findings.push(candidate);
    }
    findings
}

fn policy_of(profile: &Profile, id: VarId) -> Option<CopyPolicy> {
    Some(profile.variable(id)?.spec().policy())
}

/// What the copies of a variable cost under a policy.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    messages: u64,
    /// Exchanges of messages that a process waits for: a fetch, or the answers of all copies to a release.
    waits: u64,
}

impl Cost {
    /// The fraction that the other policy saves, of the messages or of what is waited for (if that takes not many more
    /// messages); none if it is too little.
    fn saving(&self, other: &Self, t: &Thresholds) -> Option<f64> {
        let of = |own: u64, other: u64| 1.0 - other as f64 / own.max(1) as f64;
        let messages = of(self.messages, other.messages);
        let waits = match messages > -t.policy_messages {
            true => of(self.waits, other.waits),
            false => 0.0,
        };
        let saving = messages.max(waits);
        (self.messages >= t.least_accesses && saving >= t.policy_messages).then_some(saving)
    }
}

/// Under *invalidate* and under *update*.
fn costs(profile: &Profile, objects: &[(ObjectId, &ObjectProfile)]) -> [Cost; 2] {
    let [mut invalidate, mut update] = [Cost::default(); 2];
    for &(id, used) in objects {
        let (mut dropped, mut renewed) = (0, 0);
        for (_, here, told) in copies(profile, id, used) {
            invalidate.messages += 4 * here.versions_read;
            invalidate.waits += here.versions_read;
            update.messages += 2 + 2 * told;
            update.waits += 1;
            dropped = dropped.max(here.versions_read);
            renewed = renewed.max(told);
        }
        // A release tells all copies at once.
        invalidate.waits += dropped;
        update.waits += renewed;
    }
    [invalidate, update]
}

/// The memory processes that have copies of an object, and of how many versions *update* would tell them. Copies live in the
/// owner's group only; elsewhere both policies cost the same.
fn copies<'a>(
    profile: &'a Profile,
    id: ObjectId,
    used: &'a ObjectProfile,
) -> impl Iterator<Item = (MpId, &'a MpUse, u64)> {
    let owner = profile.owner(id);
    used.by_mp.iter().filter_map(move |(&mp, here)| {
        let first = here.first_version_read?;
        let told = used.versions_from(first).saturating_sub(here.own_versions);
        (profile.origin(mp, owner?) == Origin::Intra).then_some((mp, here, told))
    })
}

/// What each process waits longer with `policy` than with the other one, nanoseconds; negative: less.
fn waited(
    profile: &Profile,
    objects: &[(ObjectId, &ObjectProfile)],
    policy: CopyPolicy,
) -> BTreeMap<ApId, f64> {
    let trip = profile.costs.mean(Origin::Intra);
    let fetch = trip - profile.costs.mean(Origin::Local);
    let sign = match policy {
        CopyPolicy::Invalidate => 1.0,
        CopyPolicy::Update => -1.0,
    };
    let mut sums: BTreeMap<ApId, f64> = BTreeMap::new();
    let mut add = |ap: ApId, time: f64| *sums.entry(ap).or_default() += sign * time;
    for &(id, used) in objects {
        // Releases tell all copies at once: they wait as often as the one told most often.
        let (mut dropped, mut renewed) = (0, 0);
        for (mp, here, told) in copies(profile, id, used) {
            let fetched = here.versions_read.saturating_sub(1) as f64 * fetch;
            for (ap, time) in profile.by_ap_of(mp, used, fetched) {
                add(ap, time);
            }
            dropped = dropped.max(here.versions_read);
            renewed = renewed.max(told);
        }
        let writes = used.counts().writes.max(1) as f64;
        for (&ap, own) in &used.by_ap {
            let share = own.counts.writes as f64 / writes;
            add(ap, share * (dropped as f64 - renewed as f64) * trip);
        }
    }
    sums
}

fn describe(
    profile: &Profile,
    id: VarId,
    (own, other): (Cost, Cost),
    better: CopyPolicy,
    lost: f64,
) -> Finding {
    let name = profile.catalog.name_of(id);
    let mut finding = Finding::new(Kind::PolicyMismatch, profile.window)
        .with("messages", own.messages)
        .with("messages_with_other_policy", other.messages)
        .with("waits", own.waits)
        .with("waits_with_other_policy", other.waits);
    finding.severity = lost;
    finding.predicted_gain = Some(lost);
    finding.advice = format!(
        "declare {name} with policy {better}: {} instead of {} messages for its copies, of which processes wait for {} \
         instead of {}",
        other.messages, own.messages, other.waits, own.waits,
    );
    finding.patch = Some(crate::patch::policy(&name, better));
    finding.cure = Some(Cure::Policy(id, better));
    finding.variable = Some(name);
    finding
}
