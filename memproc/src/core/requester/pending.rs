//! Operations of our application processes that are not complete. A number is used once in the life of the process,
//! so a late response finds nobody.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, MpId, Nanos, ObjectId, Refusal, VarId, VariableSpec};
use dosmos_trace::Op;
use rustc_hash::FxHashMap;

use crate::core::messages::{Access, AccessKind, CallId, Keep, Role, WriteData};
use crate::core::replica::seat::Seat;

/// Whose request it is, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) ap: ApId,
    /// The application process's number for it.
    pub(crate) id: u64,
    pub(crate) start: Nanos,
    pub(crate) timeout: Nanos,
    /// None of the process's accesses came before.
    pub(crate) first: bool,
    /// The process went on without waiting for the reply.
    pub(crate) posted: bool,
}

/// An operation of an application process.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) ticket: Ticket,
    /// The process that serves it: owner, home or coordinator.
    pub(super) to: MpId,
    pub(super) kind: Kind,
    /// Its time is over, and until then the process that serves it may say for whom it waits.
    pub(super) answer_by: Option<Nanos>,
}

impl Operation {
    pub(super) fn new(ticket: Ticket, to: MpId, kind: Kind) -> Self {
        Self {
            ticket,
            to,
            kind,
            answer_by: None,
        }
    }

    /// Whether it came with a release, and gets no reply.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self.kind, Kind::Write(Write { silent: true, .. }))
    }

    /// Whether its time is over, and it was asked for whom it waited.
    pub(super) fn is_overdue(&self) -> bool {
        self.answer_by.is_some()
    }

    fn due(&self) -> Nanos {
        let timeout = self.ticket.start + self.ticket.timeout;
        self.answer_by.unwrap_or(timeout)
    }
}

/// What it is, and what is needed to complete it.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Declare(Box<VariableSpec>),
    Open(String),
    Read(Read),
    /// Atomics too.
    Write(Write),
    Acquire(Acquire),
    Release(Box<Release>),
    Barrier(Barrier),
    /// Nothing but the flushes that a release or barrier begins with.
    Publish,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) object: ObjectId,
    /// Elements asked for.
    pub(super) range: (u32, u32),
    /// Bytes per element.
    pub(super) width: u32,
    /// The whole object comes, to be kept as a copy here.
    pub(super) fetch: bool,
    /// What the application process would keep; then the whole object comes.
    pub(super) keep: Keep,
}

impl Read {
    /// Whether the whole object comes.
    pub(super) fn is_whole(&self) -> bool {
        self.fetch || self.keep > Keep::Nothing
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) object: ObjectId,
    pub(super) range: (u32, u32),
    pub(super) bytes: u32,
    /// Writes of the application that it stands for.
    pub(super) accesses: u32,
    /// Gets no reply: it came with a release, which is refused wherever this is.
    pub(super) silent: bool,
    /// It is an atomic operation.
    pub(super) atomic: bool,
    /// When it is responded to, all that see the object see it: whatever publishes waits for that.
    pub(super) through: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Acquire {
    pub(super) object: ObjectId,
    /// The content is to come with the grant.
    pub(super) want_value: bool,
    /// It was sent to the owner.
    pub(super) sent: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Release {
    pub(super) object: ObjectId,
    pub(super) epoch: Option<u64>,
    /// What the section wrote and was not sent before.
    pub(super) write: Option<Write>,
    /// Its elements, which leave with the release.
    pub(super) data: Option<WriteData>,
    /// When it was sent to the owner; before that it waits for flushes.
    pub(super) sent: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    pub(super) barrier: VarId,
    /// When the flushes were done and the arrival counted.
    pub(super) arrived: Option<Nanos>,
}

/// An access to an object with replicas, as it is asked of whoever serves it.
#[derive(Clone, Debug)]
pub(super) struct Again {
    pub(super) seat: Seat,
    pub(super) access: Access,
    pub(super) want_copy: bool,
    /// It was not done, and is asked for at this time, or when somebody else serves the object.
    pub(super) waits: Option<Nanos>,
    /// How often it was asked for again. What an earlier request made is void, so a response to that is none.
    pub(super) repeated: u16,
}

impl Again {
    /// Whether it may be done twice: what its first time made is void.
    pub(super) fn is_repeatable(&self) -> bool {
        use AccessKind::{Acquire, Read};
        matches!(self.access.kind, Read { .. } | Acquire { .. })
    }
}

/// Who was asked for a name, in the place of its home.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) left: BTreeSet<MpId>,
    /// Why its home cannot be asked.
    pub(super) why: Refusal,
}

/// What a record says of an operation.
pub(super) struct Traced {
    pub(super) op: Op,
    pub(super) object: ObjectId,
    /// Accesses of the application that it stands for.
    pub(super) accesses: u32,
    pub(super) range: (u32, u32),
    pub(super) bytes: u32,
    pub(super) atomic: bool,
    /// It fetches the object ahead of accesses to it.
    pub(super) ahead: bool,
}

/// What an operation waits for whose time is over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitsFor {
    /// The lock of an object.
    Lock(ObjectId),
    /// A barrier.
    Barrier(VarId),
    /// A response.
    Response,
}

impl Kind {
    /// What can be said of an access before it is checked.
    pub(super) fn unchecked(access: &Access) -> Self {
        let object = access.object;
        let range = (0, 0);
        match access.kind {
            AccessKind::Read { .. } => Self::Read(Read {
                object,
                range,
                width: 0,
                fetch: false,
                keep: Keep::Nothing,
            }),
            AccessKind::Write { .. } | AccessKind::Atomic { .. } => Self::Write(Write {
                object,
                range,
                bytes: 0,
                accesses: 1,
                silent: false,
                atomic: matches!(access.kind, AccessKind::Atomic { .. }),
                through: false,
            }),
            AccessKind::Acquire { want_value } => Self::Acquire(Acquire {
                object,
                want_value,
                sent: false,
            }),
            AccessKind::Release { epoch, .. } => Self::Release(Box::new(Release {
                object,
                epoch,
                write: None,
                data: None,
                sent: None,
            })),
        }
    }

    /// Whether it takes its turn in the line of its application process.
    pub(super) fn lines_up(&self) -> bool {
        use Kind::{Acquire, Barrier, Publish, Release};
        matches!(self, Acquire(_) | Release(_) | Barrier(_) | Publish)
    }

    /// The name that it asks for.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Declare(spec) => Some(spec.name()),
            Self::Open(name) => Some(name),
            _ => None,
        }
    }

    /// What a record says of it; nothing of declarations.
    pub(super) fn traced(&self) -> Option<Traced> {
        let of = |op, object| Traced {
            op,
            object,
            accesses: 1,
            range: (0, 0),
            bytes: 0,
            atomic: false,
            ahead: false,
        };
        Some(match self {
            Self::Declare(_) | Self::Open(_) | Self::Publish => return None,
            Self::Read(read) => Traced {
                range: read.range,
                ahead: read.range.0 == read.range.1,
                bytes: (read.range.1 - read.range.0) * read.width,
                ..of(Op::Read, read.object)
            },
            Self::Write(write) => Traced {
                accesses: write.accesses,
                range: write.range,
                bytes: write.bytes,
                atomic: write.atomic,
                ..of(Op::Write, write.object)
            },
            Self::Acquire(acquire) => of(Op::Acquire, acquire.object),
            Self::Release(release) => of(Op::Release, release.object),
            Self::Barrier(wait) => of(Op::Barrier, ObjectId::new(wait.barrier, 0)),
        })
    }
}

/// The number of an operation, flush or renewal, as others know it.
pub(super) fn call(number: u64) -> CallId {
    repeated_call(number, 0)
}

/// Bits of such a number; above them is which repetition of the request it is.
const NUMBER_BITS: u32 = 45;

/// The same of an operation that was asked for again.
pub(super) fn repeated_call(number: u64, repeated: u16) -> CallId {
    CallId {
        role: Role::Requester,
        number: u64::from(repeated) << NUMBER_BITS | number,
    }
}

/// The number of an operation, and which repetition of its request a response is for.
pub(super) fn of_call(number: u64) -> (u64, u16) {
    let low = number & ((1 << NUMBER_BITS) - 1);
    (low, (number >> NUMBER_BITS) as u16)
}

/// Everything under way.
#[derive(Debug)]
pub(super) struct Pending {
    operations: FxHashMap<u64, Operation>,
    /// Of those under way, the accesses to objects with replicas.
    pub(super) again: BTreeMap<u64, Again>,
    /// And who is asked for names whose home is lost.
    pub(super) searches: BTreeMap<u64, Search>,
    next: u64,
    /// No operation is due before.
    next_due: Nanos,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            operations: FxHashMap::default(),
            again: BTreeMap::new(),
            searches: BTreeMap::new(),
            next: 0,
            next_due: Nanos::MAX,
        }
    }
}

impl Pending {
    /// The next number.
    pub(super) fn upcoming(&self) -> u64 {
        self.next
    }

    /// A number of its own, for something that is kept elsewhere.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    pub(super) fn open(&mut self, operation: Operation) -> u64 {
        let due = operation.ticket.start + operation.ticket.timeout;
        self.next_due = self.next_due.min(due);
        let number = self.number();
        self.operations.insert(number, operation);
        number
    }

    pub(super) fn get(&self, number: u64) -> Option<&Operation> {
        self.operations.get(&number)
    }

    pub(super) fn kind_mut(&mut self, number: u64) -> Option<&mut Kind> {
        self.operations.get_mut(&number).map(|o| &mut o.kind)
    }

    /// The number of an operation as the process knows it that was asked last.
    pub(super) fn call(&self, number: u64) -> CallId {
        let repeated = self.again.get(&number).map_or(0, |again| again.repeated);
        repeated_call(number, repeated)
    }

    /// Another process serves it.
    pub(super) fn redirect(&mut self, number: u64, to: MpId) {
        if let Some(operation) = self.operations.get_mut(&number) {
            operation.to = to;
        }
    }

    pub(super) fn close(&mut self, number: u64) -> Option<Operation> {
        self.again.remove(&number);
        self.searches.remove(&number);
        self.operations.remove(&number)
    }

    /// Operations that are due, oldest first. The table is searched only if one may be.
    pub(super) fn due(&mut self, now: Nanos) -> Vec<u64> {
        if now < self.next_due {
            return Vec::new();
        }
        let list = self.select(|o| o.due() <= now);
        let later = self.operations.values().map(Operation::due);
        self.next_due = later.filter(|d| *d > now).min().unwrap_or(Nanos::MAX);
        list
    }

    /// An operation whose time is over waits until then to hear for whom it waited.
    pub(super) fn wait_for_answer(&mut self, number: u64, until: Nanos) {
        if let Some(operation) = self.operations.get_mut(&number) {
            operation.answer_by = Some(until);
            self.next_due = self.next_due.min(until);
        }
    }

    /// Operations for which `is`, oldest first.
    pub(super) fn select(&self, is: impl Fn(&Operation) -> bool) -> Vec<u64> {
        let selected = self.operations.iter().filter(|(_, o)| is(o));
        let mut list: Vec<u64> = selected.map(|(number, _)| *number).collect();
        list.sort_unstable();
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(start: u64, timeout: u64) -> Operation {
        let ticket = Ticket {
            ap: ApId(0),
            id: 0,
            start: Nanos(start),
            timeout: Nanos(timeout),
            first: false,
            posted: false,
        };
        Operation::new(ticket, MpId(1), Kind::Publish)
    }

    #[test]
    fn an_operation_is_due_when_its_time_is_over_and_once_more_for_an_answer() {
        let mut pending = Pending::default();
        let late = pending.open(operation(10, 30));
        let early = pending.open(operation(10, 20));
        assert_eq!((late, early, pending.upcoming()), (0, 1, 2));
        assert!(pending.due(Nanos(29)).is_empty());
        assert_eq!(pending.due(Nanos(30)), [early]);
        pending.wait_for_answer(early, Nanos(35));
        assert!(pending.due(Nanos(34)).is_empty());
        assert_eq!(pending.due(Nanos(35)), [early]);
        pending.close(early);
        assert!(pending.due(Nanos(39)).is_empty());
        assert_eq!(pending.due(Nanos(40)), [late]);
        assert_eq!(pending.next_due, Nanos::MAX);
    }

    #[test]
    fn what_is_due_at_one_time_is_due_together() {
        let mut pending = Pending::default();
        let all: Vec<u64> = (0..3).map(|_| pending.open(operation(0, 5))).collect();
        pending.open(operation(0, 7));
        assert_eq!(pending.due(Nanos(5)), all);
        // Nobody has ended them: they are not asked about again before the next one is due.
        assert_eq!(pending.next_due, Nanos(7));
    }

    #[test]
    fn a_call_says_which_repetition_of_which_operation_it_is() {
        for (number, repeated) in [(0, 0), (5, 0), (5, 1), ((1 << NUMBER_BITS) - 1, u16::MAX)] {
            let call = repeated_call(number, repeated);
            assert_eq!(of_call(call.number), (number, repeated));
        }
        assert_eq!(repeated_call(5, 0), call(5));
        assert_eq!(repeated_call(5, 3).number, (3 << NUMBER_BITS) + 5);
    }

    #[test]
    fn a_read_of_no_elements_is_one_ahead_of_others() {
        let read = |range| {
            let object = ObjectId::new(VarId(1), 0);
            let read = Read {
                object,
                range,
                width: 8,
                fetch: false,
                keep: Keep::Nothing,
            };
            let traced = Kind::Read(read).traced().unwrap();
            (traced.ahead, traced.bytes)
        };
        assert_eq!(read((0, 0)), (true, 0));
        assert_eq!(read((2, 5)), (false, 24));
    }
}
