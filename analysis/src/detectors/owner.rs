//! **Misplaced owner**: another memory process issues most accesses to an object than the one that
//! owns it.
//!
//! Cost of an owner: Σ over memory processes of their accesses × mean cost from there; in the owner's group reads
//! are served from copies as often as the versions that were read allow. Holds when the process with most
//! accesses (at least `least_accesses` in all) is not the owner, moving the object there lowers the cost by at least `assignment_gain`,
//! and that is at least `patch_gain` of total process time (with what others wait at barriers), or `their_loss` of the
//! time of the processes that gain. Objects of one variable with the same cure
//! make one finding.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, MpId, ObjectId, VarId};

use crate::cure::Cure;
use crate::detectors::candidate::{self, Candidate};
use crate::finding::{Finding, Kind};
use crate::profile::{MpUse, ObjectProfile, Profile};
use crate::thresholds::Thresholds;

/// An object and a better owner of it.
pub(super) struct Move {
    object: u32,
    from: MpId,
    /// Cost of its accesses, nanoseconds: as it is, and with the better owner.
    pub(super) now: f64,
    pub(super) then: f64,
    /// What each process would save, nanoseconds.
    pub(super) saved: Vec<(ApId, f64)>,
    /// Accesses.
    pub(super) records: u64,
}

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Candidate> {
    let mut moves: BTreeMap<(VarId, MpId), Vec<Move>> = BTreeMap::new();
    for (&id, object) in &profile.objects {
        if let Some((to, found)) = better_owner(profile, id, object, t) {
            moves.entry((id.var, to)).or_default().push(found);
        }
    }
    moves
        .into_iter()
        .filter_map(|((variable, to), moves)| describe(profile, t, variable, to, &moves))
        .collect()
}

/// The memory process that issues most accesses to an object, if it would be the better owner.
pub(super) fn better_owner(
    profile: &Profile,
    id: ObjectId,
    object: &ObjectProfile,
    t: &Thresholds,
) -> Option<(MpId, Move)> {
    let from = profile.owner(id)?;
    let (&to, _) = object
        .by_mp
        .iter()
        .max_by_key(|(_, used)| used.counts().total())?;
    let policy = profile.policy(id.var);
    let cost = |mp: MpId, used: &MpUse, owner: MpId| {
        used.cost(&profile.costs, profile.origin(mp, owner), policy)
    };
    let (mut now, mut then, mut saved) = (0.0, 0.0, Vec::new());
    for (&mp, used) in &object.by_mp {
        let (today, moved) = (cost(mp, used, from), cost(mp, used, to));
        now += today;
        then += moved;
        saved.extend(profile.by_ap_of(mp, object, today - moved));
    }
    (to != from && now - then >= t.assignment_gain * now).then_some((
        to,
        Move {
            object: id.index,
            from,
            now,
            then,
            saved,
            records: object.counts().total(),
        },
    ))
}

fn describe(
    profile: &Profile,
    t: &Thresholds,
    variable: VarId,
    to: MpId,
    moves: &[Move],
) -> Option<Candidate> {
    let (now, then) = moves
        .iter()
        .fold((0.0, 0.0), |s, m| (s.0 + m.now, s.1 + m.then));
    let mut by_ap: BTreeMap<ApId, f64> = BTreeMap::new();
    for &(ap, saved) in moves.iter().flat_map(|m| &m.saved) {
        *by_ap.entry(ap).or_default() += saved;
    }
    let lost = profile.fraction(profile.scaled(profile.lost_by_all(&by_ap)));
    let records: u64 = moves.iter().map(|m| m.records).sum();
    let gaining = by_ap.values().filter(|saved| **saved > 0.0).count();
    let floor = candidate::least_patched(profile, t, gaining);
    if lost < floor || records < t.least_accesses {
        return None;
    }
    let topology = &profile.catalog.topology;
    let name = profile.catalog.name_of(variable);
    let to_name = topology.mp_name(to);
    let objects: Vec<u32> = moves.iter().map(|m| m.object).collect();
    let mut finding = Finding::new(Kind::MisplacedOwner, profile.window)
        .with("owner", topology.mp_name(moves[0].from))
        .with("better_owner", to_name.clone())
        .with("objects", objects)
        .with("access_cost_ns", now)
        .with("access_cost_then_ns", then);
    if let [only] = moves {
        finding.object = Some(only.object);
    }
    finding.severity = lost;
    finding.predicted_gain = Some(lost);
    let moved = moves.iter().map(|m| ObjectId::new(variable, m.object));
    let owners = moved.clone().map(|id| (id, to)).collect();
    finding.patch = crate::patch::owners(profile, variable, &owners);
    finding.cure = Some(Cure::owners(owners));
    finding.variable = Some(name);
    finding.advice = format!(
        "let {to_name} own {}: its processes issue most of the accesses",
        finding.target()
    );
    let mut candidate = Candidate::new(finding, moved, records, floor);
    candidate.ratio = Some(((now - then) / now, t.assignment_gain));
    Some(candidate)
}
