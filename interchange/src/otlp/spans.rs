//! From records to spans, and links between them.

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Op, Record, Side};

use super::ids::Ids;
use super::schema::{
    KeyValue, Link, Span, SpanEvent, SpanId, SpanKind, Status, StatusCode, TraceId, UnixNano,
};
use crate::Run;
use crate::sections::{Released, Section, Sections, is_of_section};

/// What a section is known by.
#[derive(Clone, Copy, Debug)]
struct Marks {
    trace: TraceId,
    /// The acquire that began it.
    acquire: SpanId,
    id: SpanId,
}

/// Makes spans.
#[derive(Debug, Default)]
pub(super) struct Spans {
    ids: Ids,
    /// Releases are known by the section that ended; by themselves if that is not known.
    sections: Sections<Marks, (TraceId, SpanId)>,
    /// When the last of all ended.
    last: Nanos,
}

impl Spans {
    /// Of a run.
    pub(super) fn of(run: &Run) -> Self {
        Self {
            ids: Ids::of(run),
            last: run.end,
            ..Self::default()
        }
    }

    /// Adds a record: hands out the spans that are known by it, all of its process.
    pub(super) fn put(&mut self, run: &Run, r: &Record, pending: bool, mut out: impl FnMut(Span)) {
        // A wait is within its operation, also where the file says otherwise.
        let end = r.start + r.duration.max(r.wait);
        self.last = self.last.max(end);
        let served = r.side == Side::Owner && !r.flags.waiting;
        // Of a wait that ended, the grant follows, and has it.
        let told_later = r.flags.waiting && !pending;
        if served || told_later || matches!(r.op, Op::Read | Op::Write) {
            return;
        }
        let id = self.ids.operation(r);
        let mut trace = match r.op {
            Op::Barrier => self.ids.opening(r),
            _ => self.ids.trace(id),
        };
        let mut parent = None;
        if is_of_section(r) {
            let ended = self.sections.ended_by(r);
            if let Some(section) = &ended {
                let lost = r.op == Op::Acquire;
                out(self.section(run, section, r.start, lost));
            }
            if let (Op::Release, Some(section)) = (r.op, &ended) {
                trace = section.mark.trace;
                parent = Some(section.mark.id);
            }
            match r.op {
                Op::Acquire => {
                    let marks = Marks {
                        trace,
                        acquire: id,
                        id: self.ids.section(id),
                    };
                    self.sections.begins(r, marks);
                }
                _ => self.sections.released(r, (trace, parent.unwrap_or(id))),
            }
        }
        out(Span {
            trace_id: trace,
            span_id: id,
            parent_span_id: parent,
            name: name(run, r),
            kind: SpanKind::Internal,
            start: UnixNano(r.start),
            end: UnixNano(if pending { self.last.max(r.start) } else { end }),
            attributes: attributes(run, r, pending),
            events: Vec::new(),
            links: Vec::new(),
            status: r.flags.failed.then_some(Status {
                code: StatusCode::Error,
                message: "refused, or not done in time; it changed nothing",
            }),
        });
    }

    fn section(&self, run: &Run, section: &Section<Marks>, end: Nanos, open: bool) -> Span {
        let mut attributes = of_object(run, section.object);
        attributes.push(KeyValue::number("dosmos.version", section.version));
        if open {
            attributes.push(KeyValue::holds("dosmos.open"));
        }
        let handed_over = self.sections.handed_over_by(section);
        let link = |last: &Released<(TraceId, SpanId)>| Link {
            trace_id: last.mark.0,
            span_id: last.mark.1,
            attributes: vec![KeyValue::text("dosmos.released_by", run.names.ap(last.by))],
        };
        Span {
            trace_id: section.mark.trace,
            span_id: section.mark.id,
            parent_span_id: Some(section.mark.acquire),
            name: format!("section {}", run.names.variable(section.object.var)),
            kind: SpanKind::Internal,
            start: UnixNano(section.begin),
            end: UnixNano(end.max(section.begin)),
            attributes,
            events: Vec::new(),
            links: handed_over.map(link).into_iter().collect(),
            status: None,
        }
    }

    /// The sections that nobody has left at the end.
    pub(super) fn open(&mut self, run: &Run) -> Vec<(ApId, Span)> {
        let open = self.sections.take_open();
        let span =
            |section: &Section<Marks>| (section.ap, self.section(run, section, self.last, true));
        open.iter().map(span).collect()
    }

    /// A span over the whole run, with what is missing.
    pub(super) fn whole(&self, run: &Run, lacking: &Completeness) -> Span {
        let id = self.ids.whole();
        let incomplete = |reason| SpanEvent {
            time: UnixNano(run.start),
            name: "incomplete".to_owned(),
            attributes: vec![KeyValue::text("dosmos.reason", reason)],
        };
        Span {
            trace_id: self.ids.trace(id),
            span_id: id,
            parent_span_id: None,
            name: "run".to_owned(),
            kind: SpanKind::Internal,
            start: UnixNano(run.start),
            end: UnixNano(self.last.max(run.start)),
            attributes: vec![
                KeyValue::number("dosmos.records", lacking.recorded),
                KeyValue::number("dosmos.records_dropped", lacking.dropped),
            ],
            events: lacking.reasons().into_iter().map(incomplete).collect(),
            links: Vec::new(),
            status: None,
        }
    }
}

/// What was done, to which variable or barrier; objects and generations are attributes, for there may be millions.
fn name(run: &Run, r: &Record) -> String {
    match r.op {
        Op::Barrier => match run.names.barrier(r.object.var).0 {
            "" => "barrier".to_owned(),
            name => format!("barrier {name}"),
        },
        op => format!("{op} {}", run.names.variable(r.object.var)),
    }
}

fn of_object(run: &Run, object: ObjectId) -> Vec<KeyValue> {
    vec![
        KeyValue::text("dosmos.variable", run.names.variable(object.var)),
        KeyValue::number("dosmos.object", object.index.into()),
    ]
}

fn attributes(run: &Run, r: &Record, pending: bool) -> Vec<KeyValue> {
    let mut all = match r.op {
        Op::Barrier => of_opening(run, r.object),
        _ => of_object(run, r.object),
    };
    all.extend([
        KeyValue::text("dosmos.op", r.op.name()),
        KeyValue::text("dosmos.origin", r.origin.name()),
        KeyValue::text("dosmos.owner", run.names.mp(r.peer)),
        KeyValue::number("dosmos.version", r.version),
        KeyValue::number("dosmos.wait_ns", r.wait.0),
    ]);
    let numbers = [
        ("dosmos.service_ns", r.service.0, 0),
        ("dosmos.bytes", r.bytes, 0),
        ("dosmos.count", r.count.into(), 1),
    ];
    let telling = numbers.into_iter().filter(|(_, n, usual)| n > usual);
    all.extend(telling.map(|(key, n, _)| KeyValue::number(key, n)));
    let flags = [
        ("dosmos.in_process", r.flags.in_process),
        ("dosmos.sampled", r.flags.sampled),
        ("dosmos.pending", pending),
    ];
    let holding = flags.into_iter().filter(|(_, holds)| *holds);
    all.extend(holding.map(|(key, _)| KeyValue::holds(key)));
    all
}

/// Which opening of which barrier.
fn of_opening(run: &Run, barrier: ObjectId) -> Vec<KeyValue> {
    let (name, group) = run.names.barrier(barrier.var);
    let mut all = vec![KeyValue::text("dosmos.barrier", name)];
    if let Some(group) = group {
        all.push(KeyValue::text("dosmos.barrier_group", group));
    }
    all.push(KeyValue::number("dosmos.generation", barrier.index.into()));
    all
}
