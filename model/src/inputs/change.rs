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
    /// Number of application processes: the computation is divided among them, each makes as many
    /// operations as before, and barriers have as many participants.
    pub processes: Option<u32>,
    /// Number of processors; none: as in the network record.
    pub processors: Option<usize>,
}
