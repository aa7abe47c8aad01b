//! Meta-objects and what event managers exchange about them.

use dosmos_proto::{ApId, EmpId, GroupId, MpId, Nanos, ObjectId, wire};

use crate::meta::{
    Access, HandOver, OpCounts, OperationTimes, PrimaryMeta, SecondaryContent, SecondaryMeta,
    Sketch, Times,
};
use crate::query::{MetaObjects, MetaQuery};
use crate::record::PerOrigin;
use dosmos_proto::VarId;

impl From<OpCounts> for wire::OpCounts {
    fn from(c: OpCounts) -> Self {
        Self {
            reads: c.reads,
            writes: c.writes,
            acquires: c.acquires,
            releases: c.releases,
        }
    }
}

impl From<wire::OpCounts> for OpCounts {
    fn from(c: wire::OpCounts) -> Self {
        Self {
            reads: c.reads,
            writes: c.writes,
            acquires: c.acquires,
            releases: c.releases,
        }
    }
}

/// Counts that are absent are zero.
pub(super) fn counts(c: Option<wire::OpCounts>) -> OpCounts {
    c.unwrap_or_default().into()
}

/// Counts by origin; those that are absent are zero.
pub(super) fn by_origin(
    local: Option<wire::OpCounts>,
    intra: Option<wire::OpCounts>,
    inter: Option<wire::OpCounts>,
) -> PerOrigin<OpCounts> {
    PerOrigin {
        local: counts(local),
        intra: counts(intra),
        inter: counts(inter),
    }
}

impl From<Access> for wire::Access {
    fn from(a: Access) -> Self {
        Self {
            ap: a.ap.0,
            mp: a.mp.0,
            group: a.group.0,
            at_ns: a.at.0,
            wait_ns: a.wait.0,
        }
    }
}

impl From<wire::Access> for Access {
    fn from(a: wire::Access) -> Self {
        Self {
            ap: ApId(a.ap),
            mp: MpId(a.mp),
            group: GroupId(a.group),
            at: Nanos(a.at_ns),
            wait: Nanos(a.wait_ns),
        }
    }
}

impl From<Sketch> for wire::Sketch {
    fn from(sketch: Sketch) -> Self {
        let (first, counts) = sketch.parts();
        Self {
            first,
            counts: counts.to_vec(),
        }
    }
}

impl From<wire::Sketch> for Sketch {
    fn from(sketch: wire::Sketch) -> Self {
        Self::from_parts(sketch.first, sketch.counts)
    }
}

impl From<Times> for wire::Times {
    fn from(t: Times) -> Self {
        Self {
            total_ns: t.total.0,
            longest_ns: t.longest.0,
            sketch: Some(t.sketch.into()),
        }
    }
}

impl From<wire::Times> for Times {
    fn from(t: wire::Times) -> Self {
        Self {
            total: Nanos(t.total_ns),
            longest: Nanos(t.longest_ns),
            sketch: t.sketch.unwrap_or_default().into(),
        }
    }
}

impl From<OperationTimes> for wire::OperationTimes {
    fn from(t: OperationTimes) -> Self {
        Self {
            reads: Some(t.reads.into()),
            cached: Some(t.cached.into()),
            writes: Some(t.writes.into()),
            acquires: Some(t.acquires.into()),
            releases: Some(t.releases.into()),
            barriers: Some(t.barriers.into()),
        }
    }
}

impl From<wire::OperationTimes> for OperationTimes {
    fn from(t: wire::OperationTimes) -> Self {
        let times = |t: Option<wire::Times>| t.unwrap_or_default().into();
        Self {
            reads: times(t.reads),
            cached: times(t.cached),
            writes: times(t.writes),
            acquires: times(t.acquires),
            releases: times(t.releases),
            barriers: times(t.barriers),
        }
    }
}

impl From<PrimaryMeta> for wire::Primary {
    fn from(p: PrimaryMeta) -> Self {
        let accesses = |list: Vec<Access>| list.into_iter().map(Into::into).collect();
        let [local, intra, inter] = p.by_origin.into_array();
        Self {
            object: p.object.to_wire(),
            group: p.group.0,
            owner: p.owner.0,
            copies_at: p.copies_at.into_iter().map(|m| m.0).collect(),
            counts: Some(p.counts.into()),
            reads_on_copies: p.reads_on_copies,
            last_acquires: accesses(p.last_acquires),
            last_writes: accesses(p.last_writes),
            delayed_acquires: accesses(p.delayed_acquires),
            local: Some(local.into()),
            intra: Some(intra.into()),
            inter: Some(inter.into()),
            by_ap: p
                .by_ap
                .into_iter()
                .map(|(ap, c)| wire::ApCounts {
                    ap: ap.0,
                    counts: Some(c.into()),
                })
                .collect(),
            wait_ns: p.wait.0,
            hold_ns: p.hold.0,
            wait_sketch: Some(p.wait_sketch.into()),
            hold_sketch: Some(p.hold_sketch.into()),
            version: p.version,
            delayed: p.delayed,
        }
    }
}

impl From<wire::Primary> for PrimaryMeta {
    fn from(p: wire::Primary) -> Self {
        let accesses = |list: Vec<wire::Access>| list.into_iter().map(Into::into).collect();
        Self {
            object: ObjectId::from_wire(p.object),
            group: GroupId(p.group),
            owner: MpId(p.owner),
            copies_at: p.copies_at.into_iter().map(MpId).collect(),
            counts: counts(p.counts),
            reads_on_copies: p.reads_on_copies,
            last_acquires: accesses(p.last_acquires),
            last_writes: accesses(p.last_writes),
            delayed_acquires: accesses(p.delayed_acquires),
            delayed: p.delayed,
            by_origin: by_origin(p.local, p.intra, p.inter),
            by_ap: p
                .by_ap
                .into_iter()
                .map(|a| (ApId(a.ap), counts(a.counts)))
                .collect(),
            wait: Nanos(p.wait_ns),
            hold: Nanos(p.hold_ns),
            wait_sketch: p.wait_sketch.unwrap_or_default().into(),
            hold_sketch: p.hold_sketch.unwrap_or_default().into(),
            version: p.version,
        }
    }
}

fn reads_by_ap(list: impl IntoIterator<Item = (ApId, u64)>) -> Vec<wire::ApReads> {
    list.into_iter()
        .map(|(ap, reads)| wire::ApReads { ap: ap.0, reads })
        .collect()
}

impl From<SecondaryMeta> for wire::Secondary {
    fn from(s: SecondaryMeta) -> Self {
        Self {
            object: s.object.to_wire(),
            copy_at: s.copy_at.0,
            primary_event_manager: s.primary_emp.0,
            reads: s.reads,
            by_ap: reads_by_ap(s.by_ap),
        }
    }
}

impl From<wire::Secondary> for SecondaryMeta {
    fn from(s: wire::Secondary) -> Self {
        Self {
            object: ObjectId::from_wire(s.object),
            copy_at: MpId(s.copy_at),
            primary_emp: EmpId(s.primary_event_manager),
            reads: s.reads,
            by_ap: s.by_ap.into_iter().map(|a| (ApId(a.ap), a.reads)).collect(),
        }
    }
}

impl From<SecondaryContent> for wire::SecondaryContent {
    fn from(s: SecondaryContent) -> Self {
        Self {
            sequence: s.sequence,
            object: s.object.to_wire(),
            copy_at: s.copy_at.0,
            reads: s.reads,
            dropped: s.dropped,
            fetches: s.fetches,
            by_ap: reads_by_ap(s.by_ap),
        }
    }
}

impl From<wire::SecondaryContent> for SecondaryContent {
    fn from(s: wire::SecondaryContent) -> Self {
        Self {
            sequence: s.sequence,
            object: ObjectId::from_wire(s.object),
            copy_at: MpId(s.copy_at),
            reads: s.reads,
            dropped: s.dropped,
            fetches: s.fetches,
            by_ap: s.by_ap.into_iter().map(|a| (ApId(a.ap), a.reads)).collect(),
        }
    }
}

/// A hand-over as a memory process sends it, before the record at `position` of its batch.
pub fn hand_over_to_wire(hand_over: &HandOver, position: u32) -> wire::HandOver {
    wire::HandOver {
        position,
        object: hand_over.object.to_wire(),
        primary_event_manager: hand_over.primary_emp.0,
        dropped: hand_over.dropped,
    }
}

/// A hand-over from memory process `copy_at`, with its position in the batch.
pub fn hand_over_from_wire(h: &wire::HandOver, copy_at: MpId) -> (u32, HandOver) {
    let hand_over = HandOver {
        object: ObjectId::from_wire(h.object),
        copy_at,
        primary_emp: EmpId(h.primary_event_manager),
        dropped: h.dropped,
    };
    (h.position, hand_over)
}

impl From<MetaQuery> for wire::MetaRequest {
    fn from(q: MetaQuery) -> Self {
        Self {
            variables: q.variables.into_iter().map(|v| v.0).collect(),
            objects: q.objects.into_iter().map(ObjectId::to_wire).collect(),
        }
    }
}

impl From<wire::MetaRequest> for MetaQuery {
    fn from(q: wire::MetaRequest) -> Self {
        Self {
            variables: q.variables.into_iter().map(VarId).collect(),
            objects: q.objects.into_iter().map(ObjectId::from_wire).collect(),
        }
    }
}

impl From<MetaObjects> for wire::MetaObjects {
    fn from(m: MetaObjects) -> Self {
        Self {
            primaries: m.primaries.into_iter().map(Into::into).collect(),
            secondaries: m.secondaries.into_iter().map(Into::into).collect(),
            times: m
                .times
                .into_iter()
                .map(|(variable, times)| wire::VariableTimes {
                    variable: variable.0,
                    times: Some(times.into()),
                })
                .collect(),
            completeness: Some(m.completeness.into()),
        }
    }
}

impl From<wire::MetaObjects> for MetaObjects {
    fn from(m: wire::MetaObjects) -> Self {
        Self {
            primaries: m.primaries.into_iter().map(Into::into).collect(),
            secondaries: m.secondaries.into_iter().map(Into::into).collect(),
            times: m
                .times
                .into_iter()
                .map(|t| (VarId(t.variable), t.times.unwrap_or_default().into()))
                .collect(),
            completeness: m.completeness.unwrap_or_default().into(),
        }
    }
}
