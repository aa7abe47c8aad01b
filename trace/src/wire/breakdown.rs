//! Where the application processes' time went.

use dosmos_proto::wire;

use crate::query::Breakdown;

impl From<Breakdown> for wire::Breakdown {
    fn from(b: Breakdown) -> Self {
        Self {
            phases: b.phases.into_iter().map(Into::into).collect(),
            completeness: Some(b.completeness.into()),
        }
    }
}

impl From<wire::Breakdown> for Breakdown {
    fn from(b: wire::Breakdown) -> Self {
        Self {
            phases: b.phases.into_iter().map(Into::into).collect(),
            completeness: b.completeness.unwrap_or_default().into(),
        }
    }
}
