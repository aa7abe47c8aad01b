//! Requests under way: what our application processes wait for, and what this process itself asked
//! others. A call's number is unique in the life of the process, so a late answer finds nobody.

use dosmos_proto::{ApId, MpId, Nanos, ObjectId, VarId};
use dosmos_trace::Op as TraceOp;

use super::hash::FastMap;

/// Something asked, and of whom.
#[derive(Debug)]
pub(crate) struct Call {
    /// The process that answers: owner, home or coordinator.
    pub(crate) to: MpId,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// For an application process.
    Operation(Operation),
    /// The writes of this application process are being told to holders of copies.
    Flush(ApId),
    /// An owner is being told of a variable.
    Create(String),
}

/// An operation of an application process.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) ap: ApId,
    /// The application process's number for it.
    pub(crate) id: u64,
    pub(crate) start: Nanos,
    /// How long it may take, and when that is over.
    pub(crate) patience: Nanos,
    pub(crate) due: Nanos,
    pub(crate) what: What,
}

/// What is being done.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Declare(String),
    Open(String),
    Read {
        object: ObjectId,
        /// Elements asked for, and their size.
        first: u32,
        end: u32,
        width: u32,
        /// The whole object comes, to be kept as a copy.
        fetch: bool,
    },
    /// Atomics too.
    Write {
        object: ObjectId,
        first: u32,
        end: u32,
        bytes: u32,
    },
    Acquire {
        object: ObjectId,
        /// Handed to the owner.
        sent: bool,
    },
    Release {
        object: ObjectId,
        epoch: u64,
        /// When it was handed to the owner; before that it waits for flushes.
        sent: Option<Nanos>,
    },
    Barrier {
        barrier: VarId,
        /// When the flushes were done and the arrival counted.
        arrived: Option<Nanos>,
    },
    /// Nothing but the flushes that a release or barrier begins with.
    Publish,
}

impl What {
    /// What a record says of it: operation, object, elements and bytes; nothing of declarations.
    pub(crate) fn traced(&self) -> Option<(TraceOp, ObjectId, (u32, u32), u32)> {
        Some(match *self {
            Self::Declare(_) | Self::Open(_) | Self::Publish => return None,
            Self::Read {
                object,
                first,
                end,
                width,
                ..
            } => (TraceOp::Read, object, (first, end), (end - first) * width),
            Self::Write {
                object,
                first,
                end,
                bytes,
            } => (TraceOp::Write, object, (first, end), bytes),
            Self::Acquire { object, .. } => (TraceOp::Acquire, object, (0, 0), 0),
            Self::Release { object, .. } => (TraceOp::Release, object, (0, 0), 0),
            Self::Barrier { barrier, .. } => {
                (TraceOp::Barrier, ObjectId::new(barrier, 0), (0, 0), 0)
            }
        })
    }
}

/// All calls under way.
#[derive(Debug)]
pub(crate) struct Calls {
    table: FastMap<u64, Call>,
    next: u64,
    /// No operation is due before.
    next_due: Nanos,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            table: FastMap::default(),
            next: 1,
            next_due: Nanos::MAX,
        }
    }
}

impl Calls {
    /// The number the next call will have.
    pub(crate) fn upcoming(&self) -> u64 {
        self.next
    }

    /// A number of its own, for something that is kept elsewhere.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn open(&mut self, to: MpId, kind: Kind) -> u64 {
        if let Kind::Operation(op) = &kind {
            self.next_due = self.next_due.min(op.due);
        }
        let number = self.number();
        self.table.insert(number, Call { to, kind });
        number
    }

    pub(crate) fn get(&self, call: u64) -> Option<&Call> {
        self.table.get(&call)
    }

    pub(crate) fn operation(&mut self, call: u64) -> Option<&mut Operation> {
        match &mut self.table.get_mut(&call)?.kind {
            Kind::Operation(op) => Some(op),
            _ => None,
        }
    }

    pub(crate) fn close(&mut self, call: u64) -> Option<Call> {
        self.table.remove(&call)
    }

    /// Operations that are due, oldest first. The table is searched only if one may be.
    pub(crate) fn due(&mut self, now: Nanos) -> Vec<u64> {
        if now < self.next_due {
            return Vec::new();
        }
        let mut due = Vec::new();
        self.next_due = Nanos::MAX;
        for (number, call) in &self.table {
            if let Kind::Operation(op) = &call.kind {
                if op.due <= now {
                    due.push(*number);
                } else {
                    self.next_due = self.next_due.min(op.due);
                }
            }
        }
        due.sort_unstable();
        due
    }

    /// Calls for which `is`, oldest first.
    pub(crate) fn select(&self, is: impl Fn(&Call) -> bool) -> Vec<u64> {
        let mut list: Vec<u64> = self
            .table
            .iter()
            .filter(|(_, c)| is(c))
            .map(|(n, _)| *n)
            .collect();
        list.sort_unstable();
        list
    }

    /// The operations of an application process, oldest first.
    pub(crate) fn of_ap(&self, ap: ApId) -> Vec<u64> {
        self.select(|c| matches!(&c.kind, Kind::Operation(op) if op.ap == ap))
    }
}
