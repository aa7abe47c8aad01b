//! What goes into the core and what comes out: the domain form of the memory protocol. The wire form
//! of each message is made in `crate::wire`; nothing here is a generated type.

use std::sync::Arc;

use bytes::Bytes;
use dosmos_proto::{
    ApId, ElementType, GroupId, Incarnation, MpId, Nanos, ObjectId, Refusal, Runs, Variable,
    VariableSpec,
};
use dosmos_trace::Record;
use dosmos_trace::meta::HandOver;
use dosmos_trace::query::BarrierName;

pub use super::replica::ballot::{Answer, Ballot, Compare, Compared, Replica, Vote};
use super::replica::seat::{Config, Seat};

/// Something that happened outside.
#[derive(Debug)]
pub enum Input {
    /// A connected application process sends a request.
    Request {
        /// The application process.
        ap: ApId,
        /// Its number for the request; the reply carries it back.
        id: u64,
        /// How long it waits for the reply; the default of this process if it does not say.
        timeout: Option<Nanos>,
        /// The request.
        request: Request,
    },
    /// The session of an application process ended.
    ApGone(ApId),
    /// The link to a neighbour is up.
    PeerUp(MpId),
    /// The link to a neighbour broke.
    PeerDown(MpId),
    /// A neighbour that was never up cannot be reached, or refuses the link; says why.
    PeerTrouble(MpId, String),
    /// A neighbour sent a message.
    Message {
        /// The neighbour; not always the message's source.
        from: MpId,
        /// What it sent.
        message: Message,
    },
    /// Time passed.
    Tick,
    /// The process is about to end.
    Shutdown,
}

/// What the core wants done.
#[derive(Debug)]
pub enum Output {
    /// Reply to an application process.
    Reply {
        /// The application process.
        ap: ApId,
        /// Its number for the request.
        id: u64,
        /// The reply.
        reply: Reply,
        /// Another memory process took part.
        remote: bool,
    },
    /// Tell an application process that its copy of an object is void.
    Invalidate {
        /// The application process.
        ap: ApId,
        /// The object.
        object: ObjectId,
    },
    /// Tell an application process what its copy of an object contains now.
    Update {
        /// The application process.
        ap: ApId,
        /// The object.
        object: ObjectId,
        /// Version of the content.
        version: u64,
        /// The content.
        data: Bytes,
    },
    /// Tell an application process of which version what it has of an object is now, since it was published.
    Confirm {
        /// The application process.
        ap: ApId,
        /// The object.
        object: ObjectId,
        /// The version.
        version: u64,
    },
    /// Tell an application process that others need an object that is delegated to it.
    Recall {
        /// The application process.
        ap: ApId,
        /// The object.
        object: ObjectId,
        /// Which of its delegations.
        delegation: u64,
        /// What is needed.
        wanted: Wanted,
    },
    /// Send a message to a neighbour.
    Send {
        /// The neighbour; not always the message's destination.
        to: MpId,
        /// What to send.
        message: Message,
    },
    /// Hand something to the recorder.
    Trace(Item),
}

/// What the recorder gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// One record.
    Record(Record),
    /// A copy was invalidated or updated.
    HandOver(HandOver),
    /// A variable that records may name from now on.
    Variable(Arc<Variable>),
    /// A barrier that records may name from now on.
    Barrier(BarrierName),
}

/// Elements `[first, end)` of an object; without `end`, up to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementRange {
    /// First element.
    pub first: u32,
    /// The element after the last.
    pub end: Option<u32>,
}

impl ElementRange {
    /// The whole object.
    pub const ALL: Self = Self {
        first: 0,
        end: None,
    };
}

/// An atomic operation on one element; values are its bits, zero-extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// Add and return what was there.
    FetchAdd(u64),
    /// Store `desired` if `expected` is there; returns what was there.
    CompareExchange {
        /// What must be there.
        expected: u64,
        /// What is stored then.
        desired: u64,
    },
}

/// An access to one object: the same from an application process to its memory process, and from there
/// to the owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The object.
    pub object: ObjectId,
    /// What is done to it.
    pub kind: AccessKind,
}

/// What an application process would keep of an object that it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// Nothing.
    #[default]
    Nothing,
    /// A copy, to read.
    Copy,
    /// The object itself, to read and to change; a copy if it cannot have that.
    Exclusive,
}

/// What an access does. `epoch` is that of the section it belongs to, if it belongs to one.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessKind {
    /// Read elements.
    Read {
        /// Which.
        range: ElementRange,
        /// Its section.
        epoch: Option<u64>,
        /// What the application process would keep of the whole object.
        keep: Keep,
    },
    /// Write elements.
    Write {
        /// Which, and what.
        write: WriteData,
        /// Its section.
        epoch: Option<u64>,
    },
    /// Read and change one element in one step.
    Atomic {
        /// The element.
        element: u32,
        /// Its type, as the application process takes it to be.
        element_type: ElementType,
        /// What is done to it.
        op: AtomicOp,
        /// Its section.
        epoch: Option<u64>,
    },
    /// Enter an exclusive section.
    Acquire {
        /// The content is to come with the grant.
        want_value: bool,
    },
    /// Leave it: what it wrote becomes visible to all.
    Release {
        /// The section; the current one if the application process does not say.
        epoch: Option<u64>,
        /// What it wrote and was not sent before.
        write: Option<WriteData>,
    },
}

/// Elements that are written.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteData {
    /// First element.
    pub first: u32,
    /// Which elements from there on, if they are not one range.
    pub runs: Option<Runs>,
    /// Whole elements, little-endian.
    pub data: Bytes,
    /// Writes of the application that it stands for.
    pub accesses: u32,
    /// It is added to what is there, in one step. Of one range.
    pub adds: bool,
}

/// Whom a barrier is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All application processes.
    All,
    /// Those of a group and its sub-groups.
    Group(GroupId),
    /// The same, as the application wrote the path.
    Path(String),
}

/// A request of an application process.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Declare a variable, or find the one declared alike before.
    Declare(VariableSpec),
    /// Look a declared variable up by name.
    Open(String),
    /// Access an object.
    Access(Access),
    /// The same, by a process that goes on and does not wait for the reply.
    Posted(Access),
    /// Wait for all others.
    Barrier {
        /// Which others.
        scope: Scope,
        /// One of several barriers of these.
        name: String,
    },
    /// Tell holders of copies what was written outside sections.
    Publish,
    /// The request of this number is not waited for any more.
    Cancel(u64),
    /// Accesses that the application process served itself. Gets no reply.
    Report(Vec<LocalAccesses>),
    /// What the application process made of objects that are delegated to it. Gets no reply.
    Return(Vec<Return>),
    /// Leave.
    Bye,
}

/// Accesses of one kind to one object that an application process served itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAccesses {
    /// The object.
    pub object: ObjectId,
    /// What was done.
    pub kind: LocalKind,
    /// How many.
    pub count: u64,
    /// None was before.
    pub first: Nanos,
    /// None was after.
    pub last: Nanos,
    /// Of all of them.
    pub bytes: u64,
    /// Of the content last accessed.
    pub version: u64,
    /// Of sections: the version that the first of them began with.
    pub from_version: u64,
    /// The smallest range that holds all elements that were accessed; empty of sections.
    pub elements: (u32, u32),
}

/// A kind of accesses that an application process serves itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalKind {
    /// Reads outside sections.
    Read,
    /// Writes and atomic operations outside sections.
    Write,
    /// Sections: each an acquire and a release.
    Section,
    /// Reads in these sections.
    SectionRead,
    /// Writes in these sections.
    SectionWrite,
    /// Reads in a section that the owner granted, or that goes on there.
    GrantedRead,
}

/// That an object is delegated to an application process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delegated {
    /// Which of its delegations.
    pub number: u64,
    /// Number of the object's last section.
    pub epoch: u64,
}

/// What an application process made of an object that is delegated to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Return {
    /// The object.
    pub object: ObjectId,
    /// Which of its delegations.
    pub delegation: u64,
    /// Of the content.
    pub version: u64,
    /// The delegation goes on, and `parts` are the elements that others asked for. Else it is over, and
    /// `parts` all that changed.
    pub kept: bool,
    /// First elements and what is there from them on.
    pub parts: Vec<(u32, Bytes)>,
    /// Accesses that the application process served itself in this delegation.
    pub served: u64,
    /// Number of its last section of the object, if there was one in this delegation.
    pub epoch: u64,
    /// It is in that section: it holds the object from now on as if it had been granted. Not if it is `kept`.
    pub in_section: bool,
}

/// What is wanted of an application process that an object is delegated to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Elements `[first, end)`, now and whenever they changed and it synchronises. It keeps the object.
    Elements(u32, u32),
    /// The object.
    Everything,
    /// Nothing any more: it was not heard, and the object was taken from it.
    Lost,
}

/// An opening of a barrier. A coordinator that is started again counts them anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Its number.
    pub generation: u64,
    /// Which start of the coordinator counted it; 0: not known.
    pub start: u32,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are those of memory.proto
pub enum Reply {
    Variable(Arc<Variable>),
    Read {
        version: u64,
        data: Bytes,
        /// The data is the whole object, and the application process may keep it.
        keep: bool,
        /// The object is delegated to the application process.
        delegation: Option<Delegated>,
        /// The application process has the content already; there is no data.
        unchanged: bool,
    },
    Written {
        version: u64,
    },
    Atomic {
        previous: u64,
        stored: bool,
        version: u64,
    },
    Granted {
        epoch: u64,
        version: u64,
        /// All of the object, if it was wanted.
        value: Option<Bytes>,
    },
    Released {
        version: u64,
    },
    Passed(Opening),
    Published,
    Farewell,
    Refused(Refusal),
}

/// A message between memory or link processes.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who wrote it.
    pub source: MpId,
    /// Which start of it; none if another process wrote it in the place of one that is lost.
    pub source_incarnation: Option<Incarnation>,
    /// For whom it is.
    pub destination: MpId,
    /// For which start of it; none if it is meant for any.
    pub destination_incarnation: Option<Incarnation>,
    /// The content.
    pub body: Body,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A request; its response has the same call.
    Request {
        /// Chosen by the sender.
        call: CallId,
        /// The request.
        request: PeerRequest,
    },
    /// The response to a request.
    Response {
        /// The call of the request.
        call: CallId,
        /// What the request cost.
        cost: Cost,
        /// The response.
        response: Response,
    },
    /// A message without a response.
    Notice(Notice),
}

impl Body {
    /// Whether nobody waits for it: it may go along with others.
    pub(crate) fn is_in_no_hurry(&self) -> bool {
        let Self::Response { response, .. } = self else {
            return false;
        };
        matches!(response, Response::CopyAck { no_hurry: true, .. })
    }
}

/// Names a request between memory processes: which role of the sender waits for the response, and
/// that role's number for it. A number is used once in the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// The role that waits.
    pub role: Role,
    /// Its number.
    pub number: u64,
}

/// The roles that wait for responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Works for the application processes of its memory process.
    Requester,
    /// Tells owners of new variables.
    Home,
    /// Tells holders of copies of changes.
    Owner,
    /// Has released states kept, and asks who serves them.
    Replica,
}

/// What a request cost at the process that served it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Time of its processor.
    pub service: Nanos,
    /// Time the request had to wait there, for a lock, for copies or for other processes.
    pub wait: Nanos,
}

impl Cost {
    /// Nothing but waiting.
    pub fn waited(wait: Nanos) -> Self {
        Self {
            service: Nanos::ZERO,
            wait,
        }
    }
}

/// A request between memory processes.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerRequest {
    /// To the owner: an application process's access.
    Access {
        /// The access.
        access: Access,
        /// The application process.
        ap: ApId,
        /// Of a read: the sender would keep what it gets as a copy.
        want_copy: bool,
    },
    /// To an owner: the sender holds copies and wants to go on reading them.
    Renew,
    /// To an owner: tell the copies what an application process wrote outside sections.
    Flush {
        /// The application process.
        ap: ApId,
    },
    /// To the home of a name: a declaration.
    Declare {
        /// What is declared.
        spec: VariableSpec,
        /// The memory process of the declaring application process.
        creator: MpId,
    },
    /// To the home of a name, or, while that is lost, to others who may know the name: a look-up.
    Open(String),
    /// To an owner, from the home: a new variable.
    Create(Arc<Variable>),
    /// From a home that was started again: which of its names does the receiver know?
    Names {
        /// Those after this one; all if it is empty.
        after: String,
    },
    /// To the holder of a copy, from the owner: drop it.
    Invalidate {
        /// Of which object.
        object: ObjectId,
        /// The version that is current.
        version: u64,
    },
    /// To the holder of a copy, from the owner: new content.
    Update {
        /// Of which object.
        object: ObjectId,
        /// The version of the content.
        version: u64,
        /// All of it.
        data: Bytes,
        /// Nobody waits for its acknowledgement.
        no_hurry: bool,
    },
    /// To a process of the group: about who serves a seat.
    Ballot(Ballot),
    /// To a memory process of the group, from the holder of a seat: keep a released state.
    Replicate(Replica),
    /// To a member, from a new holder: what is newer there?
    Compare(Compare),
}

impl PeerRequest {
    /// Whether it asks for nothing that an earlier start of its receiver held.
    pub(crate) fn is_for_every_start(&self) -> bool {
        matches!(
            self,
            Self::Declare { .. } | Self::Open(_) | Self::Names { .. }
        )
    }
}

/// A variable that all its owners know.
#[derive(Clone, Debug, PartialEq)]
pub struct Announced {
    /// The variable.
    pub variable: Arc<Variable>,
    /// Which start of each owner knows it: a later one has lost it.
    pub owners: Vec<(MpId, Incarnation)>,
}

/// Names that a process knows, of those with one home.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownNames {
    /// Those that all their owners know.
    pub announced: Vec<Announced>,
    /// Those of whose variables it was told, to own or keep their objects, and no more.
    pub told: Vec<Arc<Variable>>,
    /// There are more, after the last of these.
    pub more: bool,
}

/// A response between memory processes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are those of memory.proto
pub enum Response {
    Read {
        version: u64,
        data: Bytes,
        /// The receiver may keep it as a copy.
        copy: bool,
        /// The object is delegated to the application process.
        delegation: Option<Delegated>,
        /// A copy may be read for no longer than this after it was asked for.
        lease: Option<Nanos>,
    },
    Written {
        version: u64,
    },
    Atomic {
        previous: u64,
        stored: bool,
        version: u64,
    },
    Granted {
        epoch: u64,
        version: u64,
        /// All of the object, if it was wanted.
        value: Option<Bytes>,
    },
    Released {
        version: u64,
    },
    Renewed,
    Flushed,
    Variable(Announced),
    Created,
    Names(KnownNames),
    CopyAck {
        object: ObjectId,
        version: u64,
        /// Nobody waits for it.
        no_hurry: bool,
    },
    Answer(Answer),
    Replicated,
    Compared(Compared),
    /// The access was not done: somebody else serves the object, or nobody ever will again.
    Moved(Config),
    Refused(Refusal),
}

impl Response {
    /// An object of a seat is lost with all that kept it.
    pub(crate) fn lost(seat: Seat) -> Self {
        Self::Moved(Config::lost(seat, u64::MAX))
    }
}

/// A message without a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// To an owner: take back an acquire (one object), or all that an application process holds or
    /// waits for.
    Abandon {
        /// The application process.
        ap: ApId,
        /// The object; all of them if none is named.
        object: Option<ObjectId>,
    },
    /// To the coordinator of a barrier: all participants of the sender arrived.
    BarrierArrive {
        /// The barrier's group; all application processes without one.
        group: Option<GroupId>,
        /// The barrier's name.
        name: String,
        /// Which opening of the barrier they wait for.
        generation: u64,
    },
    /// To the coordinator of a barrier: they did, but one of them does not wait any more.
    BarrierWithdraw {
        /// The barrier's group; all application processes without one.
        group: Option<GroupId>,
        /// The barrier's name.
        name: String,
        /// Which opening of the barrier they waited for.
        generation: u64,
    },
    /// From the coordinator: the barrier opened, or failed.
    BarrierRelease {
        /// The barrier's group; all application processes without one.
        group: Option<GroupId>,
        /// The barrier's name.
        name: String,
        /// Which opening this is.
        generation: u64,
        /// Why it failed, if it did.
        failed: Option<Refusal>,
    },
    /// An application process left, or is back.
    ApGone {
        /// The application process.
        ap: ApId,
        /// It is back.
        back: bool,
    },
    /// A memory or link process cannot be reached any more, or can be again.
    MpGone {
        /// The process.
        mp: MpId,
        /// It can be reached again.
        back: bool,
    },
    /// A majority of a group decided who serves a seat.
    Seated(Config),
}

impl Notice {
    /// Whether it says something of its sender, and nothing of what its receiver holds: it is true for a start of the receiver
    /// that the sender has not heard of, too.
    pub(crate) fn is_for_every_start(&self) -> bool {
        matches!(self, Self::ApGone { .. } | Self::Seated(_))
    }
}

impl AccessKind {
    /// Whether it may change the content.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::Write { .. } | Self::Atomic { .. } => true,
            Self::Release { write, .. } => write.is_some(),
            Self::Read { .. } | Self::Acquire { .. } => false,
        }
    }
}

#[cfg(test)]
impl AccessKind {
    /// A read of all elements, outside sections.
    pub(crate) fn read_of_test() -> Self {
        Self::Read {
            range: ElementRange::ALL,
            epoch: None,
            keep: Keep::Nothing,
        }
    }

    /// A write of eight bytes, outside sections.
    pub(crate) fn write_of_test() -> Self {
        let write = WriteData {
            first: 0,
            runs: None,
            data: vec![0; 8].into(),
            accesses: 1,
            adds: false,
        };
        Self::Write { write, epoch: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_refers_to_nothing_that_is_held_is_meant_for_any_start() {
        let gone = |back| Notice::ApGone { ap: ApId(0), back };
        let seat = Seat {
            mp: MpId(0),
            replicas: 1,
        };
        let any = [
            gone(true),
            gone(false),
            Notice::Seated(Config::initial(seat)),
        ];
        assert!(any.iter().all(Notice::is_for_every_start));
        let abandon = Notice::Abandon {
            ap: ApId(0),
            object: None,
        };
        let lost = Notice::MpGone {
            mp: MpId(0),
            back: false,
        };
        assert!(!abandon.is_for_every_start() && !lost.is_for_every_start());
        let names = PeerRequest::Names {
            after: String::new(),
        };
        let open = PeerRequest::Open("x".into());
        assert!(names.is_for_every_start() && open.is_for_every_start());
        assert!(!PeerRequest::Renew.is_for_every_start());
    }
}
