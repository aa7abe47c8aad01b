//! Barriers: open when all that passed them in the run have arrived.

use dosmos_proto::MpId;
use rustc_hash::FxHashMap;

use crate::ids::{OpId, Opening};

#[derive(Debug, Default)]
struct Arrivals {
    /// Memory processes all of whose participants have arrived.
    complete: usize,
    waiting: FxHashMap<MpId, Vec<OpId>>,
}

/// Openings under way.
#[derive(Debug, Default)]
pub(crate) struct Barriers(FxHashMap<Opening, Arrivals>);

impl Barriers {
    /// A process has arrived at its memory process; how many have there.
    pub(crate) fn arrive(&mut self, opening: Opening, mp: MpId, op: OpId) -> usize {
        let arrivals = self.0.entry(opening).or_default();
        let waiting = arrivals.waiting.entry(mp).or_default();
        waiting.push(op);
        waiting.len()
    }

    /// The coordinator heard that all of a memory process have arrived; of how many it has heard.
    pub(crate) fn complete(&mut self, opening: Opening) -> usize {
        let arrivals = self.0.entry(opening).or_default();
        arrivals.complete += 1;
        arrivals.complete
    }

    /// The barrier is open at a memory process: who waited there.
    pub(crate) fn open(&mut self, opening: Opening, mp: MpId) -> Vec<OpId> {
        let Some(arrivals) = self.0.get_mut(&opening) else {
            return Vec::new();
        };
        let waited = arrivals.waiting.remove(&mp).unwrap_or_default();
        if arrivals.waiting.is_empty() {
            self.0.remove(&opening);
        }
        waited
    }
}
