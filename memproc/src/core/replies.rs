//! Completing operations: the answer to a call becomes the reply to its application process and the
//! record of it.
//!
//! Each operation of an application process is answered once and gives one record, side `Requester`.

use dosmos_proto::{ApId, ErrorCode, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::{Op, Origin, Record, Side};

use super::calls::{Call, Kind, Operation, What};
use super::copies::Copy;
use super::input::{Answer, Output, Reply};
use super::sessions::Section;
use super::{Core, Cx};

impl Core {
    /// An answer to a call, from here or elsewhere. One to a call that is over finds nobody: what it
    /// granted was taken back when the call ended.
    pub(super) fn answered(
        &mut self,
        cx: &mut Cx,
        from: MpId,
        call: u64,
        answer: Answer,
        (service, wait): (Nanos, Nanos),
    ) {
        if let Answer::CopyAck { object, .. } = answer {
            return self.copy_acknowledged(cx, from, call, object);
        }
        let Some(pending) = self.calls.get(call).filter(|c| c.to == from) else {
            return;
        };
        match &pending.kind {
            Kind::Flush(ap) => {
                let ap = *ap;
                self.calls.close(call);
                self.flushed(cx, ap, refusal_of(answer));
            }
            Kind::Create(name) => {
                let name = name.clone();
                self.calls.close(call);
                let result = refusal_of(answer).map_or(Ok(()), Err);
                self.created(cx, &name, result);
            }
            Kind::Operation(_) => self.settle(cx, call, answer, Cost { service, wait }),
        }
    }

    /// The answer to an operation.
    fn settle(&mut self, cx: &mut Cx, call: u64, answer: Answer, cost: Cost) {
        let outcome = match answer {
            Answer::Read {
                version,
                data,
                copy,
            } => return self.read_done(cx, call, (version, data, copy), cost),
            Answer::Written { version } => Ok(Reply::Written { version }),
            Answer::Atomic {
                previous,
                stored,
                version,
            } => Ok(Reply::Atomic {
                previous,
                stored,
                version,
            }),
            Answer::Granted { epoch, version } => Ok(Reply::Granted { epoch, version }),
            Answer::Released { version } => Ok(Reply::Released { version }),
            Answer::Variable(variable) => match self.learn(cx, &variable) {
                Ok(()) => {
                    self.announced.insert(variable.id());
                    Ok(Reply::Variable(variable))
                }
                Err(refusal) => Err(refusal),
            },
            Answer::Refused(refusal) => Err(refusal),
            Answer::Flushed | Answer::Created | Answer::CopyAck { .. } => Err(Refusal::new(
                ErrorCode::Invalid,
                "the owner gave an answer to another question; are all processes of one version?",
            )),
        };
        self.finish(cx, call, outcome, cost);
    }

    fn read_done(
        &mut self,
        cx: &mut Cx,
        call: u64,
        (version, data, copy): (u64, bytes::Bytes, bool),
        cost: Cost,
    ) {
        let Some(Call { to, kind }) = self.calls.get(call) else {
            return;
        };
        let to = *to;
        let Kind::Operation(Operation {
            what:
                What::Read {
                    object,
                    first,
                    end,
                    width,
                    fetch,
                },
            ..
        }) = *kind
        else {
            return;
        };
        let whole = self
            .place(object)
            .map_or(0, |p| (p.elements * p.width) as usize);
        let expected = if fetch {
            whole
        } else {
            ((end - first) * width) as usize
        };
        if data.len() != expected {
            let refusal = Refusal::new(
                ErrorCode::Invalid,
                format!(
                    "{} sent {} bytes of {} where {expected} were asked for",
                    self.cluster.mp_name(to),
                    data.len(),
                    self.object_name(object)
                ),
            );
            return self.finish(cx, call, Err(refusal), cost);
        }
        let asked = if fetch {
            data.slice((first * width) as usize..(end * width) as usize)
        } else {
            data.clone()
        };
        let copy = (copy && fetch).then_some(Copy {
            data,
            version,
            owner: to,
        });
        let reply = Reply::Read {
            version,
            data: asked,
        };
        self.finish(cx, call, Ok(reply), cost);
        // After the record, so that the copy's monitoring starts with this read behind it.
        if fetch && !self.copies.fetch_ends(object, call, copy) {
            self.hand_over(cx, object, to, true);
        }
    }

    /// Ends an operation: its reply, its record, and what follows from it.
    pub(super) fn finish(
        &mut self,
        cx: &mut Cx,
        call: u64,
        outcome: Result<Reply, Refusal>,
        mut cost: Cost,
    ) {
        let Some(Call {
            to,
            kind: Kind::Operation(op),
        }) = self.calls.close(call)
        else {
            return;
        };
        let session = self.sessions.get_mut(op.ap);
        session.outstanding = session.outstanding.saturating_sub(1);
        let mut advance = false;
        match (&op.what, &outcome) {
            (What::Barrier { barrier, .. }, _) => {
                self.barriers.forget_call(*barrier, call);
                advance = true;
            }
            (What::Acquire { object, sent }, _) => {
                if *sent {
                    session.acquiring.remove(object);
                }
                if let Ok(Reply::Granted { epoch, version }) = outcome {
                    let section = Section {
                        epoch,
                        wrote: false,
                        owner: to,
                        lost: false,
                    };
                    session.sections.insert(*object, section);
                    self.copies.confirm(*object, version);
                }
            }
            (What::Release { object, sent, .. }, _) => {
                if let Some(sent) = sent {
                    session.releasing -= 1;
                    // Waiting for flushes is waiting for copies too.
                    cost.wait += *sent - op.start;
                }
                if let Ok(Reply::Released { version }) = outcome {
                    self.copies.confirm(*object, version);
                }
                advance = true;
            }
            (
                What::Read {
                    object,
                    fetch: true,
                    ..
                },
                Err(_),
            ) => {
                self.copies.fetch_ends(*object, call, None);
            }
            _ => {}
        }
        let session = self.sessions.get_mut(op.ap);
        let waited = session.preparing.len();
        session.preparing.retain(|c| *c != call);
        advance |= session.preparing.len() < waited;
        self.conclude_operation(cx, &op, to, outcome, cost);
        if advance {
            self.advance(cx, op.ap);
        }
    }

    /// The reply to an application process and the record of it.
    pub(super) fn conclude_operation(
        &mut self,
        cx: &mut Cx,
        op: &Operation,
        to: MpId,
        outcome: Result<Reply, Refusal>,
        cost: Cost,
    ) {
        if op.what.traced().is_some() {
            let mut record = self.operation_record(cx, op, to);
            record.wait = cost.wait;
            record.service = cost.service;
            match &outcome {
                Ok(reply) => record.version = version_of(reply),
                Err(_) => record.flags.failed = true,
            }
            if let Ok(Reply::Passed { generation }) = outcome {
                record.object.index = generation as u32;
                record.version = 0;
            }
            cx.record(record);
        }
        cx.out.push(Output::Reply {
            ap: op.ap,
            id: op.id,
            reply: outcome.unwrap_or_else(Reply::Refused),
            remote: to != self.cluster.me,
        });
    }

    pub(super) fn operation_record(&self, cx: &Cx, op: &Operation, to: MpId) -> Record {
        let (kind, object, range, bytes) =
            op.what
                .traced()
                .unwrap_or((Op::Read, ObjectId::default(), (0, 0), 0));
        let mut record = self.record(cx, op.ap, op.start, kind, object);
        record.origin = self.cluster.origin(self.cluster.me, to);
        record.peer = to;
        record.range = range;
        record.bytes = bytes;
        record
    }

    /// A record with what this process knows of itself.
    pub(super) fn record(
        &self,
        cx: &Cx,
        ap: ApId,
        start: Nanos,
        op: Op,
        object: ObjectId,
    ) -> Record {
        Record {
            start,
            duration: cx.now - start,
            wait: Nanos::ZERO,
            service: Nanos::ZERO,
            op,
            side: Side::Requester,
            origin: Origin::Local,
            flags: dosmos_trace::record::Flags::default(),
            object,
            ap,
            mp: self.cluster.me,
            peer: self.cluster.me,
            bytes: 0,
            version: 0,
            range: (0, 0),
        }
    }
}

/// What an operation cost at the process that served it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) service: Nanos,
    pub(crate) wait: Nanos,
}

fn refusal_of(answer: Answer) -> Option<Refusal> {
    match answer {
        Answer::Refused(refusal) => Some(refusal),
        _ => None,
    }
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
