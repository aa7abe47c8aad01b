//! One trace record: an access (or a wait for one) as one memory process saw it.
//!
//! An access that its memory process serves alone yields one record, side [`Side::Requester`]. A
//! remote one yields that record at the requester's memory process and another, side
//! [`Side::Owner`], at the owner's. So *requester* records count what applications did, each access
//! once; *owner* records keep the primary meta-object (docs/design/monitoring.md#sides).

use std::fmt;

use dosmos_proto::{ApId, MpId, Nanos, ObjectId};
use serde::{Deserialize, Serialize};

use crate::spread::{Spread, TimeRange};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Op {
    /// Any read.
    Read = 1,
    /// Any write; fetch-add and compare-exchange too.
    Write = 2,
    /// Begin of an exclusive section.
    Acquire = 3,
    /// End of an exclusive section.
    Release = 4,
    /// Arrival at a barrier until its opening.
    Barrier = 5,
}

impl Op {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Acquire,
        Self::Release,
        Self::Barrier,
    ];

    /// The operation with this number (1 to 5).
    pub fn from_number(n: u32) -> Option<Self> {
        Self::ALL.get((n as usize).checked_sub(1)?).copied()
    }

    /// Its name in lower case, as in every table and file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::Barrier => "barrier",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How far an access went (docs/design/monitoring.md#origins).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Origin {
    /// Served by the application process's own memory process.
    #[default]
    Local = 1,
    /// Served by another memory process of the group.
    Intra = 2,
    /// Crossed at least one link process.
    Inter = 3,
}

impl Origin {
    /// All of them, nearest first.
    pub const ALL: [Self; 3] = [Self::Local, Self::Intra, Self::Inter];

    /// The origin with this number (1 to 3).
    pub fn from_number(n: u32) -> Option<Self> {
        Self::ALL.get((n as usize).checked_sub(1)?).copied()
    }

    /// Its name in lower case, as in every table and file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Intra => "intra",
            Self::Inter => "inter",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One value for each origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PerOrigin<T> {
    /// For [`Origin::Local`].
    pub local: T,
    /// For [`Origin::Intra`].
    pub intra: T,
    /// For [`Origin::Inter`].
    pub inter: T,
}

impl<T> PerOrigin<T> {
    /// The values with their origins, nearest first.
    pub fn iter(&self) -> impl Iterator<Item = (Origin, &T)> {
        Origin::ALL.into_iter().zip(self.values())
    }

    /// The values, nearest first.
    pub fn values(&self) -> [&T; 3] {
        [&self.local, &self.intra, &self.inter]
    }

    /// The values themselves, nearest first.
    pub fn into_array(self) -> [T; 3] {
        [self.local, self.intra, self.inter]
    }

    /// What `f` makes of each value.
    pub fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> PerOrigin<U> {
        PerOrigin {
            local: f(&self.local),
            intra: f(&self.intra),
            inter: f(&self.inter),
        }
    }
}

impl PerOrigin<u64> {
    /// All together.
    pub fn total(&self) -> u64 {
        self.local + self.intra + self.inter
    }
}

impl<T> std::ops::Index<Origin> for PerOrigin<T> {
    type Output = T;
    fn index(&self, origin: Origin) -> &T {
        match origin {
            Origin::Local => &self.local,
            Origin::Intra => &self.intra,
            Origin::Inter => &self.inter,
        }
    }
}

impl<T> std::ops::IndexMut<Origin> for PerOrigin<T> {
    fn index_mut(&mut self, origin: Origin) -> &mut T {
        match origin {
            Origin::Local => &mut self.local,
            Origin::Intra => &mut self.intra,
            Origin::Inter => &mut self.inter,
        }
    }
}

/// Which memory process made the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Side {
    /// The one that received the request from its application process (the SMP, or the PMP of a
    /// local access).
    #[default]
    Requester = 0,
    /// The owner (PMP) of an object that another memory process asked for.
    Owner = 1,
}

/// What else is to be said of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Flags {
    /// A read served from a copy (a *cached read*; `optimized` in data formats).
    pub optimized: bool,
    /// Served in the application process itself, from a copy or a delegation there: no message, and no time that
    /// anybody measured. With `optimized`, from a copy of the copy at its memory process.
    pub in_process: bool,
    /// One of several that were not recorded.
    pub sampled: bool,
    /// The operation was refused or timed out; it changed nothing.
    pub failed: bool,
    /// Not an access: the notice that an acquire is waiting (docs/design/protocol.md#acquire). The grant follows as a
    /// record of its own.
    pub waiting: bool,
    /// A write that was an atomic operation, one step at the owner. It stored something unless `bytes` is 0.
    pub atomic: bool,
    /// The first access of its application process since that connected: what has the same name in earlier records is
    /// another start of it, or another process. Said by the requester.
    pub first: bool,
    /// Its times are of the clock of its application process, which counted such accesses and did not say when each was.
    pub own_clock: bool,
    /// A read by which the library fetched the object ahead of accesses to it: the program has seen no element by it.
    pub ahead: bool,
    /// For its reply its application process did not wait when it sent the request.
    pub posted: bool,
}

/// One trace record: of one access, or of `count` like ones of which no message told one by one. Of those it tells when
/// the first and the last was, and the sums (docs/design/monitoring.md#counted-records).
///
/// Of a barrier, `object.var` is the number of the barrier's name in the dictionary,
/// `object.index` its generation, and `version` which start of its coordinator counted that (0: not told).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When the memory process received the request. Of several accesses: when the first was.
    pub start: Nanos,
    /// From then until its reply. Of several accesses: from the first to the last.
    pub duration: Nanos,
    /// Of that, waiting: for the lock (acquire), for the copies' acknowledgements (release), for the
    /// other processes (barrier). Of several accesses: the sum.
    pub wait: Nanos,
    /// Of that, being served at the owner. Of several accesses: the sum.
    pub service: Nanos,
    /// What was done.
    pub op: Op,
    /// Which memory process made the record.
    pub side: Side,
    /// How far it went.
    pub origin: Origin,
    /// What else is to be said.
    pub flags: Flags,
    /// To what.
    pub object: ObjectId,
    /// By whom.
    pub ap: ApId,
    /// The memory process that received the request from `ap`.
    pub mp: MpId,
    /// The memory process that owns the object (for a barrier: its coordinator).
    pub peer: MpId,
    /// How many accesses it stands for: 1 or more.
    pub count: u32,
    /// Bytes read or written, by all accesses together.
    pub bytes: u64,
    /// Releases of the object so far, as known when the (last) operation completed; of an acquire and of
    /// the writes in a section, the version the section starts from.
    pub version: u64,
    /// Elements `[first, end)` of the object that were touched, or the smallest range that holds them all; (0, 0)
    /// where that means nothing.
    pub range: (u32, u32),
}

impl Record {
    /// Whether it stands for sections that are over, of which nobody knows how long each was: several, or such that
    /// the application process held in itself.
    pub fn is_of_past_sections(&self) -> bool {
        matches!(self.op, Op::Acquire | Op::Release) && (self.count > 1 || self.flags.in_process)
    }

    /// Whether it stands for one completed access of an application process.
    pub fn is_access(&self) -> bool {
        self.side == Side::Requester && !self.flags.failed && !self.flags.waiting
    }

    /// When the reply was sent, or the last of several accesses was.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }

    /// The same with its beginning and end by another clock.
    #[must_use]
    pub fn moved(&self, time: impl Fn(Nanos) -> Nanos) -> Self {
        let start = time(self.start);
        Self {
            start,
            duration: time(self.end()) - start,
            ..*self
        }
    }

    /// How many accesses it stands for.
    pub fn accesses(&self) -> u64 {
        u64::from(self.count.max(1))
    }

    /// Time that its application process spent in it: of several accesses only what they waited and were served, since
    /// between the first and the last it did other things.
    pub fn spent(&self) -> Nanos {
        match self.count {
            0 | 1 => self.duration,
            _ => self.wait + self.service,
        }
    }

    /// When its accesses began: at equal distances from the first to the last.
    pub fn spread(&self) -> Spread {
        Spread::new(self.start, self.duration, self.accesses())
    }

    /// What of it began in `range`; none if nothing did. The parts in ranges that follow one another add up to the whole
    /// record.
    pub fn within(&self, range: TimeRange) -> Option<Self> {
        let part = self.spread().part(range)?;
        if part.is_whole() {
            return Some(*self);
        }
        let mut record = Self {
            start: part.start(),
            duration: part.length(),
            wait: Nanos(part.share(self.wait.0)),
            service: Nanos(part.share(self.service.0)),
            count: part.count() as u32,
            bytes: part.share(self.bytes),
            ..*self
        };
        if record.count == 1 {
            record.duration = record.wait + record.service;
        }
        Some(record)
    }
}
