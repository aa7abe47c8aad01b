//! How roles reach each other and the outside: typed effects, routed by the engine.

use dosmos_proto::{ApId, Incarnation, MpId, Nanos, ObjectId, Refusal, VarId};

use super::messages::{CallId, Notice, Opening, Output, PeerRequest, Response};
use super::replica::seat::{Config, Seat, Shipment, State};

/// Where a response goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The memory process that sent the request; this one for its own application processes.
    pub(crate) mp: MpId,
    /// Which start of it, if it said so: the response is meant for that one.
    pub(crate) incarnation: Option<Incarnation>,
    pub(crate) call: CallId,
    /// When the request arrived.
    pub(crate) received: Nanos,
}

/// What a role wants done by others. The engine routes each to its role or to the outside, in the
/// order in which they were made; what follows from one comes before the next.
#[derive(Debug)]
pub(crate) enum Effect {
    /// To the outside.
    Output(Output),
    /// A request to a process, which may be this one.
    Request {
        to: MpId,
        /// For which start of it; for the present one if none is named.
        incarnation: Option<Incarnation>,
        call: CallId,
        request: PeerRequest,
    },
    /// The response to a request, which may have come from this process.
    Respond {
        to: Caller,
        response: Response,
        /// How long the request had to wait.
        wait: Nanos,
    },
    /// A notice to a process, which may be this one.
    Notice { to: MpId, notice: Notice },
    /// Requester → owner of the same process: publish what an application process wrote, before it arrives at a barrier. News to
    /// `hearer` need not be acknowledged first: what it learns of the barrier comes behind them.
    PublishAhead {
        ap: ApId,
        call: CallId,
        hearer: MpId,
    },
    /// Requester → barriers: an application process arrived.
    Arrive { barrier: VarId, waiter: Waiter },
    /// Requester → barriers: it does not wait any more.
    Withdraw { barrier: VarId, waiter: Waiter },
    /// Requester → router: the request `call` is over; take it back if it has not left, else tell its
    /// receiver.
    TakeBack {
        to: MpId,
        call: CallId,
        otherwise: Option<Notice>,
    },
    /// Barriers → requester: what became of an arrival.
    Opened {
        waiter: Waiter,
        outcome: Result<Opening, Refusal>,
    },
    /// Owner → requester: an application process gave an object back and keeps a copy.
    Kept { object: ObjectId, ap: ApId },
    /// Owner → requester: what everyone sees of an object has changed.
    Changed { object: ObjectId },
    /// Owner → requester: what everyone sees of an object is this version of it.
    Published { object: ObjectId, version: u64 },
    /// Variables → replicas: there are objects of this seat.
    SeatInUse { seat: Seat },
    /// Owner → replicas: a released state is to be kept by others before it goes on.
    Ship(Shipment),
    /// Replicas → owner: it is.
    Shipped { round: u64 },
    /// Replicas → everyone: a majority decided who serves a seat.
    Seated(Config),
    /// Replicas → owner: this process serves a seat from now on, whose objects are these.
    Promoted {
        seat: Seat,
        states: Vec<(ObjectId, State)>,
    },
    /// Replicas → owner: this process does not serve it any more.
    Deposed { seat: Seat },
    /// Replicas → owner: nobody else serves a seat until then; and whether nobody has to catch up first.
    Leads {
        seat: Seat,
        until: Nanos,
        settled: bool,
    },
    /// Replicas → everyone: the whole group was started again.
    BegunAnew,
    /// Requester → everyone: an application process of ours left.
    Left { ap: ApId, orderly: bool },
    /// Router → everyone: a process cannot be reached any more.
    Lost { mp: MpId, why: Refusal },
    /// Router → barriers: it can be reached again.
    Regained { mp: MpId },
}

/// An operation of an application process that waits at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) ap: ApId,
    /// The requester's number for the operation.
    pub(crate) operation: u64,
}

#[cfg(test)]
impl Caller {
    /// What this memory process asks for one of its application processes.
    pub(crate) fn of_test(mp: MpId) -> Self {
        let call = CallId {
            role: super::messages::Role::Requester,
            number: 0,
        };
        Self {
            mp,
            incarnation: None,
            call,
            received: Nanos::ZERO,
        }
    }
}
