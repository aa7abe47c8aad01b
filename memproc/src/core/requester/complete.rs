//! Responses, and the end of operations: each is replied to once and gives one record, side
//! `Requester`.

use bytes::Bytes;
use dosmos_proto::{ApId, ErrorCode, MpId, Refusal};
use dosmos_trace::Op;

use super::copies::Copy;
use super::pending::{Acquire, Barrier, Kind, Operation, Read};
use super::records::{hand_over, local_records, report, report_write};
use super::role::Requester;
use super::session::Section;
use crate::core::context::Context;
use crate::core::effects::{Effect, Waiter};
use crate::core::messages::{Cost, Delegated, Item, Keep, LocalAccesses, Reply, Response, Return};

impl Requester {
    /// A response, from here or elsewhere. One to an operation that is complete finds nobody: what it
    /// granted was taken back when the operation ended.
    pub(crate) fn receive(
        &mut self,
        cx: &mut Context,
        from: MpId,
        number: u64,
        response: Response,
        cost: Cost,
    ) {
        if self.caches.copies.renewed(from, number) {
            return;
        }
        if let Some(flush) = self.pending.close_flush(number, from) {
            let result = match response {
                Response::Refused(refusal) => Err(refusal),
                _ => Ok(()),
            };
            return self.flushed(cx, flush.ap, result);
        }
        let operation = self.pending.get(number).filter(|o| o.to == from);
        let Some(sent) = operation.map(|o| o.ticket.start) else {
            return;
        };
        if from != cx.me() && !matches!(response, Response::Refused(_)) {
            self.caches.copies.renew(from, sent);
        }
        let outcome = match response {
            Response::Read {
                version,
                data,
                copy,
                delegation,
            } => {
                let read = (version, data, copy, delegation);
                return self.receive_read(cx, number, read, cost);
            }
            Response::Written { version } => Ok(Reply::Written { version }),
            Response::Atomic {
                previous,
                stored,
                version,
            } => Ok(Reply::Atomic {
                previous,
                stored,
                version,
            }),
            Response::Granted {
                epoch,
                version,
                value,
            } => Ok(Reply::Granted {
                epoch,
                version,
                value,
            }),
            Response::Released { version } => Ok(Reply::Released { version }),
            Response::Variable(announced) => Ok(Reply::Variable(announced.variable)),
            Response::Refused(refusal) => Err(refusal),
            Response::Renewed
            | Response::Flushed
            | Response::Created
            | Response::CopyAck { .. } => Err(Refusal::new(
                ErrorCode::Invalid,
                "the owner responded to another request; are all processes of one version?",
            )),
        };
        self.complete(cx, number, outcome, cost);
    }

    fn receive_read(
        &mut self,
        cx: &mut Context,
        number: u64,
        (version, data, copy, delegation): (u64, Bytes, bool, Option<Delegated>),
        cost: Cost,
    ) {
        let Some(&Operation {
            kind: Kind::Read(read),
            to,
            ..
        }) = self.pending.get(number)
        else {
            return;
        };
        let Read {
            object,
            range: (first, end),
            width,
            fetch,
            keep,
        } = read;
        let keep = keep > Keep::Nothing;
        let whole = fetch || keep;
        let place = cx.variables.place(cx.cluster, object);
        let asked = (first * width) as usize..(end * width) as usize;
        let expected = match place {
            Ok(place) if whole => place.bytes(),
            _ => asked.len(),
        };
        if data.len() != expected {
            let refusal = Refusal::new(
                ErrorCode::Invalid,
                format!(
                    "{} sent {} bytes of {} where {expected} were expected",
                    cx.cluster.mp_name(to),
                    data.len(),
                    cx.variables.object_name(object)
                ),
            );
            return self.complete(cx, number, Err(refusal), cost);
        }
        if fetch && self.caches.copies.differs(object, &data) {
            // Two fetches overlapped. Whoever sees what this one brings does not read what the other did.
            self.caches.holders.void(cx, object);
        }
        let ours = (copy && fetch).then(|| Copy {
            data: data.clone(),
            version,
            owner: to,
        });
        let kept = fetch && self.caches.copies.fetch_ends(object, number, ours);
        self.caches.make_room(cx, object);
        // Of another memory process's object, only while there is a copy here that it tells of changes.
        let keep = keep && copy && (kept || to == cx.me());
        let mut unchanged = false;
        if keep && let Some(operation) = self.pending.get(number) {
            let ap = operation.ticket.ap;
            if delegation.is_some() {
                unchanged = self.caches.holders.yield_to(cx, object, ap);
            } else {
                let until = self.caches.copies.lease_end(object);
                self.caches.holders.add(object, ap, until);
            }
        }
        let reply = Reply::Read {
            version,
            data: match (unchanged, whole && !keep) {
                (true, _) => Bytes::new(),
                (false, true) => data.slice(asked),
                (false, false) => data,
            },
            keep,
            delegation,
            unchanged,
        };
        self.complete(cx, number, Ok(reply), cost);
        // After the record, so that the copy's monitoring starts with this read behind it.
        if fetch && !kept {
            hand_over(cx, object, to, true);
        }
    }

    /// Accesses that an application process served itself.
    pub(crate) fn report(&mut self, cx: &mut Context, ap: ApId, accesses: &[LocalAccesses]) {
        for accesses in accesses {
            self.caches.holders.used(accesses.object, ap);
            local_records(cx, ap, accesses);
        }
    }

    /// An application process is in a section of an object that it had to itself and gives back: the section goes on as
    /// one that the owner granted, if the object was not taken away before.
    pub(crate) fn section_goes_on(
        &mut self,
        cx: &mut Context,
        ap: ApId,
        back: &Return,
        current: bool,
    ) {
        let mut record = cx.record(ap, cx.now, Op::Acquire, back.object);
        record.peer = cx.me();
        record.version = if current { back.version } else { 0 };
        cx.trace(Item::Record(record));
        if current {
            let section = Section {
                epoch: back.epoch,
                wrote: false,
                owner: cx.me(),
                lost: false,
            };
            let session = self.sessions.get_mut(ap);
            session.sections.insert(back.object, section);
        }
    }

    /// Ends an operation: its reply, its record, and what follows from it.
    pub(super) fn complete(
        &mut self,
        cx: &mut Context,
        number: u64,
        outcome: Result<Reply, Refusal>,
        mut cost: Cost,
    ) {
        let Some(operation) = self.pending.close(number) else {
            return;
        };
        let ap = operation.ticket.ap;
        let session = self.sessions.get_mut(ap);
        session.outstanding = session.outstanding.saturating_sub(1);
        let mut advance = false;
        match &operation.kind {
            &Kind::Barrier(Barrier { barrier, arrived }) => {
                if arrived.is_some() {
                    session.at_barriers.remove(&barrier);
                }
                if session.ahead.is_some_and(|(of, _)| of == number) {
                    match outcome {
                        // The coordinator opened it, so it has heard what was published.
                        Ok(_) => session.ahead = None,
                        Err(_) => session.fall_back(cx.me()),
                    }
                }
                let waiter = Waiter {
                    ap,
                    operation: number,
                };
                cx.effect(Effect::Withdraw { barrier, waiter });
                advance = true;
            }
            &Kind::Acquire(Acquire { object, sent, .. }) => {
                if sent {
                    session.acquiring.remove(&object);
                }
                if let Ok(Reply::Granted { epoch, version, .. }) = outcome {
                    let section = Section {
                        epoch,
                        wrote: false,
                        owner: operation.to,
                        lost: false,
                    };
                    session.sections.insert(object, section);
                    self.caches.copies.confirm(object, version);
                }
            }
            Kind::Release(release) => {
                if let Some(sent) = release.sent {
                    session.releasing = session.releasing.saturating_sub(1);
                    // Waiting for flushes is waiting for copies too.
                    cost.wait += sent - operation.ticket.start;
                }
                if let Ok(Reply::Released { version }) = outcome {
                    self.caches.copies.confirm(release.object, version);
                    let write = release.write.as_ref().map(|(write, _)| *write);
                    report_write(cx, &operation, write, version);
                }
                advance = true;
            }
            &Kind::Read(Read {
                object,
                fetch: true,
                ..
            }) if outcome.is_err() => {
                self.caches.copies.fetch_ends(object, number, None);
            }
            Kind::Read(_) | Kind::Write(_) | Kind::Declare(_) | Kind::Open(_) | Kind::Publish => {}
        }
        let line = &mut self.sessions.get_mut(ap).line;
        let waited = line.len();
        line.retain(|n| *n != number);
        advance |= line.len() < waited;
        report(cx, &operation, outcome, cost);
        if advance {
            self.advance(cx, ap);
        }
    }
}
