//! Barriers: who arrived at each opening, and that nobody left before.

use dosmos_proto::{ApId, MpId, Nanos, ObjectId, VarId};
use dosmos_trace::Record;
use dosmos_trace::clock::Apart;

use crate::found::Question;
use crate::kind::Kind;
use crate::opening::{Barrier, Opening};
use crate::verifier::Verifier;

/// How far clocks of one event manager are taken to be apart where nobody said.
const UNSAID: Nanos = Nanos::from_millis(10);

impl Verifier {
    /// A process comes to a barrier: everything that it did before is published.
    pub(crate) fn arrive(&mut self, record: &Record) {
        let (ap, id) = (record.ap, record.object.var);
        self.publish_writes(ap, record);
        let process = &mut self.processes[ap.index()];
        let names = &self.names;
        let generation = record.object.index;
        if let Some(before) = process.passed.insert(id, *record)
            && generation <= before.object.index
        {
            let records = [before, *record];
            self.found.certain(
                names,
                Kind::BarrierRepeated,
                record.object,
                &records,
                || {
                    format!(
                        "{} passed opening {} and then opening {generation}",
                        names.ap(ap),
                        before.object.index
                    )
                },
            );
        }
        let barrier = self.barriers.entry(id).or_insert_with(|| Barrier {
            participants: names.participants(id),
            ..Barrier::default()
        });
        let (mut clock, mut loose) = (process.clock.clone(), process.loose.clone());
        let n = barrier.participants.as_ref().map_or(0, Vec::len);
        let opening = barrier
            .openings
            .entry(generation)
            .or_insert_with(|| Opening {
                arrived: Vec::with_capacity(n),
                passed: 0,
                clock: clock.clone(),
                loose: loose.clone(),
            });
        clock.join(&opening.clock);
        loose.join(&opening.loose);
        (opening.clock, opening.loose) = (clock, loose);
        opening.arrived.push(*record);
        if generation <= barrier.given_up && opening.passed > 0 {
            self.disordered = true;
            self.found.doubt(Question::Order, id);
        }
        if opening.arrived.len() == n {
            let arrived = opening.arrived.clone();
            self.looked.barriers += 1;
            self.left_early(&arrived);
        }
        self.next_phase(ap);
    }

    pub(crate) fn have_arrived(&mut self, record: &Record) -> bool {
        let Some(barrier) = self.barriers.get(&record.object.var) else {
            return false;
        };
        let opening = barrier.openings.get(&record.object.index);
        let n = barrier.participants.as_ref().map_or(0, Vec::len);
        opening.is_none_or(|o| o.arrived.len() >= n)
    }

    /// A process goes on behind a barrier.
    pub(crate) fn passed(&mut self, record: &Record) {
        let process = &mut self.processes[record.ap.index()];
        process.learned = Some(*record);
        let Some(barrier) = self.barriers.get_mut(&record.object.var) else {
            return;
        };
        let generation = record.object.index;
        let Some(opening) = barrier.openings.get_mut(&generation) else {
            return;
        };
        process.clock.join(&opening.clock);
        process.loose.join(&opening.loose);
        opening.passed += 1;
        let n = barrier.participants.as_ref().map_or(0, Vec::len);
        if opening.arrived.len() < n {
            barrier.given_up = barrier.given_up.max(generation);
        } else if opening.passed >= n && n > 0 {
            barrier.openings.remove(&generation);
            barrier.complete = barrier.complete.max(generation);
        }
    }

    pub(crate) fn barrier_failed(&mut self, record: &Record) {
        let names = &self.names;
        let id = record.object.var;
        let barrier = self.barriers.entry(id).or_insert_with(|| Barrier {
            participants: names.participants(id),
            ..Barrier::default()
        });
        barrier.failed = true;
    }

    /// How far times of two memory processes can be apart; none if nobody knows.
    pub(crate) fn clock_error(&self, a: MpId, b: MpId) -> Option<Nanos> {
        match self.names.apart(a, b) {
            Apart::Unknown => None,
            Apart::AtMost(_) if a == b => Some(Nanos::ZERO),
            Apart::AtMost(error) => Some(self.options.clock_error.unwrap_or(error)),
            Apart::Unsaid => Some(self.options.clock_error.unwrap_or(UNSAID)),
        }
    }

    /// Whether one of those that passed an opening together left before another came.
    fn left_early(&mut self, arrived: &[Record]) {
        let names = &self.names;
        let Some(last) = arrived.iter().max_by_key(|r| r.start) else {
            return;
        };
        for early in arrived.iter().filter(|r| r.end() < last.start) {
            let apart = last.start - early.end();
            let Some(error) = self.clock_error(early.mp, last.mp) else {
                self.found.doubt(Question::Clocks, last.object.var);
                continue;
            };
            if apart <= error {
                continue;
            }
            let records = [*early, *last];
            self.found
                .certain(names, Kind::BarrierLeftEarly, last.object, &records, || {
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

    /// Openings that not all have passed.
    pub(crate) fn close_barriers(&mut self) {
        let names = &self.names;
        let mut all: Vec<(&VarId, &Barrier)> = self.barriers.iter().collect();
        all.sort_by_key(|(id, _)| **id);
        for (id, barrier) in all {
            let Some(participants) = &barrier.participants else {
                self.found.doubt(Question::UnknownBarrier, *id);
                continue;
            };
            let mut openings: Vec<(&u32, &Opening)> = barrier.openings.iter().collect();
            openings.sort_by_key(|(generation, _)| **generation);
            for (generation, opening) in openings {
                let came = |ap: &&ApId| opening.arrived.iter().any(|r| r.ap == **ap);
                let missing = participants.iter().find(|ap| !came(ap));
                let (Some(missing), Some(passed)) = (missing, opening.arrived.first()) else {
                    continue;
                };
                let last = self.processes[missing.index()].passed.get(id).copied();
                let records: Vec<Record> = last.into_iter().chain([*passed]).collect();
                let object = ObjectId::new(*id, *generation);
                self.found
                    .presumed(names, Kind::BarrierMissed, object, &records, || {
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
