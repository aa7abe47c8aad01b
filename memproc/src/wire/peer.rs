//! Messages between memory and link processes.

use std::sync::Arc;

use dosmos_proto::wire as w;
use dosmos_proto::wire::peer_message::Body as W;
use dosmos_proto::{ApId, GroupId, Malformed, MpId, Nanos, ObjectId};

use super::ap::{atomic, kind, span};
use crate::core::input::{Answer, Ask, AtomicOp, Body, Message, Tell};

/// A message that came in.
pub(crate) fn message(m: w::PeerMessage) -> Result<Message, Malformed> {
    let body = m.body.ok_or(Malformed::missing("peer message"))?;
    Ok(Message {
        source: MpId(m.source),
        destination: MpId(m.destination),
        call: m.call,
        hops: 0,
        service: Nanos(m.service_ns),
        wait: Nanos(m.wait_ns),
        body: body_in(body)?,
    })
}

fn body_in(body: W) -> Result<Body, Malformed> {
    let object = ObjectId::from_wire;
    Ok(match body {
        W::Hello(_) => return Err(Malformed::new("peer message", "a second `hello`")),
        W::Access(access) => Body::Ask(access_in(access)?),
        W::Flush(r) => Body::Ask(Ask::Flush { ap: ApId(r.ap) }),
        W::Declare(d) => Body::Ask(Ask::Declare {
            spec: d
                .spec
                .ok_or(Malformed::missing("declaration"))?
                .try_into()?,
            creator: MpId(d.creator),
        }),
        W::Open(name) => Body::Ask(Ask::Open(name)),
        W::Create(v) => Body::Ask(Ask::Create(Arc::new(v.try_into()?))),
        W::Invalidate(i) => Body::Ask(Ask::Invalidate {
            object: object(i.object),
            version: i.version,
        }),
        W::Update(u) => Body::Ask(Ask::Update {
            object: object(u.object),
            version: u.version,
            data: u.data,
        }),
        W::Abandon(a) => Body::Tell(Tell::Abandon {
            ap: ApId(a.ap),
            object: a.object.map(object),
        }),
        W::BarrierArrive(b) => Body::Tell(Tell::BarrierArrive {
            group: b.group.map(GroupId),
            name: b.name,
            generation: b.generation,
            arrived: 0,
        }),
        W::BarrierRelease(b) => Body::Tell(Tell::BarrierRelease {
            group: b.group.map(GroupId),
            name: b.name,
            generation: b.generation,
            failed: b.failed.map(Into::into),
        }),
        W::Gone(g) => {
            let back = g.back;
            Body::Tell(match g.process.ok_or(Malformed::missing("process"))? {
                w::process_gone::Process::Ap(ap) => Tell::ApGone { ap: ApId(ap), back },
                w::process_gone::Process::Mp(mp) => Tell::MpGone { mp: MpId(mp), back },
            })
        }
        answer => Body::Answer(answer_in(answer)?),
    })
}

fn access_in(peer: w::PeerAccess) -> Result<Ask, Malformed> {
    use w::object_access::Kind;
    let access = peer.access.ok_or(Malformed::missing("access"))?;
    let object = ObjectId::from_wire(access.object);
    let ap = ApId(peer.ap);
    Ok(match access.kind.ok_or(Malformed::missing("access"))? {
        Kind::Read(read) => Ask::Read {
            object,
            span: span(read),
            ap,
            want_copy: peer.want_copy,
        },
        Kind::Write(write) => Ask::Write {
            object,
            first: write.first,
            data: write.data,
            epoch: write.epoch.unwrap_or(0),
            ap,
        },
        Kind::Atomic(a) => Ask::Atomic {
            object,
            element: a.element,
            kind: kind(&a)?,
            epoch: a.epoch.unwrap_or(0),
            op: atomic(a.op)?,
            ap,
        },
        Kind::Acquire(_) => Ask::Acquire { object, ap },
        Kind::Release(r) => Ask::Release {
            object,
            ap,
            epoch: r.epoch.unwrap_or(0),
        },
    })
}

fn answer_in(body: W) -> Result<Answer, Malformed> {
    Ok(match body {
        W::ReadDone(d) => Answer::Read {
            version: d.version,
            data: d.data,
            copy: d.copy,
        },
        W::WriteDone(d) => Answer::Written { version: d.version },
        W::AtomicDone(d) => Answer::Atomic {
            previous: d.previous,
            stored: d.stored,
            version: d.version,
        },
        W::Granted(d) => Answer::Granted {
            epoch: d.epoch,
            version: d.version,
        },
        W::Released(d) => Answer::Released { version: d.version },
        W::FlushDone(_) => Answer::Flushed,
        W::Variable(v) => Answer::Variable(Arc::new(v.try_into()?)),
        W::Created(_) => Answer::Created,
        W::CopyAck(d) => Answer::CopyAck {
            object: ObjectId::from_wire(d.object),
            version: d.version,
        },
        W::Error(e) => Answer::Refused(e.into()),
        _ => return Err(Malformed::new("peer message", "not an answer")),
    })
}

/// A message on its way out.
pub(crate) fn to_wire(m: Message) -> w::PeerMessage {
    w::PeerMessage {
        source: m.source.0,
        destination: m.destination.0,
        call: m.call,
        service_ns: m.service.0,
        wait_ns: m.wait.0,
        body: Some(match m.body {
            Body::Ask(ask) => ask_out(ask),
            Body::Answer(answer) => answer_out(answer),
            Body::Tell(tell) => tell_out(tell),
        }),
    }
}

/// An answer to what could not be read.
pub(crate) fn refused(me: MpId, to: u32, call: u64, why: Malformed) -> w::PeerMessage {
    to_wire(Message {
        source: me,
        destination: MpId(to),
        call,
        hops: 0,
        service: Nanos::ZERO,
        wait: Nanos::ZERO,
        body: Body::Answer(Answer::Refused(why.into())),
    })
}

fn access_out(object: ObjectId, ap: ApId, want_copy: bool, kind: w::object_access::Kind) -> W {
    W::Access(w::PeerAccess {
        access: Some(w::ObjectAccess {
            object: object.to_wire(),
            kind: Some(kind),
        }),
        ap: ap.0,
        want_copy,
    })
}

fn section(epoch: u64) -> Option<u64> {
    (epoch != 0).then_some(epoch)
}

fn ask_out(ask: Ask) -> W {
    use w::object_access::Kind;
    match ask {
        Ask::Read {
            object,
            span,
            ap,
            want_copy,
        } => {
            let read = w::Read {
                first: span.first,
                end: (span.end != 0).then_some(span.end),
                epoch: None,
            };
            access_out(object, ap, want_copy, Kind::Read(read))
        }
        Ask::Write {
            object,
            first,
            data,
            epoch,
            ap,
        } => {
            let epoch = section(epoch);
            let write = w::Write { first, data, epoch };
            access_out(object, ap, false, Kind::Write(write))
        }
        Ask::Atomic {
            object,
            element,
            kind,
            epoch,
            op,
            ap,
        } => {
            let atomic = w::Atomic {
                element,
                r#type: w::ElementType::from(kind).into(),
                epoch: section(epoch),
                op: Some(atomic_out(op)),
            };
            access_out(object, ap, false, Kind::Atomic(atomic))
        }
        Ask::Acquire { object, ap } => access_out(object, ap, false, Kind::Acquire(w::Acquire {})),
        Ask::Release { object, ap, epoch } => {
            let epoch = section(epoch);
            access_out(object, ap, false, Kind::Release(w::Release { epoch }))
        }
        Ask::Flush { ap } => W::Flush(w::PeerFlush { ap: ap.0 }),
        Ask::Declare { spec, creator } => W::Declare(w::PeerDeclare {
            spec: Some(spec.into()),
            creator: creator.0,
        }),
        Ask::Open(name) => W::Open(name),
        Ask::Create(v) => W::Create((*v).clone().into()),
        Ask::Invalidate { object, version } => W::Invalidate(w::Invalidate {
            object: object.to_wire(),
            version,
        }),
        Ask::Update {
            object,
            version,
            data,
        } => W::Update(w::Update {
            object: object.to_wire(),
            version,
            data,
        }),
    }
}

fn atomic_out(op: AtomicOp) -> w::atomic::Op {
    match op {
        AtomicOp::FetchAdd(n) => w::atomic::Op::FetchAdd(n),
        AtomicOp::CompareExchange { expected, desired } => {
            w::atomic::Op::CompareExchange(w::CompareExchange { expected, desired })
        }
    }
}

fn answer_out(answer: Answer) -> W {
    match answer {
        Answer::Read {
            version,
            data,
            copy,
        } => W::ReadDone(w::PeerReadDone {
            version,
            data,
            copy,
        }),
        Answer::Written { version } => W::WriteDone(w::WriteDone { version }),
        Answer::Atomic {
            previous,
            stored,
            version,
        } => W::AtomicDone(w::AtomicDone {
            previous,
            stored,
            version,
        }),
        Answer::Granted { epoch, version } => W::Granted(w::Granted { epoch, version }),
        Answer::Released { version } => W::Released(w::Released { version }),
        Answer::Flushed => W::FlushDone(w::FlushDone {}),
        Answer::Variable(v) => W::Variable((*v).clone().into()),
        Answer::Created => W::Created(w::Created {}),
        Answer::CopyAck { object, version } => W::CopyAck(w::CopyAck {
            object: object.to_wire(),
            version,
        }),
        Answer::Refused(refusal) => W::Error(refusal.into()),
    }
}

fn tell_out(tell: Tell) -> W {
    use w::process_gone::Process;
    let gone = |process, back| {
        W::Gone(w::ProcessGone {
            process: Some(process),
            back,
        })
    };
    match tell {
        Tell::Abandon { ap, object } => W::Abandon(w::PeerAbandon {
            ap: ap.0,
            object: object.map(ObjectId::to_wire),
        }),
        Tell::BarrierArrive {
            group,
            name,
            generation,
            ..
        } => W::BarrierArrive(w::BarrierArrive {
            group: group.map(|g| g.0),
            name,
            generation,
        }),
        Tell::BarrierRelease {
            group,
            name,
            generation,
            failed,
        } => W::BarrierRelease(w::BarrierRelease {
            group: group.map(|g| g.0),
            name,
            generation,
            failed: failed.map(Into::into),
        }),
        Tell::ApGone { ap, back } => gone(Process::Ap(ap.0), back),
        Tell::MpGone { mp, back } => gone(Process::Mp(mp.0), back),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::input::Span;
    use bytes::Bytes;
    use dosmos_proto::{
        CopyPolicy, ElementType, ErrorCode, Layout, Placement, Refusal, VarId, Variable,
        VariableSpec,
    };

    fn all() -> Vec<Body> {
        let object = ObjectId::new(VarId(7), 3);
        let ap = ApId(2);
        let data = Bytes::from_static(b"12345678");
        let spec = VariableSpec {
            name: "x".into(),
            layout: Layout::new(ElementType::F64, (4, 4), (2, 2)).unwrap(),
            placement: Placement::RoundRobin(Some("/a".into())),
            policy: CopyPolicy::Update,
            lock: dosmos_proto::LockKind::Spin,
        };
        let variable = Arc::new(Variable {
            id: VarId(7),
            spec: spec.clone(),
            owners: vec![MpId(1), MpId(0)],
            group: GroupId(1),
        });
        let refusal = Refusal::new(ErrorCode::StaleEpoch, "over");
        let swap = AtomicOp::CompareExchange {
            expected: 1,
            desired: 2,
        };
        let atomic = |op| Ask::Atomic {
            object,
            element: 1,
            kind: ElementType::I32,
            epoch: 4,
            op,
            ap,
        };
        let asks = [
            Ask::Read {
                object,
                span: Span { first: 1, end: 2 },
                ap,
                want_copy: true,
            },
            Ask::Write {
                object,
                first: 1,
                data: data.clone(),
                epoch: 9,
                ap,
            },
            atomic(AtomicOp::FetchAdd(5)),
            atomic(swap),
            Ask::Acquire { object, ap },
            Ask::Release {
                object,
                ap,
                epoch: 9,
            },
            Ask::Flush { ap },
            Ask::Declare {
                spec,
                creator: MpId(1),
            },
            Ask::Open("x".into()),
            Ask::Create(Arc::clone(&variable)),
            Ask::Invalidate { object, version: 2 },
            Ask::Update {
                object,
                version: 2,
                data: data.clone(),
            },
        ];
        let answers = [
            Answer::Read {
                version: 1,
                data,
                copy: true,
            },
            Answer::Written { version: 1 },
            Answer::Atomic {
                previous: 3,
                stored: true,
                version: 1,
            },
            Answer::Granted {
                epoch: 2,
                version: 1,
            },
            Answer::Released { version: 1 },
            Answer::Flushed,
            Answer::Variable(variable),
            Answer::Created,
            Answer::CopyAck { object, version: 2 },
            Answer::Refused(refusal.clone()),
        ];
        let tells = [
            Tell::Abandon {
                ap,
                object: Some(object),
            },
            Tell::Abandon { ap, object: None },
            Tell::BarrierArrive {
                group: Some(GroupId(1)),
                name: "b".into(),
                generation: 3,
                arrived: 0,
            },
            Tell::BarrierRelease {
                group: None,
                name: "b".into(),
                generation: 3,
                failed: Some(refusal),
            },
            Tell::ApGone { ap, back: true },
            Tell::MpGone {
                mp: MpId(3),
                back: false,
            },
        ];
        let asks = asks.into_iter().map(Body::Ask);
        let answers = answers.into_iter().map(Body::Answer);
        asks.chain(answers)
            .chain(tells.into_iter().map(Body::Tell))
            .collect()
    }

    #[test]
    fn every_message_survives_the_wire() {
        for body in all() {
            let sent = Message {
                source: MpId(1),
                destination: MpId(2),
                call: 3,
                hops: 0,
                service: Nanos(5),
                wait: Nanos(6),
                body,
            };
            assert_eq!(message(to_wire(sent.clone())).unwrap(), sent);
        }
    }

    #[test]
    fn an_empty_message_is_refused_by_name() {
        let e = message(w::PeerMessage::default()).unwrap_err();
        assert!(e.to_string().contains("peer message"), "{e}");
    }
}
