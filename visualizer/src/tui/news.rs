//! What the threads that ask report to the loop.

use crate::state::{Found, Update};

/// Bytes per second that answers may take on average.
pub const TRAFFIC: f64 = 1e6;

/// What a thread reports.
#[derive(Debug)]
pub(super) enum News {
    /// The end of a round.
    Update(Box<Update>),
    /// The end of a search for findings.
    Found(Found),
    /// How many memory processes were told what to record, or why not all.
    Told(Result<u32, String>),
}
