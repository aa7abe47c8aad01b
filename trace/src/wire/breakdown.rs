//! Where the application processes' time went.

use dosmos_proto::{MpId, Nanos, wire};

use crate::query::Breakdown;

impl From<Breakdown> for wire::Breakdown {
    fn from(b: Breakdown) -> Self {
        Self {
            phases: b.phases.into_iter().map(Into::into).collect(),
            processor: b
                .processor
                .into_iter()
                .map(|(mp, time)| wire::ProcessorTime {
                    memory_process: mp.0,
                    time_ns: time.0,
                })
                .collect(),
            completeness: Some(b.completeness.into()),
        }
    }
}

impl From<wire::Breakdown> for Breakdown {
    fn from(b: wire::Breakdown) -> Self {
        Self {
            phases: b.phases.into_iter().map(Into::into).collect(),
            processor: b
                .processor
                .into_iter()
                .map(|p| (MpId(p.memory_process), Nanos(p.time_ns)))
                .collect(),
            completeness: b.completeness.unwrap_or_default().into(),
        }
    }
}
