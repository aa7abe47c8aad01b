//! Requests and what owners served of them: each remote access has a record of its requester and one of its owner. They are
//! matched in order, by process, operation and object, since requests of one process to one owner keep their order.

use std::collections::VecDeque;

use dosmos_proto::ApId;
use dosmos_trace::{Op, Origin, Record, Side};

/// Most records kept that have no counterpart yet; beyond, they are only counted.
const KEPT: usize = 16;

#[derive(Debug)]
struct Line {
    ap: ApId,
    op: Op,
    /// Of one side, without their counterpart.
    alone: VecDeque<Record>,
    /// More of the same side after them, not kept; the last of them.
    more: u64,
    last: Option<Record>,
    /// The first two that do not belong together.
    differ: Option<(Record, Record)>,
}

impl Line {
    fn take(&mut self, record: &Record) {
        let waiting = self.alone.front().or(self.last.as_ref());
        if waiting.is_none_or(|other| other.side == record.side) {
            if self.more == 0 && self.alone.len() < KEPT {
                self.alone.push_back(*record);
            } else {
                self.more += 1;
                self.last = Some(*record);
            }
            return;
        }
        match self.alone.pop_front() {
            Some(other) => {
                if !together(&other, record) && self.differ.is_none() {
                    self.differ = Some((other, *record));
                }
            }
            // Its counterpart was not kept.
            None => self.more -= 1,
        }
        if self.more == 0 {
            self.last = None;
        }
    }
}

/// What does not belong together.
#[derive(Debug, PartialEq)]
pub(crate) enum Odd {
    /// The requester was told something else than was served.
    Differ(Record, Record),
    /// A request that was not served, or one too many that was.
    Alone(Record, u64),
}

#[derive(Debug, Default)]
pub(crate) struct Pairs(Vec<Line>);

impl Pairs {
    /// A record of a remote access that did not fail.
    pub(crate) fn take(&mut self, record: &Record) {
        let at = self
            .0
            .iter()
            .position(|l| l.ap == record.ap && l.op == record.op);
        let at = at.unwrap_or_else(|| {
            self.0.push(Line {
                ap: record.ap,
                op: record.op,
                alone: VecDeque::new(),
                more: 0,
                last: None,
                differ: None,
            });
            self.0.len() - 1
        });
        self.0[at].take(record);
    }

    /// What is odd in the end of the processes for which `sound`: those without failures.
    pub(crate) fn odd(&self, sound: impl Fn(ApId) -> bool) -> Vec<Odd> {
        let mut odd = Vec::new();
        for line in self.0.iter().filter(|l| sound(l.ap)) {
            if let Some(alone) = line.alone.front().or(line.last.as_ref()) {
                odd.push(Odd::Alone(*alone, line.alone.len() as u64 + line.more));
            } else if let Some((a, b)) = line.differ {
                odd.push(Odd::Differ(a, b));
            }
        }
        odd
    }
}

/// Whether an owner's record can be of the request of the other. Of writes only their number is compared: those that left with
/// a release may come in another order.
fn together(a: &Record, b: &Record) -> bool {
    a.op == Op::Write || a.version == b.version
}

/// Whether a record of an access to an object that did not fail has a counterpart of the other side.
pub(crate) fn is_remote(record: &Record) -> bool {
    record.side == Side::Owner || record.origin != Origin::Local
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::of_test;
    use dosmos_proto::Nanos;

    fn record(side: Side, version: u64) -> Record {
        Record {
            start: Nanos(version),
            side,
            origin: Origin::Inter,
            version,
            ..of_test()
        }
    }

    fn odd(records: impl IntoIterator<Item = Record>) -> Vec<Odd> {
        let mut pairs = Pairs::default();
        records.into_iter().for_each(|r| pairs.take(&r));
        pairs.odd(|_| true)
    }

    #[test]
    fn one_side_may_come_long_before_the_other() {
        for ahead in [1, 15, 16, 17, 18, 40, 100] {
            let served = (0..ahead).map(|v| record(Side::Owner, v));
            let mixed = (ahead..ahead + 30).flat_map(|v| {
                let requested = record(Side::Requester, v - ahead);
                [record(Side::Owner, v), requested]
            });
            let rest = (30..ahead + 30).map(|v| record(Side::Requester, v));
            let all: Vec<Record> = served.chain(mixed).chain(rest).collect();
            assert_eq!(odd(all.clone()), [], "{ahead} ahead");
            let one_less = odd(all[..all.len() - 1].iter().copied());
            assert!(matches!(one_less[..], [Odd::Alone(_, 1)]), "{one_less:?}");
        }
    }

    #[test]
    fn of_those_that_wait_for_the_other_side_the_first_are_compared_and_the_others_counted() {
        let differ = |ahead: usize, other: usize| {
            let served = (0..ahead as u64).map(|v| record(Side::Owner, v));
            let told = (0..ahead).map(|i| {
                let version = if i == other { 1_000 } else { i };
                record(Side::Requester, version as u64)
            });
            odd(served.chain(told))
        };
        for other in [0, KEPT - 1] {
            let found = differ(KEPT + 5, other);
            let [Odd::Differ(served, told)] = found[..] else {
                panic!("{found:?}");
            };
            assert_eq!((served.version, told.version), (other as u64, 1_000));
        }
        assert_eq!(differ(KEPT + 5, KEPT), []);
    }
}
