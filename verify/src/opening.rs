//! What is known of a barrier and its openings.

use dosmos_proto::ApId;
use dosmos_trace::Record;
use rustc_hash::FxHashMap;

use crate::clocks::Clock;

/// One opening.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) arrived: Vec<Record>,
    pub(crate) passed: usize,
    pub(crate) clock: Clock,
    pub(crate) loose: Clock,
}

#[derive(Debug, Default)]
pub(crate) struct Barrier {
    /// None: not known.
    pub(crate) participants: Option<Vec<ApId>>,
    pub(crate) openings: FxHashMap<u32, Opening>,
    /// The last opening that all passed.
    pub(crate) complete: u32,
    /// Somebody passed without waiting for all.
    pub(crate) given_up: u32,
    pub(crate) failed: bool,
}
