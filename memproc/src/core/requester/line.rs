//! What one application process has to publish, and the operations that wait for that, in order.
//!
//! Releases, barriers, and acquires behind them pass one at a time through a line of their application
//! process: each waits until every owner holding unpublished writes has told the copies (*flush*), and for the
//! response to the release before it. So whoever learns of a release or a barrier sees whatever its application process did
//! before, however it pipelined its requests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dosmos_proto::{ApId, Incarnation, MpId, Refusal, VarId};

use super::flushes::{Flush, Flushes};
use super::pending::{Barrier, Kind, Operation, Pending};
use crate::core::context::Context;

/// The line of one application process.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Operations that publish or come after one that does, in order.
    operations: VecDeque<u64>,
    /// Owners with writes outside sections that copies were not told of, and which starts of them.
    dirty: BTreeMap<MpId, Option<Incarnation>>,
    /// Owners that could not be reached when their writes were to be published: it was told, and they are published when the
    /// owner can be reached again.
    owed: BTreeMap<MpId, Option<Incarnation>>,
    /// The barrier that it came to before all copies acknowledged what it wrote, and which start of this process it was.
    ahead: Option<(u64, Option<Incarnation>)>,
    /// Owners that are asked next to tell the copies.
    to_flush: BTreeMap<MpId, Option<Incarnation>>,
    /// Flushes under way, and the operation that wanted the last.
    flushing: u32,
    flush_for: Option<u64>,
    /// The operation that fails next, and why.
    failed: Option<(u64, Refusal)>,
    /// Releases sent to owners and not responded to.
    releasing: u32,
    /// Barriers it waits at.
    at_barriers: BTreeSet<VarId>,
    /// Its steps are being taken.
    advancing: bool,
}

/// What happens next in a line.
pub(super) enum Step {
    /// An operation leaves the line and starts.
    Start(u64),
    /// An operation fails: what was written before it could not be published.
    Fail(u64, Refusal),
}

impl Line {
    /// Lines an operation up behind the others.
    pub(super) fn push(&mut self, number: u64) {
        self.operations.push_back(number);
    }

    /// An operation is complete; whether it was in line.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let waited = self.operations.len();
        self.operations.retain(|n| *n != number);
        self.operations.len() < waited
    }

    /// Whether something that publishes is to be done before a release could leave.
    pub(super) fn is_busy(&self) -> bool {
        !self.operations.is_empty()
            || self.flushing > 0
            || self.releasing > 0
            || !self.dirty.is_empty()
            || self.ahead.is_some()
    }

    /// It wrote outside sections to a start of an owner.
    pub(super) fn wrote(&mut self, owner: MpId, incarnation: Option<Incarnation>) {
        self.dirty.entry(owner).or_insert(incarnation);
    }

    /// Owners with writes that copies were not told of.
    pub(super) fn into_dirty(self) -> impl Iterator<Item = MpId> {
        self.dirty.into_keys()
    }

    /// Whether its steps may be taken: they do not nest.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.advancing, true)
    }

    /// What happens next, after the flushes that come before it; nothing if it has to wait, and then its steps are all taken.
    pub(super) fn next(
        &mut self,
        cx: &mut Context,
        ap: ApId,
        (pending, flushes): (&mut Pending, &mut Flushes),
    ) -> Option<Step> {
        loop {
            if let Some((number, why)) = self.failed.take() {
                return Some(Step::Fail(number, why));
            }
            if let Some((to, incarnation)) = self.to_flush.pop_first() {
                let flush = Flush {
                    ap,
                    to,
                    incarnation,
                };
                self.flushing += 1;
                match cx.check_reachable(to) {
                    Ok(()) => flushes.send(cx, pending.number(), flush),
                    Err(why) => self.flush_lost(&flush, why),
                }
                continue;
            }
            let front = self.operations.front().copied();
            let operation = front.map(|number| (number, pending.get(number)));
            let Some((number, operation)) = operation else {
                break;
            };
            let Some(&Operation { to, ref kind, .. }) = operation else {
                self.operations.pop_front();
                continue;
            };
            let publishes = !matches!(kind, Kind::Acquire(_));
            if publishes && self.flushing > 0 {
                break;
            }
            if publishes && self.ahead.is_some_and(|(barrier, _)| barrier != number) {
                self.fall_back(cx.me());
            }
            if publishes && !self.dirty.is_empty() {
                self.flush_for = Some(number);
                let dirty = std::mem::take(&mut self.dirty);
                match kind {
                    Kind::Barrier(_) => match self.hears_behind(cx, &dirty, to) {
                        Some(hearer) => {
                            let incarnation = dirty.into_values().next().flatten();
                            self.ahead = Some((number, incarnation));
                            self.flushing += 1;
                            flushes.send_ahead(cx, pending.number(), (ap, incarnation), hearer);
                        }
                        None => self.to_flush = dirty,
                    },
                    _ => self.to_flush = dirty,
                }
                continue;
            }
            if publishes && self.releasing > 0 {
                break;
            }
            if let Kind::Barrier(Barrier { barrier, .. }) = kind
                && self.at_barriers.contains(barrier)
            {
                break;
            }
            self.operations.pop_front();
            return Some(Step::Start(number));
        }
        self.advancing = false;
        None
    }

    /// The process that need not acknowledge what is published before an arrival at a barrier, if there is one: whatever it could learn
    /// of the barrier's opening comes on the same way, behind the news. For the arrival at another coordinator that is the
    /// coordinator; for one here it is the only other memory process, where there is no third one that could tell it first.
    fn hears_behind(
        &self,
        cx: &Context,
        dirty: &BTreeMap<MpId, Option<Incarnation>>,
        coordinator: MpId,
    ) -> Option<MpId> {
        let hearer = match coordinator == cx.me() {
            true => cx.cluster.only_other()?,
            false => coordinator,
        };
        let follows = cx.check_reachable(hearer).is_ok()
            && dirty.keys().eq([&cx.me()])
            && self.releasing == 0
            && self.at_barriers.is_empty();
        follows.then_some(hearer)
    }

    /// An owner told the copies, or refused to; then the operation that wanted it fails.
    pub(super) fn flushed(&mut self, result: Result<(), Refusal>) {
        self.flushing = self.flushing.saturating_sub(1);
        if let Err(why) = result
            && let Some(wanted_by) = self.flush_for
            && self.operations.front() == Some(&wanted_by)
        {
            self.failed = Some((wanted_by, why));
        }
    }

    /// An owner cannot be reached that was to tell the copies.
    pub(super) fn flush_lost(&mut self, flush: &Flush, why: Refusal) {
        self.owed.insert(flush.to, flush.incarnation);
        self.flushed(Err(why));
    }

    /// An owner can be reached again: what could not be published there is to be published.
    pub(super) fn regain(&mut self, owner: MpId) {
        if let Some(incarnation) = self.owed.remove(&owner) {
            self.dirty.entry(owner).or_insert(incarnation);
        }
    }

    /// What was published ahead of an arrival is to be published for good: the barrier has not opened.
    fn fall_back(&mut self, me: MpId) {
        if let Some((_, incarnation)) = self.ahead.take() {
            self.dirty.entry(me).or_insert(incarnation);
        }
    }

    /// A release was sent to its owner.
    pub(super) fn release_begins(&mut self) {
        self.releasing += 1;
    }

    /// The owner responded to a release, or nobody waits for that any more.
    pub(super) fn release_ends(&mut self) {
        self.releasing = self.releasing.saturating_sub(1);
    }

    /// It waits at a barrier from now on.
    pub(super) fn arrive(&mut self, barrier: VarId) {
        self.at_barriers.insert(barrier);
    }

    /// The barrier `number` opened for it, or it does not wait any more.
    pub(super) fn barrier_ends(&mut self, me: MpId, number: u64, barrier: &Barrier, opened: bool) {
        if barrier.arrived.is_some() {
            self.at_barriers.remove(&barrier.barrier);
        }
        if self.ahead.is_some_and(|(of, _)| of == number) {
            match opened {
                // Whoever learns of that has heard what was published.
                true => self.ahead = None,
                false => self.fall_back(me),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::Ticket;
    use super::*;
    use crate::core::context::View;
    use crate::core::test_topology;
    use dosmos_proto::{ErrorCode, Nanos};

    const AP: ApId = ApId(0);
    const ME: MpId = MpId(0);
    const OTHER: MpId = MpId(1);

    fn view() -> View {
        View::of_test(test_topology(&["/a"], 3, 1), ME)
    }

    fn barrier(arrived: Option<Nanos>) -> Barrier {
        let barrier = VarId(7);
        Barrier { barrier, arrived }
    }

    #[test]
    fn a_release_waits_for_whatever_publishes_before_it() {
        let busy = |change: fn(&mut Line)| {
            let mut line = Line::default();
            assert!(!line.is_busy());
            change(&mut line);
            line.is_busy()
        };
        assert!(busy(|l| l.push(1)));
        assert!(busy(|l| l.flushing = 1));
        assert!(busy(Line::release_begins));
        assert!(busy(|l| l.wrote(OTHER, None)));
        assert!(busy(|l| l.ahead = Some((1, None))));
        // What an owner that was lost is owed is published when it is back, and at a barrier it waits for others.
        assert!(!busy(|l| _ = l.owed.insert(OTHER, None)));
        assert!(!busy(|l| l.arrive(VarId(7))));
    }

    #[test]
    fn an_operation_leaves_the_line_once() {
        let mut line = Line::default();
        line.push(1);
        line.push(2);
        assert!(line.remove(1));
        assert!(!line.remove(1));
        assert_eq!(line.operations, [2]);
        assert!(line.begin() && !line.begin());
    }

    #[test]
    fn an_arrival_follows_what_it_publishes_only_if_that_is_all_there_is() {
        let mut view = view();
        let mut effects = Vec::new();
        let here = || BTreeMap::from([(ME, None)]);
        let hearer = |view: &View, line: &Line, dirty, to| {
            let mut effects = Vec::new();
            let cx = Context::new(Nanos(1), view, &mut effects);
            line.hears_behind(&cx, &dirty, to)
        };
        let mut line = Line::default();
        assert_eq!(hearer(&view, &line, here(), OTHER), Some(OTHER));
        let third = "it coordinates itself, and a third process may tell the other one of it";
        assert_eq!(hearer(&view, &line, here(), ME), None, "{third}");
        let both = BTreeMap::from([(ME, None), (OTHER, None)]);
        assert_eq!(hearer(&view, &line, both, OTHER), None);
        let far = BTreeMap::from([(OTHER, None)]);
        assert_eq!(hearer(&view, &line, far, OTHER), None);
        line.release_begins();
        assert_eq!(hearer(&view, &line, here(), OTHER), None);
        line.release_ends();
        line.arrive(VarId(7));
        assert_eq!(hearer(&view, &line, here(), OTHER), None);
        let line = Line::default();
        view.router.peer_up(&view.cluster, OTHER, &mut effects);
        view.router.peer_down(&view.cluster, OTHER, &mut effects);
        assert_eq!(hearer(&view, &line, here(), OTHER), None, "it is lost");
    }

    #[test]
    fn of_two_memory_processes_the_coordinator_does_not_wait_for_the_other_either() {
        let mut effects = Vec::new();
        let mut hearer = |topology| {
            let view = View::of_test(topology, ME);
            let cx = Context::new(Nanos(1), &view, &mut effects);
            Line::default().hears_behind(&cx, &BTreeMap::from([(ME, None)]), ME)
        };
        assert_eq!(hearer(test_topology(&["/a"], 2, 1)), Some(OTHER));
        assert_eq!(hearer(test_topology(&["/a"], 1, 1)), None, "it is alone");
    }

    #[test]
    fn what_was_published_ahead_is_owed_unless_the_barrier_opens() {
        let start = Some(Incarnation::new(3, 0));
        let ends = |number: u64, opened: bool| {
            let mut line = Line {
                ahead: Some((5, start)),
                ..Line::default()
            };
            line.arrive(VarId(7));
            line.barrier_ends(ME, number, &barrier(Some(Nanos(1))), opened);
            assert!(line.at_barriers.is_empty());
            (line.ahead, line.dirty)
        };
        assert_eq!(ends(5, true), (None, BTreeMap::new()));
        assert_eq!(ends(5, false), (None, [(ME, start)].into()));
        // It was another barrier that ended.
        assert_eq!(ends(6, true), (Some((5, start)), BTreeMap::new()));
        // One that had not arrived is not at that barrier: another operation may be.
        let mut line = Line::default();
        line.arrive(VarId(7));
        line.barrier_ends(ME, 5, &barrier(None), false);
        assert_eq!(line.at_barriers, [VarId(7)].into());
    }

    /// What happens next of a line with these operations, until nothing does: `5` starts, `-5` fails.
    fn steps(line: &mut Line, pending: &mut Pending, flushes: &mut Flushes) -> Vec<i64> {
        let view = view();
        let mut effects = Vec::new();
        let cx = &mut Context::new(Nanos(1), &view, &mut effects);
        let mut steps = Vec::new();
        while let Some(step) = line.next(cx, AP, (pending, flushes)) {
            steps.push(match step {
                Step::Start(number) => number as i64,
                Step::Fail(number, _) => -(number as i64),
            });
        }
        steps
    }

    fn opened(pending: &mut Pending, line: &mut Line, kind: Kind) -> i64 {
        let ticket = Ticket {
            ap: AP,
            id: 0,
            start: Nanos::ZERO,
            timeout: Nanos(1),
            first: false,
            posted: false,
        };
        let number = pending.open(Operation::new(ticket, OTHER, kind));
        line.push(number);
        number as i64
    }

    #[test]
    fn a_barrier_that_could_publish_ahead_starts_when_its_news_have_left() {
        let (mut pending, mut flushes) = (Pending::default(), Flushes::default());
        let mut line = Line::default();
        pending.number();
        let first = opened(&mut pending, &mut line, Kind::Barrier(barrier(None)));
        line.wrote(ME, None);
        assert!(steps(&mut line, &mut pending, &mut flushes).is_empty());
        assert_eq!((line.flushing, line.ahead), (1, Some((first as u64, None))));
        line.flushed(Ok(()));
        assert_eq!(line.flushing, 0);
        assert_eq!(steps(&mut line, &mut pending, &mut flushes), [first]);
        // Another one before that has opened: what was published ahead is published for good.
        let next = opened(&mut pending, &mut line, Kind::Barrier(barrier(None)));
        line.arrive(VarId(7));
        assert!(steps(&mut line, &mut pending, &mut flushes).is_empty());
        assert_eq!((line.flushing, line.ahead), (1, None));
        line.flushed(Ok(()));
        assert!(
            steps(&mut line, &mut pending, &mut flushes).is_empty(),
            "it waits"
        );
        line.at_barriers.clear();
        assert_eq!(steps(&mut line, &mut pending, &mut flushes), [next]);
    }

    #[test]
    fn a_flush_that_is_refused_fails_who_wanted_it_if_it_still_waits() {
        let refused = || Err(Refusal::new(ErrorCode::Unreachable, "gone"));
        let (mut pending, mut flushes) = (Pending::default(), Flushes::default());
        let mut line = Line::default();
        pending.number();
        let publish = opened(&mut pending, &mut line, Kind::Publish);
        line.wrote(OTHER, None);
        line.wrote(ME, None);
        assert!(steps(&mut line, &mut pending, &mut flushes).is_empty());
        assert_eq!(line.flushing, 2);
        line.flushed(refused());
        assert_eq!(line.flushing, 1);
        assert_eq!(steps(&mut line, &mut pending, &mut flushes), [-publish]);
        line.remove(publish as u64);
        line.flushed(refused());
        assert!(steps(&mut line, &mut pending, &mut flushes).is_empty());
        assert!(!line.is_busy());
    }
}
