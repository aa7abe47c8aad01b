//! The event inspector: everything about the access at the cursor, in two lines.

use dosmos_proto::Nanos;
use dosmos_trace::query::HistoryPoint;
use dosmos_trace::{Op, Origin, Record};

use crate::state::{EventDetail, State, WaitedFor};
use dosmos_client::text;

/// What is at the cursor of the selected lane.
pub(super) fn lines(state: &State) -> [String; 2] {
    match state.event() {
        None => [
            "no event of this lane at the cursor".to_owned(),
            "n, N: next, previous event".to_owned(),
        ],
        Some(point) => match state.charts.detail() {
            Some((of, detail)) if Some(*of) == crate::state::EventQuery::of(point) => {
                one(state, point, Some(detail))
            }
            _ => one(state, point, None),
        },
    }
}

fn one(state: &State, point: &HistoryPoint, detail: Option<&EventDetail>) -> [String; 2] {
    if point.count > 1 {
        return gathered(state, point);
    }
    let catalog = &state.data.catalog;
    let what = match point.op {
        Op::Barrier => format!("barrier {}", catalog.name_of(point.object.var)),
        op => format!("{op} of {}", state.data.object_name(point.object)),
    };
    let mut first = format!(
        "{what} by {} at {}: took {}",
        catalog.topology.ap_name(point.ap),
        since_start(state, point.start),
        text::time(point.duration),
    );
    if point.wait > Nanos::ZERO {
        first += &format!(", waited {}", text::time(point.wait));
    }
    let second = match detail {
        None => "…".to_owned(),
        Some(detail) => beyond(state, point, detail),
    };
    [first, second]
}

/// What its record tells beyond the point.
fn beyond(state: &State, point: &HistoryPoint, detail: &EventDetail) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(waited_for(state, point, detail));
    match &detail.record {
        Some(record) => parts.extend(from(state, record)),
        None => parts.push(format!("{}; its record was not found", point.origin)),
    }
    if point.op != Op::Barrier {
        parts.push(format!("version {}", point.version));
    }
    parts.join(" · ")
}

fn waited_for(state: &State, point: &HistoryPoint, detail: &EventDetail) -> Option<String> {
    let topology = &state.data.catalog.topology;
    Some(match detail.waited_for {
        Some(WaitedFor::Holder {
            ap,
            released,
            before,
        }) => {
            let more = match before {
                0 => String::new(),
                n => format!(" after {n} other sections"),
            };
            format!(
                "waited for {}, which released it at {}{more}",
                topology.ap_name(ap),
                since_start(state, released)
            )
        }
        Some(WaitedFor::LastToArrive { ap, .. }) if ap == point.ap => "arrived last".to_owned(),
        Some(WaitedFor::LastToArrive { ap, at }) => format!(
            "waited for {}, which arrived last, {} later",
            topology.ap_name(ap),
            text::time(at - point.start)
        ),
        None => match point.op {
            Op::Acquire if point.wait > Nanos::ZERO => "the holder was not recorded".to_owned(),
            Op::Release if point.wait > Nanos::ZERO => {
                "waited until all copies acknowledged".to_owned()
            }
            _ => return None,
        },
    })
}

fn from(state: &State, record: &Record) -> Vec<String> {
    let topology = &state.data.catalog.topology;
    let owner = topology.mp_name(record.peer);
    let mut parts = Vec::new();
    if record.op != Op::Barrier {
        parts.push(match (record.flags.in_process, record.flags.optimized) {
            (true, _) => "served in the application process".to_owned(),
            (_, true) => format!("from a copy (owner {owner})"),
            _ => match record.origin {
                Origin::Local => format!("from {owner} (local)"),
                far => format!(
                    "from {owner} ({far}-group), {} there",
                    text::time(record.service)
                ),
            },
        });
    }
    let (first, end) = record.range;
    if end > first && matches!(record.op, Op::Read | Op::Write) {
        parts.push(match end - first {
            1 => format!("element {first}"),
            _ => format!("elements {first}–{}", end - 1),
        });
    }
    if record.bytes > 0 {
        parts.push(text::bytes(record.bytes));
    }
    parts
}

/// A point that stands for several accesses.
fn gathered(state: &State, point: &HistoryPoint) -> [String; 2] {
    let catalog = &state.data.catalog;
    let several = point.several;
    let what = match several.ops {
        true => "accesses".to_owned(),
        false => format!("{}s", point.op),
    };
    let who = match several.aps {
        true => "several processes".to_owned(),
        false => catalog.topology.ap_name(point.ap),
    };
    let object = match (several.objects, point.op) {
        (true, _) => "several objects".to_owned(),
        (false, Op::Barrier) => catalog.name_of(point.object.var),
        (false, _) => state.data.object_name(point.object),
    };
    let first = format!(
        "{} {what} of {object} by {who}, {} to {}: waited {}",
        text::count(point.count),
        since_start(state, point.start),
        since_start(state, point.start + point.duration),
        text::time(point.wait),
    );
    [first, "gathered in one mark; + zooms in to each".to_owned()]
}

fn since_start(state: &State, at: Nanos) -> String {
    let since = at - state.data.extent().from;
    format!("{:.6} s", since.as_secs_f64())
}
