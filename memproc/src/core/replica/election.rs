//! Decisions that this process is asking for.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{Incarnation, MpId, Nanos};

use super::seat::{Config, Seat};

/// How far a decision is.
#[derive(Debug)]
enum Phase {
    /// Voters are asked for promises: who gave one, and what each had accepted.
    Asks(BTreeMap<MpId, Config>),
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

/// What was decided before, as far as those say that promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    /// The latest decision that a majority may have accepted.
    pub(crate) latest: Config,
    /// All voters have promised: there is no more to hear.
    pub(crate) all: bool,
}

impl Before {
    /// Of decisions that each voter accepted last. One that so few accepted that it is none is passed over: who promised accepts
    /// it no more, and a voter may have accepted it before a later one.
    fn of(accepted: &BTreeMap<MpId, Config>, seat: Seat, voters: usize) -> Option<Self> {
        let majority = voters / 2 + 1;
        if accepted.len() < majority {
            return None;
        }
        let unheard = voters - accepted.len();
        let may_be = |config: &&Config| {
            let accepted = accepted.values().filter(|c| c.term >= config.term);
            accepted.count() + unheard >= majority
        };
        let latest = accepted.values().filter(may_be).max_by_key(|c| c.term);
        Some(Self {
            latest: latest.map_or_else(|| Config::initial(seat), Config::clone),
            all: unheard == 0,
        })
    }
}

/// What follows from a vote.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Waits,
    /// A majority promised.
    Decide(Before),
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
            phase: Phase::Asks(BTreeMap::new()),
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
        voters: usize,
    ) -> Step {
        let Some(election) = self.under_way.get_mut(&seat).filter(|e| e.began == began) else {
            return Step::Waits;
        };
        let Phase::Asks(by) = &mut election.phase else {
            return Step::Waits;
        };
        by.insert(from, accepted);
        Before::of(by, seat, voters).map_or(Step::Waits, Step::Decide)
    }

    /// What was decided before, if a majority has promised and no more are heard.
    pub(crate) fn before(&self, seat: Seat, voters: usize) -> Option<Before> {
        match &self.under_way.get(&seat)?.phase {
            Phase::Asks(by) => Before::of(by, seat, voters),
            Phase::Tells(..) => None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::replica::testing::{SEAT, START, TICK, decision};

    const TERM: u64 = 1 << 10;

    fn accepted(terms: &[u64]) -> BTreeMap<MpId, Config> {
        let config = |term: u64| Config {
            term,
            ..Config::initial(SEAT)
        };
        let all = (0..).zip(terms);
        all.map(|(mp, term)| (MpId(mp), config(*term))).collect()
    }

    fn before(terms: &[u64], voters: usize) -> Option<(u64, bool)> {
        let before = Before::of(&accepted(terms), SEAT, voters)?;
        Some((before.latest.term, before.all))
    }

    #[test]
    fn a_decision_counts_unless_so_few_accepted_it_that_it_is_none() {
        assert_eq!(before(&[7, 7], 5), None);
        // Those who have not been heard may have accepted it too.
        assert_eq!(before(&[9, 7, 7], 5), Some((9, false)));
        assert_eq!(before(&[9, 7, 7, 7], 5), Some((7, false)));
        assert_eq!(before(&[9, 9, 7, 7, 7], 5), Some((7, true)));
        assert_eq!(before(&[9, 9, 9, 7, 7], 5), Some((9, true)));
        assert_eq!(before(&[9, 0], 3), Some((9, false)));
        assert_eq!(before(&[9, 0, 0], 3), Some((0, true)));
        assert_eq!(before(&[7], 1), Some((7, true)));
    }

    /// Who accepted the latest may have accepted the one before it earlier.
    #[test]
    fn what_a_voter_accepted_before_its_last_may_have_been_a_decision() {
        assert_eq!(before(&[9, 7, 7, 0, 0], 5), Some((7, true)));
        assert_eq!(before(&[9, 7, 0, 0, 0], 5), Some((0, true)));
        assert_eq!(before(&[9, 8, 7, 0, 0], 5), Some((7, true)));
    }

    fn begun() -> Elections {
        let mut elections = Elections::default();
        elections.begin(SEAT, (TERM, START), Vec::new());
        elections
    }

    #[test]
    fn one_decision_about_a_seat_is_asked_for_at_a_time_and_the_next_not_before_its_time() {
        let mut e = begun();
        assert!(!e.may_begin(SEAT, START));
        let next = START + TICK;
        e.end(SEAT, next);
        assert!(!e.may_begin(SEAT, START));
        assert!(e.may_begin(SEAT, next));
        e.begin(SEAT, (TERM, next), Vec::new());
        assert!(!e.may_begin(SEAT, next));
    }

    #[test]
    fn a_term_is_unused_until_a_decision_is_told_with_it() {
        let mut e = begun();
        assert_eq!(e.unused(SEAT), None);
        e.end(SEAT, START);
        assert_eq!(e.unused(SEAT), Some(TERM));
        e.begin(SEAT, (TERM, START), Vec::new());
        e.tell(&decision(TERM, &[0]));
        e.end(SEAT, START);
        assert_eq!(e.unused(SEAT), None);
    }

    #[test]
    fn a_majority_promises_and_then_a_majority_accepts() {
        let mut e = begun();
        let promise =
            |e: &mut Elections, mp| e.promised((SEAT, START), MpId(mp), Config::initial(SEAT), 3);
        assert_eq!(promise(&mut e, 0), Step::Waits);
        assert_eq!(e.before(SEAT, 3), None);
        let before = Before {
            latest: Config::initial(SEAT),
            all: false,
        };
        assert_eq!(promise(&mut e, 1), Step::Decide(before.clone()));
        assert_eq!(e.before(SEAT, 3), Some(before));
        e.tell(&decision(TERM, &[0]));
        assert_eq!(e.before(SEAT, 3), None);
        let mut accept = |mp| e.accepted((SEAT, START), MpId(mp), 2);
        assert_eq!(accept(0), Step::Waits);
        assert_eq!(accept(0), Step::Waits, "the same again");
        assert_eq!(accept(1), Step::Decided(decision(TERM, &[0])));
    }
}
