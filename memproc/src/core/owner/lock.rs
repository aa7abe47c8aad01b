//! The lock of one object: one holder, a queue in order of arrival, and the epoch that tells a
//! section from those before it.

use std::collections::VecDeque;

use dosmos_proto::{ApId, Nanos};

use crate::core::effects::Caller;

/// More sections than there are of an object while it is delegated once.
const SECTIONS_OF_A_DELEGATION: u64 = 1 << 32;

/// An acquire: of which application process, and where the response goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acquirer {
    pub(super) ap: ApId,
    pub(super) caller: Caller,
    /// The content is to come with the grant.
    pub(super) want_value: bool,
}

/// The lock of one object.
#[derive(Debug, Default)]
pub(super) struct Lock {
    /// Number of grants so far; of the current one, while there is a holder.
    epoch: u64,
    holder: Option<ApId>,
    /// Since when there is this holder.
    since: Nanos,
    /// The holder's release waits for acknowledgements of copies.
    releasing: bool,
    queue: VecDeque<Acquirer>,
}

/// What became of an acquire.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Acquired {
    /// Granted, with this epoch.
    Now(u64),
    /// Queued.
    Waits,
    /// The application process holds it already, in this epoch.
    Holds(u64),
    /// The application process waits for it already.
    WaitsAlready,
}

impl Lock {
    /// Takes the lock for the acquirer, or queues it.
    pub(super) fn acquire(&mut self, now: Nanos, acquirer: Acquirer) -> Acquired {
        // One whose release is still being acknowledged may line up again behind the others.
        if self.holder == Some(acquirer.ap) && !self.releasing {
            return Acquired::Holds(self.epoch);
        }
        if self.is_awaited_by(acquirer.ap) {
            return Acquired::WaitsAlready;
        }
        if self.holder.is_some() {
            self.queue.push_back(acquirer);
            return Acquired::Waits;
        }
        Acquired::Now(self.grant(now, acquirer.ap))
    }

    fn grant(&mut self, now: Nanos, ap: ApId) -> u64 {
        self.epoch += 1;
        self.holder = Some(ap);
        self.since = now;
        self.releasing = false;
        self.epoch
    }

    /// The object was delegated, and its last section there was number `epoch`; `holder` is in it.
    pub(super) fn resume(&mut self, now: Nanos, epoch: u64, holder: Option<ApId>) {
        self.epoch = self.epoch.max(epoch);
        if holder.is_some() {
            (self.holder, self.since) = (holder, now);
        }
    }

    /// The object was delegated and is not coming back, and nobody knows how many sections there were: later ones have
    /// higher numbers.
    pub(super) fn skip_epochs(&mut self) {
        self.epoch += SECTIONS_OF_A_DELEGATION;
    }

    /// Later sections have higher epochs than this.
    pub(super) fn skip_to(&mut self, epoch: u64) {
        self.epoch = self.epoch.max(epoch);
    }

    /// Everyone in the queue, in order; nobody waits any more.
    pub(super) fn take_queue(&mut self) -> Vec<Acquirer> {
        self.queue.drain(..).collect()
    }

    /// Whether `ap` may write and release in `epoch`.
    pub(super) fn is_section(&self, ap: ApId, epoch: u64) -> bool {
        self.holder == Some(ap) && self.epoch == epoch && !self.releasing
    }

    /// Whether `ap` is in a section, whichever.
    pub(super) fn is_held_by(&self, ap: ApId) -> bool {
        self.holder == Some(ap) && !self.releasing
    }

    /// The section is over, the lock not yet free.
    pub(super) fn begin_release(&mut self) {
        self.releasing = true;
    }

    /// Frees the lock and grants it to the next in the queue: who, and its epoch.
    pub(super) fn pass_on(&mut self, now: Nanos) -> Option<(Acquirer, u64)> {
        self.holder = None;
        self.releasing = false;
        let next = self.queue.pop_front()?;
        let epoch = self.grant(now, next.ap);
        Some((next, epoch))
    }

    /// Takes `ap` out of the queue, if it is in it.
    pub(super) fn withdraw(&mut self, ap: ApId) -> Option<Acquirer> {
        let at = self.queue.iter().position(|w| w.ap == ap)?;
        self.queue.remove(at)
    }

    /// Whether `ap` waits for it.
    pub(super) fn is_awaited_by(&self, ap: ApId) -> bool {
        self.queue.iter().any(|w| w.ap == ap)
    }

    /// Whether `ap` holds it or waits for it.
    pub(super) fn concerns(&self, ap: ApId) -> bool {
        self.holder == Some(ap) || self.is_awaited_by(ap)
    }

    /// Whether nobody holds it or waits for it.
    pub(super) fn is_idle(&self) -> bool {
        self.holder.is_none() && self.queue.is_empty()
    }

    /// Who holds it.
    pub(super) fn holder(&self) -> Option<ApId> {
        self.holder
    }

    /// Since when the holder holds it.
    pub(super) fn since(&self) -> Nanos {
        self.since
    }

    /// Number of the current or last section.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::messages::{CallId, Role};
    use dosmos_proto::MpId;

    const NOW: Nanos = Nanos(7);

    fn by(ap: u32) -> Acquirer {
        let call = CallId {
            role: Role::Requester,
            number: 0,
        };
        let caller = Caller {
            mp: MpId(0),
            incarnation: None,
            call,
            received: Nanos::ZERO,
        };
        Acquirer {
            ap: ApId(ap),
            caller,
            want_value: false,
        }
    }

    #[test]
    fn grants_in_order_of_arrival_with_rising_epochs() {
        let mut lock = Lock::default();
        assert_eq!(lock.acquire(NOW, by(1)), Acquired::Now(1));
        assert_eq!(lock.acquire(NOW, by(2)), Acquired::Waits);
        assert_eq!(lock.acquire(NOW, by(3)), Acquired::Waits);
        assert_eq!(lock.acquire(NOW, by(1)), Acquired::Holds(1));
        assert_eq!(lock.acquire(NOW, by(3)), Acquired::WaitsAlready);
        lock.withdraw(ApId(2));
        let (next, epoch) = lock.pass_on(NOW).unwrap();
        assert_eq!((next.ap, epoch), (ApId(3), 2));
        assert_eq!(lock.since(), NOW);
        assert!(!lock.is_section(ApId(3), 1));
        assert!(lock.pass_on(NOW).is_none());
        assert_eq!(lock.acquire(NOW, by(1)), Acquired::Now(3));
    }

    #[test]
    fn a_releasing_holder_lines_up_behind_the_others() {
        let mut lock = Lock::default();
        lock.acquire(NOW, by(1));
        lock.acquire(NOW, by(2));
        lock.begin_release();
        assert!(!lock.is_section(ApId(1), 1));
        assert_eq!(lock.acquire(NOW, by(1)), Acquired::Waits);
        assert_eq!(lock.pass_on(NOW).unwrap().0.ap, ApId(2));
    }

    #[test]
    fn who_waits_when_the_object_goes_elsewhere_waits_there_in_the_same_order() {
        let mut lock = Lock::default();
        (1..4).for_each(|ap| _ = lock.acquire(NOW, by(ap)));
        let concerned = |lock: &Lock| [1, 2, 3, 4].map(|ap| lock.concerns(ApId(ap)));
        assert_eq!(concerned(&lock), [true, true, true, false]);
        let queue: Vec<u32> = lock.take_queue().iter().map(|a| a.ap.0).collect();
        assert_eq!(queue, [2, 3]);
        assert_eq!(concerned(&lock), [true, false, false, false]);
        assert!(!lock.is_idle() && lock.pass_on(NOW).is_none() && lock.is_idle());
    }
}
