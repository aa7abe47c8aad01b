//! The assignment problem behind *bad group*: places of processes and of parts of variables, so that the
//! cost of all accesses is least.
//!
//! A *part* is a set of objects of one variable with the same owner's group and the same users. For
//! fixed places of the processes the best group of each part is found alone, so only the processes'
//! places are searched: exactly (every distinct distribution) where that is at most [`EXACT`] steps, otherwise by
//! descent over exchanges of two processes. Each group keeps as many processes as it has today.

/// Additions an exact search may need.
const EXACT: u64 = 20_000_000;

/// Steps a descent takes at most: exchanges tried × parts concerned × groups.
const STEPS: u64 = 100_000_000;

/// Differences below this fraction are rounding: nobody moves for them.
const ROUNDING: f64 = 1e-9;

/// Who uses what how much, and where everything stands. Rows: processes; columns: parts.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    /// Cost of the accesses of process × part if they are in one group, nanoseconds.
    pub(super) within: Vec<Vec<f64>>,
    /// The same if they are not; never less than `within`.
    pub(super) across: Vec<Vec<f64>>,
    /// Group of each process; its distribution over groups is kept.
    pub(super) places: Vec<usize>,
    /// Group of each part.
    pub(super) owners: Vec<usize>,
    /// Whether a group may own anything: it has a memory process.
    pub(super) can_own: Vec<bool>,
}

impl Assignment {
    fn parts(&self) -> usize {
        self.owners.len()
    }

    fn groups(&self) -> usize {
        self.can_own.len()
    }

    /// Cost with processes at `places` and part `v` owned in group `g`.
    pub(super) fn part_cost(&self, places: &[usize], v: usize, g: usize) -> f64 {
        let at = places.iter().enumerate();
        at.map(|(p, &at)| {
            if at == g {
                self.within[p][v]
            } else {
                self.across[p][v]
            }
        })
        .sum()
    }

    /// The best group of part `v` for these places, today's if none is better, and its cost.
    pub(super) fn best_group(&self, places: &[usize], v: usize) -> (usize, f64) {
        let mut best = (self.owners[v], self.part_cost(places, v, self.owners[v]));
        for g in (0..self.groups()).filter(|&g| self.can_own[g]) {
            let cost = self.part_cost(places, v, g);
            if cost < best.1 * (1.0 - ROUNDING) {
                best = (g, cost);
            }
        }
        best
    }

    /// Cost with processes at `places` and every part where it is best.
    pub(super) fn cost(&self, places: &[usize]) -> f64 {
        let parts = 0..self.parts();
        parts.map(|v| self.best_group(places, v).1).sum()
    }

    /// Cost of today's places and owners.
    pub(super) fn cost_today(&self) -> f64 {
        let owners = self.owners.iter().enumerate();
        owners
            .map(|(v, &g)| self.part_cost(&self.places, v, g))
            .sum()
    }

    /// The best places found, today's if none is better.
    pub(super) fn solve(&self) -> Vec<usize> {
        if self.groups() == 0 || self.parts() == 0 {
            // Records of a cluster that nobody describes, or of processes that share nothing: any place is as good.
            return self.places.clone();
        }
        let steps = (self.parts() * self.groups()) as u64;
        if distributions(&self.places, self.groups()).saturating_mul(steps) <= EXACT {
            self.exact()
        } else {
            self.descend()
        }
    }

    fn exact(&self) -> Vec<usize> {
        let mut room = vec![0; self.groups()];
        self.places.iter().for_each(|&g| room[g] += 1);
        let mut search = Search {
            savings: Savings::new(self, &[]),
            trial: Vec::new(),
            best: (0.0, self.places.clone()),
        };
        search.best.0 = Savings::new(self, &self.places).total(self);
        self.place_rest(&mut room, &mut search);
        search.best.1
    }

    fn place_rest(&self, room: &mut [usize], search: &mut Search) {
        let process = search.trial.len();
        if process == self.places.len() {
            let saved = search.savings.total(self);
            if saved > search.best.0 * (1.0 + ROUNDING) + ROUNDING {
                search.best = (saved, search.trial.clone());
            }
            return;
        }
        for g in 0..room.len() {
            if room[g] > 0 {
                room[g] -= 1;
                search.trial.push(g);
                search.savings.add(self, process, g, 1.0);
                self.place_rest(room, search);
                search.savings.add(self, process, g, -1.0);
                search.trial.pop();
                room[g] += 1;
            }
        }
    }

    /// Exchanges the pair that saves most until none saves anything, or the steps are used up.
    pub(super) fn descend(&self) -> Vec<usize> {
        let mut places = self.places.clone();
        let mut savings = Savings::new(self, &places);
        let used: Vec<Vec<usize>> = (0..places.len()).map(|p| self.used_by(p)).collect();
        let mut steps = 0;
        while steps < STEPS {
            let mut best = (ROUNDING * savings.total(self) + ROUNDING, None);
            for a in 0..places.len() {
                for b in a + 1..places.len() {
                    if places[a] == places[b] {
                        continue;
                    }
                    steps += ((used[a].len() + used[b].len()) * self.groups()) as u64;
                    let by_b_alone = used[b].iter().filter(|v| used[a].binary_search(v).is_err());
                    let parts = used[a].iter().chain(by_b_alone).copied();
                    let before = savings.of(self, parts.clone());
                    savings.swap(self, &mut places, (a, b));
                    let gained = savings.of(self, parts) - before;
                    savings.swap(self, &mut places, (a, b));
                    if gained > best.0 {
                        best = (gained, Some((a, b)));
                    }
                }
            }
            match best.1 {
                Some(pair) => savings.swap(self, &mut places, pair),
                None => break,
            }
        }
        places
    }

    /// The parts for which it matters where process `p` is.
    fn used_by(&self, p: usize) -> Vec<usize> {
        (0..self.parts())
            .filter(|&v| self.across[p][v] > self.within[p][v])
            .collect()
    }
}

struct Search {
    savings: Savings,
    trial: Vec<usize>,
    best: (f64, Vec<usize>),
}

/// What each part saves in each group over being far from everybody: kept up to date as processes move,
/// so that a trial costs parts × groups, not processes × parts × groups.
struct Savings {
    /// Part-major: part × group.
    sums: Vec<f64>,
    /// By process: the parts for which it matters where it is, and how much.
    weights: Vec<Vec<(usize, f64)>>,
}

impl Savings {
    /// With the first processes at `places`.
    fn new(of: &Assignment, places: &[usize]) -> Self {
        let weigh = |p: usize| {
            let weight = |v: usize| (v, of.across[p][v] - of.within[p][v]);
            (0..of.parts()).map(weight).filter(|w| w.1 > 0.0).collect()
        };
        let mut savings = Self {
            sums: vec![0.0; of.parts() * of.groups()],
            weights: (0..of.places.len()).map(weigh).collect(),
        };
        for (process, &g) in places.iter().enumerate() {
            savings.add(of, process, g, 1.0);
        }
        savings
    }

    fn add(&mut self, of: &Assignment, process: usize, g: usize, sign: f64) {
        for &(v, weight) in &self.weights[process] {
            self.sums[v * of.groups() + g] += sign * weight;
        }
    }

    fn swap(&mut self, of: &Assignment, places: &mut [usize], (a, b): (usize, usize)) {
        for (process, sign) in [(a, -1.0), (b, -1.0)] {
            self.add(of, process, places[process], sign);
        }
        places.swap(a, b);
        for (process, sign) in [(a, 1.0), (b, 1.0)] {
            self.add(of, process, places[process], sign);
        }
    }

    /// Σ over all parts of what the best group saves.
    fn total(&self, of: &Assignment) -> f64 {
        self.of(of, 0..of.parts())
    }

    /// Σ over these parts of what the best group saves.
    fn of(&self, of: &Assignment, parts: impl Iterator<Item = usize>) -> f64 {
        parts
            .map(|v| {
                let row = &self.sums[v * of.groups()..(v + 1) * of.groups()];
                let own = row[of.owners[v]];
                let others = row.iter().zip(&of.can_own).filter(|(_, can)| **can);
                others.map(|(saved, _)| *saved).fold(own, f64::max)
            })
            .sum()
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every way to place processes (as many in each group as today) and, for each, every way to
    /// place the parts one by one.
    fn brute_force(a: &Assignment) -> f64 {
        let (n, groups) = (a.places.len(), a.groups());
        let sorted = |p: &[usize]| {
            let mut p = p.to_vec();
            p.sort_unstable();
            p
        };
        let today = sorted(&a.places);
        let all = (0..groups.pow(n as u32)).map(|code| {
            (0..n)
                .map(|i| code / groups.pow(i as u32) % groups)
                .collect()
        });
        all.filter(|places: &Vec<usize>| sorted(places) == today)
            .map(|places| {
                (0..a.parts())
                    .map(|v| {
                        (0..groups)
                            .map(|g| a.part_cost(&places, v, g))
                            .fold(f64::INFINITY, f64::min)
                    })
                    .sum()
            })
            .fold(f64::INFINITY, f64::min)
    }

    fn assignments() -> impl Strategy<Value = Assignment> {
        (2usize..=8, 1usize..=8, 1usize..=3).prop_flat_map(|(aps, parts, groups)| {
            let cell = (0u32..100, 0u32..300);
            let table = prop::collection::vec(prop::collection::vec(cell, parts), aps);
            let places = prop::collection::vec(0..groups, aps);
            let owners = prop::collection::vec(0..groups, parts);
            (table, places, owners).prop_map(move |(uses, places, owners)| {
                let each = |f: fn(&(u32, u32)) -> u32| -> Vec<Vec<f64>> {
                    let row = |r: &Vec<(u32, u32)>| r.iter().map(|c| f64::from(f(c))).collect();
                    uses.iter().map(row).collect()
                };
                Assignment {
                    within: each(|c| c.0),
                    across: each(|c| c.0 + c.1),
                    places,
                    owners,
                    can_own: vec![true; groups],
                }
            })
        })
    }

    proptest! {
        #![proptest_config(dosmos_testseeds::config(96))]

        #[test]
        fn the_exact_solution_is_the_best_there_is(a in assignments()) {
            let best = a.cost(&a.solve());
            prop_assert!((best - brute_force(&a)).abs() <= 1e-6 * best.max(1.0));
            prop_assert!(best <= a.cost_today() + 1e-6);
        }

        #[test]
        fn descent_never_makes_it_worse_and_keeps_sizes(a in assignments()) {
            let places = a.descend();
            prop_assert!(a.cost(&places) <= a.cost(&a.places) + 1e-6);
            let sorted = |p: &[usize]| { let mut p = p.to_vec(); p.sort_unstable(); p };
            prop_assert_eq!(sorted(&places), sorted(&a.places));
        }
    }

    #[test]
    fn many_processes_that_share_nothing_stay_where_they_are() {
        let nothing = Assignment {
            within: vec![Vec::new(); 64],
            across: vec![Vec::new(); 64],
            places: (0..64).map(|p| p / 32).collect(),
            owners: Vec::new(),
            can_own: vec![true; 2],
        };
        assert_eq!(nothing.solve(), nothing.places);
    }
}
