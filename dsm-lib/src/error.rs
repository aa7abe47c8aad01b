//! What can go wrong, as types a program can match on. Every message names the thing and the cure.

use std::fmt;
use std::time::Duration;

use dosmos_proto::{ElementType, ErrorCode, Layout, LockKind, Malformed, Refusal};

/// Result of an operation on shared memory.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on shared memory failed.
///
/// `Debug` prints what `Display` prints: a program whose `main` returns it says what is wrong.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program was not started as part of a cluster, or with a setting that makes no sense.
    #[error(
        "{variable} {problem}: start the program with `dosmos up -- PROGRAM`, or set {variable} to {expected}"
    )]
    Environment {
        /// The environment variable.
        variable: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The memory process of this application process cannot be reached, or did not let it in.
    #[error("{ap} cannot reach its memory process: {why}; is the cluster running?")]
    NotConnected {
        /// Name of this application process.
        ap: String,
        /// What was tried and what happened.
        why: String,
    },
    /// The memory process refused; `code` says what kind of refusal it is.
    #[error("{what} was refused: {message}")]
    Refused {
        /// The operation and its object.
        what: String,
        /// The kind of refusal.
        code: ErrorCode,
        /// What, where, and what to do.
        message: String,
    },
    /// The operation took longer than its deadline.
    #[error("{what} was not done within {}: {why}", show(*.after))]
    Deadline {
        /// The operation and its object.
        what: String,
        /// The deadline.
        after: Duration,
        /// Whom it waited for, as far as is known.
        why: String,
    },
    /// The connection to the memory process broke while the operation was under way, or before it.
    /// A write may or may not have been applied; sections this process held are over.
    #[error("{what} failed: the connection to the memory process is lost: {why}")]
    Lost {
        /// The operation and its object.
        what: String,
        /// What happened to the connection.
        why: String,
    },
    /// The session was closed by this program.
    #[error("{what} failed: this program has closed its session")]
    Closed {
        /// The operation and its object.
        what: String,
    },
    /// The variable has another element type.
    #[error("{name} has elements of type {declared}, not {asked}; open it with the declared type")]
    WrongType {
        /// Name of the variable.
        name: String,
        /// Type it was declared with.
        declared: ElementType,
        /// Type it was opened with.
        asked: ElementType,
    },
    /// The variable has another shape.
    #[error("{name} is not a {asked}: it was declared as {declared}")]
    WrongShape {
        /// Name of the variable.
        name: String,
        /// Its shape.
        declared: Layout,
        /// What it was opened as.
        asked: &'static str,
    },
    /// The variable has structs of another size, or none.
    #[error(
        "{name} has rows of {declared} bytes, and {asked} has {bytes}: open it with the struct that it was declared with"
    )]
    WrongStruct {
        /// Name of the variable.
        name: String,
        /// Bytes per row.
        declared: usize,
        /// Type it was opened with.
        asked: &'static str,
        /// Bytes of a value of that type.
        bytes: usize,
    },
    /// Bytes that are not a value of a struct.
    #[error(
        "{object} holds bytes that are not a {asked}: all its writers must use the same struct"
    )]
    NotAStruct {
        /// The object.
        object: String,
        /// The struct.
        asked: &'static str,
    },
    /// No such object or element.
    #[error("{what} is out of range: {bounds}")]
    OutOfRange {
        /// What was asked for.
        what: String,
        /// What there is.
        bounds: String,
    },
    /// A whole object was written with a slice of another length.
    #[error("{object} has {expected} elements, the slice {given}; use write_at for a part of it")]
    WrongLength {
        /// The object.
        object: String,
        /// Its length in elements.
        expected: usize,
        /// Length of the slice.
        given: usize,
    },
    /// A declaration that makes no sense.
    #[error("cannot declare {name}: {}", .source.why)]
    Declaration {
        /// Name of the variable.
        name: String,
        /// What is wrong and what to do.
        source: Malformed,
    },
    /// A lock of this kind is taken by blocking calls only.
    #[error(
        "{what}: a {kind} lock is taken by blocking calls only; use acquire(), or a queue lock"
    )]
    OnlyBlocking {
        /// The operation and its object.
        what: String,
        /// The kind of lock.
        kind: LockKind,
    },
    /// A blocking operation on a thread that is carrying a session just then: in a waker, or in what a
    /// waker drops. It would wait for itself.
    #[error("{what} cannot wait on a thread that carries a session; use the async form in wakers")]
    WouldDeadlock {
        /// The operation and its object.
        what: String,
    },
    /// A blocking operation while this thread edits an object ([`Object::edit`](crate::Object::edit)): others that
    /// need the object wait for the end of the edit, so both might wait for ever.
    #[error(
        "{what} cannot wait while this thread edits an object: finish the edit first, and read before it what it needs"
    )]
    EditOpen {
        /// The operation and its object.
        what: String,
    },
    /// This process was not heard for so long that an object was taken from it which it had to itself. What it
    /// had changed since it last published is lost; the operation was not begun. Said once for each object.
    #[error(
        "{what} was not begun: {object}, which this process had to itself, was taken from it since it was not heard \
         for 2 s (stopped, or overloaded?); its changes since it last synchronised may be lost. Read it again"
    )]
    TakenBack {
        /// The operation and its object.
        what: String,
        /// The object that was taken.
        object: String,
    },
    /// The cluster of a test ([`testing`](crate::testing)) could not be started, or has no such process.
    #[cfg(feature = "testing")]
    #[error("the cluster of the test: {why}")]
    Cluster {
        /// What is missing.
        why: String,
    },
    /// The memory process sent a response that does not fit the request: a defect, or another version.
    #[error("{what}: the memory process sent a response that does not fit the request: {why}")]
    Protocol {
        /// The operation and its object.
        what: String,
        /// What is wrong with the response.
        why: String,
    },
}

impl Error {
    /// The kind of refusal, if the memory process refused.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Deadline { .. } => Some(ErrorCode::Deadline),
            _ => None,
        }
    }

    pub(crate) fn refused(what: &impl ToString, after: Duration, refusal: Refusal) -> Self {
        let what = what.to_string();
        match refusal.code {
            ErrorCode::Deadline => Self::Deadline {
                what,
                after,
                why: refusal.message,
            },
            code => Self::Refused {
                what,
                code,
                message: refusal.message,
            },
        }
    }

    pub(crate) fn protocol(what: &impl ToString, why: impl Into<String>) -> Self {
        Self::Protocol {
            what: what.to_string(),
            why: why.into(),
        }
    }

    pub(crate) fn declaration(name: &str, source: Malformed) -> Self {
        Self::Declaration {
            name: name.to_owned(),
            source,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn show(d: Duration) -> String {
    dosmos_proto::Nanos::from(d).to_string()
}
