//! One vote of the majority: what this process promised, what it accepted and whom it follows.
//!
//! All of it is in memory. So a process that was started again does not vote until nothing can depend any
//! more on what its earlier start promised: see [`Rejoin`].

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{Incarnation, MpId, Nanos};

use super::seat::{Config, Seat, candidate_of};
use crate::core::lease::{LEASE, MARGIN};
use crate::core::messages::Vote as Answered;

/// The state of one seat.
#[derive(Debug)]
struct Vote {
    /// No decision with a lower term is accepted.
    promised: u64,
    accepted: Config,
    /// Until when no other than this holder is promised anything.
    follows: Option<(MpId, Nanos)>,
}

impl Vote {
    /// Whether a holder of this term, the `position`-th of the voters, may go on. What it prepares and decides itself does not end its
    /// own term; but a promise to it does not make good again what another decided meanwhile.
    fn is_current(&self, term: u64, position: usize) -> bool {
        let ends = |later: u64| term < later && candidate_of(later) != position;
        !ends(self.promised) && !ends(self.accepted.term)
    }
}

/// How a process that was started again comes to vote.
#[derive(Debug, Default)]
struct Rejoin {
    began: Nanos,
    /// When it last asked.
    asked: Option<Nanos>,
    /// Who answered and votes; counted for questions after the leases of the earlier start.
    active: BTreeSet<MpId>,
    /// Who answered the last question that it does not vote either, and which start of it.
    inactive: BTreeMap<MpId, Incarnation>,
}

/// The votes of this process.
#[derive(Debug, Default)]
pub(crate) struct Voter {
    votes: BTreeMap<Seat, Vote>,
    /// It does not vote yet.
    rejoin: Option<Rejoin>,
    /// Which starts of the others did not vote when this process found that the whole group was started again.
    anew: BTreeMap<MpId, Incarnation>,
    begun: bool,
}

impl Voter {
    /// The first time that anything happens.
    pub(crate) fn begin(&mut self, now: Nanos, own: Incarnation) {
        if !std::mem::replace(&mut self.begun, true) && own.start() > 1 {
            let rejoin = Rejoin {
                began: now,
                ..Rejoin::default()
            };
            self.rejoin = Some(rejoin);
        }
    }

    /// Whether it votes.
    pub(crate) fn is_active(&self) -> bool {
        self.begun && self.rejoin.is_none()
    }

    fn vote(&mut self, seat: Seat) -> &mut Vote {
        self.votes.entry(seat).or_insert_with(|| Vote {
            promised: 0,
            accepted: Config::initial(seat),
            follows: None,
        })
    }

    /// It is the holder's until then, although it has not heard of it: a seat comes into use.
    pub(crate) fn expect(&mut self, seat: Seat, holder: MpId, now: Nanos) {
        let follows = &mut self.vote(seat).follows;
        follows.get_or_insert((holder, now + LEASE + MARGIN));
    }

    /// Until when it follows the holder of a seat.
    pub(crate) fn follows_until(&mut self, seat: Seat) -> Nanos {
        self.vote(seat).follows.map_or(Nanos::ZERO, |f| f.1)
    }

    /// The highest term it knows of.
    pub(crate) fn promised(&mut self, seat: Seat) -> u64 {
        self.vote(seat).promised
    }

    fn said(&mut self, seat: Seat, granted: bool) -> Answered {
        let vote = self.vote(seat);
        Answered {
            granted,
            promised: vote.promised,
            accepted: vote.accepted.clone(),
        }
    }

    /// A candidate asks whether it may decide. Nobody may while another holder is followed.
    pub(crate) fn prepare(
        &mut self,
        now: Nanos,
        from: MpId,
        (seat, term): (Seat, u64),
    ) -> Answered {
        let active = self.is_active();
        let vote = self.vote(seat);
        let followed = vote.follows.is_some_and(|(mp, u)| mp != from && now < u);
        // Asked again, with the term that it promised and nothing was decided with.
        let again = term == vote.promised && vote.accepted.term < term;
        let granted = active && (term > vote.promised || again) && !followed;
        if granted {
            vote.promised = term;
        }
        self.said(seat, granted)
    }

    /// A candidate that a majority promised to has decided.
    pub(crate) fn accept(&mut self, now: Nanos, from: MpId, config: Config) -> Answered {
        let (active, seat) = (self.is_active(), config.seat);
        let vote = self.vote(seat);
        let granted = active && config.term >= vote.promised;
        if granted {
            vote.promised = config.term;
            vote.accepted = config;
            vote.follows = Some((from, now + LEASE + MARGIN));
        }
        self.said(seat, granted)
    }

    /// The holder of a seat wants to go on; whether it may. `from` is the `position`-th of the voters.
    pub(crate) fn lead(
        &mut self,
        now: Nanos,
        (from, position): (MpId, usize),
        (seat, term): (Seat, u64),
    ) -> bool {
        let active = self.is_active();
        let vote = self.vote(seat);
        let may = active && vote.is_current(term, position);
        if may {
            vote.promised = vote.promised.max(term);
            vote.follows = Some((from, now + LEASE + MARGIN));
        }
        may
    }

    /// Whether the holder of this term may still have states kept here.
    pub(crate) fn is_current(&mut self, (seat, term): (Seat, u64), position: usize) -> bool {
        self.vote(seat).is_current(term, position)
    }

    /// A majority accepted a decision.
    pub(crate) fn decided(&mut self, config: &Config) {
        let vote = self.vote(config.seat);
        vote.promised = vote.promised.max(config.term);
        if config.term > vote.accepted.term {
            vote.accepted = config.clone();
        }
    }

    /// Whether those who vote have to be asked (again) what was promised, and what a new question counts for.
    pub(crate) fn asks(&mut self, now: Nanos, every: Nanos) -> bool {
        let Some(rejoin) = &mut self.rejoin else {
            return false;
        };
        if rejoin.asked.is_some_and(|at| now < at + every) {
            return false;
        }
        rejoin.asked = Some(now);
        rejoin.inactive.clear();
        true
    }

    /// Another process says whether it votes, in answer to a question of `asked`, and whether it knows that the whole group
    /// was started again, this start of this process included. Gives whether that is so, once this process votes.
    pub(crate) fn hear(
        &mut self,
        (from, incarnation, asked): (MpId, Incarnation, Nanos),
        (active, anew): (bool, bool),
        voters: usize,
    ) -> Option<bool> {
        let rejoin = self.rejoin.as_mut()?;
        let others = voters - 1;
        match active {
            // Whoever was promised anything by the earlier start has decided by now, or never will.
            true if asked >= rejoin.began + LEASE + MARGIN => {
                rejoin.active.insert(from);
            }
            true => {}
            false if rejoin.asked != Some(asked) => return None,
            false => {
                rejoin.active.remove(&from);
                rejoin.inactive.insert(from, incarnation);
            }
        }
        if anew {
            self.rejoin = None;
            return Some(true);
        }
        if rejoin.inactive.len() >= others {
            self.anew = std::mem::take(&mut rejoin.inactive);
            self.rejoin = None;
            return Some(true);
        }
        if rejoin.active.len() >= enough(voters) {
            self.rejoin = None;
            return Some(false);
        }
        None
    }

    /// Whether the whole group, this start of another process included, was started again before anything was decided.
    pub(crate) fn is_anew_for(&self, mp: MpId, incarnation: Option<Incarnation>) -> bool {
        incarnation.is_some_and(|i| self.anew.get(&mp) == Some(&i))
    }

    /// All that was promised and accepted.
    pub(crate) fn all(&self) -> Vec<(u64, Config)> {
        let votes = self.votes.values();
        votes.map(|v| (v.promised, v.accepted.clone())).collect()
    }

    /// Another voter promised and accepted this: this process does not go back behind it.
    pub(crate) fn learn(&mut self, promised: u64, accepted: &Config) {
        let vote = self.vote(accepted.seat);
        vote.promised = vote.promised.max(promised);
        if accepted.term > vote.accepted.term {
            vote.accepted = accepted.clone();
        }
    }
}

/// How many others that vote are enough: then every majority that decided with the earlier start of this one has one of them.
fn enough(voters: usize) -> usize {
    let majority = voters / 2 + 1;
    voters - majority + 1
}

#[cfg(test)]
#[path = "voter_tests.rs"]
mod tests;
