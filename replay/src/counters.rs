//! Objects that processes take work from ([`crate::queues`]), in the hands of one process: an object that an application process of
//! the owner's memory process changes often is delegated to it (docs/design/consistency.md#exclusive-delegation), and recalled when
//! another one needs it. Who is far away comes seldom, so the process that has it takes the more of the work without a message, the
//! longer the ways are.

use dosmos_proto::ObjectId;
use dosmos_proto::delegation::{CHANGES, MOST_DECLINED, MOST_DECLINING, WORTH};
use rustc_hash::FxHashMap;

use crate::ids::OpId;

/// What the process that may have an object, and its owner, remember.
#[derive(Debug, Default)]
struct Counter {
    had_by: Option<u32>,
    /// Times that it was taken from without a message.
    taken: u64,
    changes: u32,
    declined: u32,
    penalty: u32,
    declining: u32,
    /// Operations of others that wait for its return.
    waiting: Vec<OpId>,
}

/// What the owner does with an operation of another process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It is served.
    Served,
    /// It waits, and the object is recalled from this process.
    Recall(u32),
    /// It waits.
    Waits,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Counters(FxHashMap<ObjectId, Counter>);

impl Counters {
    /// Whether the process takes something without a message, as it has the object.
    pub(crate) fn take_here(&mut self, object: ObjectId, ap: u32) -> bool {
        let counter = self.0.get_mut(&object);
        let had = counter.filter(|c| c.had_by == Some(ap));
        had.is_some_and(|counter| {
            counter.taken += 1;
            true
        })
    }

    /// A process of the owner's memory process took something with a message: it may ask for the object, and have it then.
    pub(crate) fn taken(&mut self, object: ObjectId, ap: u32) {
        let counter = self.0.entry(object).or_default();
        counter.changes += 1;
        let asks = counter.changes > CHANGES << counter.declined.min(MOST_DECLINED);
        if !asks || counter.had_by.is_some() || !counter.waiting.is_empty() {
            return;
        }
        counter.changes = 0;
        match counter.declining.checked_sub(1) {
            Some(left) => (counter.declining, counter.declined) = (left, counter.declined + 1),
            None => (counter.had_by, counter.taken, counter.declined) = (Some(ap), 0, 0),
        }
    }

    /// Another process takes something, with this operation.
    pub(crate) fn need(&mut self, object: ObjectId, ap: u32, op: OpId) -> Need {
        let Some(counter) = self.0.get_mut(&object) else {
            return Need::Served;
        };
        let first = counter.waiting.is_empty();
        match counter.had_by {
            Some(had_by) if had_by != ap => {
                counter.waiting.push(op);
                match first {
                    true => Need::Recall(had_by),
                    false => Need::Waits,
                }
            }
            None if !first => {
                counter.waiting.push(op);
                Need::Waits
            }
            _ => Need::Served,
        }
    }

    /// The process that has the object learns that it is to be returned; which that is.
    pub(crate) fn recalled(&mut self, object: ObjectId) -> Option<u32> {
        let counter = self.0.get_mut(&object)?;
        let had_by = counter.had_by.take()?;
        counter.changes = 0;
        if counter.taken >= WORTH {
            (counter.penalty, counter.declining) = (0, 0);
        } else {
            counter.penalty = (2 * counter.penalty).clamp(2, MOST_DECLINING);
            counter.declining = counter.penalty;
        }
        Some(had_by)
    }

    /// It is returned: what is served now.
    pub(crate) fn returned(&mut self, object: ObjectId) -> Vec<OpId> {
        let counter = self.0.get_mut(&object);
        counter.map_or_else(Vec::new, |counter| std::mem::take(&mut counter.waiting))
    }
}

#[cfg(test)]
mod tests {
    use dosmos_proto::VarId;

    use super::*;

    const X: ObjectId = ObjectId {
        var: VarId(1),
        index: 0,
    };

    /// Takes with a message until the process has it; how often.
    fn asks(counters: &mut Counters) -> u32 {
        (1..1000)
            .find(|_| {
                counters.taken(X, 0);
                counters.0[&X].had_by.is_some()
            })
            .unwrap()
    }

    #[test]
    fn who_changes_it_often_has_it_until_another_one_needs_it() {
        let mut counters = Counters::default();
        assert!(!counters.take_here(X, 0));
        assert_eq!(counters.need(X, 1, 7), Need::Served);
        assert_eq!(asks(&mut counters), 3);
        assert!(counters.take_here(X, 0) && !counters.take_here(X, 1));
        assert_eq!(counters.need(X, 1, 7), Need::Recall(0));
        assert_eq!(counters.need(X, 2, 8), Need::Waits);
        // Until it learns of that it goes on.
        assert!(counters.take_here(X, 0));
        assert_eq!(counters.recalled(X), Some(0));
        assert!(!counters.take_here(X, 0));
        assert_eq!(counters.need(X, 3, 9), Need::Waits);
        assert_eq!(counters.returned(X), [7, 8, 9]);
        assert_eq!(counters.need(X, 1, 7), Need::Served);
    }

    #[test]
    fn it_is_not_given_again_soon_where_that_was_not_worth_it() {
        let mut counters = Counters::default();
        let mut recalled_after = |taken: u32| {
            let asked = asks(&mut counters);
            for _ in 0..taken {
                assert!(counters.take_here(X, 0));
            }
            assert_eq!(counters.need(X, 1, 7), Need::Recall(0));
            assert_eq!(counters.recalled(X), Some(0));
            assert_eq!(counters.returned(X), [7]);
            asked
        };
        assert_eq!(recalled_after(3), 3);
        // Two requests are declined: 3, 5 and 9 changes.
        assert_eq!(recalled_after(3), 3 + 5 + 9);
        // Four: up to 17 and 33.
        assert_eq!(recalled_after(4), 3 + 5 + 9 + 17 + 33);
        assert_eq!(recalled_after(4), 3);
    }
}
