//! Which start of each process we have heard of.
//!
//! A process that is started again has lost everything. Each message says which start of its sender it
//! is from, and, if it refers to something that its receiver holds, for which start of the receiver it
//! is meant. So nothing of an earlier start is taken for one of now: a message from a new start of a
//! process makes everyone forget what the earlier one held, a request that is meant for an earlier start
//! is refused, and a late response to an earlier start finds nobody.

use dosmos_proto::{ErrorCode, Incarnation, MpId, Refusal};
use rustc_hash::FxHashMap;

use super::cluster::Cluster;

/// The starts of this process and of the others.
#[derive(Debug)]
pub(crate) struct Incarnations {
    own: Incarnation,
    /// Of the others, while they are not lost.
    known: FxHashMap<MpId, Incarnation>,
}

impl Incarnations {
    pub(crate) fn new(own: Incarnation) -> Self {
        Self {
            own,
            known: FxHashMap::default(),
        }
    }

    /// Of this process.
    pub(crate) fn own(&self) -> Incarnation {
        self.own
    }

    /// Of another process, if it was heard and is not lost.
    pub(crate) fn of(&self, mp: MpId) -> Option<Incarnation> {
        self.known.get(&mp).copied()
    }

    /// Whether a message from this start of a process is from a later one than we know.
    pub(crate) fn is_new_start(&self, mp: MpId, theirs: Incarnation) -> bool {
        self.of(mp).is_some_and(|known| known != theirs)
    }

    /// Notes which start of a process a message is from; whether it is the first, or the first since it was lost.
    pub(crate) fn meet(&mut self, mp: MpId, theirs: Incarnation) -> bool {
        self.known.insert(mp, theirs).is_none()
    }

    /// A process is lost: it may be started again before we hear it again.
    pub(crate) fn forget(&mut self, mp: MpId) {
        self.known.remove(&mp);
    }
}

/// What is meant for an earlier start of a process is refused.
pub(crate) fn started_again(cluster: &Cluster, mp: MpId) -> Refusal {
    Refusal::new(
        ErrorCode::ProcessLost,
        format!(
            "{} was started again, and what it held before is lost; start the program again",
            cluster.mp_name(mp)
        ),
    )
}
