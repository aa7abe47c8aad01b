//! **Bad group structure**: processes and the variables they use stand in different groups.
//!
//! The assignment problem: application processes to groups (as many to each group as today) and the
//! owners of variables to groups, so that Σ accesses × cost is least, an access within a group costing
//! the mean intra-group access and one between groups the mean inter-group access. For fixed places of
//! the processes each variable's best group is found alone, so only the processes' places are searched:
//! exactly (every distinct distribution) where there are at most [`EXACT`] of them, else by descent
//! over exchanges of two processes.
//!
//! Holds when the best assignment lowers the access cost by at least `assignment_gain`, worth
//! `worth_saying` of total process time. Inter-group accesses that no assignment avoids are not reported.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, GroupId, VarId};
use dosmos_trace::meta::OpCounts;
use dosmos_trace::record::Origin;

use crate::finding::{Finding, Kind};
use crate::profile::{Profile, cost_of};
use crate::thresholds::Thresholds;

/// Distributions tried one by one at most.
const EXACT: u64 = 50_000;

/// Who uses what how much, and where everything stands. Rows: processes; columns: variables.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    /// Cost of the accesses of process × variable, if in one group and if not.
    pub(super) near: Vec<Vec<f64>>,
    pub(super) far: Vec<Vec<f64>>,
    /// Group of each process; its distribution over groups is kept.
    pub(super) places: Vec<usize>,
    /// Number of groups.
    pub(super) groups: usize,
}

impl Assignment {
    /// Cost with processes at `places` and variable `v` owned in group `g`.
    fn variable_cost(&self, places: &[usize], v: usize, g: usize) -> f64 {
        places
            .iter()
            .enumerate()
            .map(|(p, &at)| {
                if at == g {
                    self.near[p][v]
                } else {
                    self.far[p][v]
                }
            })
            .sum()
    }

    /// The best group of variable `v` for these places: the lowest-numbered of the cheapest.
    pub(super) fn best_group(&self, places: &[usize], v: usize) -> (usize, f64) {
        let mut best = (0, f64::INFINITY);
        for g in 0..self.groups {
            let cost = self.variable_cost(places, v, g);
            if cost < best.1 {
                best = (g, cost);
            }
        }
        best
    }

    fn variables(&self) -> usize {
        self.near.first().map_or(0, Vec::len)
    }

    /// Cost with processes at `places` and every variable where it is best.
    pub(super) fn cost(&self, places: &[usize]) -> f64 {
        (0..self.variables())
            .map(|v| self.best_group(places, v).1)
            .sum()
    }

    /// Cost with owners where they are.
    pub(super) fn cost_with(&self, owners: &[usize]) -> f64 {
        let each = owners.iter().enumerate();
        each.map(|(v, &g)| self.variable_cost(&self.places, v, g))
            .sum()
    }

    /// The best places found, today's if none is better.
    pub(super) fn solve(&self) -> Vec<usize> {
        if distributions(&self.places, self.groups) <= EXACT {
            self.exact()
        } else {
            self.descend()
        }
    }

    fn exact(&self) -> Vec<usize> {
        let mut room = vec![0; self.groups];
        for &g in &self.places {
            room[g] += 1;
        }
        let mut best = (self.cost(&self.places), self.places.clone());
        let mut trial = Vec::with_capacity(self.places.len());
        self.place_rest(&mut trial, &mut room, &mut best);
        best.1
    }

    fn place_rest(&self, trial: &mut Vec<usize>, room: &mut [usize], best: &mut (f64, Vec<usize>)) {
        if trial.len() == self.places.len() {
            let cost = self.cost(trial);
            // Strictly better by more than rounding: nobody moves for nothing.
            if cost < best.0 * (1.0 - 1e-9) {
                *best = (cost, trial.clone());
            }
            return;
        }
        for g in 0..room.len() {
            if room[g] > 0 {
                room[g] -= 1;
                trial.push(g);
                self.place_rest(trial, room, best);
                trial.pop();
                room[g] += 1;
            }
        }
    }

    fn descend(&self) -> Vec<usize> {
        let mut places = self.places.clone();
        let mut cost = self.cost(&places);
        loop {
            let mut better = None;
            for a in 0..places.len() {
                for b in a + 1..places.len() {
                    if places[a] == places[b] {
                        continue;
                    }
                    places.swap(a, b);
                    let swapped = self.cost(&places);
                    if swapped < cost * (1.0 - 1e-9) {
                        better = Some((a, b));
                        cost = swapped;
                    }
                    places.swap(a, b);
                }
            }
            match better {
                Some((a, b)) => places.swap(a, b),
                None => return places,
            }
        }
    }
}

/// Number of distinct distributions of the processes: a multinomial coefficient, saturating.
fn distributions(places: &[usize], groups: usize) -> u64 {
    let mut ways: u64 = 1;
    let mut placed: u64 = 0;
    for g in 0..groups {
        let here = places.iter().filter(|&&p| p == g).count() as u64;
        for k in 1..=here {
            placed += 1;
            ways = match ways.checked_mul(placed) {
                Some(product) => product / k,
                None => return u64::MAX,
            };
        }
    }
    ways
}

struct Tables {
    assignment: Assignment,
    aps: Vec<ApId>,
    variables: Vec<VarId>,
    owners: Vec<usize>,
}

pub(super) fn detect(profile: &Profile, t: &Thresholds) -> Vec<Finding> {
    let topology = &profile.catalog.topology;
    if topology.groups.len() < 2 {
        return Vec::new();
    }
    let tables = tables(profile);
    let now = tables.assignment.cost_with(&tables.owners);
    let places = tables.assignment.solve();
    let then = tables.assignment.cost(&places);
    let lost = profile.fraction(now - then);
    if now - then < t.assignment_gain * now || now <= 0.0 || lost < t.worth_saying {
        return Vec::new();
    }
    vec![describe(profile, &tables, &places, (now, then), lost)]
}

fn tables(profile: &Profile) -> Tables {
    let topology = &profile.catalog.topology;
    let mut uses: BTreeMap<(ApId, VarId), OpCounts> = BTreeMap::new();
    let mut owners: BTreeMap<VarId, BTreeMap<usize, u64>> = BTreeMap::new();
    for (id, object) in &profile.objects {
        for (&ap, used) in &object.by_ap {
            uses.entry((ap, id.var)).or_default().add(&used.counts);
        }
        let group = profile
            .owner(*id)
            .and_then(|mp| topology.mp(mp))
            .map(|p| p.group.index());
        let weight = object.counts().total();
        *owners
            .entry(id.var)
            .or_default()
            .entry(group.unwrap_or(0))
            .or_default() += weight;
    }
    let aps: Vec<ApId> = profile.aps.keys().copied().collect();
    let variables: Vec<VarId> = owners.keys().copied().collect();
    let price = |origin: Origin| -> Vec<Vec<f64>> {
        let of = |ap: ApId, v: VarId| {
            uses.get(&(ap, v))
                .map_or(0.0, |counts| cost_of(&profile.costs, counts, origin))
        };
        aps.iter()
            .map(|&ap| variables.iter().map(|&v| of(ap, v)).collect())
            .collect()
    };
    let near = price(Origin::Intra);
    let far = price(Origin::Inter);
    // Where measurement noise makes a crossing look cheaper than staying, it counts as equal.
    let far = far
        .into_iter()
        .zip(&near)
        .map(|(far, near)| far.iter().zip(near).map(|(f, n)| f.max(*n)).collect())
        .collect();
    let places = aps
        .iter()
        .map(|&ap| topology.group_of_ap(ap).map_or(0, GroupId::index))
        .collect();
    Tables {
        assignment: Assignment {
            near,
            far,
            places,
            groups: topology.groups.len(),
        },
        owners: owners
            .values()
            .map(|weights| weights.iter().max_by_key(|w| w.1).map_or(0, |w| *w.0))
            .collect(),
        aps,
        variables,
    }
}

fn describe(
    profile: &Profile,
    tables: &Tables,
    places: &[usize],
    (now, then): (f64, f64),
    lost: f64,
) -> Finding {
    let topology = &profile.catalog.topology;
    let group = |g: usize| topology.group_name(GroupId(g as u32));
    let mut advice = Vec::new();
    let mut patch = String::new();
    let mut moved = Vec::new();
    for (i, &ap) in tables.aps.iter().enumerate() {
        if places[i] != tables.assignment.places[i] {
            let name = topology.ap_name(ap);
            advice.push(format!("move {name} to {}", group(places[i])));
            patch += &format!("# {name}: use a memory process of {}\n", group(places[i]));
            moved.push(ap);
        }
    }
    let mut variables = Vec::new();
    for (v, &id) in tables.variables.iter().enumerate() {
        let (best, cost) = tables.assignment.best_group(places, v);
        let stay = tables.assignment.variable_cost(places, v, tables.owners[v]);
        if best != tables.owners[v] && cost < stay {
            let name = profile.catalog.name_of(id);
            advice.push(format!("let {} own {name}", group(best)));
            patch += &format!(
                "[[variable]]\nname = {name:?}\nplacement = {{ round_robin = {:?} }}\n",
                group(best)
            );
            variables.push((id, name));
        }
    }
    let mut finding = Finding::new(Kind::BadGroup, profile.window)
        .with("access_cost_ns", now)
        .with("access_cost_then_ns", then)
        .with(
            "variables",
            variables.iter().map(|v| v.1.clone()).collect::<Vec<_>>(),
        );
    if let ([(_, name)], true) = (variables.as_slice(), moved.is_empty()) {
        finding.variable = Some(name.clone());
    }
    let users = tables.aps.iter().filter(|ap| {
        moved.contains(ap)
            || profile
                .objects
                .iter()
                .any(|(id, o)| variables.iter().any(|v| v.0 == id.var) && o.by_ap.contains_key(ap))
    });
    let users: Vec<ApId> = users.copied().collect();
    finding.aps = profile.ap_names(&users);
    finding.groups = profile.group_names(&users);
    finding.severity = lost;
    finding.predicted_gain = Some(lost);
    finding.advice = advice.join("; ");
    finding.patch = Some(patch);
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every way to place processes and variables, with as many processes in each group as today.
    fn brute_force(a: &Assignment) -> f64 {
        let n = a.places.len();
        let mut sizes = vec![0; a.groups];
        a.places.iter().for_each(|&g| sizes[g] += 1);
        let mut best = f64::INFINITY;
        for code in 0..a.groups.pow(n as u32) {
            let places: Vec<usize> = (0..n)
                .map(|i| code / a.groups.pow(i as u32) % a.groups)
                .collect();
            let mut here = vec![0; a.groups];
            places.iter().for_each(|&g| here[g] += 1);
            if here == sizes {
                best = best.min(a.cost(&places));
            }
        }
        best
    }

    fn assignments() -> impl Strategy<Value = Assignment> {
        (2usize..=8, 1usize..=8, 1usize..=3).prop_flat_map(|(aps, variables, groups)| {
            let table = prop::collection::vec(prop::collection::vec(0u32..100, variables), aps);
            let places = prop::collection::vec(0..groups, aps);
            (table, places).prop_map(move |(uses, places)| {
                let scale = |by: f64| -> Vec<Vec<f64>> {
                    uses.iter()
                        .map(|r| r.iter().map(|&n| f64::from(n) * by).collect())
                        .collect()
                };
                Assignment {
                    near: scale(1.0),
                    far: scale(3.0),
                    places,
                    groups,
                }
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_exact_solution_is_the_best_there_is(a in assignments()) {
            let best = a.cost(&a.solve());
            prop_assert!((best - brute_force(&a)).abs() <= 1e-6 * best.max(1.0));
        }

        #[test]
        fn descent_never_makes_it_worse_and_keeps_sizes(a in assignments()) {
            let places = a.descend();
            prop_assert!(a.cost(&places) <= a.cost(&a.places));
            let sorted = |p: &[usize]| { let mut p = p.to_vec(); p.sort_unstable(); p };
            prop_assert_eq!(sorted(&places), sorted(&a.places));
        }
    }
}
