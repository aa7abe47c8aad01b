//! What the processes of a group ask each other about who serves a seat, and what they answer; and what is to be kept.

use dosmos_proto::ObjectId;

use super::seat::{Config, Seat, State};

/// A question about who serves a seat.
#[derive(Clone, Debug, PartialEq)]
pub enum Ballot {
    /// May the sender decide about the seat, with this term?
    Prepare(Seat, u64),
    /// Its decision.
    Accept(Config),
    /// It serves these seats, in these terms, and wants to go on.
    Lead(Vec<(Seat, u64)>),
    /// It was started again: what may it have forgotten?
    Recover,
}

/// The answer to a [`Ballot`].
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To `Prepare` and `Accept`.
    Vote(Vote),
    /// To `Lead`: the seats about which something was promised to others, and the terms of that; 0: the sender does not vote yet.
    Led(Vec<(Seat, u64)>),
    /// To `Recover`.
    Known {
        /// The sender votes.
        active: bool,
        /// It knows that the whole group was started again, this start of the receiver included, before anything was decided.
        anew: bool,
        /// What it promised and accepted.
        votes: Vec<(u64, Config)>,
    },
}

/// What a voter says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    /// Yes.
    pub granted: bool,
    /// The highest term that it knows of.
    pub promised: u64,
    /// The decision that it accepted last.
    pub accepted: Config,
}

/// From a new holder to a member: what it has of a seat. What is newer there?
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The seat.
    pub seat: Seat,
    /// The sender's term.
    pub term: u64,
    /// Versions and epochs of the released states that it has.
    pub states: Vec<(ObjectId, (u64, u64))>,
}

/// The answer to a [`Compare`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// States that are newer at the answering process, or that it alone has.
    pub newer: Vec<(ObjectId, State)>,
    /// Objects of which the asking process has a newer state.
    pub older: Vec<ObjectId>,
    /// There is more that is newer.
    pub more: bool,
}

/// A released state to be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// The seat of the object.
    pub seat: Seat,
    /// The sender's term.
    pub term: u64,
    /// Which catching up it is part of; 0 if the receiver is a member.
    pub joining: u64,
    /// The object.
    pub object: ObjectId,
    /// Its state.
    pub state: State,
}
