//! Barriers: who arrived at each opening, and that nobody left before.

use dosmos_proto::direct::GONE_AFTER;
use dosmos_proto::{ApId, Nanos, ObjectId, VarId};
use dosmos_trace::Record;
use rustc_hash::FxHashMap;

use crate::clocks::Past;
use crate::context::Context;
use crate::found::{Found, Question};
use crate::kind::Kind;
use crate::names::Names;
use crate::order::Order;

/// Failed arrivals of a process that are kept.
const FAILED: usize = 16;

/// Which start of its coordinator counted an opening (0: not told), and the number that this gave it. A coordinator that was
/// started again counts anew.
type Number = (u64, u32);

fn number_of(record: &Record) -> Number {
    (record.version, record.object.index)
}

#[derive(Debug)]
struct Opening {
    arrived: Vec<Record>,
    passed: usize,
    /// Somebody passed it without waiting for all.
    given_up: bool,
    /// The first that came had passed it before, or a later one: that is said of it, and not that others are missing.
    again: bool,
    /// What comes before who passes.
    past: Past,
}

#[derive(Debug)]
struct Barrier {
    /// None: not known.
    participants: Option<Vec<ApId>>,
    openings: FxHashMap<Number, Opening>,
    /// Arrivals that failed: whether the opening then counted them is not recorded.
    failed: FxHashMap<ApId, Failed>,
}

/// The failed arrivals of a process at a barrier.
#[derive(Debug, Default)]
struct Failed {
    /// From when to when it waited, of the first ones.
    waits: Vec<Record>,
    /// There were more.
    more: bool,
}

impl Failed {
    fn add(&mut self, record: &Record) {
        if self.waits.len() < FAILED {
            self.waits.push(*record);
        } else {
            self.more = true;
        }
    }

    /// Whether one of them may have counted when those who passed had `arrived`: by its time, if its clock can be compared. The
    /// coordinator counts it until it hears that it was given up, or, if the network is cut, that its process is gone.
    fn may_have_counted(&self, arrived: &[Record], names: &Names) -> bool {
        let unheard = Nanos::from(GONE_AFTER);
        let with = |wait: &Record| {
            arrived.iter().all(|r| {
                let error = names.clock_error(wait.mp, r.mp);
                error.is_none_or(|e| {
                    wait.start <= r.end() + e && r.start <= wait.end() + unheard + e
                })
            })
        };
        self.more || self.waits.iter().any(with)
    }
}

impl Barrier {
    /// How many processes pass it; 0: not known.
    fn size(&self) -> usize {
        self.participants.as_ref().map_or(0, Vec::len)
    }
}

#[derive(Debug)]
pub(crate) struct Barriers {
    barriers: FxHashMap<VarId, Barrier>,
    /// The last passage of each barrier by each process.
    passages: Vec<FxHashMap<VarId, Record>>,
    /// Of some openings it is not told which start of their coordinator counted them.
    untold: bool,
}

impl Barriers {
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            barriers: FxHashMap::default(),
            passages: vec![FxHashMap::default(); processes],
            untold: false,
        }
    }

    /// Whether openings of one number may be of different starts of their coordinator, if that was started again.
    pub(crate) fn may_be_counted_anew(&self) -> bool {
        self.untold
    }

    /// A barrier, from now on if nobody came to it before.
    fn barrier(&mut self, id: VarId, names: &Names) -> &mut Barrier {
        self.barriers.entry(id).or_insert_with(|| Barrier {
            participants: names.participants(id),
            openings: FxHashMap::default(),
            failed: FxHashMap::default(),
        })
    }

    /// An arrival failed: the barrier is known from now on.
    pub(crate) fn failed(&mut self, record: &Record, names: &Names) {
        let barrier = self.barrier(record.object.var, names);
        barrier.failed.entry(record.ap).or_default().add(record);
    }

    /// A process comes to a barrier; whether it is the last.
    pub(crate) fn arrive(&mut self, record: &Record, context: &mut Context) -> bool {
        let Context { order, found } = context;
        let (ap, id, generation) = (record.ap, record.object.var, record.object.index);
        let number = number_of(record);
        self.untold |= number.0 == 0;
        let before = self.passages[ap.index()].insert(id, *record);
        let later = before.filter(|b| b.version == record.version && generation <= b.object.index);
        if let Some(before) = later {
            let records = [before, *record];
            found.certain(Kind::BarrierRepeated, record.object, &records, |names| {
                format!(
                    "{} passed opening {} and then opening {generation}",
                    names.ap(ap),
                    before.object.index
                )
            });
        }
        let barrier = self.barrier(id, found.names());
        let n = barrier.size();
        let past = order.past(ap);
        let openings = &mut barrier.openings;
        let opening = openings.entry(number).or_insert_with(|| Opening {
            arrived: Vec::with_capacity(n),
            passed: 0,
            given_up: false,
            again: later.is_some(),
            past: past.clone(),
        });
        opening.past.join(past);
        opening.arrived.push(*record);
        if opening.given_up {
            found.disordered(id);
        }
        let full = opening.arrived.len() == n;
        if full {
            left_early(&opening.arrived, &barrier.failed, found);
        }
        order.next_phase(ap);
        full
    }

    pub(crate) fn have_arrived(&self, record: &Record) -> bool {
        let Some(barrier) = self.barriers.get(&record.object.var) else {
            return false;
        };
        let opening = barrier.openings.get(&number_of(record));
        opening.is_none_or(|o| o.arrived.len() >= barrier.size())
    }

    /// A process goes on behind a barrier.
    pub(crate) fn passed(&mut self, record: &Record, order: &mut Order) {
        let number = number_of(record);
        let Some(barrier) = self.barriers.get_mut(&record.object.var) else {
            return;
        };
        let n = barrier.size();
        let opening = barrier.openings.get_mut(&number);
        order.learn(record, opening.as_deref().map(|o| &o.past));
        let Some(opening) = opening else {
            return;
        };
        opening.passed += 1;
        if opening.arrived.len() < n {
            opening.given_up = true;
        } else if opening.passed == n {
            barrier.openings.remove(&number);
        }
    }

    /// Openings that not all have passed.
    pub(crate) fn close(&self, found: &mut Found) {
        let mut all: Vec<(&VarId, &Barrier)> = self.barriers.iter().collect();
        all.sort_by_key(|(id, _)| **id);
        for (id, barrier) in all {
            let Some(participants) = &barrier.participants else {
                found.doubt(Question::UnknownBarrier, *id);
                continue;
            };
            let openings = barrier.openings.iter().filter(|(_, o)| !o.again);
            let mut openings: Vec<(&Number, &Opening)> = openings.collect();
            openings.sort_by_key(|(number, _)| **number);
            for ((_, generation), opening) in openings {
                let came = |ap: &&ApId| opening.arrived.iter().any(|r| r.ap == **ap);
                let missing = participants.iter().find(|ap| !came(ap));
                let (Some(missing), Some(passed)) = (missing, opening.arrived.first()) else {
                    continue;
                };
                let failed = barrier.failed.get(missing);
                if failed.is_some_and(|f| f.may_have_counted(&opening.arrived, found.names())) {
                    found.doubt(Question::GaveUp, *id);
                    continue;
                }
                let last = self.passages[missing.index()].get(id).copied();
                let records: Vec<Record> = last.into_iter().chain([*passed]).collect();
                let object = ObjectId::new(*id, *generation);
                found.presumed(Kind::BarrierMissed, object, &records, |names| {
                    format!(
                        "{} passed opening {generation}, and {} never came",
                        names.ap(passed.ap),
                        names.ap(*missing)
                    )
                });
            }
        }
    }
}

/// Whether one of those that passed an opening together left before another came.
fn left_early(arrived: &[Record], failed: &FxHashMap<ApId, Failed>, found: &mut Found) {
    let Some(last) = arrived.iter().max_by_key(|r| r.start) else {
        return;
    };
    let failed = failed.get(&last.ap);
    for early in arrived.iter().filter(|r| r.end() < last.start) {
        if failed.is_some_and(|f| f.may_have_counted(&[*early], found.names())) {
            found.doubt(Question::GaveUp, last.object.var);
            continue;
        }
        let apart = last.start - early.end();
        let Some(error) = found.names().clock_error(early.mp, last.mp) else {
            found.doubt(Question::Clocks, last.object.var);
            continue;
        };
        if apart <= error {
            continue;
        }
        let records = [*early, *last];
        found.certain(Kind::BarrierLeftEarly, last.object, &records, |names| {
            format!(
                "{} left opening {} {} ns before {} came",
                names.ap(early.ap),
                last.object.index,
                apart.0,
                names.ap(last.ap)
            )
        });
    }
}
