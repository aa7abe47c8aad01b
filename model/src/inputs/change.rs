//! What may be different from a measured run.

use std::collections::BTreeSet;

use dosmos_proto::ApId;

use super::place::Placement;
use super::sharing::Sharing;
use crate::dvsm::Technology;

/// What is to be different.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Processors, network, protocols (docs/design/models.md#dvsm-what-if).
    pub technology: Technology,
    /// Other groups, other owners.
    pub placement: Option<Placement>,
    /// Objects that are shared otherwise.
    pub sharing: Sharing,
    /// These processes divide among them, phase by phase, what they do (waiting for locks excluded) evenly.
    pub balanced: BTreeSet<ApId>,
    /// So many application processes: the computation is divided among them, each does as many
    /// operations as each did, and barriers are of so many.
    pub processes: Option<u32>,
    /// So many processors; none: as many as the network record has.
    pub processors: Option<usize>,
}
