//! **Bad group structure**: processes and the variables they use stand in different groups.
//!
//! Holds when the best assignment of processes and owners to groups ([`assignment`]) lowers the access
//! cost of at least `least_accesses` accesses by at least `assignment_gain`, and that is at least `patch_gain` of total process time
//! (or `time_lost` of the time of the processes concerned). Owners
//! alone are moved unless moving processes too gains as much again: a declaration is easier to
//! change than a cluster. Inter-group accesses that no assignment avoids are not reported. An object whose
//! users in its better group are those of one memory process has a *misplaced owner* instead.

mod assignment;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, GroupId, MpId, ObjectId, VarId};

use crate::cure::Cure;
use crate::detectors::candidate::{self, Candidate};
use crate::finding::{Finding, Kind};
use crate::groups::GroupMatrix;
use crate::patch;
use crate::profile::Profile;
use crate::thresholds::Thresholds;
use tables::{Part, Tables, tables};

/// Fraction of the whole gain below which moving one more part is not worth the words.
const NEGLIGIBLE_PART: f64 = 0.01;

/// The best places of the processes; today's unless moving them gains enough over moving owners alone.
fn proposed_places(tables: &Tables, t: &Thresholds) -> Vec<usize> {
    let problem = &tables.assignment;
    let best = problem.solve();
    let gain = problem.cost(&problem.places) - problem.cost(&best);
    if gain >= t.assignment_gain * problem.cost_today() && gain > 0.0 {
        best
    } else {
        problem.places.clone()
    }
}

/// The finding, if there is one, and the matrix behind it. Variables whose
/// users have nothing to do with each other (`unshared`) have no group.
pub(super) fn detect(
    profile: &Profile,
    t: &Thresholds,
    unshared: &BTreeSet<VarId>,
) -> (Option<Candidate>, GroupMatrix) {
    let tables = tables(profile, unshared);
    let places = proposed_places(&tables, t);
    let matrix = tables::matrix(profile, &tables, &places);
    if profile.catalog.topology.groups().len() < 2 {
        return (None, matrix);
    }
    let problem = &tables.assignment;
    let now = problem.cost_today();
    let moves = moves(profile, &tables, &places);
    let saved: f64 = if places == problem.places {
        moves.iter().map(|m| m.saved).sum()
    } else {
        now - problem.cost(&places)
    };
    let lost = profile.fraction(profile.scaled(saved));
    if saved < t.assignment_gain * now || now <= 0.0 {
        return (None, matrix);
    }
    let candidate = describe(profile, &tables, &places, &moves, (now, saved));
    let floor = candidate::least_patched(profile, t, candidate.aps.len());
    if lost < floor || candidate.records < t.least_accesses {
        return (None, matrix);
    }
    let candidate = Candidate {
        floor,
        ratio: Some((saved / now, t.assignment_gain)),
        ..candidate
    };
    (Some(candidate), matrix)
}

/// A part that has a better group.
struct Move<'a> {
    part: &'a Part,
    to: usize,
    owner: MpId,
    saved: f64,
}

fn moves<'a>(profile: &Profile, tables: &'a Tables, places: &[usize]) -> Vec<Move<'a>> {
    let problem = &tables.assignment;
    let all = problem.cost_today() - problem.cost(places);
    let mut moves = Vec::new();
    for (v, part) in tables.parts.iter().enumerate() {
        let (to, then) = problem.best_group(places, v);
        let saved = problem.part_cost(places, v, problem.owners[v]) - then;
        if to == problem.owners[v] || saved <= NEGLIGIBLE_PART * all {
            continue;
        }
        let users = users_in(profile, part, to);
        if users.len() == 1 && places == problem.places {
            continue;
        }
        if let Some(owner) = best_owner(profile, part, to) {
            moves.push(Move {
                part,
                to,
                owner,
                saved,
            });
        }
    }
    moves
}

/// The memory processes of group `g` that use the part.
fn users_in(profile: &Profile, part: &Part, g: usize) -> Vec<(MpId, u64)> {
    let of = |mp: MpId| profile.catalog.topology.mp(mp).map(|p| p.group.index());
    let used = part.by_mp.iter().map(|(&mp, &n)| (mp, n));
    used.filter(|(mp, _)| of(*mp) == Some(g)).collect()
}

/// The memory process of group `g` that uses the part most, or the first there.
fn best_owner(profile: &Profile, part: &Part, g: usize) -> Option<MpId> {
    let users = users_in(profile, part, g);
    let most = users.into_iter().max_by_key(|u| u.1).map(|u| u.0);
    most.or_else(|| {
        let topology = &profile.catalog.topology;
        let mut all = topology.owners_in(Some(GroupId(g as u32)));
        all.find(|&mp| topology.mp(mp).is_some_and(|p| p.group.index() == g))
    })
}

fn describe(
    profile: &Profile,
    tables: &Tables,
    places: &[usize],
    moves: &[Move<'_>],
    (now, saved): (f64, f64),
) -> Candidate {
    let topology = &profile.catalog.topology;
    let group = |g: usize| topology.group_name(GroupId(g as u32));
    let today = &tables.assignment.places;
    let mut owners: BTreeMap<VarId, BTreeMap<ObjectId, MpId>> = BTreeMap::new();
    let mut targets: BTreeMap<VarId, BTreeSet<usize>> = BTreeMap::new();
    for m in moves {
        let of = owners.entry(m.part.variable).or_default();
        of.extend(m.part.objects.iter().map(|&id| (id, m.owner)));
        targets.entry(m.part.variable).or_default().insert(m.to);
    }
    let moved: Vec<(ApId, usize)> = tables
        .aps
        .iter()
        .enumerate()
        .filter(|(p, _)| places[*p] != today[*p])
        .map(|(p, &ap)| (ap, places[p]))
        .collect();
    let mut advice: Vec<String> = moved
        .iter()
        .map(|(ap, g)| format!("move {} to {}", topology.ap_name(*ap), group(*g)))
        .collect();
    advice.extend(targets.iter().map(|(id, groups)| {
        let groups: Vec<String> = groups.iter().map(|&g| group(g)).collect();
        format!(
            "let {} own {}",
            groups.join(" and "),
            profile.catalog.name_of(*id)
        )
    }));
    let names: Vec<String> = owners.keys().map(|&v| profile.catalog.name_of(v)).collect();
    let mut finding = Finding::new(Kind::BadGroup, profile.window)
        .with("access_cost_ns", now)
        .with("access_cost_then_ns", now - saved)
        .with("variables", names.clone())
        .with(
            "moved_processes",
            moved
                .iter()
                .map(|m| topology.ap_name(m.0))
                .collect::<Vec<_>>(),
        );
    if let ([name], true) = (names.as_slice(), moved.is_empty()) {
        finding.variable = Some(name.clone());
    }
    let concerned: BTreeSet<ApId> = moves
        .iter()
        .flat_map(|m| m.part.users())
        .chain(moved.iter().map(|m| m.0))
        .collect();
    finding.aps = profile.ap_names(&concerned);
    finding.groups = profile.group_names(&concerned);
    finding.severity = profile.fraction(profile.scaled(saved));
    finding.predicted_gain = Some(finding.severity);
    finding.advice = advice.join("; ");
    let seats = patch::seats(profile, &moved);
    finding.patch = Some(patch::regroup(profile, &seats, &owners));
    finding.cure = Some(Cure::Move {
        processes: seats.into_iter().collect(),
        owners: owners.into_values().flatten().collect(),
    });
    let parts = tables.parts.iter();
    let touched = parts.filter(|p| moved.iter().any(|(ap, _)| p.uses(*ap) > 0));
    let concerning: Vec<&Part> = touched.chain(moves.iter().map(|m| m.part)).collect();
    let objects = concerning.iter().flat_map(|p| p.objects.iter().copied());
    let records = concerning.iter().map(|p| p.accesses()).sum();
    let mut candidate = Candidate::new(finding, objects, records, 0.0);
    candidate.aps = concerned;
    candidate
}
