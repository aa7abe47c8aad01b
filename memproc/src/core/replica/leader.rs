//! Seats that this process holds: which voters were heard, who keeps up, and what is on its way to whom.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{Incarnation, MpId, Nanos};

use super::merge::Merge;
use super::seat::{Config, Seat};
use crate::core::lease::LEASE;

/// A process that is to become a member, once it has all states.
#[derive(Clone, Debug)]
pub(crate) struct Joiner {
    pub(crate) mp: MpId,
    pub(crate) incarnation: Incarnation,
    /// Which of the catchings up of this process.
    pub(crate) number: u64,
    since: Nanos,
    /// What it has not acknowledged.
    left: BTreeSet<u64>,
}

/// A seat that this process holds.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// When each voter was asked the last question that it said yes to.
    heard: BTreeMap<MpId, Nanos>,
    /// Members that were lost since they became so: they may lack states.
    out: BTreeSet<MpId>,
    joiner: Option<Joiner>,
    /// Whoever keeps it does not yet have the same states.
    merge: Option<Merge>,
    /// Who was proposed as a member since the last decision: it may have been decided, so that all states go there.
    proposed: BTreeSet<MpId>,
    /// Since when it is held.
    since: Nanos,
    /// Until when somebody is not asked to join.
    refused: BTreeMap<MpId, Nanos>,
    /// Since when voters have promised something to others.
    contested: Option<Nanos>,
    settled: bool,
}

/// A released state on its way to the members.
#[derive(Debug)]
struct Ship {
    seat: Seat,
    /// Who has not acknowledged it.
    owed: BTreeSet<MpId>,
    /// The owner's number for it.
    round: u64,
}

/// All of that.
#[derive(Debug, Default)]
pub(crate) struct Leader {
    held: BTreeMap<Seat, Held>,
    ships: BTreeMap<u64, Ship>,
    next: u64,
    /// When the voters were last asked.
    asked: Option<Nanos>,
}

impl Leader {
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// This process holds a seat from now on. If it is not settled, others may have to catch up first.
    pub(crate) fn hold(&mut self, seat: Seat, settled: bool, now: Nanos) {
        self.held.entry(seat).or_insert_with(|| Held {
            settled,
            since: now,
            ..Held::default()
        });
        self.asked = None;
    }

    /// Another process holds it now. What is on its way is nobody's business any more.
    pub(crate) fn yield_seat(&mut self, seat: Seat) {
        self.held.remove(&seat);
        self.ships.retain(|_, s| s.seat != seat);
    }

    pub(crate) fn holds(&self, seat: Seat) -> bool {
        self.held.contains_key(&seat)
    }

    /// Seats held, in order.
    pub(crate) fn seats(&self) -> Vec<Seat> {
        self.held.keys().copied().collect()
    }

    /// Whether the voters are to be asked (again).
    pub(crate) fn asks(&mut self, now: Nanos, every: Nanos) -> bool {
        if self.held.is_empty() || self.asked.is_some_and(|at| now < at + every) {
            return false;
        }
        self.asked = Some(now);
        true
    }

    /// A voter said yes to a question of that time.
    pub(crate) fn hear(&mut self, seat: Seat, from: MpId, asked: Nanos) {
        if let Some(held) = self.held.get_mut(&seat) {
            let heard = held.heard.entry(from).or_default();
            *heard = asked.max(*heard);
        }
    }

    /// A voter said to a question of that time that it promised a later decision to another.
    pub(crate) fn contest(&mut self, seat: Seat, asked: Nanos) {
        if let Some(held) = self.held.get_mut(&seat) {
            held.contested.get_or_insert(asked);
        }
    }

    /// Until when no other holder can be decided on, and whether nobody has to catch up first.
    pub(crate) fn lease(&self, seat: Seat, majority: usize) -> Option<(Nanos, bool)> {
        let held = self.held.get(&seat)?;
        let mut times: Vec<Nanos> = held.heard.values().copied().collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        let last = times.get(majority - 1)?;
        Some((*last + LEASE, held.settled))
    }

    /// Whether a seat has to be decided about again: for this process to go on, or for voters to follow it that promised something
    /// to one that did not become the holder.
    pub(crate) fn is_contested(&self, seat: Seat, now: Nanos, majority: usize) -> bool {
        let lapsed = self.lease(seat, majority).is_none_or(|(u, _)| u <= now);
        let contested = self.held.get(&seat).and_then(|h| h.contested);
        contested.is_some_and(|since| lapsed || since + LEASE <= now)
    }

    /// Members of a seat that are lost or silent.
    pub(crate) fn missing(&self, config: &[MpId], seat: Seat, now: Nanos) -> Vec<MpId> {
        let Some(held) = self.held.get(&seat) else {
            return Vec::new();
        };
        let heard = |mp: &MpId| held.heard.get(mp).copied().unwrap_or(held.since);
        let silent = |mp: &MpId| heard(mp) + LEASE <= now;
        let gone = |mp: &&MpId| held.out.contains(mp) || silent(mp);
        config.iter().filter(gone).copied().collect()
    }

    /// A process is lost: as a member, it may lack states from now on.
    pub(crate) fn lose(&mut self, mp: MpId) {
        for held in self.held.values_mut() {
            held.out.insert(mp);
            held.heard.remove(&mp);
            held.joiner.take_if(|j| j.mp == mp);
        }
    }

    /// A member does not keep up.
    pub(crate) fn put_out(&mut self, seat: Seat, mp: MpId) {
        if let Some(held) = self.held.get_mut(&seat) {
            held.out.insert(mp);
        }
    }

    pub(crate) fn is_out(&self, seat: Seat, mp: MpId) -> bool {
        self.held.get(&seat).is_some_and(|h| h.out.contains(&mp))
    }

    /// These are proposed as members.
    pub(crate) fn propose(&mut self, seat: Seat, members: impl Iterator<Item = MpId>) {
        if let Some(held) = self.held.get_mut(&seat) {
            held.proposed.extend(members);
        }
    }

    /// Who was proposed, and is a member or not.
    pub(crate) fn proposed(&self, seat: Seat) -> Option<&BTreeSet<MpId>> {
        self.held.get(&seat).map(|h| &h.proposed)
    }

    /// A decision names these as members behind this process: what others owe is settled. Gives the rounds that are complete.
    pub(crate) fn decided(&mut self, config: &Config) -> Vec<u64> {
        let seat = config.seat;
        if let Some(held) = self.held.get_mut(&seat) {
            held.contested = None;
            held.proposed.clear();
            let member = |mp: &MpId| config.members.iter().any(|m| m.0 == *mp);
            held.joiner.take_if(|j| member(&j.mp));
            held.out.retain(member);
            if let Some(merge) = &mut held.merge {
                merge.retain(member);
            } else {
                held.settled |= config.members.len() > 1;
            }
            for ship in self.ships.values_mut().filter(|s| s.seat == seat) {
                ship.owed.retain(member);
            }
        }
        self.complete()
    }

    /// The others that keep the seat are asked what they have.
    pub(crate) fn merge(&mut self, seat: Seat, merge: Merge) {
        if let Some(held) = self.held.get_mut(&seat) {
            held.merge = Some(merge);
        }
    }

    pub(crate) fn merging(&mut self, seat: Seat) -> Option<&mut Merge> {
        self.held.get_mut(&seat)?.merge.as_mut()
    }

    pub(crate) fn is_merging(&self, seat: Seat) -> bool {
        self.held.get(&seat).is_some_and(|h| h.merge.is_some())
    }

    /// All who keep the seat have the same states.
    pub(crate) fn merged(&mut self, seat: Seat) {
        if let Some(held) = self.held.get_mut(&seat) {
            held.merge = None;
        }
    }

    /// Nobody can catch up, or somebody has: the seat is served.
    pub(crate) fn settle(&mut self, seat: Seat) {
        if let Some(held) = self.held.get_mut(&seat) {
            held.settled = true;
        }
    }

    /// Somebody who was heard not long ago and could join: the first of these.
    pub(crate) fn candidate(
        &self,
        seat: Seat,
        among: &[MpId],
        (now, recent): (Nanos, Nanos),
    ) -> Option<MpId> {
        let held = self.held.get(&seat)?;
        let heard = |mp: &&MpId| held.heard.get(mp).is_some_and(|at| now < *at + recent);
        let may = |mp: &&MpId| held.refused.get(mp).is_none_or(|until| *until <= now);
        among.iter().find(|mp| heard(mp) && may(mp)).copied()
    }

    /// Somebody catches up; the number of that.
    pub(crate) fn join(&mut self, seat: Seat, (mp, incarnation): (MpId, Incarnation), now: Nanos) {
        let number = self.number();
        if let Some(held) = self.held.get_mut(&seat) {
            held.out.remove(&mp);
            held.joiner = Some(Joiner {
                mp,
                incarnation,
                number,
                since: now,
                left: BTreeSet::new(),
            });
        }
    }

    pub(crate) fn joiner(&self, seat: Seat) -> Option<&Joiner> {
        self.held.get(&seat)?.joiner.as_ref()
    }

    /// A message that the joiner has to acknowledge leaves.
    pub(crate) fn joining(&mut self, seat: Seat, call: u64) {
        let held = self.held.get_mut(&seat);
        if let Some(joiner) = held.and_then(|h| h.joiner.as_mut()) {
            joiner.left.insert(call);
        }
    }

    /// The joiner acknowledged a message.
    pub(crate) fn joined(&mut self, seat: Seat, call: u64) {
        let held = self.held.get_mut(&seat);
        if let Some(joiner) = held.and_then(|h| h.joiner.as_mut()) {
            joiner.left.remove(&call);
        }
    }

    /// The joiner, if it has all states.
    pub(crate) fn ready(&self, seat: Seat) -> Option<(MpId, Incarnation)> {
        let joiner = self.joiner(seat).filter(|j| j.left.is_empty())?;
        Some((joiner.mp, joiner.incarnation))
    }

    /// The joiner refuses, or has been at it for too long: it is asked again later.
    pub(crate) fn give_up(&mut self, seat: Seat, again: Nanos) {
        if let Some(held) = self.held.get_mut(&seat)
            && let Some(joiner) = held.joiner.take()
        {
            held.refused.insert(joiner.mp, again);
        }
    }

    /// Whether the joiner has not been heard for too long.
    pub(crate) fn is_stuck(&self, seat: Seat, now: Nanos) -> bool {
        let Some(held) = self.held.get(&seat) else {
            return false;
        };
        held.joiner.as_ref().is_some_and(|j| {
            let heard = held.heard.get(&j.mp).copied().unwrap_or_default();
            heard.max(j.since) + LEASE <= now
        })
    }

    /// A state leaves for these; gives its number.
    pub(crate) fn ship(&mut self, seat: Seat, owed: BTreeSet<MpId>, round: u64) -> u64 {
        let number = self.number();
        self.ships.insert(number, Ship { seat, owed, round });
        number
    }

    /// A member has a state. Gives the rounds that are complete.
    pub(crate) fn acknowledged(&mut self, ship: u64, from: MpId) -> Vec<u64> {
        if let Some(ship) = self.ships.get_mut(&ship) {
            ship.owed.remove(&from);
        }
        self.complete()
    }

    /// Rounds that nobody owes anything for, oldest first.
    pub(crate) fn complete(&mut self) -> Vec<u64> {
        let done = self.ships.iter().filter(|(_, s)| s.owed.is_empty());
        let done: Vec<u64> = done.map(|(number, _)| *number).collect();
        let ships = done.into_iter().filter_map(|n| self.ships.remove(&n));
        ships.map(|s| s.round).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lease::RETRY;
    use crate::core::replica::testing::{FIRST, SEAT, START, TICK, decision};

    const TERM: u64 = 1 << 10;
    const OTHER: Seat = Seat {
        mp: MpId(1),
        ..SEAT
    };
    const END: Nanos = Nanos(START.0 + LEASE.0);

    fn holder() -> Leader {
        let mut leader = Leader::default();
        leader.hold(SEAT, false, START);
        leader
    }

    /// It has mp2 catch up.
    fn joined_by_another() -> Leader {
        let mut leader = holder();
        leader.join(SEAT, (MpId(2), FIRST), START);
        leader
    }

    fn is_missing(leader: &Leader, now: Nanos) -> bool {
        !leader.missing(&[MpId(1)], SEAT, now).is_empty()
    }

    #[test]
    fn a_member_is_missing_if_it_is_not_heard_for_a_lease() {
        let mut l = holder();
        assert!(!is_missing(&l, END - TICK));
        assert!(is_missing(&l, END));
        l.hear(SEAT, MpId(1), START + TICK);
        assert!(!is_missing(&l, END));
        assert!(is_missing(&l, END + TICK));
    }

    #[test]
    fn who_was_put_out_is_missing_until_it_is_none_by_a_decision() {
        let mut l = holder();
        l.put_out(SEAT, MpId(1));
        assert!(l.is_out(SEAT, MpId(1)) && !l.is_out(SEAT, MpId(2)));
        assert!(is_missing(&l, START));
        l.decided(&decision(TERM, &[0, 1]));
        assert!(l.is_out(SEAT, MpId(1)));
        l.decided(&decision(TERM, &[0, 2]));
        assert!(!l.is_out(SEAT, MpId(1)));
    }

    #[test]
    fn what_is_on_its_way_ends_with_its_seat_alone() {
        let mut l = holder();
        l.hold(OTHER, true, START);
        let [gone, stays] =
            [(SEAT, 7), (OTHER, 8)].map(|(s, round)| l.ship(s, [MpId(2)].into(), round));
        l.yield_seat(SEAT);
        assert!(l.acknowledged(gone, MpId(2)).is_empty());
        assert_eq!(l.acknowledged(stays, MpId(2)), [8]);
    }

    #[test]
    fn voters_are_asked_from_time_to_time_while_a_seat_is_held() {
        assert!(!Leader::default().asks(START, RETRY));
        let mut l = holder();
        assert!(l.asks(START, RETRY));
        assert!(!l.asks(START, RETRY));
        assert!(!l.asks(START + RETRY - TICK, RETRY));
        assert!(l.asks(START + RETRY, RETRY));
    }

    #[test]
    fn what_is_promised_to_others_matters_when_the_lease_is_over() {
        let mut l = holder();
        for voter in [0, 1] {
            l.hear(SEAT, MpId(voter), START);
        }
        assert!(!l.is_contested(SEAT, END, 2), "by nobody");
        l.contest(SEAT, START + TICK);
        assert!(!l.is_contested(SEAT, END - TICK, 2));
        assert!(l.is_contested(SEAT, END, 2));
    }

    #[test]
    fn what_is_promised_to_others_matters_after_a_lease_although_a_majority_follows() {
        let mut l = holder();
        l.contest(SEAT, START);
        for voter in [0, 1] {
            l.hear(SEAT, MpId(voter), END);
        }
        assert!(!l.is_contested(SEAT, END - TICK, 2));
        assert!(l.is_contested(SEAT, END, 2));
    }

    #[test]
    fn who_is_lost_does_not_catch_up() {
        let mut l = joined_by_another();
        l.lose(MpId(1));
        assert!(l.joiner(SEAT).is_some());
        l.lose(MpId(2));
        assert!(l.joiner(SEAT).is_none());
    }

    #[test]
    fn who_was_proposed_is_known_until_the_next_decision() {
        let mut l = holder();
        assert_eq!(l.proposed(OTHER), None);
        l.propose(SEAT, [MpId(1)].into_iter());
        l.propose(SEAT, [MpId(2)].into_iter());
        assert_eq!(l.proposed(SEAT), Some(&[MpId(1), MpId(2)].into()));
        l.decided(&decision(TERM, &[0, 1]));
        assert_eq!(l.proposed(SEAT), Some(&BTreeSet::new()));
    }

    #[test]
    fn a_seat_is_settled_when_it_is_decided_that_another_keeps_it() {
        let mut l = holder();
        l.hear(SEAT, MpId(0), START);
        for (members, settled) in [(&[0][..], false), (&[0, 1], true)] {
            l.decided(&decision(TERM, members));
            assert_eq!(l.lease(SEAT, 1), Some((END, settled)));
        }
    }

    #[test]
    fn the_first_that_was_heard_of_late_is_the_next_to_catch_up() {
        let mut l = holder();
        let next = |l: &Leader, now| l.candidate(SEAT, &[MpId(1), MpId(2)], (now, RETRY));
        assert_eq!(next(&l, START), None);
        l.hear(SEAT, MpId(2), START);
        assert_eq!(next(&l, START + RETRY - TICK), Some(MpId(2)));
        assert_eq!(next(&l, START + RETRY), None);
        l.hear(SEAT, MpId(1), START);
        assert_eq!(next(&l, START), Some(MpId(1)));
    }

    #[test]
    fn who_gave_up_is_not_asked_before_its_time() {
        let mut l = joined_by_another();
        l.hear(SEAT, MpId(2), START);
        l.give_up(SEAT, START + RETRY);
        let next = |now| l.candidate(SEAT, &[MpId(2)], (now, LEASE));
        assert_eq!(next(START + RETRY - TICK), None);
        assert_eq!(next(START + RETRY), Some(MpId(2)));
    }

    #[test]
    fn who_catches_up_is_ready_when_it_has_all_that_was_sent() {
        let mut l = joined_by_another();
        for call in [5, 6] {
            l.joining(SEAT, call);
        }
        l.joined(SEAT, 5);
        assert_eq!(l.ready(SEAT), None);
        l.joined(SEAT, 6);
        assert_eq!(l.ready(SEAT), Some((MpId(2), FIRST)));
    }

    #[test]
    fn who_catches_up_is_stuck_if_it_is_not_heard_for_a_lease() {
        assert!(!holder().is_stuck(SEAT, END));
        let mut l = joined_by_another();
        assert!(!l.is_stuck(SEAT, END - TICK));
        assert!(l.is_stuck(SEAT, END));
        l.hear(SEAT, MpId(2), START + TICK);
        assert!(!l.is_stuck(SEAT, END));
        assert!(l.is_stuck(SEAT, END + TICK));
    }
}
