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
    /// More of the same side, not kept.
    more: u64,
    /// The first two that do not belong together.
    differ: Option<(Record, Record)>,
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
                differ: None,
            });
            self.0.len() - 1
        });
        let line = &mut self.0[at];
        match line.alone.front() {
            Some(other) if other.side != record.side => {
                let other = *other;
                line.alone.pop_front();
                if line.more > 0 {
                    // Its counterpart was not kept.
                    line.more -= 1;
                    line.alone.clear();
                } else if !together(&other, record) && line.differ.is_none() {
                    line.differ = Some((other, *record));
                }
            }
            _ if line.alone.len() < KEPT => line.alone.push_back(*record),
            _ => line.more += 1,
        }
    }

    /// What is odd in the end of the processes for which `sound`: those without failures.
    pub(crate) fn odd(&self, sound: impl Fn(ApId) -> bool) -> Vec<Odd> {
        let mut odd = Vec::new();
        for line in self.0.iter().filter(|l| sound(l.ap)) {
            if let Some(alone) = line.alone.front() {
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

/// Whether a record has a counterpart of the other side.
pub(crate) fn is_remote(record: &Record) -> bool {
    let served = !record.flags.failed && !record.flags.waiting && record.op != Op::Barrier;
    served && (record.side == Side::Owner || record.origin != Origin::Local)
}
