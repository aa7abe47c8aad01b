//! Who accesses an object, and what the owner responds and records.

use dosmos_proto::{ApId, ObjectId, Refusal};
use dosmos_trace::Op;

use crate::core::effects::Caller;
use crate::core::messages::Response;

/// Who accesses, and where the response goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accessor {
    pub(super) ap: ApId,
    pub(super) caller: Caller,
}

/// What an owner's record says of an access.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) op: Op,
    pub(super) object: ObjectId,
    /// Accesses of the application that it stands for.
    pub(super) accesses: u32,
    /// It came with a release, and was no message of its own.
    pub(super) with_release: bool,
    pub(super) range: (u32, u32),
    pub(super) bytes: u32,
    pub(super) version: u64,
    /// It is an atomic operation.
    pub(super) atomic: bool,
}

/// What became of an access.
pub(super) type Done = Result<(Response, Served), Refusal>;

impl Served {
    /// One access that has no elements.
    pub(super) fn new(op: Op, object: ObjectId, version: u64) -> Self {
        Self {
            op,
            object,
            accesses: 1,
            with_release: false,
            range: (0, 0),
            bytes: 0,
            version,
            atomic: false,
        }
    }
}

#[cfg(test)]
impl Accessor {
    /// An application process and the memory process that asks for it.
    pub(super) fn of_test(ap: u32, mp: u32) -> Self {
        Self {
            ap: ApId(ap),
            caller: Caller::of_test(dosmos_proto::MpId(mp)),
        }
    }
}
