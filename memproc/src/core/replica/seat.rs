//! What is served and kept together, by whom, and since which decision.

use bytes::Bytes;
use dosmos_proto::{Incarnation, MpId, ObjectId};

/// Bits of a term that say whose it is.
const CANDIDATE_BITS: u32 = 10;
/// Most processes of a group with replicas.
pub(crate) const MAX_VOTERS: usize = 1 << CANDIDATE_BITS;
/// Bits of an epoch that count the sections of one term; the term stands above them.
const SECTION_BITS: u32 = 36;

/// The objects that the placement gives to one memory process, of the variables with one number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seat {
    /// The memory process that serves them at first.
    pub mp: MpId,
    /// At how many others they are kept.
    pub replicas: u32,
}

/// Who serves a seat and who keeps it, as it was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The seat.
    pub seat: Seat,
    /// Of two decisions about a seat the one with the higher term is later. 0: nothing was decided yet.
    pub term: u64,
    /// Which starts of which processes keep the seat; the first serves it. Nobody while nothing was decided: then it is
    /// the memory process that the placement names and those behind it. Nobody by a decision: the seat is lost.
    pub members: Vec<(MpId, Incarnation)>,
}

impl Config {
    /// As the placement has it.
    pub(crate) fn initial(seat: Seat) -> Self {
        Self {
            seat,
            term: 0,
            members: Vec::new(),
        }
    }

    /// That all who kept the seat were started again: its objects are lost.
    pub(crate) fn lost(seat: Seat, term: u64) -> Self {
        Self {
            seat,
            term,
            members: Vec::new(),
        }
    }

    /// Whether it says so.
    pub(crate) fn is_lost(&self) -> bool {
        self.term > 0 && self.members.is_empty()
    }

    /// Who serves the seat.
    pub fn holder(&self) -> MpId {
        self.members.first().map_or(self.seat.mp, |m| m.0)
    }

    /// Whether the same process serves the seat by a later decision.
    pub(crate) fn is_held_as_by(&self, later: &Self) -> bool {
        match self.members.first() {
            Some(first) => later.members.first() == Some(first),
            None => !later.is_lost() && later.holder() == self.holder(),
        }
    }

    /// Whether this start of a process is a member by decision.
    pub(crate) fn names(&self, mp: MpId, incarnation: Incarnation) -> bool {
        self.members.contains(&(mp, incarnation))
    }
}

/// The released state of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Of the content.
    pub version: u64,
    /// Of the section that released it.
    pub epoch: u64,
    /// The content; none if it is the same as before, or all zero if there was none before.
    pub data: Option<Bytes>,
}

/// A released state that the owner wants kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shipment {
    pub(crate) seat: Seat,
    pub(crate) object: ObjectId,
    pub(crate) state: State,
    /// The owner's number for it.
    pub(crate) round: u64,
}

/// The term of the candidate with this position among the voters that comes after `term`.
pub(crate) fn term_after(term: u64, candidate: usize) -> u64 {
    (((term >> CANDIDATE_BITS) + 1) << CANDIDATE_BITS) + candidate as u64
}

/// The position among the voters of the candidate whose term it is.
pub(crate) fn candidate_of(term: u64) -> usize {
    (term & (MAX_VOTERS as u64 - 1)) as usize
}

/// Sections of a term have higher epochs than this, and than all of every earlier term.
pub(crate) fn epochs_of(term: u64) -> u64 {
    term << SECTION_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_rise_and_name_their_candidate() {
        let first = term_after(0, 3);
        let second = term_after(first, 1);
        assert!(second > first && first > 0);
        assert_eq!((candidate_of(first), candidate_of(second)), (3, 1));
        assert!(epochs_of(second) > epochs_of(first) + (1 << 35));
    }
}
