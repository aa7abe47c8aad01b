//! What a process says when it cannot do what it was asked, and what a decoder says of bytes it
//! cannot accept.

use std::fmt;

use crate::wire;

/// A message, or a part of one, that is not well formed. Names the field and what is wrong with it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what}: {why}")]
pub struct Malformed {
    /// The message or field.
    pub what: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Debug for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Malformed {
    /// `what` is wrong because of `why`.
    pub fn new(what: &'static str, why: impl Into<String>) -> Self {
        Self {
            what,
            why: why.into(),
        }
    }

    /// A required field is absent.
    pub fn missing(what: &'static str) -> Self {
        Self::new(what, "missing")
    }
}

impl From<Malformed> for Refusal {
    fn from(m: Malformed) -> Self {
        Self::new(ErrorCode::Invalid, m.to_string())
    }
}

impl From<Malformed> for tonic::Status {
    fn from(m: Malformed) -> Self {
        Self::invalid_argument(m.to_string())
    }
}

/// Why an operation was refused; see `ErrorCode` in `common.proto` for the meaning of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // documented in common.proto, one line each
#[non_exhaustive]
pub enum ErrorCode {
    Invalid,
    UnknownProcess,
    AlreadyConnected,
    UnknownVariable,
    DeclarationConflict,
    OutOfRange,
    TypeMismatch,
    AlreadyHeld,
    NotHeld,
    StaleEpoch,
    Unreachable,
    Deadline,
    ProcessLost,
    Limit,
    ShuttingDown,
}

macro_rules! codes {
    ($($name:ident),* $(,)?) => {
        impl From<ErrorCode> for wire::ErrorCode {
            fn from(code: ErrorCode) -> Self {
                match code { $(ErrorCode::$name => Self::$name,)* }
            }
        }
        impl From<wire::ErrorCode> for ErrorCode {
            fn from(code: wire::ErrorCode) -> Self {
                match code {
                    $(wire::ErrorCode::$name => Self::$name,)*
                    wire::ErrorCode::Unspecified => Self::Invalid,
                }
            }
        }
    };
}
codes!(
    Invalid,
    UnknownProcess,
    AlreadyConnected,
    UnknownVariable,
    DeclarationConflict,
    OutOfRange,
    TypeMismatch,
    AlreadyHeld,
    NotHeld,
    StaleEpoch,
    Unreachable,
    Deadline,
    ProcessLost,
    Limit,
    ShuttingDown,
);

/// An operation that was refused: a code for programs, a message for people that names the thing
/// and says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of refusal.
    pub code: ErrorCode,
    /// What, where, and what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal of kind `code`.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Refusal {}

impl From<Refusal> for wire::Error {
    fn from(r: Refusal) -> Self {
        Self {
            code: wire::ErrorCode::from(r.code).into(),
            message: r.message,
        }
    }
}
impl From<wire::Error> for Refusal {
    fn from(e: wire::Error) -> Self {
        Self::new(e.code().into(), e.message)
    }
}
