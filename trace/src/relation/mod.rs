//! Clocks of event managers, related by the records themselves (docs/design/monitoring.md#clocks-of-event-managers).
//!
//! The times in a store are those of its event manager's clock, which nothing compares with others while a program runs. But
//! of a remote access its requester and its owner have a record each, and the one holds the other; and nobody leaves a
//! barrier before everybody has arrived. Each such pair, of memory processes of two event managers, bounds how far one clock is
//! ahead of the other. Clocks drift evenly: so a [line](line) within all bounds relates them.
//!
//! Guarantees: what is said of a clock is within its error, as long as records are what happened and no clock drifts by more
//! than 500 ppm or is set during the run (also while its event manager is away). Clocks that may be the same, by the bounds,
//! are left as they are: a machine has one. A clock that nothing relates is said to be so. Memory grows neither with the records nor with the skew.

mod evidence;
mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dosmos_proto::{EmpId, Nanos};

use crate::query::{Catalog, Filter};
use crate::record::{Op, Record};
use crate::store::{StoreSource, records_in_order};
use evidence::Evidence;
use line::{Bounds, Line};

/// Records between two questions whether to go on.
const ASK_EVERY: u64 = 1 << 16;

/// The time of the first record and that of the last.
type Extent = (Nanos, Nanos);

/// From the time of one clock to that of another: each time since `origin` is stretched and moved.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Map {
    origin: Nanos,
    stretch: f64,
    moved: f64,
}

impl Map {
    const NONE: Self = Self {
        origin: Nanos::ZERO,
        stretch: 1.0,
        moved: 0.0,
    };

    fn of(&self, at: Nanos) -> Nanos {
        if (self.stretch, self.moved) == (1.0, 0.0) {
            return at;
        }
        let since = (i128::from(at.0) - i128::from(self.origin.0)) as f64;
        let by = since * (self.stretch - 1.0) + self.moved;
        at.shifted(by.round() as i64)
    }

    /// First this one, then the other; both have one origin.
    fn then(&self, next: &Self) -> Self {
        Self {
            origin: self.origin,
            stretch: self.stretch * next.stretch,
            moved: self.moved * next.stretch + next.moved,
        }
    }

    fn back(&self) -> Self {
        Self {
            origin: self.origin,
            stretch: 1.0 / self.stretch,
            moved: -self.moved / self.stretch,
        }
    }
}

/// How the clock of an event manager relates to that of the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// Which event manager.
    pub manager: EmpId,
    /// By how much its times have to be moved at the beginning of the run, in nanoseconds; none: nobody knows.
    pub moved_ns: Option<i64>,
    /// How much that grows, in nanoseconds per second.
    pub grows_ppb: i64,
    /// The most that moved times are off, from the first record of all that are related to the last.
    pub error: Nanos,
}

/// The clocks of a run's event managers, related to that of the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relations {
    maps: BTreeMap<EmpId, Map>,
    /// Of all but the first, in the order of their numbers.
    pub clocks: Vec<Related>,
    /// Of two clocks the records say what cannot be.
    pub contradictions: Vec<(EmpId, EmpId)>,
}

impl Relations {
    /// What the records of `stores`, which are of the run of `catalog`, say. `go_on` is asked now and then; if it breaks off, what was
    /// read so far counts.
    pub fn of(
        stores: &[StoreSource],
        catalog: &Catalog,
        complete: bool,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Self {
        let mut extents: BTreeMap<EmpId, Extent> = BTreeMap::new();
        let mut length = Nanos::ZERO;
        for store in stores {
            let Some(extent) = store.describe().extent else {
                continue;
            };
            length = length.max(extent.length());
            extents.insert(store.identity().emp, (extent.from, extent.to));
        }
        let begins: BTreeMap<EmpId, Nanos> = extents.iter().map(|(&m, e)| (m, e.0)).collect();
        let Some(origin) = begins.values().next().copied() else {
            return Self::default();
        };
        if begins.len() < 2 {
            return Self::default();
        }
        let mut evidence = Evidence::new(
            &catalog.topology,
            &catalog.clocks,
            &begins,
            length,
            complete,
        );
        let filter = Filter {
            everything: true,
            ops: vec![Op::Read, Op::Acquire, Op::Barrier],
            ..Filter::default()
        };
        // Stores whose clocks differ begin together: they are of one run.
        let starts = |manager: EmpId| Map {
            origin,
            stretch: 1.0,
            moved: match begins.get(&manager) {
                Some(begin) => (i128::from(origin.0) - i128::from(begin.0)) as f64,
                None => 0.0,
            },
        };
        let roughly = Self {
            maps: begins.keys().map(|&m| (m, starts(m))).collect(),
            ..Self::default()
        };
        let mut taken = 0_u64;
        roughly.in_order(stores, &filter, |_, stored| {
            evidence.take(stored);
            taken += 1;
            match taken.is_multiple_of(ASK_EVERY) {
                true => go_on(),
                false => ControlFlow::Continue(()),
            }
        });
        Self::from_bounds(&evidence.bounds(), &extents, origin)
    }

    /// From the bounds of each two to all together, by the shortest ways: errors add up.
    fn from_bounds(
        bounds: &BTreeMap<evidence::Pair, Bounds>,
        extents: &BTreeMap<EmpId, Extent>,
        origin: Nanos,
    ) -> Self {
        let mut contradictions = Vec::new();
        let mut edges: BTreeMap<evidence::Pair, Edge<'_>> = BTreeMap::new();
        for (&(a, b), bounds) in bounds {
            match bounds.line() {
                Ok(Some(line)) => {
                    let begins = extents.get(&a).map_or(origin, |e| e.0);
                    edges.insert((a, b), Edge::new(bounds, line, begins, origin));
                }
                Ok(None) => {}
                Err(line::Contradiction) => contradictions.push((a, b)),
            }
        }
        // How long the run is by one clock is only known when the others are related to it.
        let roughly = Self::from_edges(&edges, extents, |a| {
            extents.get(&a).copied().unwrap_or((origin, origin))
        });
        let whole = roughly.whole(extents);
        let by_its_clock = |a| {
            let (from, to) = whole?;
            let back = roughly.maps.get(&a)?.back();
            Some((back.of(from), back.of(to)))
        };
        let exactly = Self::from_edges(&edges, extents, |a| {
            by_its_clock(a).unwrap_or((origin, origin))
        });
        Self {
            contradictions,
            ..exactly
        }
    }

    /// From the first record of all stores that are related to the last, by the clock of the first.
    fn whole(&self, extents: &BTreeMap<EmpId, Extent>) -> Option<Extent> {
        let moved = extents.iter().filter_map(|(manager, (from, to))| {
            let map = self.maps.get(manager)?;
            Some((map.of(*from), map.of(*to)))
        });
        moved.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// `during`: the time for which errors hold, by the clock of an event manager.
    fn from_edges(
        edges: &BTreeMap<evidence::Pair, Edge<'_>>,
        extents: &BTreeMap<EmpId, Extent>,
        during: impl Fn(EmpId) -> Extent,
    ) -> Self {
        let mut found = Self::default();
        let mut ways: BTreeMap<(EmpId, EmpId), (Map, f64)> = BTreeMap::new();
        for (&(a, b), edge) in edges {
            let error = edge.error(during(a));
            ways.insert((a, b), (edge.there, error));
            ways.insert((b, a), (edge.there.back(), error));
        }
        let mut errors: BTreeMap<EmpId, f64> = BTreeMap::new();
        let Some(&first) = extents.keys().next() else {
            return found;
        };
        errors.insert(first, 0.0);
        found.maps.insert(first, Map::NONE);
        let mut open: BTreeSet<EmpId> = extents.keys().copied().collect();
        let nearest = |open: &BTreeSet<EmpId>, errors: &BTreeMap<EmpId, f64>| {
            let known = open.iter().filter_map(|m| Some((*m, *errors.get(m)?)));
            known.min_by(|a, b| a.1.total_cmp(&b.1))
        };
        while let Some((here, error)) = nearest(&open, &errors) {
            open.remove(&here);
            let from_here = found.maps.get(&here).copied().unwrap_or(Map::NONE);
            for &there in &open {
                let Some((map, more)) = ways.get(&(there, here)) else {
                    continue;
                };
                let by_here = error + more;
                if errors.get(&there).is_none_or(|known| by_here < *known) {
                    errors.insert(there, by_here);
                    found.maps.insert(there, map.then(&from_here));
                }
            }
        }
        for (&manager, &(begin, _)) in extents.iter().skip(1) {
            let map = found.maps.get(&manager);
            found.clocks.push(Related {
                manager,
                moved_ns: map.map(|m| m.of(begin).0.wrapping_sub(begin.0) as i64),
                grows_ppb: map.map_or(0, |m| ((m.stretch - 1.0) * 1e9).round() as i64),
                error: errors
                    .get(&manager)
                    .map_or(Nanos::MAX, |e| Nanos(e.ceil() as u64)),
            });
        }
        found
    }

    /// The event manager whose clock counts; none if there is nothing to relate.
    pub fn first(&self) -> Option<EmpId> {
        self.maps.keys().next().copied()
    }

    /// A time by the clock of `manager`, by that of the first; as it is if nothing relates them.
    pub fn time(&self, manager: EmpId, at: Nanos) -> Nanos {
        self.maps.get(&manager).map_or(at, |map| map.of(at))
    }

    /// Hands out the records that `filter` matches of all `stores`, moved, in the order of their starts, each with how it is
    /// stored.
    pub fn in_order(
        &self,
        stores: &[StoreSource],
        filter: &Filter,
        mut each: impl FnMut(&Record, &Record) -> ControlFlow<()>,
    ) {
        let views: Vec<_> = stores
            .iter()
            .map(|store| {
                let manager = store.identity().emp;
                (store.view(), move |at| self.time(manager, at))
            })
            .collect();
        let make = |stored: &Record, time: &_| (stored.moved(time), *stored);
        let start = |(moved, _): &(Record, Record)| moved.start;
        records_in_order(&views, filter, (make, start), |records| {
            records
                .iter()
                .try_for_each(|(moved, stored)| each(moved, stored))
        });
    }
}

/// What relates the clocks of two event managers.
#[derive(Debug)]
struct Edge<'a> {
    bounds: &'a Bounds,
    line: Line,
    /// When the run begins by the first of them, from which on the line counts.
    begins: Nanos,
    /// From the clock of the first to that of the second.
    there: Map,
}

impl<'a> Edge<'a> {
    fn new(bounds: &'a Bounds, line: Line, begins: Nanos, origin: Nanos) -> Self {
        // The same line from the common origin on.
        let since = (i128::from(origin.0) - i128::from(begins.0)) as f64;
        let there = Map {
            origin,
            stretch: 1.0 + line.drift,
            moved: line.at_origin + line.drift * since,
        };
        Self {
            bounds,
            line,
            begins,
            there,
        }
    }

    /// The most that a time of the first, or one of the second that is the same, is off between two times.
    fn error(&self, (from, to): (Nanos, Nanos)) -> f64 {
        let since = |at: Nanos| (i128::from(at.0) - i128::from(self.begins.0)) as f64;
        let ahead = self.bounds.error(&self.line, (since(from), since(to)));
        // That is at one time by the first clock. For one time by the second it is longer by what the clocks drift apart meanwhile.
        ahead / (1.0 - line::MOST_DRIFT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MS: f64 = 1e6;

    /// By how much a clock is ahead, and what it gains in a second.
    type Clock = (i64, f64);

    fn says((ahead, gains): Clock, at: u64) -> Nanos {
        Nanos(at).shifted(ahead + (at as f64 * gains) as i64)
    }

    /// What is known of how far `other` is ahead of `one` at these times: within a millisecond.
    fn bounds(one: Clock, other: Clock, times: &[u64], (begins, ends): Extent) -> Bounds {
        let mut bounds = Bounds::new(begins, ends - begins);
        for &at in times {
            let (here, there) = (says(one, at), says(other, at));
            let ahead = there.0 as f64 - here.0 as f64;
            bounds.at_most(here, ahead + MS);
            bounds.at_least(here, ahead - MS);
        }
        bounds
    }

    #[test]
    fn errors_hold_from_the_first_record_of_any_store_to_the_last() {
        let clocks: [Clock; 3] = [(0, 0.0), (7_000_000_000, 300e-6), (-3_000_000_000, -200e-6)];
        let ran = [(120, 124), (100, 123), (119, 160)];
        let extents: Vec<Extent> = (clocks.iter().zip(ran))
            .map(|(c, (from, to))| (says(*c, from * SECOND), says(*c, to * SECOND)))
            .collect();
        let times = [120 * SECOND, 121 * SECOND, 122 * SECOND];
        let of = |a: usize, b: usize| bounds(clocks[a], clocks[b], &times, extents[a]);
        let all: BTreeMap<evidence::Pair, Bounds> = [
            ((EmpId(0), EmpId(1)), of(0, 1)),
            ((EmpId(1), EmpId(2)), of(1, 2)),
        ]
        .into_iter()
        .collect();
        let origin = extents[0].0;
        let extents = (0..).map(EmpId).zip(extents).collect();
        let relations = Relations::from_bounds(&all, &extents, origin);
        assert_eq!(relations.clocks.len(), 2);
        for related in &relations.clocks {
            let clock = clocks[related.manager.index()];
            for at in [100, 120, 124, 160] {
                let said = relations.time(related.manager, says(clock, at * SECOND));
                // Any line within the bounds may be the true one.
                let far = Nanos((122_u64.abs_diff(at) * 1_000_000).max(1_000_000));
                let off = Nanos(said.0.abs_diff(at * SECOND));
                assert!(off <= related.error, "{at}: {off}, {related:?}");
                assert!(far <= related.error, "{at}: {related:?}");
            }
        }
    }
}
