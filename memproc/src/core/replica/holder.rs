//! What the holder of a seat does: asks the voters to go on, has released states kept before the owner goes on,
//! and has other processes catch up that are to become members.

use std::collections::BTreeSet;

use dosmos_proto::{Incarnation, MpId, Nanos};

use super::role::{Asked, Replicas};
use super::seat::{Config, Seat, Shipment, State};
use super::seats::{keepers, placed, voters};
use crate::core::context::Context;
use crate::core::effects::Effect;
use crate::core::lease::RETRY;
use crate::core::messages::{Ballot, PeerRequest, Replica};

/// How often the voters are asked.
const LEAD_EVERY: Nanos = Nanos::from_millis(500);
/// Whoever was heard within this time may be asked to keep a seat.
const RECENT: Nanos = Nanos::from_millis(1_000);

impl Replicas {
    /// This process holds a seat from now on.
    pub(super) fn hold(&mut self, cx: &mut Context, seat: Seat, settled: bool) {
        self.leader.hold(seat, settled, cx.now);
        self.lead(cx);
    }

    /// Asks the voters to go on with the seats of this process, if it is time.
    pub(super) fn lead(&mut self, cx: &mut Context) {
        if !self.voter.is_active() || !self.leader.asks(cx.now, LEAD_EVERY) {
            return;
        }
        let seats = self.leader.seats().into_iter();
        let seats: Vec<(Seat, u64)> = seats
            .map(|seat| (seat, cx.variables.seats().holder(seat).0))
            .collect();
        for to in voters(cx.cluster, cx.me()) {
            if Self::is_there(cx, to) {
                let ballot = PeerRequest::Ballot(Ballot::Lead(seats.clone()));
                self.ask(cx, to, Asked::Lead(cx.now), ballot);
            }
        }
    }

    /// A voter answered: it follows this process for all seats but these, of which it promised these terms.
    pub(super) fn heard(
        &mut self,
        cx: &mut Context,
        from: MpId,
        asked: Nanos,
        refused: &[(Seat, u64)],
    ) {
        for seat in self.leader.seats() {
            match refused.iter().find(|(s, _)| *s == seat) {
                None => self.leader.hear(seat, from, asked),
                // It does not vote yet.
                Some((_, 0)) => {}
                Some((_, promised)) => {
                    self.elections.see(seat, *promised);
                    self.leader.contest(seat, asked);
                }
            }
            self.note_lease(cx, seat);
        }
    }

    /// Says until when this process serves a seat.
    pub(super) fn note_lease(&self, cx: &mut Context, seat: Seat) {
        if let Some((until, settled)) = self.leader.lease(seat, Self::majority(cx)) {
            cx.effect(Effect::Leads {
                seat,
                until,
                settled,
            });
        }
    }

    /// The members of a seat behind this process, as they are now.
    fn behind(cx: &Context, config: &Config) -> Vec<MpId> {
        let me = cx.me();
        let all: Vec<MpId> = match config.term {
            0 => placed(cx.cluster, config.seat),
            _ => config.members.iter().map(|m| m.0).collect(),
        };
        all.into_iter().filter(|mp| *mp != me).collect()
    }

    /// The members by the latest decision that are still there, but this process and the holder, which has been silent for long: they have all
    /// that was ever confirmed.
    pub(super) fn survivors(cx: &Context, latest: &Config) -> Vec<(MpId, Incarnation)> {
        let mut all = Self::starts(cx, latest, &Self::behind(cx, latest));
        all.retain(|(mp, start)| {
            let same = match latest.term {
                0 => start.start() <= 1,
                _ => cx.incarnation_of(*mp) == Some(*start),
            };
            same && *mp != latest.holder() && cx.check_reachable(*mp).is_ok()
        });
        all.truncate(latest.seat.replicas as usize);
        all
    }

    /// Which start of each of these is heard now; those that are not heard are left out.
    fn starts(cx: &Context, config: &Config, of: &[MpId]) -> Vec<(MpId, Incarnation)> {
        let named = |mp: MpId| config.members.iter().find(|m| m.0 == mp).map(|m| m.1);
        let start = |mp: &MpId| Some((*mp, named(*mp).or_else(|| cx.incarnation_of(*mp))?));
        of.iter().filter_map(start).collect()
    }

    /// Looks after a seat of this process.
    pub(super) fn keep(&mut self, cx: &mut Context, config: &Config) {
        let seat = config.seat;
        let behind = Self::behind(cx, config);
        let missing = self.leader.missing(&behind, seat, cx.now);
        let mut stay: Vec<MpId> = behind;
        stay.retain(|mp| !missing.contains(mp));
        let contested = self.leader.is_contested(seat, cx.now, Self::majority(cx));
        let proposed = self.leader.proposed(seat);
        let unclear = proposed.is_some_and(|p| p.iter().any(|mp| !stay.contains(mp)));
        if !missing.is_empty() || contested || unclear {
            for mp in missing {
                // What it is sent from now on may not be all.
                self.leader.put_out(seat, mp);
            }
            let mut members = Self::starts(cx, config, &stay);
            members.extend(self.leader.ready(seat));
            return self.propose(cx, seat, members);
        }
        if stay.len() >= seat.replicas as usize || self.leader.is_merging(seat) {
            return;
        }
        if let Some(ready) = self.leader.ready(seat) {
            let mut members = Self::starts(cx, config, &stay);
            members.push(ready);
            return self.propose(cx, seat, members);
        }
        if self.leader.is_stuck(seat, cx.now) {
            self.leader.give_up(seat, cx.now + RETRY);
        }
        if self.leader.joiner(seat).is_none() {
            self.recruit(cx, seat, &stay);
        }
    }

    /// Asks for a decision that these are the members behind this process.
    fn propose(&mut self, cx: &mut Context, seat: Seat, members: Vec<(MpId, Incarnation)>) {
        if self.elections.may_begin(seat, cx.now) {
            self.leader.propose(seat, members.iter().map(|m| m.0));
            self.elect(cx, seat, members);
        }
    }

    /// Has somebody else of the group catch up.
    fn recruit(&mut self, cx: &mut Context, seat: Seat, behind: &[MpId]) {
        let me = cx.me();
        let mut others = keepers(cx.cluster, me);
        others.retain(|mp| *mp != me && !behind.contains(mp));
        let now = cx.now;
        let next = self.leader.candidate(seat, &others, (now, RECENT));
        let next = next.and_then(|mp| Some((mp, cx.incarnation_of(mp)?)));
        let Some(next) = next else {
            // There is nobody to wait for.
            self.leader.settle(seat);
            return self.note_lease(cx, seat);
        };
        self.leader.join(seat, next, now);
        for variable in cx.variables.of_seat(cx.cluster, seat) {
            self.join(cx, seat, |_, _| PeerRequest::Create(variable));
        }
        for (object, state) in self.store.all(seat) {
            self.join(cx, seat, |term, joining| {
                PeerRequest::Replicate(Replica {
                    seat,
                    term,
                    joining,
                    object,
                    state,
                })
            });
        }
    }

    /// Sends something to the process that catches up, if there is one.
    fn join(
        &mut self,
        cx: &mut Context,
        seat: Seat,
        request: impl FnOnce(u64, u64) -> PeerRequest,
    ) {
        let Some(joiner) = self.leader.joiner(seat) else {
            return;
        };
        let (to, number) = (joiner.mp, joiner.number);
        let (term, ..) = cx.variables.seats().holder(seat);
        let asked = Asked::Join(seat, number);
        let call = self.ask(cx, to, asked, request(term, number));
        self.leader.joining(seat, call);
    }

    /// Has a released state kept by all members; the owner hears when it is.
    pub(crate) fn ship(&mut self, cx: &mut Context, shipment: Shipment) {
        let Shipment {
            seat,
            object,
            state,
            round,
        } = shipment;
        self.store.put(seat, object, state.clone());
        let config = cx.variables.seats().config(seat);
        let mut owed: BTreeSet<MpId> = Self::behind(cx, &config).into_iter().collect();
        let replica = |state: State, term, joining| {
            PeerRequest::Replicate(Replica {
                seat,
                term,
                joining,
                object,
                state,
            })
        };
        // Who is proposed as a member may be one by now.
        owed.extend(self.leader.proposed(seat).into_iter().flatten());
        let joiner = self.leader.joiner(seat).map(|j| (j.mp, j.number));
        let members: Vec<MpId> = owed.iter().copied().collect();
        let ship = self.leader.ship(seat, owed, round);
        for to in &members {
            let joins = joiner.is_some_and(|(mp, _)| mp == *to);
            let out = self.leader.is_out(seat, *to) || cx.check_reachable(*to).is_err();
            if !joins && !out {
                let request = replica(state.clone(), config.term, 0);
                self.ask(cx, *to, Asked::Ship(seat, ship), request);
            }
        }
        if let Some((to, number)) = joiner {
            let request = replica(state, config.term, number);
            match members.contains(&to) {
                true => _ = self.ask(cx, to, Asked::Ship(seat, ship), request),
                false => {
                    let call = self.ask(cx, to, Asked::Join(seat, number), request);
                    self.leader.joining(seat, call);
                }
            }
        }
        for round in self.leader.complete() {
            cx.effect(Effect::Shipped { round });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lease::LEASE;
    use crate::core::replica::testing::*;

    const TERM: u64 = 1 << 10;
    /// With two replicas.
    const TWO: Seat = Seat {
        replicas: 2,
        ..SEAT
    };

    /// The holder by placement, in a group of this size.
    fn holder(seat: Seat, processes: u32) -> Process {
        let mut p = Process::new(0, processes);
        p.uses(seat);
        p
    }

    #[test]
    fn a_holder_asks_all_voters_every_half_second() {
        let mut p = Process::new(0, 3);
        let lead = asked_of(&[0, 1, 2], &Ballot::Lead(vec![(SEAT, 0)]));
        assert_eq!(ballots(&p.uses(SEAT)), lead);
        assert!(p.tick(START + LEAD_EVERY - TICK).is_empty());
        assert_eq!(ballots(&p.tick(START + LEAD_EVERY)), lead);
    }

    #[test]
    fn who_does_not_vote_does_not_lead() {
        let mut p = Process::alone(0, &["/a"], 3, SECOND);
        p.uses(SEAT);
        let mine = Config {
            members: vec![(MpId(0), SECOND)],
            ..decision(TERM, &[])
        };
        let effects = p.seated(&mine);
        assert!(p.replicas.leader.holds(SEAT));
        assert!(ballots(&effects).is_empty());
    }

    fn survivors(p: &mut Process, latest: &Config) -> Vec<(MpId, Incarnation)> {
        let mut survivors = Vec::new();
        p.does(|_, cx| survivors = Replicas::survivors(cx, latest));
        survivors
    }

    #[test]
    fn who_kept_a_seat_survives_until_it_is_started_again() {
        let decided = Config {
            seat: TWO,
            ..decision(TERM, &[0, 1, 2])
        };
        for latest in [decided, Config::initial(TWO)] {
            let mut p = Process::new(1, 3);
            let left = vec![(MpId(2), FIRST)];
            assert_eq!(survivors(&mut p, &latest), left, "the holder does not");
            p.hears(2, SECOND);
            assert_eq!(survivors(&mut p, &latest), []);
        }
    }

    #[test]
    fn who_was_proposed_and_is_no_member_is_decided_about_again() {
        let mut p = holder(SEAT, 3);
        for (proposed, again) in [(1, false), (2, true)] {
            p.replicas
                .leader
                .propose(SEAT, [MpId(proposed)].into_iter());
            let effects = p.does(|r, cx| r.keep(cx, &Config::initial(SEAT)));
            assert_eq!(!effects.is_empty(), again);
        }
        let members = p.replicas.elections.get(SEAT).map(|e| e.others.clone());
        assert_eq!(members, Some(vec![(MpId(1), FIRST)]));
    }

    #[test]
    fn who_was_stuck_catching_up_is_asked_again_after_a_while() {
        let mut p = holder(SEAT, 3);
        let config = decision(TERM, &[0]);
        p.replicas.store.put(SEAT, object(0), state(1));
        p.seated(&config);
        let mut catches_up = |heard: bool, now: Nanos| {
            if heard {
                p.replicas.leader.hear(SEAT, MpId(1), now);
            }
            p.now = now;
            p.does(|r, cx| r.keep(cx, &config));
            p.replicas.leader.joiner(SEAT).is_some()
        };
        let given_up = START + LEASE;
        assert!(catches_up(true, START));
        assert!(catches_up(false, given_up - TICK));
        assert!(!catches_up(false, given_up));
        assert!(!catches_up(true, given_up + RETRY - TICK));
        assert!(catches_up(true, given_up + RETRY));
    }

    /// To whom a state goes that is released, and in which catching up.
    fn shipped(p: &mut Process) -> Vec<(u32, u64)> {
        let shipment = Shipment {
            seat: TWO,
            object: object(0),
            state: state(1),
            round: 1,
        };
        let effects = p.does(|r, cx| r.ship(cx, shipment));
        let kept = requests(&effects)
            .into_iter()
            .filter_map(|(to, r)| match r {
                PeerRequest::Replicate(replica) => Some((to, replica.joining)),
                _ => None,
            });
        kept.collect()
    }

    #[test]
    fn a_state_goes_to_members_that_keep_up_and_can_be_reached() {
        let mut p = holder(TWO, 4);
        assert_eq!(shipped(&mut p), [(1, 0), (2, 0)]);
        p.replicas.leader.put_out(TWO, MpId(1));
        assert_eq!(shipped(&mut p), [(2, 0)]);
        p.loses(2);
        assert_eq!(shipped(&mut p), []);
    }

    #[test]
    fn who_catches_up_is_sent_a_state_once_whether_or_not_it_was_proposed() {
        let mut p = holder(TWO, 4);
        p.replicas.leader.join(TWO, (MpId(3), FIRST), START);
        let number = p.replicas.leader.joiner(TWO).map_or(0, |j| j.number);
        for _ in 0..2 {
            assert_eq!(shipped(&mut p), [(1, 0), (2, 0), (3, number)]);
            p.replicas.leader.propose(TWO, [MpId(3)].into_iter());
        }
    }
}
