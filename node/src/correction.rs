//! The one correction of the times of records: an event manager's, by what each memory process makes of its clock. Sans-IO.
//!
//! Records travel with the times of their process's clock. What is done to them is said, so that it can be stored with
//! them: by what they were corrected, and the most that any of them is off.
//!
//! Invariant: of two times of one start of a process, beginnings and ends of records, the later is not corrected to an earlier
//! one. What is made of a clock changes; so what was corrected stands, times up to there are corrected as before, and later
//! ones to nothing before it. Nor are times of a later start of a process corrected to before those of an earlier one, although
//! its clock, or that of the event manager, may have been set.

use std::collections::VecDeque;

use dosmos_proto::clock::ClockEstimate;
use dosmos_proto::{Nanos, PhaseTimes};
use dosmos_trace::Record;
use dosmos_trace::clock::{Corrected, Correction, Corrections};

/// The bound that is said holds for records of so much longer, so that not every batch says another one.
const AHEAD: Nanos = Nanos::from_millis(1_500);
/// Estimates that are remembered for what began long ago.
const REMEMBERED: usize = 64;

/// How times of a process's clock are corrected, up to one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    by: ClockEstimate,
    /// A time at which it holds times back. From there they go on at half their speed at least: so their order stays, and they
    /// are held back for no longer than twice what the two estimates differ.
    held: Option<Corrected>,
    until: Nanos,
}

impl Segment {
    fn correct(&self, local: Nanos) -> Nanos {
        if self.held.is_none() {
            return self.by.correct(local);
        }
        let half = |time: Nanos| Nanos(time.0 / 2);
        let at_least = |at: Corrected| at.to + half(local - at.local) - half(at.local - local);
        let at_least = self.held.map_or(Nanos::ZERO, at_least);
        self.by.correct(local).max(at_least)
    }

    /// The most that a time is off.
    fn error_at(&self, local: Nanos) -> Nanos {
        if self.held.is_none() {
            return self.by.error_at(local);
        }
        let held_back = self.correct(local) - self.by.correct(local);
        self.by.error_at(local) + held_back
    }
}

/// Corrects the records of one start of a memory process.
#[derive(Clone, Debug, Default)]
pub struct Corrector {
    estimate: Option<ClockEstimate>,
    /// By earlier estimates, in the order of times.
    before: VecDeque<Segment>,
    /// By the last one; `until` is the latest time that was corrected.
    last: Option<Segment>,
    said: Option<Correction>,
    /// Nothing is corrected to an earlier time: an earlier start of the process came up to there. Until the first record came.
    floor: Option<Nanos>,
}

impl Corrector {
    /// Goes on where earlier starts of the event manager ended: by how they corrected, and the latest time that was.
    pub fn after(earlier: &Corrections, until: Corrected) -> Self {
        let next = earlier.all().iter().skip(1).map(|c| c.begins);
        let ends = next.map(|begins| begins.map_or(Nanos::ZERO, |b| b.local));
        let all = earlier.all().iter().zip(ends.chain([until.local]));
        let mut before: VecDeque<Segment> = all
            .map(|(correction, until)| Segment {
                by: correction.by,
                held: correction.begins,
                until,
            })
            .collect();
        let mut last = before.pop_back();
        if let Some(its) = last
            && its.correct(its.until) < until.to
        {
            before.push_back(its);
            last = Some(Segment {
                held: Some(until),
                ..its
            });
        }
        Self {
            before,
            last,
            ..Self::default()
        }
    }

    /// Another start of the process, whose times are after those of the one before, which were corrected up to `floor`.
    pub fn following(floor: Nanos) -> Self {
        Self {
            floor: Some(floor),
            ..Self::default()
        }
    }

    /// The time that those of a next start of the process are after. Nothing is after what was stored as it came.
    pub fn floor(&self) -> Nanos {
        let is_known = |last: &Segment| last.by != ClockEstimate::default() || last.held.is_some();
        let until = self
            .last
            .filter(is_known)
            .map_or(Nanos::ZERO, |_| self.until().to);
        until.max(self.floor.unwrap_or_default())
    }

    /// What the process makes of its clock now.
    pub fn estimate(&self) -> Option<&ClockEstimate> {
        self.estimate.as_ref()
    }

    /// The process says what it makes of its clock.
    pub fn learn(&mut self, estimate: ClockEstimate) {
        self.estimate = Some(estimate);
    }

    /// The latest time that was corrected.
    pub fn until(&self) -> Corrected {
        let of = |last: Segment| Corrected {
            local: last.until,
            to: last.correct(last.until),
        };
        self.last.map(of).unwrap_or_default()
    }

    /// Corrects what came in one batch. The result is what is to be stored before these records, if it is news.
    pub fn correct(
        &mut self,
        records: &mut [Record],
        times: &mut [PhaseTimes],
    ) -> Option<Correction> {
        // What an application process did in itself has the time of its clock.
        let own = records.iter().filter(|r| !r.flags.in_process);
        let latest = own.map(Record::end).max();
        let first = records.iter().map(|r| r.start);
        let first = first.chain(times.iter().map(|t| t.start)).min();
        let mut now = self.begin(first);
        let mut error = None;
        // Of the times that are only shifted, the first and the last are off most: the bound of an estimate grows to both sides.
        let mut shifted: Option<(Nanos, Nanos)> = None;
        for record in records.iter_mut() {
            let (begun, ended) = (record.start, record.end());
            let (first, last) = (self.segment(&now, begun), self.segment(&now, ended));
            let is_now = std::ptr::eq(first, &raw const now) && first.held.is_none();
            if record.flags.in_process {
                // Nothing is said of it.
            } else if is_now {
                shifted = Some(shifted.map_or((begun, ended), |(from, to)| {
                    (from.min(begun), to.max(ended))
                }));
            } else {
                error = error.max(Some(first.error_at(begun).max(last.error_at(ended))));
            }
            record.start = first.correct(begun);
            lasts(record, last.correct(ended) - record.start);
        }
        if let Some((from, to)) = shifted {
            error = error.max(Some(now.error_at(from).max(now.error_at(to))));
        }
        for piece in times.iter_mut() {
            piece.start = self.segment(&now, piece.start).correct(piece.start);
        }
        now.until = latest.map_or(now.until, |latest| latest.max(now.until));
        self.last = Some(now);
        if self.said.is_none() && self.estimate.is_some() {
            // Said also without a record: should the event manager be started again, it knows by this whether its clock was set.
            error = error.or(Some(now.by.error));
        }
        let error = match self.estimate {
            Some(_) => error?,
            None => error.map(|_| Nanos::MAX)?,
        };
        let by = now.by;
        let begins = now.held;
        if (self.said).is_some_and(|s| (s.by, s.begins) == (by, begins) && error <= s.error) {
            return None;
        }
        let later = by.error_at(by.until + AHEAD) - by.error;
        self.said = Some(Correction {
            by,
            error: error + later,
            begins,
        });
        self.said
    }

    /// The segment for times that are later than all corrected so far. The first of them, `first`, is not corrected to before
    /// the floor.
    fn begin(&mut self, first: Option<Nanos>) -> Segment {
        let mut now = self.next();
        if let Some(local) = first
            && let Some(to) = self.floor.take()
            && now.correct(local) < to
        {
            now.held = Some(Corrected { local, to });
        }
        now
    }

    /// The segment of the last estimate.
    fn next(&mut self) -> Segment {
        let by = self.estimate.unwrap_or_default();
        match self.last {
            Some(last) if last.by == by => last,
            // What nothing was known of is in no order.
            Some(last) if last.by != ClockEstimate::default() || last.held.is_some() => {
                if self.before.len() == REMEMBERED {
                    self.before.pop_front();
                }
                self.before.push_back(last);
                Segment {
                    by,
                    held: Some(self.until()),
                    until: last.until,
                }
            }
            _ => Segment {
                by,
                ..Segment::default()
            },
        }
    }

    /// By what this time is corrected: `now`, if it is later than what earlier estimates corrected.
    fn segment<'a>(&'a self, now: &'a Segment, local: Nanos) -> &'a Segment {
        // Most times are later than all of them.
        if self.before.back().is_none_or(|last| last.until < local) {
            return now;
        }
        let earlier = self.before.iter().find(|s| local <= s.until);
        earlier.unwrap_or(now)
    }
}

/// Takes what a record lasted longer or shorter as waiting, as far as it waited. Of several accesses these are sums.
fn lasts(record: &mut Record, duration: Nanos) {
    let otherwise = record.duration - record.wait;
    record.duration = duration;
    if record.accesses() > 1 {
        return;
    }
    if record.wait > Nanos::ZERO {
        record.wait = duration - otherwise;
    }
    record.service = record.service.min(duration - record.wait);
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::{ApId, MpId, ObjectId, VarId};
    use dosmos_trace::record::{Flags, Op, Origin, Side};

    fn record(start: u64, duration: u64) -> Record {
        Record {
            start: Nanos(start),
            duration: Nanos(duration),
            wait: Nanos::ZERO,
            service: Nanos::ZERO,
            op: Op::Read,
            side: Side::Requester,
            origin: Origin::Local,
            flags: Flags::default(),
            object: ObjectId::new(VarId(1), 0),
            ap: ApId(0),
            mp: MpId(0),
            peer: MpId(0),
            count: 1,
            bytes: 0,
            version: 0,
            range: (0, 0),
        }
    }

    #[test]
    fn what_is_done_to_times_is_said_once_until_it_changes() {
        let second = 1_000_000_000;
        let mut corrector = Corrector::default();
        assert_eq!(corrector.correct(&mut [], &mut []), None, "no record");
        let unknown = corrector.correct(&mut [record(7, 1)], &mut []).unwrap();
        assert_eq!(unknown.error, Nanos::MAX, "nothing is known of the clock");
        assert_eq!(corrector.correct(&mut [record(8, 1)], &mut []), None);
        let estimate = ClockEstimate {
            offset_ns: 50,
            error: Nanos(20),
            since: Nanos(second),
            until: Nanos(second),
            growth_ppb: 1_000,
            ..ClockEstimate::default()
        };
        corrector.learn(estimate);
        let mut records = [record(second, 0), record(2 * second, 0)];
        let said = corrector.correct(&mut records, &mut []).unwrap();
        assert_eq!(records[0].start, Nanos(second + 50));
        assert_eq!(said.by, estimate);
        assert_eq!(said.error, Nanos(20 + 1_000 + 1_500), "and a while more");
        let mut later = [record(3 * second, 0)];
        assert_eq!(corrector.correct(&mut later, &mut []), None);
        let mut much_later = [record(9 * second, 0)];
        let said = corrector.correct(&mut much_later, &mut []).unwrap();
        assert_eq!(said.error, Nanos(20 + 8_000 + 1_500));
        let mut inside = record(99 * second, 0);
        inside.flags.in_process = true;
        assert_eq!(corrector.correct(&mut [inside], &mut []), None);
    }

    #[test]
    fn what_is_made_of_a_clock_is_said_once_also_without_a_record() {
        let mut corrector = Corrector::default();
        let known = estimate(1_000_000_000, 500);
        corrector.learn(known);
        let said = corrector.correct(&mut [], &mut []).unwrap();
        assert_eq!((said.by, said.error), (known, Nanos(20)));
        assert_eq!(corrector.correct(&mut [], &mut []), None);
    }

    fn estimate(at: u64, offset_ns: i64) -> ClockEstimate {
        ClockEstimate {
            reference: Nanos(at),
            offset_ns,
            error: Nanos(20),
            since: Nanos(at),
            until: Nanos(at),
            ..ClockEstimate::default()
        }
    }

    #[test]
    fn a_later_start_is_not_earlier_than_the_one_before_it() {
        let second = 1_000_000_000;
        let starts = |corrector: &mut Corrector, starts: &[u64]| -> Vec<u64> {
            let mut records: Vec<_> = starts.iter().map(|s| record(*s, 0)).collect();
            corrector.correct(&mut records, &mut []);
            records.iter().map(|r| r.start.0).collect()
        };
        // The clock of the event manager was a second ahead.
        let mut first = Corrector::default();
        first.learn(estimate(second, 1_000_000_000));
        assert_eq!(starts(&mut first, &[2 * second]), [3 * second]);
        let mut next = Corrector::following(first.floor());
        assert_eq!(next.floor(), Nanos(3 * second));
        next.learn(estimate(second, 0));
        assert_eq!(next.correct(&mut [], &mut []).unwrap().error, Nanos(20));
        let (begun, later, late) = (2 * second + 400, 2 * second + 600, 9 * second);
        let mut records = [record(begun, 0), record(later, 0), record(late, 0)];
        let said = next.correct(&mut records, &mut []).unwrap();
        let corrected = records.map(|r| r.start.0);
        assert_eq!(corrected, [3 * second, 3 * second + 100, 9 * second]);
        let held_back = second - 400 + 20;
        assert!(said.error >= Nanos(held_back), "{said:?}");
        // Nothing is known of its clock at first.
        let mut unknown = Corrector::following(first.floor());
        assert_eq!(starts(&mut unknown, &[begun]), [3 * second]);
        unknown.learn(estimate(second, 200));
        let then = starts(&mut unknown, &[later]);
        assert_eq!(then, [3 * second + 100]);
        // Of one of which nothing was known nothing follows.
        let mut lost = Corrector::default();
        assert_eq!(starts(&mut lost, &[99 * second]), [99 * second]);
        assert_eq!(lost.floor(), Nanos::ZERO);
        // A clock that is right changes nothing.
        let mut right = Corrector::following(first.floor());
        right.learn(estimate(second, 0));
        assert_eq!(starts(&mut right, &[4 * second]), [4 * second]);
    }

    #[test]
    fn whatever_is_made_of_a_clock_what_came_later_is_not_earlier() {
        let second = 1_000_000_000;
        let mut corrector = Corrector::default();
        let corrected = |corrector: &mut Corrector, starts: &[u64]| -> Vec<u64> {
            let mut records: Vec<_> = starts.iter().map(|s| record(*s, 0)).collect();
            corrector.correct(&mut records, &mut []);
            records.iter().map(|r| r.start.0).collect()
        };
        corrector.learn(estimate(second, 500));
        assert_eq!(corrected(&mut corrector, &[second]), [second + 500]);
        // The next estimate is 300 ns less. What began before is corrected as before.
        corrector.learn(estimate(second, 200));
        let starts = [second - 50, second + 100, second + 400];
        let expected = [second + 450, second + 550, second + 700];
        assert_eq!(corrected(&mut corrector, &starts), expected);
        // And more again.
        corrector.learn(estimate(second, 900));
        let starts = [second - 50, second + 200, second + 401];
        let expected = [second + 450, second + 600, second + 1_301];
        assert_eq!(corrected(&mut corrector, &starts), expected);
        // The event manager is started again, and its clock was set back meanwhile.
        let mut said = of(estimate(second, 900));
        let mut after = Corrector::after(&said, corrector.until());
        after.learn(estimate(second, -second.cast_signed() / 2));
        let starts = [second + 401, second + 403, 2 * second + 401, 4 * second];
        let half = second / 2;
        let expected = [
            second + 1_301,
            second + 1_302,
            second + 1_301 + half,
            3 * second + half,
        ];
        assert_eq!(corrected(&mut after, &starts[..3]), expected[..3]);
        // And again, while times are held back.
        after.said.into_iter().for_each(|c| said.add(c));
        let mut again = Corrector::after(&said, after.until());
        again.learn(*after.estimate().unwrap());
        assert_eq!(again.until(), after.until());
        assert_eq!(corrected(&mut again, &starts), expected);
    }

    fn of(by: ClockEstimate) -> Corrections {
        let first = Correction {
            by,
            ..Correction::default()
        };
        [first].into_iter().collect()
    }

    #[test]
    fn what_began_long_ago_is_corrected_as_it_was_then_by_any_start_of_the_event_manager() {
        let tenth = 100_000_000;
        let mut said = Corrections::default();
        let mut until = Corrected::default();
        // Each start has another clock, hears of what is given, and stores it at these times.
        let mut start = |offset_ns: i64, starts: &[u64]| -> Vec<u64> {
            let mut corrector = match said.last() {
                None => Corrector::default(),
                Some(_) => Corrector::after(&said, until),
            };
            corrector.learn(estimate(tenth, offset_ns));
            let mut records: Vec<_> = starts.iter().map(|s| record(*s * tenth, 0)).collect();
            said.add(corrector.correct(&mut records, &mut []).unwrap());
            until = corrector.until();
            records.iter().map(|r| r.start.0).collect()
        };
        let first = start(700, &[10, 15]);
        let second = start(-10_000_000, &[20]);
        let third = start(-300_000_000, &[12, 15, 17, 20, 30]);
        let last = start(900, &[12, 17, 20, 22, 40]);
        assert_eq!(third[0], 12 * tenth + 700);
        assert_eq!((third[1], third[3]), (first[1], second[0]));
        assert_eq!((last[0], last[1], last[2]), (third[0], third[2], second[0]));
        let all = [
            &first[..1],
            &last[..1],
            &first[1..],
            &last[1..4],
            &third[4..],
            &last[4..],
        ];
        assert!(all.concat().is_sorted(), "{all:?}");
    }

    #[test]
    fn a_record_ends_before_what_its_process_did_after_it() {
        let second = 1_000_000_000;
        let mut corrector = Corrector::default();
        corrector.learn(ClockEstimate {
            drift_ppb: 150_000,
            ..estimate(0, 0)
        });
        let mut records = [record(second, 480_000), record(second + 480_000, 0)];
        corrector.correct(&mut records, &mut []);
        assert_eq!(records[0].duration, Nanos(480_072));
        assert_eq!(records[0].end(), records[1].start);
        // Something that began before an estimate that is less, and ends after it.
        corrector.learn(estimate(0, 0));
        let mut records = [record(second, second), record(2 * second, 0)];
        records[0].wait = Nanos(second);
        corrector.correct(&mut records, &mut []);
        assert_eq!(records[0].end(), records[1].start);
        assert_eq!(records[0].wait, Nanos(second - 150_000));
    }

    #[test]
    fn how_far_a_time_is_held_back_is_in_the_bound() {
        let second = 1_000_000_000;
        let mut corrector = Corrector::after(
            &of(estimate(second, 500)),
            Corrected {
                local: Nanos(second),
                to: Nanos(second + 500),
            },
        );
        corrector.learn(estimate(second, 200));
        let said = corrector.correct(&mut [record(second + 100, 0)], &mut []);
        assert_eq!(said.unwrap().error, Nanos(20 + 250));
    }
}
