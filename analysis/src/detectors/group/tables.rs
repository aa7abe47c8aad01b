//! From a profile to the assignment problem.
//!
//! An access to an owner in the group costs the mean local or intra-group access of its operation, reads being
//! served from copies as often as the versions that were read allow; to one elsewhere, the mean inter-group access.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, GroupId, MpId, ObjectId, VarId};
use dosmos_trace::meta::OpCounts;
use dosmos_trace::record::Origin;

use super::assignment::Assignment;
use crate::groups::{GroupMatrix, MatrixAp, MatrixVariable};
use crate::profile::{ObjectProfile, Profile};

/// Parts told apart by their users at most; beyond it they are told apart by variable and group only.
const PARTS: usize = 2_000;

/// Most cells (processes × parts) of the tables; beyond it the parts least used stay where they are.
const CELLS: usize = 2_000_000;

/// Objects of one variable with the same owner's group and users.
pub(super) struct Part {
    pub(super) variable: VarId,
    pub(super) objects: Vec<ObjectId>,
    /// Accesses by memory process.
    pub(super) by_mp: BTreeMap<MpId, u64>,
    /// By process: accesses, and what they cost from an owner in its group.
    by_ap: BTreeMap<ApId, (OpCounts, f64)>,
}

/// The problem, and what its rows and columns stand for.
pub(super) struct Tables {
    pub(super) assignment: Assignment,
    pub(super) aps: Vec<ApId>,
    pub(super) parts: Vec<Part>,
}

pub(super) fn tables(profile: &Profile, unshared: &BTreeSet<VarId>) -> Tables {
    let topology = &profile.catalog.topology;
    let aps: Vec<ApId> = profile.aps.keys().copied().collect();
    let (parts, owners) = parts(profile, unshared, CELLS / aps.len().max(1));
    let places: Vec<usize> = aps
        .iter()
        .map(|&ap| topology.group_of_ap(ap).map_or(0, GroupId::index))
        .collect();
    let mut within = vec![vec![0.0; parts.len()]; aps.len()];
    let mut across = within.clone();
    for (p, ap) in aps.iter().enumerate() {
        for (v, part) in parts.iter().enumerate() {
            let Some((counts, within_cost)) = part.by_ap.get(ap) else {
                continue;
            };
            within[p][v] = *within_cost;
            // Where noise makes a crossing look cheaper than staying, it counts as equal.
            across[p][v] = profile.costs.of(counts, Origin::Inter).max(within[p][v]);
        }
    }
    let can_own = (0..topology.groups().len() as u32)
        .map(|g| {
            let mut owners = topology.owners_in(Some(GroupId(g)));
            owners.any(|mp| topology.mp(mp).is_some_and(|m| m.group == GroupId(g)))
        })
        .collect();
    Tables {
        assignment: Assignment {
            within,
            across,
            places,
            owners,
            can_own,
        },
        aps,
        parts,
    }
}

fn parts(profile: &Profile, unshared: &BTreeSet<VarId>, most: usize) -> (Vec<Part>, Vec<usize>) {
    let mut index: BTreeMap<(VarId, usize, Vec<ApId>), usize> = BTreeMap::new();
    let (mut parts, mut owners): (Vec<Part>, Vec<usize>) = (Vec::new(), Vec::new());
    for (&id, object) in &profile.objects {
        if object.by_ap.is_empty() || unshared.contains(&id.var) {
            continue;
        }
        let owner = profile.owner(id).unwrap_or(object.owner);
        let home = profile.catalog.topology.mp(owner);
        let group = home.map_or(0, |p| p.group.index());
        let users = if index.len() < PARTS {
            object.by_ap.keys().copied().collect()
        } else {
            Vec::new()
        };
        let at = *index.entry((id.var, group, users)).or_insert_with(|| {
            owners.push(group);
            parts.push(Part {
                variable: id.var,
                objects: Vec::new(),
                by_mp: BTreeMap::new(),
                by_ap: BTreeMap::new(),
            });
            parts.len() - 1
        });
        parts[at].add(profile, id, object, owner);
    }
    let mut both: Vec<(Part, usize)> = parts.into_iter().zip(owners).collect();
    if both.len() > most {
        both.sort_by_key(|(part, _)| std::cmp::Reverse(part.accesses()));
        both.truncate(most);
    }
    both.into_iter().unzip()
}

impl Part {
    fn add(&mut self, profile: &Profile, id: ObjectId, object: &ObjectProfile, owner: MpId) {
        self.objects.push(id);
        for (&mp, used) in &object.by_mp {
            *self.by_mp.entry(mp).or_default() += used.fetched.total() + used.optimized;
        }
        for (&ap, used) in &object.by_ap {
            let home = profile.catalog.topology.ap(ap).map(|a| a.memory_process);
            let (counts, within) = self.by_ap.entry(ap).or_default();
            // What processes serve themselves costs nothing in the owner's group, and as much as anything from another.
            counts.add(&used.counts);
            *within += match home {
                Some(mp) if mp == owner => profile.costs.of(&used.served(), Origin::Local),
                home => {
                    let here = home.and_then(|mp| object.by_mp.get(&mp));
                    let fetching = here.map_or(1.0, |h| h.fetching(profile.policy(id.var)));
                    profile.costs.with_copies(&used.served(), fetching)
                }
            };
        }
    }
}

/// The group view: variables in place of parts.
pub(super) fn matrix(profile: &Profile, tables: &Tables, places: &[usize]) -> GroupMatrix {
    let topology = &profile.catalog.topology;
    let problem = &tables.assignment;
    let mut columns: BTreeMap<VarId, Vec<usize>> = BTreeMap::new();
    for (v, part) in tables.parts.iter().enumerate() {
        columns.entry(part.variable).or_default().push(v);
    }
    let uses = |ap: &ApId, v: usize| tables.parts[v].uses(*ap);
    // Groups of a variable's parts, most accessed first.
    let ranked = |parts: &[usize], group: &dyn Fn(usize) -> usize| {
        let mut weights: BTreeMap<usize, u64> = BTreeMap::new();
        for &v in parts {
            let weight: u64 = tables.aps.iter().map(|ap| uses(ap, v)).sum();
            *weights.entry(group(v)).or_default() += weight;
        }
        let mut ranked: Vec<(usize, u64)> = weights.into_iter().collect();
        ranked.sort_by_key(|w| std::cmp::Reverse(w.1));
        ranked.into_iter().map(|w| w.0).collect::<Vec<_>>()
    };
    GroupMatrix {
        groups: (0..topology.groups().len() as u32)
            .map(|g| topology.group_name(GroupId(g)))
            .collect(),
        aps: tables
            .aps
            .iter()
            .enumerate()
            .map(|(p, &ap)| MatrixAp {
                name: topology.ap_name(ap),
                today: problem.places[p],
                proposed: places[p],
            })
            .collect(),
        variables: columns
            .iter()
            .map(|(&id, parts)| MatrixVariable {
                name: profile.catalog.name_of(id),
                today: ranked(parts, &|v| problem.owners[v]),
                proposed: ranked(parts, &|v| problem.best_group(places, v).0),
            })
            .collect(),
        accesses: tables
            .aps
            .iter()
            .map(|ap| {
                let columns = columns.values();
                columns
                    .map(|parts| parts.iter().map(|&v| uses(ap, v)).sum())
                    .collect()
            })
            .collect(),
        cost_today_ns: problem.cost_today(),
        cost_proposed_ns: problem.cost(places),
    }
}

impl Part {
    /// Accesses by a process.
    pub(super) fn uses(&self, ap: ApId) -> u64 {
        let used = self.by_ap.get(&ap);
        used.map_or(0, |(counts, _)| counts.total())
    }

    /// Accesses by all.
    pub(super) fn accesses(&self) -> u64 {
        self.by_ap.values().map(|(counts, _)| counts.total()).sum()
    }

    /// The application processes that use it.
    pub(super) fn users(&self) -> impl Iterator<Item = ApId> {
        self.by_ap.keys().copied()
    }
}
