//! The state of objects that are delegated: to whom, what is asked of it, and what waits for it.

use dosmos_proto::delegation::{MOST_DECLINING, WORTH};
use dosmos_proto::{ApId, MpId, Nanos, ObjectId};
use rustc_hash::FxHashMap;

use super::accessor::Accessor;
use super::acks::Then;
use crate::core::context::Context;
use crate::core::effects::Caller;
use crate::core::messages::{Access, AccessKind, Output, Wanted};

/// Most ranges of elements that are published of one object; asked for more, it is recalled.
const MOST_WATCHED: usize = 8;

/// An object in the hands of an application process.
#[derive(Debug)]
pub(super) struct Delegation {
    pub(super) ap: ApId,
    pub(super) number: u64,
    /// Elements that are published: their content here is that of the last publication.
    pub(super) watched: Vec<(u32, u32)>,
    /// Elements asked for.
    pub(super) asked: Vec<(u32, u32)>,
    pub(super) asked_all: bool,
    /// Since when something is asked for.
    pub(super) since: Nanos,
    /// The highest version that a section of the application process made, as far as it was reported.
    pub(super) reported: u64,
}

/// An access that waits for the return of its object.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) who: Accessor,
    pub(super) access: Access,
    pub(super) want_copy: bool,
}

impl Deferred {
    fn is_write(&self) -> bool {
        use AccessKind::{Atomic, Write};
        matches!(self.access.kind, Write { .. } | Atomic { .. })
    }
}

/// Whether an object was delegated to good effect.
#[derive(Clone, Copy, Debug, Default)]
struct Experience {
    /// Requests for a delegation that are declined after the next failure.
    penalty: u32,
    /// Requests for a delegation still to be declined.
    declining: u32,
}

/// All delegations.
#[derive(Debug, Default)]
pub(super) struct Delegations {
    pub(super) by_object: FxHashMap<ObjectId, Delegation>,
    /// Accesses that wait for the return of their object, oldest first. Most objects have none.
    pub(super) waiting: FxHashMap<ObjectId, Vec<Deferred>>,
    experience: FxHashMap<ObjectId, Experience>,
    /// Publications of application processes that have writes waiting, oldest first.
    pub(super) publications: Vec<(ApId, Then)>,
    granted: u64,
}

impl Delegations {
    /// Whether experience speaks for granting a request now.
    pub(super) fn admit(&mut self, object: ObjectId) -> bool {
        match self.experience.get_mut(&object) {
            Some(e) if e.declining > 0 => {
                e.declining -= 1;
                false
            }
            _ => true,
        }
    }

    pub(super) fn grant(&mut self, object: ObjectId, ap: ApId, now: Nanos) -> u64 {
        self.granted += 1;
        let delegation = Delegation {
            ap,
            number: self.granted,
            watched: Vec::new(),
            asked: Vec::new(),
            asked_all: false,
            since: now,
            reported: 0,
        };
        self.by_object.insert(object, delegation);
        self.granted
    }

    /// What a delegation that was recalled teaches.
    pub(super) fn learn(&mut self, object: ObjectId, served: u64) {
        if served >= WORTH {
            self.experience.remove(&object);
            return;
        }
        let e = self.experience.entry(object).or_default();
        e.penalty = (2 * e.penalty).clamp(2, MOST_DECLINING);
        e.declining = e.penalty;
    }

    /// Objects in the hands of `ap`, in order.
    pub(super) fn of(&self, ap: ApId) -> Vec<ObjectId> {
        let all = self.by_object.iter();
        let mut list: Vec<ObjectId> = all.filter(|(_, d)| d.ap == ap).map(|(o, _)| *o).collect();
        list.sort_unstable();
        list
    }

    /// An application process takes back what waits: an acquire of one object, or everything but writes, which were
    /// done when they were sent.
    pub(super) fn abandon(&mut self, ap: ApId, object: Option<ObjectId>) {
        let acquires = |d: &Deferred| matches!(d.access.kind, AccessKind::Acquire { .. });
        let undone = |d: &Deferred| !d.is_write() && object.is_none();
        let drops = |d: &Deferred| d.who.ap == ap && (undone(d) || acquires(d));
        let asked = |of: &ObjectId| object.is_none_or(|object| object == *of);
        let waiting = self.waiting.iter_mut().filter(|(of, _)| asked(of));
        waiting.for_each(|(_, list)| list.retain(|w| !drops(w)));
        self.tidy();
    }

    /// Whose acquire of an object, made for `ap`, waits for its return.
    pub(super) fn acquirer(&self, ap: ApId, object: ObjectId) -> Option<Caller> {
        let acquires =
            |d: &&Deferred| d.who.ap == ap && matches!(d.access.kind, AccessKind::Acquire { .. });
        let waiting = self.waiting.get(&object)?;
        waiting.iter().find(acquires).map(|d| d.who.caller)
    }

    /// Nobody waits any more for what a memory process asked.
    pub(super) fn lose(&mut self, mp: MpId) {
        let stays = |w: &Deferred| w.who.caller.mp != mp || w.is_write();
        let waiting = self.waiting.values_mut();
        waiting.for_each(|list| list.retain(stays));
        self.tidy();
    }

    fn tidy(&mut self) {
        self.waiting.retain(|_, list| !list.is_empty());
    }

    /// Whether writes of an application process wait.
    pub(super) fn delays(&self, ap: ApId) -> bool {
        let mut waiting = self.waiting.values().flatten();
        waiting.any(|w| w.who.ap == ap && w.is_write())
    }
}

impl Delegation {
    /// What has to be asked for so that a read of elements `range` can be served; nothing if they are
    /// published.
    pub(super) fn wanted(&self, range: (u32, u32), elements: u32) -> Option<Wanted> {
        if self.watched.iter().any(|w| covers(*w, range)) {
            return None;
        }
        let part = (range.1 - range.0) < elements;
        let few = self.watched.len() + self.asked.len() < MOST_WATCHED;
        Some(match part && few && !self.asked_all {
            true => Wanted::Elements(range.0, range.1),
            false => Wanted::Everything,
        })
    }

    pub(super) fn ask(&mut self, cx: &mut Context, object: ObjectId, wanted: Wanted) {
        let known = match wanted {
            Wanted::Elements(first, end) => self.asked.contains(&(first, end)),
            Wanted::Everything | Wanted::Lost => self.asked_all,
        };
        if known || self.asked_all {
            return;
        }
        match wanted {
            Wanted::Elements(first, end) => self.asked.push((first, end)),
            Wanted::Everything | Wanted::Lost => self.asked_all = true,
        }
        cx.output(recall(self, object, wanted));
    }

    /// Elements are published from now on. Ranges that meet become one.
    pub(super) fn watch(&mut self, range: (u32, u32)) {
        let (mut first, mut end) = range;
        self.watched.retain(|w| {
            let apart = w.1 < first || end < w.0;
            if !apart {
                first = first.min(w.0);
                end = end.max(w.1);
            }
            apart
        });
        self.watched.push((first, end));
    }
}

pub(super) fn covers(whole: (u32, u32), part: (u32, u32)) -> bool {
    whole.0 <= part.0 && part.1 <= whole.1
}

pub(super) fn recall(d: &Delegation, object: ObjectId, wanted: Wanted) -> Output {
    Output::Recall {
        ap: d.ap,
        object,
        delegation: d.number,
        wanted,
    }
}

#[cfg(test)]
impl Deferred {
    /// An access by an application process at a memory process of the same number.
    pub(super) fn of_test(ap: u32, object: ObjectId, kind: AccessKind) -> Self {
        Self {
            who: Accessor::of_test(ap, ap),
            access: Access { object, kind },
            want_copy: false,
        }
    }

    /// What a list of them is, and whose: `r1 a2` is a read of process 1 and an acquire of process 2.
    pub(super) fn said(list: &[Self]) -> String {
        let each = list.iter().map(|d| {
            let what = match d.access.kind {
                AccessKind::Read { .. } => "r",
                AccessKind::Write { .. } => "w",
                AccessKind::Atomic { .. } => "+",
                AccessKind::Acquire { .. } => "a",
                AccessKind::Release { .. } => "e",
            };
            format!("{what}{}", d.who.ap.0)
        });
        each.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::View;
    use crate::core::messages::AtomicOp;
    use crate::core::test_topology;
    use dosmos_proto::{ElementType, VarId};

    const X: ObjectId = ObjectId {
        var: VarId(1),
        index: 0,
    };
    const Y: ObjectId = ObjectId {
        var: VarId(1),
        index: 1,
    };

    fn add() -> AccessKind {
        AccessKind::Atomic {
            element: 0,
            element_type: ElementType::U64,
            op: AtomicOp::FetchAdd(1),
            epoch: None,
        }
    }

    const ACQUIRE: AccessKind = AccessKind::Acquire { want_value: false };

    /// A read, a write, an atomic operation and an acquire of each of two application processes, at memory processes of
    /// the same numbers, wait for each of two objects.
    fn waiting() -> Delegations {
        let mut all = Delegations::default();
        for object in [X, Y] {
            for ap in [1, 2] {
                let (read, write) = (AccessKind::read_of_test(), AccessKind::write_of_test());
                for kind in [read, write, add(), ACQUIRE] {
                    let list = all.waiting.entry(object).or_default();
                    list.push(Deferred::of_test(ap, object, kind));
                }
            }
        }
        all
    }

    fn left(all: &Delegations, object: ObjectId) -> String {
        Deferred::said(&all.waiting[&object])
    }

    #[test]
    fn an_acquire_that_is_taken_back_is_the_only_thing_that_is() {
        let mut all = waiting();
        all.abandon(ApId(1), Some(X));
        assert_eq!(left(&all, X), "r1 w1 +1 r2 w2 +2 a2");
        assert_eq!(left(&all, Y), "r1 w1 +1 a1 r2 w2 +2 a2");
    }

    #[test]
    fn of_who_leaves_only_writes_are_still_done() {
        let mut all = waiting();
        all.abandon(ApId(1), None);
        for object in [X, Y] {
            assert_eq!(left(&all, object), "w1 +1 r2 w2 +2 a2");
        }
    }

    #[test]
    fn of_a_memory_process_that_is_lost_only_writes_are_still_done() {
        let mut all = waiting();
        all.lose(MpId(2));
        for object in [X, Y] {
            assert_eq!(left(&all, object), "r1 w1 +1 a1 w2 +2");
        }
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_forgotten() {
        let only = |kind: AccessKind| {
            let mut all = Delegations::default();
            let deferred = Deferred::of_test(1, X, kind);
            all.waiting.insert(X, vec![deferred]);
            all
        };
        let (mut abandoned, mut lost) = (only(ACQUIRE), only(AccessKind::read_of_test()));
        abandoned.abandon(ApId(1), Some(X));
        lost.lose(MpId(1));
        assert!(abandoned.waiting.is_empty() && lost.waiting.is_empty());
    }

    #[test]
    fn who_acquires_and_who_writes_is_told_of_each_object() {
        let mut all = waiting();
        let acquirer = |all: &Delegations, ap: u32, object| {
            all.acquirer(ApId(ap), object).map(|caller| caller.mp.0)
        };
        assert_eq!(acquirer(&all, 1, X), Some(1));
        assert_eq!(acquirer(&all, 2, X), Some(2));
        assert_eq!(acquirer(&all, 3, X), None);
        assert!(all.delays(ApId(1)) && !all.delays(ApId(3)));
        all.abandon(ApId(2), Some(X));
        assert_eq!(acquirer(&all, 2, X), None, "others wait, too");
        assert_eq!(acquirer(&all, 2, Y), Some(2));
        for list in all.waiting.values_mut() {
            list.retain(|d| !d.is_write());
        }
        assert!(!all.delays(ApId(1)), "it reads and acquires only");
    }

    #[test]
    fn what_was_not_worth_it_is_declined_for_a_while() {
        let mut all = Delegations::default();
        let declined = |all: &mut Delegations| (0..).take_while(|_| !all.admit(X)).count();
        assert_eq!(declined(&mut all), 0);
        for times in [2, 4, 8, 16, 32, 64, 64] {
            all.learn(X, WORTH - 1);
            assert!(all.admit(Y), "of another object nothing is known");
            assert_eq!(declined(&mut all), times);
        }
        all.learn(X, WORTH);
        assert_eq!(declined(&mut all), 0);
        all.learn(X, 0);
        assert_eq!(declined(&mut all), 2);
    }

    fn delegation() -> Delegation {
        let mut all = Delegations::default();
        assert_eq!(all.grant(X, ApId(1), Nanos::ZERO), 1);
        all.by_object.remove(&X).unwrap()
    }

    #[test]
    fn ranges_that_meet_are_published_as_one() {
        let watched = |ranges: &[(u32, u32)]| {
            let mut d = delegation();
            ranges.iter().for_each(|range| d.watch(*range));
            d.watched
        };
        assert_eq!(watched(&[(2, 4), (5, 7)]), [(2, 4), (5, 7)]);
        assert_eq!(watched(&[(5, 7), (2, 4)]), [(5, 7), (2, 4)]);
        assert_eq!(watched(&[(2, 4), (4, 7)]), [(2, 7)]);
        assert_eq!(watched(&[(4, 7), (2, 4)]), [(2, 7)]);
        assert_eq!(watched(&[(2, 7), (3, 4)]), [(2, 7)]);
        assert_eq!(watched(&[(0, 2), (8, 9), (4, 6), (1, 5)]), [(8, 9), (0, 6)]);
    }

    #[test]
    fn a_part_is_asked_for_as_long_as_parts_are_few() {
        let mut d = delegation();
        assert_eq!(d.wanted((0, 8), 8), Some(Wanted::Everything));
        assert_eq!(d.wanted((1, 8), 8), Some(Wanted::Elements(1, 8)));
        d.watched = vec![(2, 6)];
        assert_eq!(d.wanted((2, 6), 8), None);
        assert_eq!(d.wanted((3, 5), 8), None);
        for beyond in [(1, 5), (3, 7), (1, 7)] {
            let part = Wanted::Elements(beyond.0, beyond.1);
            assert_eq!(d.wanted(beyond, 8), Some(part));
        }
        // Published and asked for, both count.
        let parts = |n: usize| (0..n as u32).map(|i| (100 + 2 * i, 101 + 2 * i)).collect();
        d.asked = parts(MOST_WATCHED - 2);
        assert_eq!(d.wanted((1, 5), 8), Some(Wanted::Elements(1, 5)));
        d.asked = parts(MOST_WATCHED - 1);
        assert_eq!(d.wanted((1, 5), 8), Some(Wanted::Everything));
        (d.watched, d.asked) = (parts(MOST_WATCHED - 1), Vec::new());
        assert_eq!(d.wanted((1, 5), 8), Some(Wanted::Elements(1, 5)));
        d.asked_all = true;
        assert_eq!(d.wanted((1, 5), 8), Some(Wanted::Everything));
    }

    #[test]
    fn nothing_is_asked_for_twice() {
        let view = View::of_test(test_topology(&["/a"], 1, 2), MpId(0));
        let mut d = delegation();
        let mut asks = |wanted: Wanted| {
            let mut effects = Vec::new();
            d.ask(&mut Context::new(Nanos(1), &view, &mut effects), X, wanted);
            !effects.is_empty()
        };
        assert!(asks(Wanted::Elements(1, 2)));
        assert!(!asks(Wanted::Elements(1, 2)));
        assert!(asks(Wanted::Elements(2, 3)));
        assert!(asks(Wanted::Everything));
        assert!(!asks(Wanted::Everything));
        assert!(!asks(Wanted::Elements(3, 4)), "everything comes");
    }
}
