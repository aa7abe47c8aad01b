//! State of processes, and the selection of what is recorded.

use dosmos_proto::{ApId, Malformed, MpId, Nanos, wire};

use super::meta::by_origin;
use super::query::op;
use crate::query::{ApOrigins, EmpStatus, ProcessStatus};
use crate::selection::{Mode, Selection};

impl From<ProcessStatus> for wire::ProcessStatus {
    fn from(p: ProcessStatus) -> Self {
        let [local, intra, inter] = p.by_origin.into_array();
        Self {
            mp: p.mp.0,
            connected: p.connected,
            counters: Some(p.counters.into()),
            clock_offset_ns: p.clock_offset_ns,
            clock_error_ns: p.clock_error.0,
            local: Some(local.into()),
            intra: Some(intra.into()),
            inter: Some(inter.into()),
            last_record_ns: p.last_record.0,
            aps: p.aps.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<wire::ProcessStatus> for ProcessStatus {
    fn from(p: wire::ProcessStatus) -> Self {
        Self {
            mp: MpId(p.mp),
            connected: p.connected,
            counters: p.counters.unwrap_or_default().into(),
            clock_offset_ns: p.clock_offset_ns,
            clock_error: Nanos(p.clock_error_ns),
            by_origin: by_origin(p.local, p.intra, p.inter),
            last_record: Nanos(p.last_record_ns),
            aps: p.aps.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<ApOrigins> for wire::ApOrigins {
    fn from(a: ApOrigins) -> Self {
        let [local, intra, inter] = a.by_origin.into_array();
        Self {
            ap: a.ap.0,
            local: Some(local.into()),
            intra: Some(intra.into()),
            inter: Some(inter.into()),
        }
    }
}

impl From<wire::ApOrigins> for ApOrigins {
    fn from(a: wire::ApOrigins) -> Self {
        Self {
            ap: ApId(a.ap),
            by_origin: by_origin(a.local, a.intra, a.inter),
        }
    }
}

impl From<EmpStatus> for wire::Status {
    fn from(s: EmpStatus) -> Self {
        Self {
            event_manager: s.name,
            now_ns: s.now.0,
            processes: s.processes.into_iter().map(Into::into).collect(),
            records: s.records,
            pending: s.pending,
            stored_bytes: s.stored_bytes,
            chunks: s.chunks,
            cpu_ns: s.cpu.0,
            store: s.store,
            trouble: s.trouble,
            exchanged_out: s.exchanged_out,
            exchanged_in: s.exchanged_in,
            selection: s.selection.map(Into::into),
        }
    }
}

impl From<wire::Status> for EmpStatus {
    fn from(s: wire::Status) -> Self {
        Self {
            name: s.event_manager,
            now: Nanos(s.now_ns),
            processes: s.processes.into_iter().map(Into::into).collect(),
            records: s.records,
            pending: s.pending,
            stored_bytes: s.stored_bytes,
            chunks: s.chunks,
            cpu: Nanos(s.cpu_ns),
            store: s.store,
            trouble: s.trouble,
            exchanged_out: s.exchanged_out,
            exchanged_in: s.exchanged_in,
            // What cannot be read is not known.
            selection: s.selection.and_then(|s| s.try_into().ok()),
        }
    }
}

impl From<Selection> for wire::Selection {
    fn from(s: Selection) -> Self {
        let mode = match s.mode {
            Mode::Off => wire::selection::Mode::Off,
            Mode::Counters => wire::selection::Mode::Counters,
            Mode::Events => wire::selection::Mode::Events,
        };
        Self {
            mode: mode.into(),
            sample_one_in: s.sample_one_in,
            variables: s.variables,
            ops: s
                .ops
                .into_iter()
                .map(|o| wire::Op::from(o).into())
                .collect(),
            processes: s.processes,
        }
    }
}

impl TryFrom<wire::Selection> for Selection {
    type Error = Malformed;
    fn try_from(s: wire::Selection) -> Result<Self, Malformed> {
        let mode = match s.mode() {
            wire::selection::Mode::Off => Mode::Off,
            wire::selection::Mode::Counters => Mode::Counters,
            wire::selection::Mode::Events => Mode::Events,
            wire::selection::Mode::Unspecified => {
                return Err(Malformed::missing("recording mode"));
            }
        };
        if s.sample_one_in == 0 {
            let why = "one in 0 is none; 1 records every access, 10 one in ten";
            return Err(Malformed::new("sampling", why));
        }
        Ok(Self {
            mode,
            sample_one_in: s.sample_one_in,
            variables: s.variables,
            ops: s.ops.into_iter().map(op).collect::<Result<_, _>>()?,
            processes: s.processes,
        })
    }
}
