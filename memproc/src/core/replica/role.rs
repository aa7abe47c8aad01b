//! The role: votes, asks for decisions, keeps states for others. What a holder does besides is in `holder`.

use dosmos_proto::{ErrorCode, Incarnation, MpId, Nanos, Refusal};
use rustc_hash::FxHashMap;

use super::election::{Elections, Step};
use super::leader::Leader;
use super::seat::{Config, Seat, term_after};
use super::seats::{placed, voters};
use super::store::Store;
use super::voter::Voter;
use crate::core::context::Context;
use crate::core::effects::{Caller, Effect};
use crate::core::lease::{LEASE, RETRY};
use crate::core::messages::{Answer, Ballot, CallId, Notice, PeerRequest, Replica, Response, Role};

/// How long a decision may take; less than the lease that voters give with it.
const DECISION_TIME: Nanos = Nanos::from_millis(1_000);

/// How long a candidate that may not go on by what it has heard waits for more voters.
const HEARING_TIME: Nanos = Nanos::from_millis(400);

/// What was asked of another process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// Of the attempt of this time.
    Prepare(Seat, Nanos),
    Accept(Seat, Nanos),
    Lead(Nanos),
    Recover(Nanos),
    /// To keep a state, as a member.
    Ship(Seat, u64),
    /// To learn of a variable or keep a state, to become one; in this catching up.
    Join(Seat, u64),
    /// What it has that is newer.
    Compare(Seat),
    /// To keep what it lacks.
    Merge(Seat),
}

/// The role's state.
#[derive(Debug, Default)]
pub(crate) struct Replicas {
    pub(super) voter: Voter,
    pub(super) elections: Elections,
    pub(super) leader: Leader,
    pub(super) store: Store,
    pub(super) calls: FxHashMap<u64, (MpId, Asked)>,
    /// Somebody has replicas, so that the votes of this process matter.
    needed: bool,
}

impl Replicas {
    pub(super) fn ask(
        &mut self,
        cx: &mut Context,
        to: MpId,
        asked: Asked,
        request: PeerRequest,
    ) -> u64 {
        let number = self.leader.number();
        self.calls.insert(number, (to, asked));
        let role = Role::Replica;
        cx.request(to, CallId { role, number }, request);
        number
    }

    fn ask_voters(&mut self, cx: &mut Context, asked: Asked, ballot: &Ballot) {
        for to in voters(cx.cluster, cx.me()) {
            if Self::is_there(cx, to) {
                self.ask(cx, to, asked, PeerRequest::Ballot(ballot.clone()));
            }
        }
    }

    /// Whether a question has a chance of an answer soon: nothing is kept for who has not come up.
    pub(super) fn is_there(cx: &Context, mp: MpId) -> bool {
        cx.check_reachable(mp).is_ok() && cx.missing(mp).is_none()
    }

    pub(super) fn majority(cx: &Context) -> usize {
        Self::voters(cx) / 2 + 1
    }

    fn voters(cx: &Context) -> usize {
        voters(cx.cluster, cx.me()).len()
    }

    fn position(cx: &Context, mp: MpId) -> usize {
        let voters = voters(cx.cluster, cx.me());
        voters.iter().position(|v| *v == mp).unwrap_or(voters.len())
    }

    pub(super) fn is_ours(cx: &Context, seat: Seat) -> bool {
        cx.cluster.same_group(seat.mp, cx.me())
    }

    /// A variable has objects of this seat.
    pub(crate) fn in_use(&mut self, cx: &mut Context, seat: Seat) {
        if !Self::is_ours(cx, seat) {
            return;
        }
        self.need(cx);
        self.voter.expect(seat, seat.mp, cx.now);
        let config = cx.variables.seats().config(seat);
        let mine = config.holder() == cx.me() && cx.is_member(&config);
        if mine && !self.leader.holds(seat) {
            self.hold(cx, seat, true);
        }
    }

    /// The votes of this process matter from now on.
    pub(super) fn need(&mut self, cx: &mut Context) {
        self.voter.begin(cx.now, cx.own_incarnation());
        if !std::mem::replace(&mut self.needed, true) {
            self.rejoin(cx);
        }
    }

    /// A process that was started again asks what its earlier start may have promised.
    fn rejoin(&mut self, cx: &mut Context) {
        if self.voter.asks(cx.now, RETRY) {
            let me = cx.me();
            for to in voters(cx.cluster, me).into_iter().filter(|v| *v != me) {
                if Self::is_there(cx, to) {
                    let ballot = PeerRequest::Ballot(Ballot::Recover);
                    self.ask(cx, to, Asked::Recover(cx.now), ballot);
                }
            }
        }
    }

    /// Time passed.
    pub(crate) fn tick(&mut self, cx: &mut Context) {
        if !self.needed {
            return;
        }
        self.rejoin(cx);
        self.lead(cx);
        for seat in cx.variables.seats().all() {
            if Self::is_ours(cx, seat) {
                self.watch(cx, seat);
            }
        }
    }

    /// Looks whether a decision about a seat is needed.
    fn watch(&mut self, cx: &mut Context, seat: Seat) {
        let config = cx.variables.seats().config(seat);
        if let Some(election) = self.elections.get(seat) {
            let began = election.began;
            if began + DECISION_TIME <= cx.now {
                let rank = Self::position(cx, cx.me()) as u64;
                self.elections
                    .end(seat, cx.now + RETRY + Nanos(RETRY.0 * rank));
            } else if began + HEARING_TIME <= cx.now
                && let Some(before) = self.elections.before(seat, Self::voters(cx))
            {
                self.decide(cx, seat, &before.latest, true);
            }
            return;
        }
        // Others ask too if no member is heard: there may be none left.
        let asks = cx.is_member(&config) || Self::is_orphaned(cx, &config, true);
        if !self.voter.is_active() || !asks {
            return;
        }
        if self.leader.holds(seat) {
            return self.keep(cx, &config);
        }
        let me = cx.me();
        let rank = match config.term {
            0 => placed(cx.cluster, seat).iter().position(|m| *m == me),
            _ => config.members.iter().position(|m| m.0 == me),
        };
        let turn = Nanos(2 * RETRY.0 * rank.unwrap_or(1).saturating_sub(1) as u64);
        if self.voter.follows_until(seat) + turn <= cx.now {
            self.elect(cx, seat, Vec::new());
        }
    }

    /// Whether all that keep a seat by a decision were started again since, so that nobody has its states. Of who is not heard it
    /// is `unheard`.
    fn is_orphaned(cx: &Context, config: &Config, unheard: bool) -> bool {
        let again = |mp: MpId, start: Option<Incarnation>| {
            let now = match mp == cx.me() {
                true => Some(cx.own_incarnation()),
                false => cx.incarnation_of(mp),
            };
            now.map_or(unheard, |now| start.map_or(now.start() > 1, |s| now > s))
        };
        match config.term {
            0 => {
                let mut placed = placed(cx.cluster, config.seat).into_iter();
                !cx.variables.seats().has_begun_anew() && placed.all(|mp| again(mp, None))
            }
            _ => {
                let mut members = config.members.iter();
                !config.is_lost() && members.all(|(mp, start)| again(*mp, Some(*start)))
            }
        }
    }

    /// Asks for a decision that this process serves a seat, with these members behind it.
    pub(super) fn elect(&mut self, cx: &mut Context, seat: Seat, others: Vec<(MpId, Incarnation)>) {
        if !self.elections.may_begin(seat, cx.now) {
            return;
        }
        let seen = self.elections.seen(seat).max(self.voter.promised(seat));
        let unused = self.elections.unused(seat).filter(|term| *term == seen);
        let term = unused.unwrap_or_else(|| term_after(seen, Self::position(cx, cx.me())));
        self.elections.begin(seat, (term, cx.now), others);
        self.elections.see(seat, term);
        let ballot = Ballot::Prepare(seat, term);
        self.ask_voters(cx, Asked::Prepare(seat, cx.now), &ballot);
    }

    /// A majority promised; the latest decision that any of them accepted was `latest`. Whoever is a member by that has all
    /// that was ever acknowledged, and may serve. If no start of any of its members lives, nobody may: that is decided too.
    /// `all` says that no more voters will be heard, who could say that too few accepted it for it to be a decision.
    fn decide(&mut self, cx: &mut Context, seat: Seat, latest: &Config, all: bool) {
        let Some(election) = self.elections.get(seat) else {
            return;
        };
        let me = (cx.me(), cx.own_incarnation());
        let (term, began, others) = (election.term, election.began, election.others.clone());
        let holds = self.leader.holds(seat);
        let before = cx.variables.seats().config(seat);
        // What it holds it may change; else it begins with the members that are left.
        let current = latest.term <= before.term || latest.members.first() == Some(&me);
        // A later decision that names it as a member but not as the holder came about without it, and nothing by it: whatever the other
        // would have confirmed or served, this process would have been asked for, and would not hold the seat any more.
        let may = cx.is_member(latest) || holds && current;
        if !may && !all {
            return;
        }
        if latest.is_lost() {
            cx.effect(Effect::Seated(latest.clone()));
        }
        if !may && !Self::is_orphaned(cx, latest, false) {
            return self.elections.end(seat, cx.now + LEASE);
        }
        let mut members = vec![me];
        members.extend(match holds {
            true => others,
            false => Self::survivors(cx, latest),
        });
        let config = match may {
            true => Config {
                seat,
                term,
                members,
            },
            // Nobody will ever be able to: whoever decided meanwhile is one of those that were started again.
            false => Config::lost(seat, term),
        };
        self.elections.tell(&config);
        self.ask_voters(cx, Asked::Accept(seat, began), &Ballot::Accept(config));
    }

    /// A majority accepted the decision of this process.
    fn elected(&mut self, cx: &mut Context, config: Config) {
        let seat = config.seat;
        let in_time = self
            .elections
            .get(seat)
            .is_some_and(|e| cx.now < e.began + LEASE);
        self.elections.end(seat, cx.now);
        if !in_time {
            return;
        }
        // Before what the owner does next, which the members are to take from it.
        self.tell(cx, &config);
        cx.effect(Effect::Seated(config));
    }

    /// Tells everyone who serves a seat.
    fn tell(&self, cx: &mut Context, config: &Config) {
        for mp in 0..cx.cluster.topology.memory_processes().len() as u32 {
            if MpId(mp) != cx.me() {
                cx.notice(MpId(mp), Notice::Seated(config.clone()));
            }
        }
    }

    /// A decision that is later than the one known before.
    pub(crate) fn seated(&mut self, cx: &mut Context, config: &Config) {
        let seat = config.seat;
        if Self::is_ours(cx, seat) {
            self.need(cx);
            self.voter.decided(config);
        }
        let mine = config.holder() == cx.me() && cx.is_member(config);
        if mine {
            let new = !self.leader.holds(seat);
            if new {
                self.hold(cx, seat, false);
                let me = cx.me();
                let members = config.members.iter().map(|m| m.0);
                let others: Vec<MpId> = members.filter(|mp| *mp != me).collect();
                self.merge(cx, config, &others);
            }
            for round in self.leader.decided(config) {
                cx.effect(Effect::Shipped { round });
            }
            self.merge_goes_on(cx, seat);
            self.note_lease(cx, seat);
            return;
        }
        self.elections.end(seat, cx.now);
        if self.leader.holds(seat) {
            self.leader.yield_seat(seat);
            cx.effect(Effect::Deposed { seat });
        }
        if !cx.is_member(config) {
            let holder = config.members.first().map(|m| m.1.to_wire());
            self.store.clear(seat, holder);
        }
    }

    /// A question of another process of the group, or of this one.
    pub(crate) fn ballot(&mut self, cx: &mut Context, caller: Caller, ballot: Ballot) {
        self.need(cx);
        let (now, from) = (cx.now, caller.mp);
        let answer = match ballot {
            Ballot::Prepare(seat, term) => {
                Answer::Vote(self.voter.prepare(now, from, (seat, term)))
            }
            Ballot::Accept(config) => Answer::Vote(self.voter.accept(now, from, config)),
            Ballot::Lead(seats) => {
                let from = (from, Self::position(cx, from));
                let mut refused = Vec::new();
                for (seat, term) in seats {
                    if !self.voter.lead(now, from, (seat, term)) {
                        let votes = self.voter.is_active();
                        let promised = self.voter.promised(seat);
                        refused.push((seat, if votes { promised } else { 0 }));
                    }
                }
                Answer::Led(refused)
            }
            Ballot::Recover => Answer::Known {
                active: self.voter.is_active(),
                anew: self.voter.is_anew_for(from, caller.incarnation),
                votes: self.voter.all(),
            },
        };
        cx.respond(caller, Response::Answer(answer), Nanos::ZERO);
    }

    /// Whether the holder of a seat by this term may have states kept here: as a member, or to become one.
    pub(super) fn may_keep(
        &mut self,
        cx: &Context,
        holder: MpId,
        (seat, term): (Seat, u64),
        joins: bool,
    ) -> bool {
        let position = Self::position(cx, holder);
        let config = cx.variables.seats().config(seat);
        let known = config.term == term && config.holder() == holder;
        let may = match joins {
            false => known && cx.is_member(&config),
            true => self.voter.is_active() && config.term <= term,
        };
        may && self.voter.is_current((seat, term), position)
    }

    /// The holder of a seat has a state kept here.
    pub(crate) fn keep_state(&mut self, cx: &mut Context, caller: Caller, replica: Replica) {
        self.need(cx);
        let Replica {
            seat,
            term,
            joining,
            object,
            state,
        } = replica;
        if !self.may_keep(cx, caller.mp, (seat, term), joining > 0) {
            return refuse(cx, caller, seat);
        }
        if joining > 0 {
            let start = caller.incarnation.map_or(0, Incarnation::to_wire);
            self.store.join(seat, (start, joining));
        }
        self.store.put(seat, object, state);
        cx.respond(caller, Response::Replicated, Nanos::ZERO);
    }

    /// The response to a question of this process.
    pub(crate) fn receive(
        &mut self,
        cx: &mut Context,
        (from, incarnation): (MpId, Option<Incarnation>),
        number: u64,
        response: Response,
    ) {
        let asked = self.calls.get(&number).filter(|(to, _)| *to == from);
        let Some((_, asked)) = asked.copied() else {
            return;
        };
        self.calls.remove(&number);
        match (asked, response) {
            (Asked::Prepare(seat, began), Response::Answer(Answer::Vote(vote))) => {
                self.elections.see(seat, vote.promised);
                if vote.granted {
                    let voters = Self::voters(cx);
                    let accepted = vote.accepted;
                    let step = self
                        .elections
                        .promised((seat, began), from, accepted, voters);
                    if let Step::Decide(before) = step {
                        self.decide(cx, seat, &before.latest, before.all);
                    }
                }
            }
            (Asked::Accept(seat, began), Response::Answer(Answer::Vote(vote))) => {
                self.elections.see(seat, vote.promised);
                if vote.granted {
                    let step = self
                        .elections
                        .accepted((seat, began), from, Self::majority(cx));
                    if let Step::Decided(config) = step {
                        self.elected(cx, config);
                    }
                }
            }
            (Asked::Lead(at), Response::Answer(Answer::Led(refused))) => {
                self.heard(cx, from, at, &refused);
            }
            (
                Asked::Recover(at),
                Response::Answer(Answer::Known {
                    active,
                    anew,
                    votes,
                }),
            ) => {
                let Some(incarnation) = incarnation else {
                    return;
                };
                for (promised, accepted) in &votes {
                    self.voter.learn(*promised, accepted);
                }
                let count = voters(cx.cluster, cx.me()).len();
                let answer = (from, incarnation, at);
                if self.voter.hear(answer, (active, anew), count) == Some(true) {
                    cx.effect(Effect::BegunAnew);
                }
            }
            (Asked::Ship(seat, ship), response) => {
                match response {
                    Response::Replicated => {
                        for round in self.leader.acknowledged(ship, from) {
                            cx.effect(Effect::Shipped { round });
                        }
                    }
                    // It is not a member as it stands.
                    _ => self.leader.put_out(seat, from),
                }
            }
            (Asked::Compare(seat), Response::Compared(compared)) => {
                self.compared(cx, (seat, from), compared);
            }
            (Asked::Merge(seat), Response::Replicated) => {
                if let Some(merge) = self.leader.merging(seat) {
                    merge.acknowledged(from, number);
                }
                self.merge_goes_on(cx, seat);
            }
            // It is not a member as it stands.
            (Asked::Compare(seat) | Asked::Merge(seat), _) => self.leader.put_out(seat, from),
            (Asked::Join(seat, joining), response) => {
                if self
                    .leader
                    .joiner(seat)
                    .is_some_and(|j| j.number == joining)
                {
                    match response {
                        Response::Replicated | Response::Created => {
                            self.leader.joined(seat, number);
                        }
                        _ => self.leader.give_up(seat, cx.now + LEASE),
                    }
                }
            }
            (Asked::Prepare(..) | Asked::Accept(..) | Asked::Lead(_) | Asked::Recover(_), _) => {}
        }
    }

    /// The whole group was started again: what the placement says holds.
    pub(crate) fn begun_anew(&mut self, cx: &mut Context) {
        for seat in cx.variables.seats().all() {
            self.in_use(cx, seat);
        }
    }

    /// A process is lost.
    pub(crate) fn lose(&mut self, mp: MpId) {
        self.calls.retain(|_, (to, _)| *to != mp);
        self.leader.lose(mp);
    }

    /// A process can be reached again: it may not know who serves the seats of this one.
    pub(crate) fn regain(&mut self, cx: &mut Context, mp: MpId) {
        for seat in self.leader.seats() {
            let config = cx.variables.seats().config(seat);
            if config.term > 0 {
                cx.notice(mp, Notice::Seated(config));
            }
        }
    }
}

pub(super) fn refuse(cx: &mut Context, caller: Caller, seat: Seat) {
    let why = format!(
        "{} does not keep the objects of {} for {}",
        cx.cluster.mp_name(cx.me()),
        cx.cluster.mp_name(seat.mp),
        cx.cluster.mp_name(caller.mp)
    );
    let refusal = Refusal::new(ErrorCode::Invalid, why);
    cx.respond(caller, Response::Refused(refusal), Nanos::ZERO);
}

#[cfg(test)]
#[path = "role_tests.rs"]
mod tests;
