//! **Crowded owner**: one memory process owns what the processes of many others use.
//!
//! Holds when of the cost of all accesses that leave their memory process at least `crowded_share` goes to the objects of one
//! owner; the memory processes that use these objects most are three or more (two, where there are but two others), none of
//! which would gain more than `crowded_target` of it all; and if each object belonged to the one that uses it most, the
//! accesses to that owner's objects would cost less by at least `assignment_gain`, which is at least `patch_gain` of total
//! process time, or `time_lost` of the time of the processes that gain.
//!
//! Objects that no memory process uses more than another are spread evenly over those that use any: that saves no way, but
//! the one owner need not serve all.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, MpId, ObjectId, VarId};
use dosmos_trace::record::Origin;

use crate::cure::Cure;
use crate::detectors::candidate::{self, Candidate};
use crate::detectors::owner::{Move, better_owner};
use crate::finding::{Finding, Kind};
use crate::patch;
use crate::profile::{ObjectProfile, Profile};
use crate::thresholds::Thresholds;

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let Some((owner, share)) = busiest_owner(profile) else {
        return Vec::new();
    };
    if share < t.crowded_share {
        return Vec::new();
    }
    let crowd = Crowd::at(profile, t, owner);
    describe(profile, t, share, &crowd).into_iter().collect()
}

/// The owner to whose objects most of the cost of the accesses from elsewhere goes, and which fraction of it.
fn busiest_owner(profile: &Profile) -> Option<(MpId, f64)> {
    let mut costs: BTreeMap<MpId, f64> = BTreeMap::new();
    for (&id, object) in &profile.objects {
        let Some(owner) = profile.owner(id) else {
            continue;
        };
        let policy = profile.policy(id.var);
        for (&mp, used) in &object.by_mp {
            let origin = profile.origin(mp, owner);
            if origin != Origin::Local {
                *costs.entry(owner).or_default() += used.cost(&profile.costs, origin, policy);
            }
        }
    }
    let all: f64 = costs.values().sum();
    let busiest = costs.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (all > 0.0).then_some((busiest.0, busiest.1 / all))
}

/// What one memory process owns.
struct Crowd {
    owner: MpId,
    /// Objects that another process uses most, and where they would be.
    moves: BTreeMap<ObjectId, (MpId, Move)>,
    /// Cost of the accesses to all its objects.
    cost: f64,
    /// Objects that several use and none most.
    common: Vec<ObjectId>,
    /// The memory processes that use any.
    users: BTreeSet<MpId>,
}

impl Crowd {
    fn at(profile: &Profile, t: &Thresholds, owner: MpId) -> Self {
        let mut crowd = Self {
            owner,
            moves: BTreeMap::new(),
            cost: 0.0,
            common: Vec::new(),
            users: BTreeSet::new(),
        };
        let owned = profile.objects.iter();
        for (&id, object) in owned.filter(|(id, _)| profile.owner(**id) == Some(owner)) {
            crowd.add(profile, t, id, object);
        }
        crowd
    }

    fn add(&mut self, profile: &Profile, t: &Thresholds, id: ObjectId, object: &ObjectProfile) {
        let policy = profile.policy(id.var);
        for (&mp, used) in &object.by_mp {
            let origin = profile.origin(mp, self.owner);
            self.cost += used.cost(&profile.costs, origin, policy);
        }
        self.users.extend(object.by_mp.keys().copied());
        let uses = |mp: &MpId| object.by_mp.get(mp).map_or(0, |u| u.counts().total());
        if let Some(found) = better_owner(profile, id, object, t) {
            self.moves.insert(id, found);
        } else if object.by_mp.len() > 1
            && uses(&self.owner) * object.by_mp.len() as u64
                <= object.by_mp.keys().map(uses).sum::<u64>()
        {
            self.common.push(id);
        }
    }

    /// What each new owner would save its processes, nanoseconds.
    fn saved_by_target(&self) -> BTreeMap<MpId, f64> {
        let mut saved: BTreeMap<MpId, f64> = BTreeMap::new();
        for (to, found) in self.moves.values() {
            *saved.entry(*to).or_default() += found.now - found.then;
        }
        saved
    }

    /// Whether what it owns belongs to many others.
    fn is_crowded(&self, t: &Thresholds) -> bool {
        let saved = self.saved_by_target();
        let all: f64 = saved.values().sum();
        let others = self.users.iter().filter(|mp| **mp != self.owner).count();
        let most = saved.values().copied().fold(0.0, f64::max);
        saved.len() >= others.clamp(2, 3)
            && most <= t.crowded_target * all
            && all >= t.assignment_gain * self.cost
    }

    /// The new owner of every object that is to have one.
    fn owners(&self) -> BTreeMap<ObjectId, MpId> {
        let moved = self.moves.iter().map(|(id, (to, _))| (*id, *to));
        let spread = self.common.iter().copied().zip(self.users.iter().cycle());
        let spread = spread.map(|(id, mp)| (id, *mp));
        let all = spread.chain(moved);
        all.filter(|(_, to)| *to != self.owner).collect()
    }
}

fn describe(profile: &Profile, t: &Thresholds, share: f64, crowd: &Crowd) -> Option<Candidate> {
    if !crowd.is_crowded(t) {
        return None;
    }
    let mut by_ap: BTreeMap<ApId, f64> = BTreeMap::new();
    for (ap, saved) in crowd.moves.values().flat_map(|(_, found)| &found.saved) {
        *by_ap.entry(*ap).or_default() += saved;
    }
    let lost = profile.fraction(profile.scaled(profile.lost_by_all(&by_ap)));
    let gaining: BTreeSet<ApId> = by_ap.iter().filter(|s| *s.1 > 0.0).map(|s| *s.0).collect();
    let records: u64 = crowd.moves.values().map(|(_, found)| found.records).sum();
    let floor = candidate::least_patched(profile, t, gaining.len());
    if lost < floor || records < t.least_accesses {
        return None;
    }
    let owners = crowd.owners();
    let mut finding = tell(profile, crowd, share, &owners);
    finding.aps = profile.ap_names(&gaining);
    finding.severity = lost;
    finding.predicted_gain = Some(lost);
    let objects: Vec<ObjectId> = owners.keys().copied().collect();
    finding.cure = Some(Cure::owners(owners));
    let mut candidate = Candidate::new(finding, objects, records, floor);
    let saved: f64 = crowd.saved_by_target().values().sum();
    candidate.ratio = Some((saved / crowd.cost.max(1.0), t.assignment_gain));
    candidate.aps = gaining;
    Some(candidate)
}

fn tell(
    profile: &Profile,
    crowd: &Crowd,
    share: f64,
    owners: &BTreeMap<ObjectId, MpId>,
) -> Finding {
    let topology = &profile.catalog.topology;
    let mut by_variable: BTreeMap<VarId, BTreeMap<ObjectId, MpId>> = BTreeMap::new();
    for (&id, &to) in owners {
        by_variable.entry(id.var).or_default().insert(id, to);
    }
    let names: Vec<String> = by_variable
        .keys()
        .map(|v| profile.catalog.name_of(*v))
        .collect();
    let targets: BTreeSet<MpId> = owners.values().copied().collect();
    let targets: Vec<String> = targets.iter().map(|mp| topology.mp_name(*mp)).collect();
    let owner = topology.mp_name(crowd.owner);
    let saved: f64 = crowd.saved_by_target().values().sum();
    let mut finding = Finding::new(Kind::CrowdedOwner, profile.window)
        .with("owner", owner.clone())
        .with("share_of_remote", share)
        .with("better_owners", targets.clone())
        .with("variables", names.clone())
        .with("moved_objects", owners.len())
        .with("access_cost_ns", crowd.cost)
        .with("access_cost_then_ns", crowd.cost - saved);
    if let [only] = names.as_slice() {
        finding.variable = Some(only.clone());
    }
    let group = topology.mp(crowd.owner).map(|mp| mp.group);
    finding.groups = group.map(|g| topology.group_name(g)).into_iter().collect();
    finding.advice = format!(
        "{owner} owns {} that the processes of {} other memory processes use most: let each object belong to the memory \
         process that uses it most",
        match names.as_slice() {
            [only] => format!("objects of {only}"),
            several => format!("objects of {} variables", several.len()),
        },
        targets.len(),
    );
    finding.patch = Some(patch::regroup(profile, &[], &by_variable));
    finding
}
