//! Decisions that this process is asking for.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{Incarnation, MpId, Nanos};

use super::seat::{Config, Seat};

/// How far a decision is.
#[derive(Debug)]
enum Phase {
    /// Voters are asked for promises: who gave one, and the latest that any of them accepted.
    Asks(BTreeSet<MpId>, Config),
    /// They are told the decision: who accepted it.
    Tells(BTreeSet<MpId>, Config),
}

/// A decision under way.
#[derive(Debug)]
pub(crate) struct Election {
    pub(crate) term: u64,
    pub(crate) began: Nanos,
    /// Whom it wants as members behind itself.
    pub(crate) others: Vec<(MpId, Incarnation)>,
    phase: Phase,
}

/// What follows from a vote.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Waits,
    /// A majority promised: this is the latest that was accepted before.
    Decide(Config),
    /// A majority accepted the decision.
    Decided(Config),
}

/// All of them, and when the next of a seat may begin.
#[derive(Debug, Default)]
pub(crate) struct Elections {
    under_way: BTreeMap<Seat, Election>,
    not_before: BTreeMap<Seat, Nanos>,
    /// The highest term heard of in refusals.
    seen: BTreeMap<Seat, u64>,
    /// The last term that voters were asked about, if no decision was told with it: it is used again, so that terms do not rise while
    /// there is no majority.
    unused: BTreeMap<Seat, u64>,
}

impl Elections {
    pub(crate) fn begin(
        &mut self,
        seat: Seat,
        (term, now): (u64, Nanos),
        others: Vec<(MpId, Incarnation)>,
    ) {
        let election = Election {
            term,
            began: now,
            others,
            phase: Phase::Asks(BTreeSet::new(), Config::initial(seat)),
        };
        self.under_way.insert(seat, election);
    }

    pub(crate) fn get(&self, seat: Seat) -> Option<&Election> {
        self.under_way.get(&seat)
    }

    /// It is over; another may begin at this time.
    pub(crate) fn end(&mut self, seat: Seat, next: Nanos) {
        if let Some(ended) = self.under_way.remove(&seat) {
            match ended.phase {
                Phase::Asks(..) => _ = self.unused.insert(seat, ended.term),
                Phase::Tells(..) => _ = self.unused.remove(&seat),
            }
        }
        self.not_before.insert(seat, next);
    }

    pub(crate) fn may_begin(&self, seat: Seat, now: Nanos) -> bool {
        !self.under_way.contains_key(&seat) && self.not_before.get(&seat).is_none_or(|t| *t <= now)
    }

    /// A voter knows of this term.
    pub(crate) fn see(&mut self, seat: Seat, term: u64) {
        let seen = self.seen.entry(seat).or_default();
        *seen = term.max(*seen);
    }

    /// The highest term heard of.
    pub(crate) fn seen(&self, seat: Seat) -> u64 {
        self.seen.get(&seat).copied().unwrap_or_default()
    }

    /// A term of this process that nothing was decided with.
    pub(crate) fn unused(&self, seat: Seat) -> Option<u64> {
        self.unused.get(&seat).copied()
    }

    /// A voter promised, in the attempt that began then, having accepted this before. An answer to an earlier attempt, however late, does
    /// not count.
    pub(crate) fn promised(
        &mut self,
        (seat, began): (Seat, Nanos),
        from: MpId,
        accepted: Config,
        majority: usize,
    ) -> Step {
        let Some(election) = self.under_way.get_mut(&seat).filter(|e| e.began == began) else {
            return Step::Waits;
        };
        let Phase::Asks(by, latest) = &mut election.phase else {
            return Step::Waits;
        };
        by.insert(from);
        if accepted.term > latest.term {
            *latest = accepted;
        }
        match by.len() >= majority {
            true => Step::Decide(latest.clone()),
            false => Step::Waits,
        }
    }

    /// The decision is told to the voters.
    pub(crate) fn tell(&mut self, config: &Config) {
        if let Some(election) = self.under_way.get_mut(&config.seat) {
            election.phase = Phase::Tells(BTreeSet::new(), config.clone());
        }
    }

    /// A voter accepted.
    pub(crate) fn accepted(
        &mut self,
        (seat, began): (Seat, Nanos),
        from: MpId,
        majority: usize,
    ) -> Step {
        let Some(election) = self.under_way.get_mut(&seat).filter(|e| e.began == began) else {
            return Step::Waits;
        };
        let Phase::Tells(by, config) = &mut election.phase else {
            return Step::Waits;
        };
        by.insert(from);
        match by.len() >= majority {
            true => Step::Decided(config.clone()),
            false => Step::Waits,
        }
    }
}
