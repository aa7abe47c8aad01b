//! Numbers of things in a replay, and its time.

use dosmos_proto::VarId;

/// An instant or a length of time in nanoseconds. Times of a replay are not rounded, so that many short costs add up.
pub(crate) type Time = f64;

/// Number of a process: application processes first, then memory and link processes.
pub(crate) type Process = u32;

/// Number of an operation under way.
pub(crate) type OpId = u32;

/// Number of a publication under way.
pub(crate) type PublicationId = u32;

/// An opening of a barrier: the barrier and its generation.
pub(crate) type Opening = (VarId, u32);
