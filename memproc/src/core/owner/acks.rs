//! Orders to holders of copies, and the acknowledgements that releases and flushes wait for.
//!
//! An *order* tells the holder of one copy of a change; a *round* is what a release or flush told, and
//! waits for. What earlier rounds told of the same object and is not acknowledged yet is waited for
//! too: its copy may still be read. An order is waited for until the lease that its holder had when it
//! was sent is over: messages keep their order, so a holder that renewed its lease since has heard the
//! order, and any other does not read its copy any more. See [`lease`](crate::core::lease).

use std::collections::BTreeSet;

use dosmos_proto::{ApId, CopyPolicy, MpId, Nanos, ObjectId};
use rustc_hash::FxHashMap;

use super::objects::Objects;
use crate::core::context::Context;
use crate::core::effects::Caller;
use crate::core::lease::{LEASE, MARGIN};
use crate::core::messages::{CallId, PeerRequest, Role};

/// What happens when everything that a round waits for is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// A release is responded to and the lock passes on.
    Release {
        object: ObjectId,
        ap: ApId,
        caller: Caller,
        version: u64,
    },
    /// A write outside sections, of this number, is responded to.
    Write(u64),
    /// A flush is responded to.
    Flush(Caller),
    /// Nothing: the writer is gone.
    Nothing,
}

/// A round whose acknowledgements are all in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// When it began.
    pub(super) began: Nanos,
    pub(super) then: Then,
}

#[derive(Debug)]
struct Order {
    object: ObjectId,
    holder: MpId,
    /// When the holder's lease is over.
    until: Nanos,
    /// It is on its way, by the link that is up: whatever follows arrives behind it.
    under_way: bool,
    /// The rounds that wait for it.
    rounds: Vec<u64>,
}

#[derive(Debug)]
struct Waiting {
    orders: usize,
    round: Round,
}

/// Orders and rounds under way.
#[derive(Debug, Default)]
pub(super) struct Acks {
    orders: FxHashMap<u64, Order>,
    /// The orders about each object, oldest first.
    by_object: FxHashMap<ObjectId, Vec<u64>>,
    rounds: FxHashMap<u64, Waiting>,
    /// Until when each memory process may read copies of our objects, at most.
    leases: FxHashMap<MpId, Nanos>,
    next: u64,
    /// No order is over before, unless it is acknowledged.
    next_end: Option<Nanos>,
}

impl Acks {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Tells every copy of the objects that their content changed. Nobody waits for the acknowledgements of `no_hurry`.
    pub(super) fn tell(
        &mut self,
        cx: &mut Context,
        objects: &mut Objects,
        (changed, no_hurry): (&[ObjectId], Option<MpId>),
    ) {
        for object in changed.iter().copied() {
            let place = cx.variables.place(cx.cluster, object);
            let policy = place.map_or(CopyPolicy::Invalidate, |p| p.variable.spec().policy());
            let Some(o) = objects.get_mut(&object) else {
                continue;
            };
            let version = o.version;
            let update = policy == CopyPolicy::Update;
            for holder in o.copies_to_tell(update) {
                let request = if update {
                    let data = o.released().clone();
                    PeerRequest::Update {
                        object,
                        version,
                        data,
                        no_hurry: no_hurry == Some(holder),
                    }
                } else {
                    PeerRequest::Invalidate { object, version }
                };
                let until = self.leases.get(&holder).copied().unwrap_or(cx.now);
                let call = CallId {
                    role: Role::Owner,
                    number: self.order(object, holder, until, true),
                };
                cx.request(holder, call, request);
            }
        }
    }

    /// A response leaves for a memory process: it renews the lease of its copies.
    pub(super) fn renew_lease(&mut self, now: Nanos, mp: MpId) {
        self.leases.insert(mp, now + LEASE + MARGIN);
    }

    /// A memory process is lost: what it was told may not arrive. It may not know that it is lost, and read its copies until its
    /// lease is over: releases of their objects wait for that.
    pub(super) fn cut_off(&mut self, cx: &Context, holder: MpId, objects: &mut Objects) {
        let its = self.orders.values_mut().filter(|o| o.holder == holder);
        its.for_each(|o| o.under_way = false);
        let until = self.leases.remove(&holder).unwrap_or(cx.now);
        for object in objects.remove_copies(holder) {
            if until > cx.now {
                self.order(object, holder, until, false);
            }
        }
    }

    /// Whether all orders about `objects` are to this holder and under way.
    pub(super) fn only_under_way_to(&self, holder: MpId, objects: &BTreeSet<ObjectId>) -> bool {
        let about = objects.iter().filter_map(|o| self.by_object.get(o));
        let mut orders = about.flatten().filter_map(|n| self.orders.get(n));
        orders.all(|o| o.holder == holder && o.under_way)
    }

    /// A new order to the holder of a copy, whose lease ends at `until`; its number.
    fn order(&mut self, object: ObjectId, holder: MpId, until: Nanos, under_way: bool) -> u64 {
        let number = self.number();
        self.next_end = Some(self.next_end.map_or(until, |end| end.min(until)));
        let order = Order {
            object,
            holder,
            until,
            under_way,
            rounds: Vec::new(),
        };
        self.orders.insert(number, order);
        self.by_object.entry(object).or_default().push(number);
        number
    }

    /// A round that waits for all orders about `objects`; given back at once if there are none.
    pub(super) fn wait(&mut self, objects: &[ObjectId], round: Round) -> Option<Round> {
        let number = self.number();
        let mut waiting = 0;
        for object in objects {
            for order in self.by_object.get(object).into_iter().flatten() {
                if let Some(order) = self.orders.get_mut(order) {
                    order.rounds.push(number);
                    waiting += 1;
                }
            }
        }
        if waiting == 0 {
            return Some(round);
        }
        let waiting = Waiting {
            orders: waiting,
            round,
        };
        self.rounds.insert(number, waiting);
        None
    }

    /// Whether an order about an object is not acknowledged.
    pub(super) fn concerns(&self, object: ObjectId) -> bool {
        self.by_object.contains_key(&object)
    }

    /// The holder of a copy acknowledged an order; gives the rounds that are complete with it.
    pub(super) fn acknowledge(&mut self, holder: MpId, number: u64) -> Vec<Round> {
        match self.orders.get(&number) {
            Some(order) if order.holder == holder => self.end(&[number]),
            _ => Vec::new(),
        }
    }

    /// Leases go by; gives the rounds that are complete with the orders that need not be acknowledged
    /// any more. The table is searched only if there may be one.
    pub(super) fn expire(&mut self, now: Nanos) -> Vec<Round> {
        if self.next_end.is_none_or(|end| now < end) {
            return Vec::new();
        }
        let over = self.orders.iter().filter(|(_, o)| o.until <= now);
        let mut numbers: Vec<u64> = over.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        let later = self.orders.values().map(|o| o.until).filter(|u| *u > now);
        self.next_end = later.min();
        self.end(&numbers)
    }

    fn end(&mut self, orders: &[u64]) -> Vec<Round> {
        let mut rounds = Vec::new();
        for number in orders {
            let Some(order) = self.orders.remove(number) else {
                continue;
            };
            if let Some(others) = self.by_object.get_mut(&order.object) {
                others.retain(|n| n != number);
                if others.is_empty() {
                    self.by_object.remove(&order.object);
                }
            }
            rounds.extend(order.rounds);
        }
        // Rounds go on in the order in which they began.
        rounds.sort_unstable();
        rounds
            .into_iter()
            .filter_map(|r| self.count_down(r))
            .collect()
    }

    fn count_down(&mut self, number: u64) -> Option<Round> {
        let waiting = self.rounds.get_mut(&number)?;
        waiting.orders -= 1;
        if waiting.orders > 0 {
            return None;
        }
        self.rounds.remove(&number).map(|waiting| waiting.round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::View;
    use crate::core::test_topology;
    use dosmos_proto::VarId;

    const NOW: Nanos = Nanos::from_millis(10_000);
    const END: Nanos = Nanos::from_millis(11_000);
    const X: ObjectId = ObjectId {
        var: VarId(1),
        index: 0,
    };
    const Y: ObjectId = ObjectId {
        var: VarId(1),
        index: 1,
    };

    fn round(number: u64) -> Round {
        Round {
            began: NOW,
            then: Then::Write(number),
        }
    }

    #[test]
    fn a_round_waits_for_every_order_about_its_objects_and_for_no_other() {
        let mut acks = Acks::default();
        assert_eq!(acks.wait(&[X, Y], round(0)), Some(round(0)));
        let to_one = acks.order(X, MpId(1), END, true);
        let to_two = acks.order(X, MpId(2), END, true);
        let of_y = acks.order(Y, MpId(1), END, true);
        assert_eq!(acks.wait(&[X], round(1)), None);
        assert_eq!(acks.wait(&[X, Y], round(2)), None);
        // Who was not told acknowledges nothing.
        assert_eq!(acks.acknowledge(MpId(2), to_one), []);
        assert_eq!(acks.acknowledge(MpId(1), to_one), []);
        assert_eq!(acks.acknowledge(MpId(1), to_one), [], "twice");
        assert!(acks.concerns(X) && acks.concerns(Y));
        assert_eq!(acks.acknowledge(MpId(2), to_two), [round(1)]);
        assert!(!acks.concerns(X) && acks.concerns(Y));
        assert_eq!(acks.wait(&[X], round(3)), Some(round(3)));
        assert_eq!(acks.acknowledge(MpId(1), of_y), [round(2)]);
        assert!(!acks.concerns(Y));
        assert!(acks.orders.is_empty() && acks.by_object.is_empty() && acks.rounds.is_empty());
    }

    #[test]
    fn rounds_go_on_in_the_order_in_which_they_began() {
        let mut acks = Acks::default();
        let order = acks.order(X, MpId(1), END, true);
        for number in 1..20 {
            assert_eq!(acks.wait(&[X], round(number)), None);
        }
        let done = acks.acknowledge(MpId(1), order);
        assert_eq!(done, (1..20).map(round).collect::<Vec<_>>());
    }

    #[test]
    fn an_order_is_waited_for_until_the_lease_of_its_holder_is_over() {
        let mut acks = Acks::default();
        acks.order(X, MpId(1), END, true);
        assert_eq!(acks.wait(&[X], round(1)), None);
        acks.order(X, MpId(2), END + Nanos(5), true);
        acks.order(Y, MpId(3), END + Nanos(9), true);
        assert_eq!(acks.wait(&[X], round(2)), None);
        assert_eq!(acks.expire(END - Nanos(1)), []);
        assert_eq!(acks.expire(END), [round(1)]);
        assert_eq!(acks.expire(END + Nanos(4)), []);
        assert_eq!(acks.expire(END + Nanos(5)), [round(2)]);
        assert!(acks.concerns(Y));
        assert_eq!(acks.expire(END + Nanos(9)), []);
        assert!(!acks.concerns(Y));
        assert_eq!(acks.next_end, None);
    }

    #[test]
    fn who_is_cut_off_may_read_its_copies_until_its_lease_is_over() {
        let view = View::of_test(test_topology(&["/a"], 3, 1), MpId(0));
        let mut effects = Vec::new();
        let cx = Context::new(NOW, &view, &mut effects);
        let with_copies = |acks: &mut Acks| {
            let mut objects = Objects::of_test(&[X, Y]);
            for object in [X, Y] {
                let o = objects.get_mut(&object).unwrap();
                o.add_copy(MpId(1));
                o.add_copy(MpId(2));
            }
            acks.cut_off(&cx, MpId(1), &mut objects);
            let of = |o: &ObjectId| objects.get_mut(o).unwrap().copies_to_tell(true);
            [X, Y].iter().map(of).collect::<Vec<_>>()
        };
        let mut acks = Acks::default();
        acks.renew_lease(NOW, MpId(1));
        assert_eq!(with_copies(&mut acks), [[MpId(2)], [MpId(2)]]);
        assert_eq!(acks.wait(&[X, Y], round(1)), None);
        let until = NOW + LEASE + MARGIN;
        assert_eq!(acks.expire(until - Nanos(1)), []);
        assert_eq!(acks.expire(until), [round(1)]);
        // One whose lease is over, or that never had one, is not waited for.
        for lease in [Some(NOW), None] {
            let mut acks = Acks::default();
            acks.leases.extend(lease.map(|until| (MpId(1), until)));
            with_copies(&mut acks);
            assert_eq!(acks.wait(&[X, Y], round(1)), Some(round(1)));
        }
    }

    #[test]
    fn an_arrival_follows_its_news_only_where_nobody_else_is_told() {
        let view = View::of_test(test_topology(&["/a"], 3, 1), MpId(0));
        let mut effects = Vec::new();
        let cx = Context::new(NOW, &view, &mut effects);
        let only = |acks: &Acks, objects: &[ObjectId]| {
            acks.only_under_way_to(MpId(1), &objects.iter().copied().collect())
        };
        let mut acks = Acks::default();
        assert!(only(&acks, &[X, Y]), "nobody has to be told");
        acks.order(X, MpId(1), END, true);
        assert!(only(&acks, &[X, Y]));
        acks.order(Y, MpId(2), END, true);
        assert!(only(&acks, &[X]) && !only(&acks, &[Y]) && !only(&acks, &[X, Y]));
        // What was on its way is not any more; what another was sent is.
        acks.cut_off(&cx, MpId(1), &mut Objects::default());
        assert!(!only(&acks, &[X]));
        assert!(acks.only_under_way_to(MpId(2), &[Y].into()));
    }
}
