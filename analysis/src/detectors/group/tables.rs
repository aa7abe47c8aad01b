//! From a profile to the assignment problem.
//!
//! An access between processes of one group costs what it costs today, if they are in one group today,
//! else the mean intra-group access of its operation; between groups the mean inter-group access.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, GroupId, MpId, ObjectId, VarId};
use dosmos_trace::meta::OpCounts;
use dosmos_trace::record::Origin;

use super::assignment::Assignment;
use crate::groups::{GroupMatrix, MatrixAp, MatrixVariable};
use crate::profile::{ObjectProfile, Profile, cost_of};

/// Parts told apart at most; beyond it users are not distinguished any more.
const PARTS: usize = 2_000;

/// Objects of one variable with the same owner's group and users.
pub(super) struct Part {
    pub(super) variable: VarId,
    pub(super) objects: Vec<ObjectId>,
    /// Accesses by memory process.
    pub(super) by_mp: BTreeMap<MpId, u64>,
    by_ap: BTreeMap<ApId, (OpCounts, f64)>,
}

/// The problem, and what its rows and columns stand for.
pub(super) struct Tables {
    pub(super) assignment: Assignment,
    pub(super) aps: Vec<ApId>,
    pub(super) parts: Vec<Part>,
}

pub(super) fn tables(profile: &Profile) -> Tables {
    let topology = &profile.catalog.topology;
    let (parts, owners) = parts(profile);
    let aps: Vec<ApId> = profile.aps.keys().copied().collect();
    let places: Vec<usize> = aps
        .iter()
        .map(|&ap| topology.group_of_ap(ap).map_or(0, GroupId::index))
        .collect();
    let mut near = vec![vec![0.0; parts.len()]; aps.len()];
    let mut far = near.clone();
    for (p, ap) in aps.iter().enumerate() {
        for (v, part) in parts.iter().enumerate() {
            let Some((counts, today)) = part.by_ap.get(ap) else {
                continue;
            };
            near[p][v] = if places[p] == owners[v] {
                *today
            } else {
                cost_of(&profile.costs, counts, Origin::Intra)
            };
            // Where noise makes a crossing look cheaper than staying, it counts as equal.
            far[p][v] = cost_of(&profile.costs, counts, Origin::Inter).max(near[p][v]);
        }
    }
    let can_own = (0..topology.groups.len() as u32)
        .map(|g| {
            let mut owners = topology.owners_in(Some(GroupId(g)));
            owners.any(|mp| topology.mp(mp).is_some_and(|m| m.group == GroupId(g)))
        })
        .collect();
    Tables {
        assignment: Assignment {
            near,
            far,
            places,
            owners,
            can_own,
        },
        aps,
        parts,
    }
}

fn parts(profile: &Profile) -> (Vec<Part>, Vec<usize>) {
    let mut index: BTreeMap<(VarId, usize, Vec<ApId>), usize> = BTreeMap::new();
    let (mut parts, mut owners): (Vec<Part>, Vec<usize>) = (Vec::new(), Vec::new());
    for (&id, object) in &profile.objects {
        if object.by_ap.is_empty() {
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
    (parts, owners)
}

impl Part {
    fn add(&mut self, profile: &Profile, id: ObjectId, object: &ObjectProfile, owner: MpId) {
        self.objects.push(id);
        for (&mp, used) in &object.by_mp {
            *self.by_mp.entry(mp).or_default() += used.fetched.total() + used.optimized;
        }
        for (&ap, used) in &object.by_ap {
            let home = profile.catalog.topology.ap(ap);
            let origin = home.map_or(Origin::Inter, |a| profile.origin(a.memory_process, owner));
            let (counts, today) = self.by_ap.entry(ap).or_default();
            counts.add(&used.counts);
            *today += today_cost(profile, used, origin);
        }
    }
}

/// Cost of what a process did to an object as it is today: reads on copies are local.
fn today_cost(profile: &Profile, used: &crate::profile::ApUse, origin: Origin) -> f64 {
    let mut fetched = used.counts;
    let optimized = used.optimized.min(fetched.reads);
    fetched.reads -= optimized;
    let copies = OpCounts {
        reads: optimized,
        ..OpCounts::default()
    };
    cost_of(&profile.costs, &fetched, origin) + cost_of(&profile.costs, &copies, Origin::Local)
}

/// The group view: variables in place of parts.
pub(super) fn matrix(profile: &Profile, tables: &Tables, places: &[usize]) -> GroupMatrix {
    let topology = &profile.catalog.topology;
    let problem = &tables.assignment;
    let mut columns: BTreeMap<VarId, Vec<usize>> = BTreeMap::new();
    for (v, part) in tables.parts.iter().enumerate() {
        columns.entry(part.variable).or_default().push(v);
    }
    let uses = |ap: &ApId, v: usize| {
        let used = tables.parts[v].by_ap.get(ap);
        used.map_or(0, |(counts, _)| counts.total())
    };
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
        groups: (0..topology.groups.len() as u32)
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
    /// The application processes that use it.
    pub(super) fn users(&self) -> impl Iterator<Item = ApId> {
        self.by_ap.keys().copied()
    }
}
