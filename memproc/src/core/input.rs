//! What the core is told and what it says: the domain form of the memory protocol. The wire form of
//! each is made in `crate::wire`; nothing here is a generated type.

use std::sync::Arc;

use bytes::Bytes;
use dosmos_proto::{
    ApId, ElementType, GroupId, MpId, Nanos, ObjectId, Refusal, Variable, VariableSpec,
};
use dosmos_trace::Record;
use dosmos_trace::meta::HandOver;
use dosmos_trace::query::BarrierName;

/// Something that happened outside.
#[derive(Debug)]
pub enum Input {
    /// A connected application process asks for something.
    Request {
        /// Who.
        ap: ApId,
        /// Its number for the request; the reply carries it back.
        id: u64,
        /// How long it is willing to wait; zero means the default.
        patience: Nanos,
        /// What it asks for.
        request: Request,
    },
    /// The session of an application process ended.
    ApGone(ApId),
    /// The link to a neighbour is up.
    PeerUp(MpId),
    /// The link to a neighbour broke.
    PeerDown(MpId),
    /// A neighbour that was never up cannot be reached, or will not talk to us; says why.
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
    /// Answer an application process.
    Reply {
        /// Whom.
        ap: ApId,
        /// Its number for the request.
        id: u64,
        /// The answer.
        reply: Reply,
        /// Another memory process had to be asked.
        remote: bool,
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

/// Elements `[first, end)` of an object; `end` = 0 means up to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First element.
    pub first: u32,
    /// The element after the last, or 0.
    pub end: u32,
}

impl Span {
    /// The whole object.
    pub const ALL: Self = Self { first: 0, end: 0 };
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

/// What an application process asks for.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are those of memory.proto
pub enum Request {
    Declare(VariableSpec),
    Open(String),
    Read {
        object: ObjectId,
        span: Span,
    },
    Write {
        object: ObjectId,
        first: u32,
        data: Bytes,
        epoch: u64,
    },
    Atomic {
        object: ObjectId,
        element: u32,
        kind: ElementType,
        epoch: u64,
        op: AtomicOp,
    },
    Acquire(ObjectId),
    Release {
        object: ObjectId,
        epoch: u64,
    },
    Barrier {
        scope: Scope,
        name: String,
    },
    /// Tell holders of copies what was written outside sections.
    Publish,
    /// The request of this number is not waited for any more.
    Cancel(u64),
    Bye,
}

/// What it is answered.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are those of memory.proto
pub enum Reply {
    Variable(Arc<Variable>),
    Read {
        version: u64,
        data: Bytes,
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
    },
    Released {
        version: u64,
    },
    Passed {
        generation: u64,
    },
    Published,
    Farewell,
    Refused(Refusal),
}

/// A message between memory or link processes.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who wrote it.
    pub source: MpId,
    /// For whom it is.
    pub destination: MpId,
    /// Chosen by who asks; the answer carries it back. 0 where nothing is asked.
    pub call: u64,
    /// Link processes crossed so far.
    pub hops: u32,
    /// Of an answer: what the request cost where it was served.
    pub service: Nanos,
    /// Of an answer: how long the request had to wait there.
    pub wait: Nanos,
    /// The content.
    pub body: Body,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A request; it gets an answer with the same call.
    Ask(Ask),
    /// The answer.
    Answer(Answer),
    /// Something that needs no answer.
    Tell(Tell),
}

/// A request between memory processes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are those of memory.proto
pub enum Ask {
    Read {
        object: ObjectId,
        span: Span,
        ap: ApId,
        want_copy: bool,
    },
    Write {
        object: ObjectId,
        first: u32,
        data: Bytes,
        epoch: u64,
        ap: ApId,
    },
    Atomic {
        object: ObjectId,
        element: u32,
        kind: ElementType,
        epoch: u64,
        op: AtomicOp,
        ap: ApId,
    },
    Acquire {
        object: ObjectId,
        ap: ApId,
    },
    Release {
        object: ObjectId,
        ap: ApId,
        epoch: u64,
    },
    Flush {
        ap: ApId,
    },
    Declare {
        spec: VariableSpec,
        creator: MpId,
    },
    Open(String),
    Create(Arc<Variable>),
    Invalidate {
        object: ObjectId,
        version: u64,
    },
    Update {
        object: ObjectId,
        version: u64,
        data: Bytes,
    },
}

/// An answer between memory processes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are those of memory.proto
pub enum Answer {
    Read {
        version: u64,
        data: Bytes,
        copy: bool,
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
    },
    Released {
        version: u64,
    },
    Flushed,
    Variable(Arc<Variable>),
    Created,
    CopyAck {
        object: ObjectId,
        version: u64,
    },
    Refused(Refusal),
}

/// A message that needs no answer.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are those of memory.proto
pub enum Tell {
    /// Take back an acquire (one object), or all that an application process holds or waits for.
    Abandon {
        ap: ApId,
        object: Option<ObjectId>,
    },
    /// All of the sender's participants arrived.
    BarrierArrive {
        group: Option<GroupId>,
        name: String,
        generation: u64,
        arrived: u32,
    },
    /// The barrier opened, or failed.
    BarrierRelease {
        group: Option<GroupId>,
        name: String,
        generation: u64,
        failed: Option<Refusal>,
    },
    ApGone {
        ap: ApId,
        back: bool,
    },
    MpGone {
        mp: MpId,
        back: bool,
    },
}
