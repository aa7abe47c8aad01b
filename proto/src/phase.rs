//! Where the time of an application process went, phase by phase (the execution-time breakdown of
//! Brunie & al., *DVSM performance model*, fig. 1, in terms of this system).
//!
//! Invariant of what the application's side measures: the components of a piece add up to its wall
//! time, since each instant between its ends is given to exactly one of them.

use serde::{Deserialize, Serialize};

use crate::{ApId, Nanos, wire};

/// What an application process does with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(usize)]
pub enum Component {
    /// On a processor, between calls.
    Busy = 0,
    /// Neither in a call nor on a processor: the processor was given to others, on a shared machine
    /// first of all to memory processes that serve others; sleeping counts here too.
    Service = 1,
    /// In a read or write that the own memory process served alone.
    Local = 2,
    /// In a read or write that another memory process had to serve.
    Fault = 3,
    /// The same, for the first time this process did so to the object.
    Cold = 4,
    /// In an acquire or a release.
    Lock = 5,
    /// In a barrier.
    Barrier = 6,
    /// In declarations, in publishing, and connecting.
    Other = 7,
}

impl Component {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Busy,
        Self::Service,
        Self::Local,
        Self::Fault,
        Self::Cold,
        Self::Lock,
        Self::Barrier,
        Self::Other,
    ];

    /// Its name in lower case, as in every table and file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Service => "service",
            Self::Local => "local",
            Self::Fault => "fault",
            Self::Cold => "cold",
            Self::Lock => "lock",
            Self::Barrier => "barrier",
            Self::Other => "other",
        }
    }
}

/// The time and the number of calls of each component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    time: [Nanos; 8],
    calls: [u64; 8],
}

impl Spent {
    /// Time of a component.
    pub fn time(&self, of: Component) -> Nanos {
        self.time[of as usize]
    }

    /// Calls of a component; zero for [`Component::Busy`] and [`Component::Service`].
    pub fn calls(&self, of: Component) -> u64 {
        self.calls[of as usize]
    }

    /// Adds time and calls to a component.
    pub fn add(&mut self, to: Component, time: Nanos, calls: u64) {
        self.time[to as usize] += time;
        self.calls[to as usize] = self.calls[to as usize].saturating_add(calls);
    }

    /// Adds another's.
    pub fn join(&mut self, other: &Self) {
        for of in Component::ALL {
            self.add(of, other.time(of), other.calls(of));
        }
    }

    /// All components together: the wall time.
    pub fn total(&self) -> Nanos {
        self.time.iter().fold(Nanos::ZERO, |sum, t| sum + *t)
    }
}

/// A phase of an application process, or a piece of one: what lies between two barriers it passed
/// (the second included), or before the first or after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTimes {
    /// The process.
    pub ap: ApId,
    /// Number of barriers passed before.
    pub phase: u64,
    /// When it began.
    pub start: Nanos,
    /// From then to its end.
    pub wall: Nanos,
    /// Where the time went.
    pub spent: Spent,
}

impl PhaseTimes {
    /// When it ended.
    pub fn end(&self) -> Nanos {
        self.start + self.wall
    }

    /// Adds another piece of the same phase, or the phase that follows.
    pub fn join(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.wall += other.wall;
        self.spent.join(&other.spent);
    }
}

impl From<PhaseTimes> for wire::PhaseTimes {
    fn from(p: PhaseTimes) -> Self {
        Self {
            ap: p.ap.0,
            phase: p.phase,
            start_ns: p.start.0,
            wall_ns: p.wall.0,
            time_ns: p.spent.time.iter().map(|t| t.0).collect(),
            calls: p.spent.calls.to_vec(),
        }
    }
}

/// Components that a later version may add are left out; ones it does not send are zero.
impl From<wire::PhaseTimes> for PhaseTimes {
    fn from(p: wire::PhaseTimes) -> Self {
        let mut spent = Spent::default();
        for (of, time) in Component::ALL.into_iter().zip(&p.time_ns) {
            spent.add(of, Nanos(*time), 0);
        }
        for (of, calls) in Component::ALL.into_iter().zip(&p.calls) {
            spent.add(of, Nanos::ZERO, *calls);
        }
        Self {
            ap: ApId(p.ap),
            phase: p.phase,
            start: Nanos(p.start_ns),
            wall: Nanos(p.wall_ns),
            spent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_survives_the_wire_and_pieces_add_up() {
        let mut piece = PhaseTimes {
            ap: ApId(3),
            phase: 7,
            start: Nanos(100),
            wall: Nanos(36),
            ..PhaseTimes::default()
        };
        for (i, of) in Component::ALL.into_iter().enumerate() {
            piece.spent.add(of, Nanos(i as u64 + 1), i as u64);
        }
        assert_eq!(piece.spent.total(), piece.wall);
        let back = PhaseTimes::from(wire::PhaseTimes::from(piece));
        assert_eq!(back, piece);
        let mut both = piece;
        both.join(&PhaseTimes {
            start: piece.end(),
            ..piece
        });
        assert_eq!((both.wall, both.spent.total()), (Nanos(72), Nanos(72)));
        assert_eq!(both.spent.calls(Component::Other), 14);
    }
}
