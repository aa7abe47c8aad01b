//! Questions and answers.

use dosmos_proto::{ApId, GroupId, Malformed, MpId, Nanos, ObjectId, Topology, VarId, wire};

use crate::clock::ProcessClock;
use crate::query::{
    BarrierName, Catalog, Completeness, Filter, Histogram, HistogramQuery, History, HistoryPoint,
    HistoryQuery, OriginCounts, Several, TimeRange,
};
use crate::record::{Op, Origin};
use crate::run::RunId;
use crate::selection::{Mode, Selection};

/// Stands for a selection that cannot be read: as if nothing had been selected.
const UNKNOWN_SELECTION: Selection = Selection {
    mode: Mode::Off,
    sample_one_in: 1,
    variables: Vec::new(),
    ops: Vec::new(),
    processes: Vec::new(),
};

impl From<Op> for wire::Op {
    fn from(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write => Self::Write,
            Op::Acquire => Self::Acquire,
            Op::Release => Self::Release,
            Op::Barrier => Self::Barrier,
        }
    }
}

impl From<Origin> for wire::Origin {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Local => Self::Local,
            Origin::Intra => Self::Intra,
            Origin::Inter => Self::Inter,
        }
    }
}

/// The operation with this wire number.
pub(super) fn op(number: i32) -> Result<Op, Malformed> {
    u32::try_from(number)
        .ok()
        .and_then(Op::from_number)
        .ok_or_else(|| Malformed::new("operation", format!("number {number}")))
}

fn origin(number: i32) -> Result<Origin, Malformed> {
    u32::try_from(number)
        .ok()
        .and_then(Origin::from_number)
        .ok_or_else(|| Malformed::new("origin", format!("number {number}")))
}

impl From<TimeRange> for wire::Range {
    fn from(r: TimeRange) -> Self {
        Self {
            from_ns: r.from.0,
            to_ns: r.to.0,
        }
    }
}

impl From<wire::Range> for TimeRange {
    fn from(r: wire::Range) -> Self {
        Self {
            from: Nanos(r.from_ns),
            to: Nanos(r.to_ns),
        }
    }
}

impl From<Filter> for wire::Filter {
    fn from(f: Filter) -> Self {
        Self {
            variables: f.variables.into_iter().map(|v| v.0).collect(),
            object: f.object,
            aps: f.aps.into_iter().map(|a| a.0).collect(),
            ops: f
                .ops
                .into_iter()
                .map(|o| wire::Op::from(o).into())
                .collect(),
            origins: f
                .origins
                .into_iter()
                .map(|o| wire::Origin::from(o).into())
                .collect(),
            range: f.range.map(Into::into),
            owner_side: f.everything,
            once: f.once,
        }
    }
}

impl TryFrom<wire::Filter> for Filter {
    type Error = Malformed;
    fn try_from(f: wire::Filter) -> Result<Self, Malformed> {
        Ok(Self {
            variables: f.variables.into_iter().map(VarId).collect(),
            object: f.object,
            aps: f.aps.into_iter().map(ApId).collect(),
            ops: f.ops.into_iter().map(op).collect::<Result<_, _>>()?,
            origins: f
                .origins
                .into_iter()
                .map(origin)
                .collect::<Result<_, _>>()?,
            range: f.range.map(Into::into),
            everything: f.owner_side,
            once: f.once,
        })
    }
}

impl From<Completeness> for wire::Completeness {
    fn from(c: Completeness) -> Self {
        Self {
            recorded: c.recorded,
            dropped: c.dropped,
            removed: c.removed,
            sampling: c.sampling,
            missing: c.missing,
            corrupt_chunks: c.corrupt_chunks,
            notes: c.notes,
            damaged: c.damaged,
            unselected: c.unselected,
            selections: c.selections.into_iter().map(Into::into).collect(),
            missing_stores: c.missing_stores,
            silent: c.silent,
            extra_accesses: c.extra_accesses,
            extra_lost: c.extra_lost,
        }
    }
}

impl From<wire::Completeness> for Completeness {
    fn from(c: wire::Completeness) -> Self {
        Self {
            recorded: c.recorded,
            dropped: c.dropped,
            removed: c.removed,
            // A value outside 0 to 1 says nothing; "all" is what an absent one means too.
            sampling: if c.sampling > 0.0 && c.sampling <= 1.0 {
                c.sampling
            } else {
                1.0
            },
            missing: c.missing,
            corrupt_chunks: c.corrupt_chunks,
            notes: c.notes,
            damaged: c.damaged,
            unselected: c.unselected,
            // One that cannot be read leaves something out all the same.
            selections: c
                .selections
                .into_iter()
                .map(|s| s.try_into().unwrap_or(UNKNOWN_SELECTION))
                .collect(),
            missing_stores: c.missing_stores,
            silent: c.silent,
            extra_accesses: c.extra_accesses,
            extra_lost: c.extra_lost,
        }
    }
}

impl From<BarrierName> for wire::BarrierName {
    fn from(b: BarrierName) -> Self {
        Self {
            id: b.id.0,
            group: b.group.map(|g| g.0),
            name: b.name,
        }
    }
}

impl From<wire::BarrierName> for BarrierName {
    fn from(b: wire::BarrierName) -> Self {
        Self {
            id: VarId(b.id),
            group: b.group.map(GroupId),
            name: b.name,
        }
    }
}

impl From<Catalog> for wire::Catalog {
    fn from(c: Catalog) -> Self {
        let extent = c.extent.unwrap_or(TimeRange {
            from: Nanos::ZERO,
            to: Nanos::ZERO,
        });
        Self {
            run: c
                .run
                .map(|r| bytes::Bytes::copy_from_slice(r.as_bytes()))
                .unwrap_or_default(),
            event_manager: c.event_managers.join(", "),
            topology: Some(c.topology.into()),
            variables: c.variables.into_iter().map(Into::into).collect(),
            barriers: c.barriers.into_iter().map(Into::into).collect(),
            first_ns: extent.from.0,
            last_ns: extent.to.0,
            records: c.records,
            clocks: c.clocks.into_iter().map(Into::into).collect(),
            completeness: Some(c.completeness.into()),
            live: c.live,
        }
    }
}

impl TryFrom<wire::Catalog> for Catalog {
    type Error = Malformed;
    fn try_from(c: wire::Catalog) -> Result<Self, Malformed> {
        let topology = c.topology.ok_or(Malformed::missing("topology"))?;
        let run = (!c.run.is_empty()).then(|| RunId::try_from(&c.run[..]));
        Ok(Self {
            run: run
                .transpose()
                .map_err(|e| Malformed::new("run", e.to_string()))?,
            event_managers: vec![c.event_manager],
            topology: Topology::try_from(topology)?,
            variables: c
                .variables
                .into_iter()
                .map(TryInto::try_into)
                .collect::<Result<_, _>>()?,
            barriers: c.barriers.into_iter().map(Into::into).collect(),
            extent: (c.last_ns > 0).then_some(TimeRange {
                from: Nanos(c.first_ns),
                to: Nanos(c.last_ns),
            }),
            records: c.records,
            clocks: c.clocks.into_iter().map(Into::into).collect(),
            completeness: c.completeness.unwrap_or_default().into(),
            live: c.live,
        })
    }
}

impl From<ProcessClock> for wire::ProcessClock {
    fn from(c: ProcessClock) -> Self {
        Self {
            mp: c.mp.0,
            offset_ns: c.offset_ns,
            drift_ppb: c.drift_ppb,
            error_ns: c.error.unwrap_or(Nanos::MAX).0,
        }
    }
}

impl From<wire::ProcessClock> for ProcessClock {
    fn from(c: wire::ProcessClock) -> Self {
        Self {
            mp: MpId(c.mp),
            offset_ns: c.offset_ns,
            drift_ppb: c.drift_ppb,
            error: (c.error_ns < u64::MAX).then_some(Nanos(c.error_ns)),
        }
    }
}

impl From<HistogramQuery> for wire::HistogramRequest {
    fn from(q: HistogramQuery) -> Self {
        Self {
            filter: Some(q.filter.into()),
            buckets: q.buckets,
        }
    }
}

impl TryFrom<wire::HistogramRequest> for HistogramQuery {
    type Error = Malformed;
    fn try_from(q: wire::HistogramRequest) -> Result<Self, Malformed> {
        Ok(Self {
            filter: q.filter.unwrap_or_default().try_into()?,
            buckets: q.buckets,
        })
    }
}

impl From<Histogram> for wire::Histogram {
    fn from(h: Histogram) -> Self {
        let column = |of: fn(&OriginCounts) -> u64| h.buckets.iter().map(of).collect();
        Self {
            local: column(|b| b.local),
            intra: column(|b| b.intra),
            inter: column(|b| b.inter),
            optimized: column(|b| b.optimized),
            in_process: column(|b| b.in_process),
            range: Some(h.range.into()),
            completeness: Some(h.completeness.into()),
        }
    }
}

impl TryFrom<wire::Histogram> for Histogram {
    type Error = Malformed;
    fn try_from(h: wire::Histogram) -> Result<Self, Malformed> {
        let length = h.local.len();
        if [&h.intra, &h.inter, &h.optimized, &h.in_process]
            .iter()
            .any(|c| c.len() != length)
        {
            return Err(Malformed::new("histogram", "columns of different length"));
        }
        Ok(Self {
            range: h.range.ok_or(Malformed::missing("histogram range"))?.into(),
            buckets: (0..length)
                .map(|i| OriginCounts {
                    local: h.local[i],
                    intra: h.intra[i],
                    inter: h.inter[i],
                    optimized: h.optimized[i],
                    in_process: h.in_process[i],
                })
                .collect(),
            completeness: h.completeness.unwrap_or_default().into(),
        })
    }
}

impl From<HistoryQuery> for wire::HistoryRequest {
    fn from(q: HistoryQuery) -> Self {
        Self {
            filter: Some(q.filter.into()),
            max_points: q.max_points,
        }
    }
}

impl TryFrom<wire::HistoryRequest> for HistoryQuery {
    type Error = Malformed;
    fn try_from(q: wire::HistoryRequest) -> Result<Self, Malformed> {
        Ok(Self {
            filter: q.filter.unwrap_or_default().try_into()?,
            max_points: q.max_points,
        })
    }
}

impl From<HistoryPoint> for wire::HistoryPoint {
    fn from(p: HistoryPoint) -> Self {
        Self {
            start_ns: p.start.0,
            duration_ns: p.duration.0,
            wait_ns: p.wait.0,
            op: wire::Op::from(p.op).into(),
            origin: wire::Origin::from(p.origin).into(),
            optimized: p.optimized,
            in_process: p.in_process,
            ap: p.ap.0,
            variable: p.object.var.0,
            object: p.object.index,
            version: p.version,
            count: p.count,
            several_ops: p.several.ops,
            several_aps: p.several.aps,
            several_objects: p.several.objects,
        }
    }
}

impl TryFrom<wire::HistoryPoint> for HistoryPoint {
    type Error = Malformed;
    fn try_from(p: wire::HistoryPoint) -> Result<Self, Malformed> {
        Ok(Self {
            start: Nanos(p.start_ns),
            duration: Nanos(p.duration_ns),
            wait: Nanos(p.wait_ns),
            op: op(p.op)?,
            origin: origin(p.origin)?,
            optimized: p.optimized,
            in_process: p.in_process,
            ap: ApId(p.ap),
            object: ObjectId::new(VarId(p.variable), p.object),
            version: p.version,
            count: p.count,
            several: Several {
                ops: p.several_ops,
                aps: p.several_aps,
                objects: p.several_objects,
            },
        })
    }
}

impl From<History> for wire::History {
    fn from(h: History) -> Self {
        Self {
            range: Some(h.range.into()),
            points: h.points.into_iter().map(Into::into).collect(),
            matched: h.matched,
            completeness: Some(h.completeness.into()),
        }
    }
}

impl TryFrom<wire::History> for History {
    type Error = Malformed;
    fn try_from(h: wire::History) -> Result<Self, Malformed> {
        Ok(Self {
            range: h.range.ok_or(Malformed::missing("history range"))?.into(),
            points: h
                .points
                .into_iter()
                .map(TryInto::try_into)
                .collect::<Result<_, _>>()?,
            matched: h.matched,
            completeness: h.completeness.unwrap_or_default().into(),
        })
    }
}
