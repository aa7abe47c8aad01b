//! Why a connection cannot go on.

use tonic::{Code, Status};

/// What is wrong with what arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// As a number of HTTP/2.
    pub(super) code: u32,
    /// What the caller is told.
    status: Code,
    why: &'static str,
}

impl Fault {
    /// It is not HTTP/2, or not such that this end takes it.
    pub(super) fn new(code: u32, why: &'static str) -> Self {
        let status = Code::Internal;
        Self { code, status, why }
    }

    /// It is HTTP/2, but not gRPC that this end takes.
    pub(super) fn of_message(status: Code, why: &'static str) -> Self {
        let code = super::frame::code::CANCEL;
        Self { code, status, why }
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        Status::new(fault.status, fault.why)
    }
}
