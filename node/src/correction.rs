//! The one correction of the times of records: an event manager's, by what each memory process makes of its clock. Sans-IO.
//!
//! Records travel with the times of their process's clock. What is done to them is said, so that it can be stored with
//! them: by what they were corrected, and the most that any of them is off.

use dosmos_proto::clock::ClockEstimate;
use dosmos_proto::{Nanos, PhaseTimes};
use dosmos_trace::Record;
use dosmos_trace::clock::Correction;

/// The bound that is said holds for records of so much longer, so that not every batch says another one.
const AHEAD: Nanos = Nanos::from_millis(1_500);

/// Corrects the records of one start of a memory process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Corrector {
    estimate: Option<ClockEstimate>,
    said: Option<Correction>,
}

impl Corrector {
    /// What the process makes of its clock now.
    pub fn estimate(&self) -> Option<&ClockEstimate> {
        self.estimate.as_ref()
    }

    /// The process says what it makes of its clock.
    pub fn learn(&mut self, estimate: ClockEstimate) {
        self.estimate = Some(estimate);
    }

    /// Corrects what came in one batch. The result is what is to be stored before these records, if it is news.
    pub fn correct(
        &mut self,
        records: &mut [Record],
        times: &mut [PhaseTimes],
    ) -> Option<Correction> {
        let by = self.estimate.unwrap_or_default();
        // What an application process did in itself has the time of its clock.
        let own = records.iter().filter(|r| !r.flags.in_process);
        let error = own.map(|r| by.error_of(r.start, r.duration)).max();
        for record in records.iter_mut() {
            record.start = by.correct(record.start);
        }
        for piece in times.iter_mut() {
            piece.start = by.correct(piece.start);
        }
        let error = match self.estimate {
            Some(_) => error?,
            None => error.map(|_| Nanos::MAX)?,
        };
        if self.said.is_some_and(|s| s.by == by && error <= s.error) {
            return None;
        }
        let later = by.error_at(by.until + AHEAD) - by.error;
        self.said = Some(Correction {
            by,
            error: error + later,
        });
        self.said
    }
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
}
