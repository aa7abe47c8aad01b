//! Records of operations, and the reply that goes with each.

use dosmos_proto::{ApId, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::meta::HandOver;
use dosmos_trace::{Op, Record, Side};

use super::pending::{Kind, Operation, Write};
use crate::core::context::Context;
use crate::core::messages::{Cost, Item, LocalAccesses, LocalKind, Reply};

/// The records of accesses of a kind that an application process served itself: one, of sections two. What it did in sections was
/// done after the last `sections` that it reported before were recorded to end.
pub(super) fn local_records(cx: &mut Context, ap: ApId, accesses: &LocalAccesses, sections: Nanos) {
    let Ok(place) = cx.variables.place(cx.cluster, accesses.object) else {
        return;
    };
    let (me, owner) = (cx.me(), place.owner);
    let layout = place.variable.spec().layout();
    let (first, end) = accesses.elements;
    let inside = first < end && layout.elements_of(accesses.object.index) >= Some(end);
    let range = if inside { (first, end) } else { (0, 0) };
    let (first, last) = span(cx.now, accesses, sections);
    let mut trace = |op: Op, version: u64, (first, last): (Nanos, Nanos)| {
        let mut record = cx.record(ap, first, op, accesses.object);
        // The library reports every 50 ms, long before a count could exceed this.
        record.count = u32::try_from(accesses.count).unwrap_or(u32::MAX).max(1);
        record.bytes = accesses.bytes;
        record.duration = last - first;
        record.peer = owner;
        record.flags.optimized = op == Op::Read && owner != me;
        record.flags.in_process = true;
        record.flags.own_clock = true;
        record.version = version;
        record.range = range;
        cx.trace(Item::Record(record));
    };
    match accesses.kind {
        LocalKind::Read | LocalKind::SectionRead | LocalKind::GrantedRead => {
            trace(Op::Read, accesses.version, (first, last));
        }
        LocalKind::Write | LocalKind::SectionWrite => {
            trace(Op::Write, accesses.version, (first, last));
        }
        LocalKind::Section => {
            trace(Op::Acquire, accesses.from_version, (first, last));
            trace(Op::Release, accesses.version, (last, last));
        }
    }
}

/// How far times of which the order is known are apart at least: the event manager corrects them, at times to half of what they
/// are apart.
pub(super) const APART: Nanos = Nanos(2);

/// When accesses took place, by the clock of this process at `now`: they are heard of now, sections begin before what is done in
/// them and end after it, and what this process heard before is published by their ends, what comes with them is not. Those of this report
/// may have begun while the report before, of the last `sections`, was under way.
fn span(now: Nanos, accesses: &LocalAccesses, sections: Nanos) -> (Nanos, Nanos) {
    let released = now - APART;
    let done = released - APART;
    let latest = done - APART;
    let (first, acquired) = (
        accesses.first.min(latest),
        accesses.first.max(sections).min(latest),
    );
    let within = |first: Nanos, end: Nanos| (first, accesses.last.clamp(first, end.max(first)));
    match accesses.kind {
        LocalKind::Read | LocalKind::Write => within(first, released),
        LocalKind::Section => (acquired, released),
        LocalKind::SectionRead | LocalKind::SectionWrite => within(acquired + APART, done),
        // After the grant, whenever that was recorded to have arrived, and before the release, which comes with this.
        LocalKind::GrantedRead => (now, now),
    }
}

/// Sections are lost with the owner of their objects, which cannot record it. Where another process serves the objects it is recorded
/// here in its place.
pub(super) fn sections_lost(cx: &mut Context, lost: &[(ApId, ObjectId, u64)]) {
    for (ap, object, version) in lost.iter().copied() {
        if cx.variables.seat_of(object).is_some() {
            let mut record = cx.record(ap, cx.now, Op::Release, object);
            record.side = Side::Owner;
            record.flags.failed = true;
            record.version = version;
            cx.trace(Item::Record(record));
        }
    }
}

/// The record of a write that travelled with the release of its section.
pub(super) fn report_write(
    cx: &mut Context,
    release: &Operation,
    write: Option<Write>,
    version: u64,
) {
    let Some(write) = write else {
        return;
    };
    let write = Operation {
        kind: Kind::Write(write),
        ..release.clone()
    };
    if let Some(mut record) = operation_record(cx, &write) {
        record.version = version;
        record.duration = Nanos::ZERO;
        record.flags.in_process = true;
        cx.trace(Item::Record(record));
    }
}

/// The reply to an application process and the record of its operation.
pub(super) fn report(
    cx: &mut Context,
    operation: &Operation,
    outcome: Result<Reply, Refusal>,
    cost: Cost,
) {
    if let Some(mut record) = operation_record(cx, operation) {
        record.wait = cost.wait;
        record.service = cost.service;
        match &outcome {
            Ok(Reply::Passed(opening)) => {
                record.object.index = opening.generation as u32;
                record.version = opening.start.into();
            }
            Ok(reply) => {
                record.version = version_of(reply);
                if matches!(reply, Reply::Atomic { stored: false, .. }) {
                    record.bytes = 0;
                }
            }
            Err(_) => record.flags.failed = true,
        }
        if operation.is_silent() {
            // The time is that of the release.
            (record.duration, record.wait) = (Nanos::ZERO, Nanos::ZERO);
            record.flags.in_process = true;
        }
        cx.trace(Item::Record(record));
    }
    if operation.is_silent() {
        return;
    }
    let reply = outcome.unwrap_or_else(Reply::Refused);
    let remote = operation.to != cx.me();
    cx.reply(operation.ticket.ap, operation.ticket.id, reply, remote);
}

/// The record of an operation, if it has one.
pub(super) fn operation_record(cx: &Context, operation: &Operation) -> Option<Record> {
    let traced = operation.kind.traced()?;
    let ticket = operation.ticket;
    let mut record = cx.record(ticket.ap, ticket.start, traced.op, traced.object);
    record.origin = cx.cluster.origin(cx.me(), operation.to);
    record.peer = operation.to;
    record.count = traced.accesses;
    record.range = traced.range;
    record.bytes = traced.bytes.into();
    record.flags.atomic = traced.atomic;
    record.flags.ahead = traced.ahead;
    record.flags.first = ticket.first;
    record.flags.posted = ticket.posted;
    Some(record)
}

fn version_of(reply: &Reply) -> u64 {
    match reply {
        Reply::Read { version, .. }
        | Reply::Written { version }
        | Reply::Atomic { version, .. }
        | Reply::Granted { version, .. }
        | Reply::Released { version } => *version,
        _ => 0,
    }
}

/// Tells the recorder what became of a copy.
pub(super) fn hand_over(cx: &mut Context, object: ObjectId, owner: MpId, dropped: bool) {
    cx.trace(Item::HandOver(HandOver {
        object,
        copy_at: cx.me(),
        primary_emp: cx.cluster.emp_of(owner),
        dropped,
    }));
}
