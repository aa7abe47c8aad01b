//! What records say of the clocks of two event managers: something by one of them came before something by the other.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use dosmos_proto::{ApId, EmpId, MpId, Nanos, ObjectId, Topology, VarId};

use super::line::Bounds;
use crate::clock::ProcessClock;
use crate::record::{Op, Origin, Record, Side};

/// Most records that wait for their counterpart, in all. Beyond, requests are not compared any more.
const MOST_WAITING: usize = 1 << 20;
/// Most openings of barriers that more may be heard of.
const MOST_OPENINGS: usize = 1 << 10;

/// When something was, by the clock of an event manager: between two times.
#[derive(Clone, Copy, Debug)]
struct When {
    manager: EmpId,
    earliest: i128,
    latest: i128,
}

/// A record without its counterpart.
#[derive(Clone, Copy, Debug)]
struct Alone {
    side: Side,
    version: u64,
    begin: When,
    end: When,
    /// Of one access that was timed.
    timed: bool,
}

/// An opening of a barrier, as far as one event manager knows: the last arrival, and the first that was let go.
#[derive(Clone, Copy, Debug)]
struct Opening {
    arrived: When,
    left: When,
}

/// A barrier, its generation and which start of its coordinator counted that.
type OpeningKey = (ObjectId, u64);

/// Of two event managers the one with the lower number first.
pub(super) type Pair = (EmpId, EmpId);

/// What the records of a run say of the clocks of its event managers. Of each remote access there is a record of its
/// requester, which holds that of its owner; and nobody leaves a barrier before the last has arrived.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    topology: &'a Topology,
    clocks: HashMap<MpId, Nanos>,
    /// When the run begins by the clock of each, and how long it is.
    begins: &'a BTreeMap<EmpId, Nanos>,
    length: Nanos,
    /// Whether no record is missing: otherwise a request may seem to belong to what was served of another.
    complete: bool,
    waiting: HashMap<(ApId, Op, ObjectId), VecDeque<Alone>>,
    waits: usize,
    /// By requests of each process; not of those that had failures.
    requests: HashMap<(Pair, ApId), Bounds>,
    unsound: HashSet<ApId>,
    openings: BTreeMap<u64, (OpeningKey, Vec<Opening>)>,
    known: HashMap<OpeningKey, u64>,
    barriers: HashMap<Pair, Bounds>,
    /// When processes came to barriers that they gave up since: such an arrival may have counted all the same, and whoever comes again
    /// then passes by it.
    given_up: HashMap<(ApId, VarId), When>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(
        topology: &'a Topology,
        clocks: &[ProcessClock],
        begins: &'a BTreeMap<EmpId, Nanos>,
        length: Nanos,
        complete: bool,
    ) -> Self {
        let clocks = clocks.iter().filter_map(|c| Some((c.mp, c.error?)));
        Self {
            topology,
            clocks: clocks.collect(),
            begins,
            length,
            complete,
            waiting: HashMap::new(),
            waits: 0,
            requests: HashMap::new(),
            unsound: HashSet::new(),
            openings: BTreeMap::new(),
            known: HashMap::new(),
            barriers: HashMap::new(),
            given_up: HashMap::new(),
        }
    }

    /// A record; those of each store in the order of their starts.
    pub(super) fn take(&mut self, record: &Record) {
        let remote = record.side == Side::Owner || record.origin != Origin::Local;
        match record.op {
            Op::Barrier => self.barrier(record),
            Op::Read | Op::Acquire if self.complete && remote && !record.flags.waiting => {
                self.request(record);
            }
            _ => {}
        }
    }

    fn manager(&self, mp: MpId) -> Option<EmpId> {
        Some(self.topology.mp(mp)?.event_manager)
    }

    /// When that was by the clock of the event manager of `mp`, which corrected it.
    fn when(&self, mp: MpId, at: Nanos) -> Option<When> {
        let error = i128::from(self.clocks.get(&mp)?.0);
        let at = i128::from(at.0);
        Some(When {
            manager: self.manager(mp)?,
            earliest: at - error,
            latest: at + error,
        })
    }

    fn request(&mut self, record: &Record) {
        if record.flags.failed {
            // Perhaps it was served.
            self.unsound.insert(record.ap);
            return;
        }
        let by = match record.side {
            Side::Requester => record.mp,
            Side::Owner => record.peer,
        };
        let other = self.manager(record.mp) != self.manager(record.peer);
        if !other || self.unsound.contains(&record.ap) {
            return;
        }
        let when = self.when(by, record.start).zip(self.when(by, record.end()));
        let Some((begin, end)) = when else {
            self.unsound.insert(record.ap);
            return;
        };
        let this = Alone {
            side: record.side,
            version: record.version,
            begin,
            end,
            timed: record.count <= 1 && !record.flags.own_clock && !record.flags.in_process,
        };
        let key = (record.ap, record.op, record.object);
        let line = self.waiting.entry(key).or_default();
        if line.front().is_none_or(|other| other.side == this.side) {
            line.push_back(this);
            self.waits += 1;
            if self.waits > MOST_WAITING {
                self.complete = false;
                self.waiting = HashMap::new();
            }
            return;
        }
        let Some(other) = line.pop_front() else {
            return;
        };
        self.waits -= 1;
        if other.version != this.version {
            self.unsound.insert(record.ap);
        } else if other.timed && this.timed {
            let (asked, served) = match this.side {
                Side::Requester => (this, other),
                Side::Owner => (other, this),
            };
            for (first, then) in [(asked.begin, served.begin), (served.end, asked.end)] {
                let pair = pair(first.manager, then.manager);
                let none = || bounds(self.begins, pair, self.length);
                let bounds = self.requests.entry((pair, record.ap)).or_insert_with(none);
                before(bounds, first, then);
            }
        }
    }

    fn barrier(&mut self, record: &Record) {
        let flags = record.flags;
        if record.side != Side::Requester || flags.waiting {
            return;
        }
        let arrival = self.when(record.mp, record.start);
        let Some((arrived, left)) = arrival.zip(self.when(record.mp, record.end())) else {
            return;
        };
        let who = (record.ap, record.object.var);
        if flags.failed {
            self.given_up.entry(who).or_insert(arrived);
            return;
        }
        let arrived = self.given_up.remove(&who).unwrap_or(arrived);
        // Zero: nobody said which start of the coordinator counted.
        if record.version == 0 || record.count > 1 || flags.own_clock {
            return;
        }
        let key = (record.object, record.version);
        let next = self.openings.last_key_value().map_or(0, |(n, _)| n + 1);
        let number = *self.known.entry(key).or_insert(next);
        let (_, opening) = (self.openings.entry(number)).or_insert_with(|| (key, Vec::new()));
        let mine = opening
            .iter_mut()
            .find(|o| o.arrived.manager == arrived.manager);
        match mine {
            Some(mine) => {
                mine.arrived.earliest = mine.arrived.earliest.max(arrived.earliest);
                mine.left.latest = mine.left.latest.min(left.latest);
            }
            None => opening.push(Opening { arrived, left }),
        }
        if self.openings.len() > MOST_OPENINGS {
            self.settle_first();
        }
    }

    /// Of the opening that was heard of first enough is known.
    fn settle_first(&mut self) {
        let Some((_, (key, opening))) = self.openings.pop_first() else {
            return;
        };
        self.known.remove(&key);
        for (one, other) in opening
            .iter()
            .flat_map(|a| opening.iter().map(move |b| (a, b)))
        {
            if one.arrived.manager != other.left.manager {
                let pair = pair(one.arrived.manager, other.left.manager);
                let none = || bounds(self.begins, pair, self.length);
                let bounds = self.barriers.entry(pair).or_insert_with(none);
                before(bounds, one.arrived, other.left);
            }
        }
    }

    /// What is known of each two.
    pub(super) fn bounds(mut self) -> BTreeMap<Pair, Bounds> {
        while !self.openings.is_empty() {
            self.settle_first();
        }
        let mut all: BTreeMap<Pair, Bounds> = self.barriers.into_iter().collect();
        if !self.complete {
            return all;
        }
        // What is left alone was given to another, too.
        let left = self.waiting.iter().filter(|(_, line)| !line.is_empty());
        self.unsound.extend(left.map(|((ap, _, _), _)| *ap));
        for ((pair, ap), bounds) in self.requests {
            if !self.unsound.contains(&ap) {
                let known = all.entry(pair);
                known.and_modify(|k| k.join(&bounds)).or_insert(bounds);
            }
        }
        all
    }
}

fn pair(a: EmpId, b: EmpId) -> Pair {
    (a.min(b), a.max(b))
}

fn bounds(begins: &BTreeMap<EmpId, Nanos>, pair: Pair, length: Nanos) -> Bounds {
    Bounds::new(begins.get(&pair.0).copied().unwrap_or_default(), length)
}

/// `first` was before `then`, which another event manager tells: so much the clock of the one with the higher number is ahead.
fn before(bounds: &mut Bounds, first: When, then: When) {
    let by = (then.latest - first.earliest) as f64;
    let time = |t: i128| Nanos(u64::try_from(t).unwrap_or(0));
    if first.manager < then.manager {
        bounds.at_most(time(first.earliest), by);
    } else {
        bounds.at_least(time(then.latest), -by);
    }
}

#[cfg(test)]
mod tests {
    use dosmos_proto::topology::{
        ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess,
    };
    use dosmos_proto::{GroupId, TopologyBuilder};

    use super::*;
    use crate::record::Flags;

    const SECOND: u64 = 1_000_000_000;

    /// Two memory processes with an application process each, and an event manager each.
    fn topology() -> Topology {
        let mut topology = TopologyBuilder {
            name: "evidence".into(),
            groups: vec![Group {
                path: GroupPath::top("g"),
                parent: None,
            }],
            ..TopologyBuilder::default()
        };
        for n in 0..2 {
            topology.event_managers.push(EventManager {
                name: format!("emp{n}"),
            });
            topology.memory_processes.push(MemoryProcess {
                name: format!("mp{n}"),
                group: GroupId(0),
                event_manager: EmpId(n),
                link: false,
            });
            topology.application_processes.push(ApplicationProcess {
                name: format!("ap{n}"),
                memory_process: MpId(n),
            });
        }
        topology.build().unwrap()
    }

    /// An application process comes to a barrier at a time in ms, and leaves it, or gives up.
    fn barrier(ap: u32, (from, to): (u64, u64), generation: u32, failed: bool) -> Record {
        Record {
            start: Nanos(from * SECOND / 1000),
            duration: Nanos((to - from) * SECOND / 1000),
            wait: Nanos::ZERO,
            service: Nanos::ZERO,
            op: Op::Barrier,
            side: Side::Requester,
            origin: Origin::Local,
            flags: Flags {
                failed,
                ..Flags::default()
            },
            object: ObjectId::new(VarId(7), generation),
            ap: ApId(ap),
            mp: MpId(ap),
            peer: MpId(0),
            count: 1,
            bytes: 0,
            version: u64::from(!failed),
            range: (0, 0),
        }
    }

    /// How far the clock of the second event manager is ahead at the beginning, by `records`.
    fn ahead(records: &[Record]) -> f64 {
        let topology = topology();
        let clocks = [0, 1].map(|n| ProcessClock {
            mp: MpId(n),
            offset_ns: 0,
            drift_ppb: 0,
            error: Some(Nanos(1_000)),
        });
        let begins = [0, 1].map(|n| (EmpId(n), Nanos(SECOND))).into();
        let mut evidence = Evidence::new(&topology, &clocks, &begins, Nanos(20 * SECOND), true);
        records.iter().for_each(|record| evidence.take(record));
        let bounds = evidence.bounds();
        let line = bounds[&(EmpId(0), EmpId(1))].line();
        line.unwrap().expect("something is known").at_origin
    }

    /// Passages of ap1 are `by` ms ahead.
    fn passages(by: u64) -> Vec<Record> {
        let of = |n: u64| (n * 1_500, n * 1_500 + 40);
        let both = |n: u64| {
            let ((from, to), generation) = (of(n), n as u32);
            let other = (from + by + 20, to + by + 1);
            [
                barrier(0, (from, to), generation, false),
                barrier(1, other, generation, false),
            ]
        };
        (1..12).flat_map(both).collect()
    }

    #[test]
    fn barriers_tell_how_far_a_clock_is_ahead() {
        assert_eq!(ahead(&passages(0)), 0.0);
        let ahead = ahead(&passages(300));
        assert!((280e6..320e6).contains(&ahead), "{ahead}");
    }

    #[test]
    fn an_arrival_that_was_given_up_may_be_the_one_that_counted() {
        // Generation 2 opened at 3.04 s; what told ap1 came after 9 s, when it had come again.
        let mut records = passages(0);
        records.retain(|r| r.ap == ApId(0) || r.object.index > 7);
        records.push(barrier(1, (1_520, 1_541), 1, false));
        records.push(barrier(1, (3_010, 11_010), 0, true));
        records.push(barrier(1, (11_200, 11_300), 2, false));
        records.sort_by_key(|r| r.start);
        assert_eq!(ahead(&records), 0.0);
    }
}
