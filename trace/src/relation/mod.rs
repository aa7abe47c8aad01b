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
use line::Line;

/// Records between two questions whether to go on.
const ASK_EVERY: u64 = 1 << 16;

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
    /// The most that moved times are off, during the run.
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
        let mut begins: BTreeMap<EmpId, Nanos> = BTreeMap::new();
        let mut length = Nanos::ZERO;
        for store in stores {
            let Some(extent) = store.describe().extent else {
                continue;
            };
            length = length.max(extent.length());
            begins.insert(store.identity().emp, extent.from);
        }
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
        Self::from_lines(&evidence.bounds(), &begins, origin)
    }

    /// From the bounds of each two to all together, by the shortest ways: errors add up.
    fn from_lines(
        bounds: &BTreeMap<evidence::Pair, line::Bounds>,
        begins: &BTreeMap<EmpId, Nanos>,
        origin: Nanos,
    ) -> Self {
        let mut found = Self::default();
        let mut lines: BTreeMap<(EmpId, EmpId), (Map, f64)> = BTreeMap::new();
        for (&(a, b), bounds) in bounds {
            match bounds.line() {
                Ok(Some(line)) => {
                    let own = begins.get(&a).copied().unwrap_or(origin);
                    let (from_a, to_a) = maps(&line, own, origin);
                    lines.insert((a, b), (from_a, line.error));
                    lines.insert((b, a), (to_a, line.error));
                }
                Ok(None) => {}
                Err(line::Contradiction) => found.contradictions.push((a, b)),
            }
        }
        let mut errors: BTreeMap<EmpId, f64> = BTreeMap::new();
        let Some(&first) = begins.keys().next() else {
            return found;
        };
        errors.insert(first, 0.0);
        found.maps.insert(first, Map::NONE);
        let mut open: BTreeSet<EmpId> = begins.keys().copied().collect();
        let nearest = |open: &BTreeSet<EmpId>, errors: &BTreeMap<EmpId, f64>| {
            let known = open.iter().filter_map(|m| Some((*m, *errors.get(m)?)));
            known.min_by(|a, b| a.1.total_cmp(&b.1))
        };
        while let Some((here, error)) = nearest(&open, &errors) {
            open.remove(&here);
            let from_here = found.maps.get(&here).copied().unwrap_or(Map::NONE);
            for &there in &open {
                let Some((map, more)) = lines.get(&(there, here)) else {
                    continue;
                };
                let by_here = error + more;
                if errors.get(&there).is_none_or(|known| by_here < *known) {
                    errors.insert(there, by_here);
                    found.maps.insert(there, map.then(&from_here));
                }
            }
        }
        for (&manager, &begin) in begins.iter().skip(1) {
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

/// From the clock of the one to that of the other, and back; the line tells how far the other is ahead, from `begins` on.
fn maps(line: &Line, begins: Nanos, origin: Nanos) -> (Map, Map) {
    // The same line from the common origin on.
    let since = (i128::from(origin.0) - i128::from(begins.0)) as f64;
    let ahead = line.at_origin + line.drift * since;
    let stretch = 1.0 + line.drift;
    let there = Map {
        origin,
        stretch,
        moved: ahead,
    };
    let back = Map {
        origin,
        stretch: 1.0 / stretch,
        moved: -ahead / stretch,
    };
    (there, back)
}
