//! Who waits for which object, and who releases it.

use dosmos_proto::{Nanos, ObjectId};
use dosmos_trace::record::Record;
use rustc_hash::FxHashMap;

use super::chains::Chain;
use super::tally::Doing;

/// A process that waits.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    number: usize,
    /// Up to when its wait is explained, and how much of it is not, nanoseconds.
    from: Nanos,
    left: u64,
    /// For whom it has waited most of it, if for anybody, and how long.
    mostly: Option<(usize, u64)>,
    /// By how much that is more than for all others since.
    ahead: u64,
}

impl Waiter {
    /// It waited for `by` until now: how long, nanoseconds.
    fn waited(&mut self, by: usize, now: Nanos) -> u64 {
        let time = (now - self.from).0.min(self.left);
        self.left -= time;
        self.from = self.from.max(now);
        // Who has more than half of the time stays in the end (Boyer and Moore's vote).
        match &mut self.mostly {
            Some((most, of_it)) if *most == by => {
                *of_it += time;
                self.ahead += time;
            }
            _ if time > self.ahead => {
                self.mostly = Some((by, time));
                self.ahead = time - self.ahead;
            }
            _ => self.ahead -= time,
        }
        time
    }
}

/// A wait that is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wait {
    /// Up to when it is known for whom, and for whom it mostly was, and how long.
    pub(super) explained: Nanos,
    pub(super) mostly: Option<(usize, u64)>,
    /// What of it is not explained, nanoseconds.
    pub(super) left: u64,
}

/// A release under way, or over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    /// Number of the process.
    pub(super) by: usize,
    /// When it is over.
    end: Nanos,
    /// What the process did in its section.
    pub(super) because: Doing,
}

/// A chain that ends at an instant.
pub(super) type Followed = (Chain, Nanos);

#[derive(Clone, Debug, Default)]
struct Lock {
    waiters: Vec<Waiter>,
    releasing: Option<Release>,
    /// Who released it last, and its chain then: while somebody waits.
    released: Option<(usize, Followed)>,
}

/// The locks of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    by_object: FxHashMap<ObjectId, Lock>,
}

impl Locks {
    /// A process begins to wait. When the release is over that is under way, if there is one.
    pub(super) fn waits(&mut self, number: usize, record: &Record) -> Option<Nanos> {
        let lock = self.by_object.entry(record.object).or_default();
        lock.waiters.push(Waiter {
            number,
            from: record.start,
            left: record.wait.0,
            mostly: None,
            ahead: 0,
        });
        let end = lock.releasing.map(|release| release.end);
        end.filter(|end| *end > record.start)
    }

    /// A release begins: whether somebody waits for it.
    pub(super) fn releases(&mut self, by: usize, record: &Record, because: Doing) -> bool {
        let lock = self.by_object.entry(record.object).or_default();
        let end = record.end();
        lock.releasing = Some(Release { by, end, because });
        !lock.waiters.is_empty()
    }

    /// A release is over: none if another has begun, or nobody waits.
    pub(super) fn released(&mut self, object: ObjectId, now: Nanos) -> Option<Release> {
        self.take(object, |release| release.end == now)
    }

    /// The release under way is over for one that is granted the object now.
    pub(super) fn released_early(&mut self, object: ObjectId, now: Nanos) -> Option<Release> {
        self.take(object, |release| release.end >= now)
    }

    fn take(&mut self, object: ObjectId, which: impl Fn(&Release) -> bool) -> Option<Release> {
        let lock = self.by_object.get_mut(&object)?;
        if lock.waiters.is_empty() {
            return None;
        }
        lock.releasing.take_if(|release| which(release))
    }

    /// Those that wait have waited until now for the process `by`: how long together, nanoseconds.
    pub(super) fn charge(&mut self, object: ObjectId, by: usize, now: Nanos) -> u64 {
        let Some(lock) = self.by_object.get_mut(&object) else {
            return 0;
        };
        let others = lock.waiters.iter_mut().filter(|w| w.number != by);
        others.map(|waiter| waiter.waited(by, now)).sum()
    }

    /// Who waits, apart from one.
    pub(super) fn waiting(&self, object: ObjectId, but: usize) -> impl Iterator<Item = usize> {
        let waiters = self.by_object.get(&object).map(|lock| lock.waiters.iter());
        let numbers = waiters.into_iter().flatten().map(|w| w.number);
        numbers.filter(move |number| *number != but)
    }

    /// Who is granted the object next goes on with this chain. The one that nobody went on with, if there is one.
    pub(super) fn next_follows(
        &mut self,
        object: ObjectId,
        by: usize,
        chain: Followed,
    ) -> Option<Chain> {
        let lock = self.by_object.entry(object).or_default();
        let old = lock.released.replace((by, chain));
        old.map(|(_, (chain, _))| chain)
    }

    /// A process that waited has the object: its wait, and whose chain it follows.
    pub(super) fn granted(
        &mut self,
        object: ObjectId,
        number: usize,
    ) -> (Wait, Option<(usize, Followed)>) {
        let Some(lock) = self.by_object.get_mut(&object) else {
            return Default::default();
        };
        let at = lock.waiters.iter().position(|w| w.number == number);
        let wait = at.map(|at| lock.waiters.swap_remove(at));
        let wait = wait.map(|waiter| Wait {
            explained: waiter.from,
            mostly: waiter.mostly,
            left: waiter.left,
        });
        (wait.unwrap_or_default(), lock.released.take())
    }
}
