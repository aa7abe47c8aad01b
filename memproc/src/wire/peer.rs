//! Messages between memory and link processes.

use std::sync::Arc;

use dosmos_proto::wire as w;
use dosmos_proto::wire::peer_message::Body as W;
use dosmos_proto::{ApId, GroupId, Incarnation, Malformed, MpId, Nanos, ObjectId};

use super::{access, seat};
use crate::core::messages::{
    Announced, Body, CallId, Cost, KnownNames, Message, Notice, PeerRequest, Response, Role,
};

/// Bits of a call that name the role.
const ROLE_BITS: u32 = 3;

fn call_from_wire(call: u64) -> Result<CallId, Malformed> {
    let role = match call & ((1 << ROLE_BITS) - 1) {
        1 => Role::Requester,
        2 => Role::Home,
        3 => Role::Owner,
        4 => Role::Replica,
        _ => return Err(Malformed::new("call", "it names no role")),
    };
    Ok(CallId {
        role,
        number: call >> ROLE_BITS,
    })
}

fn call_to_wire(call: CallId) -> u64 {
    let role = match call.role {
        Role::Requester => 1,
        Role::Home => 2,
        Role::Owner => 3,
        Role::Replica => 4,
    };
    call.number << ROLE_BITS | role
}

/// A message that came in.
pub fn message(m: w::PeerMessage) -> Result<Message, Malformed> {
    let cost = Cost {
        service: Nanos(m.service_ns),
        wait: Nanos(m.wait_ns),
    };
    Ok(Message {
        source: MpId(m.source),
        source_incarnation: m.source_incarnation.map(Incarnation::from_wire),
        destination: MpId(m.destination),
        destination_incarnation: m.destination_incarnation.map(Incarnation::from_wire),
        body: body(
            m.body.ok_or(Malformed::missing("peer message"))?,
            m.call,
            cost,
        )?,
    })
}

fn body(body: W, call: u64, cost: Cost) -> Result<Body, Malformed> {
    let body = match notice(body)? {
        Ok(notice) => return Ok(Body::Notice(notice)),
        Err(body) => body,
    };
    let call = call_from_wire(call)?;
    Ok(match request(body)? {
        Ok(request) => Body::Request { call, request },
        Err(body) => Body::Response {
            call,
            cost,
            response: response(body)?,
        },
    })
}

/// The request that a body is; the body again if it is none.
fn request(body: W) -> Result<Result<PeerRequest, W>, Malformed> {
    let object = ObjectId::from_wire;
    Ok(Ok(match body {
        W::Access(a) => PeerRequest::Access {
            access: access::from_wire(a.access.ok_or(Malformed::missing("access"))?)?,
            ap: ApId(a.ap),
            want_copy: a.want_copy,
        },
        W::Renew(_) => PeerRequest::Renew,
        W::Flush(f) => PeerRequest::Flush { ap: ApId(f.ap) },
        W::Declare(d) => PeerRequest::Declare {
            spec: d
                .spec
                .ok_or(Malformed::missing("declaration"))?
                .try_into()?,
            creator: MpId(d.creator),
        },
        W::Open(name) => PeerRequest::Open(name),
        W::Create(v) => PeerRequest::Create(Arc::new(v.try_into()?)),
        W::Names(n) => PeerRequest::Names { after: n.after },
        W::Invalidate(i) => PeerRequest::Invalidate {
            object: object(i.object),
            version: i.version,
        },
        W::Update(u) => PeerRequest::Update {
            object: object(u.object),
            version: u.version,
            data: u.data,
            no_hurry: u.no_hurry,
        },
        W::Ballot(b) => PeerRequest::Ballot(seat::ballot(b)?),
        W::Replicate(r) => PeerRequest::Replicate(seat::replica(r)?),
        W::Compare(c) => PeerRequest::Compare(seat::compare(c)?),
        other => return Ok(Err(other)),
    }))
}

fn response(body: W) -> Result<Response, Malformed> {
    Ok(match body {
        W::ReadDone(d) => Response::Read {
            version: d.version,
            data: d.data,
            copy: d.copy,
            delegation: None,
            lease: d.lease_ns.map(Nanos),
        },
        W::WriteDone(d) => Response::Written { version: d.version },
        W::AtomicDone(d) => Response::Atomic {
            previous: d.previous,
            stored: d.stored,
            version: d.version,
        },
        W::Granted(d) => Response::Granted {
            epoch: d.epoch,
            version: d.version,
            value: d.value,
        },
        W::Released(d) => Response::Released { version: d.version },
        W::Renewed(_) => Response::Renewed,
        W::FlushDone(_) => Response::Flushed,
        W::Variable(a) => Response::Variable(announced(a)?),
        W::Created(_) => Response::Created,
        W::KnownNames(n) => Response::Names(known_names(n)?),
        W::CopyAck(d) => Response::CopyAck {
            object: ObjectId::from_wire(d.object),
            version: d.version,
            no_hurry: d.no_hurry,
        },
        W::Answer(a) => Response::Answer(seat::answer(a)?),
        W::Replicated(_) => Response::Replicated,
        W::Compared(c) => Response::Compared(seat::compared(c)),
        W::Moved(s) => Response::Moved(seat::config(s)),
        W::Error(e) => Response::Refused(e.into()),
        _ => return Err(Malformed::new("peer message", "a second `hello`")),
    })
}

fn announced(a: w::Announced) -> Result<Announced, Malformed> {
    let variable = a.variable.ok_or(Malformed::missing("variable"))?;
    let owners = a.owners.into_iter();
    Ok(Announced {
        variable: Arc::new(variable.try_into()?),
        owners: owners
            .map(|o| (MpId(o.mp), Incarnation::from_wire(o.incarnation)))
            .collect(),
    })
}

fn known_names(n: w::KnownNames) -> Result<KnownNames, Malformed> {
    let told = n.told.into_iter();
    Ok(KnownNames {
        announced: n
            .announced
            .into_iter()
            .map(announced)
            .collect::<Result<_, _>>()?,
        told: told
            .map(|v| Ok(Arc::new(v.try_into()?)))
            .collect::<Result<_, Malformed>>()?,
        more: n.more,
    })
}

/// The notice that a body is; the body again if it is none.
fn notice(body: W) -> Result<Result<Notice, W>, Malformed> {
    Ok(Ok(match body {
        W::Seated(s) => Notice::Seated(seat::config(s)),
        W::Abandon(a) => Notice::Abandon {
            ap: ApId(a.ap),
            object: a.object.map(ObjectId::from_wire),
        },
        W::BarrierArrive(b) => Notice::BarrierArrive {
            group: b.group.map(GroupId),
            name: b.name,
            generation: b.generation,
        },
        W::BarrierWithdraw(b) => Notice::BarrierWithdraw {
            group: b.group.map(GroupId),
            name: b.name,
            generation: b.generation,
        },
        W::BarrierRelease(b) => Notice::BarrierRelease {
            group: b.group.map(GroupId),
            name: b.name,
            generation: b.generation,
            failed: b.failed.map(Into::into),
        },
        W::Gone(g) => {
            let back = g.back;
            match g.process.ok_or(Malformed::missing("process"))? {
                w::process_gone::Process::Ap(ap) => Notice::ApGone { ap: ApId(ap), back },
                w::process_gone::Process::Mp(mp) => Notice::MpGone { mp: MpId(mp), back },
            }
        }
        other => return Ok(Err(other)),
    }))
}

/// A message on its way out.
pub fn to_wire(m: Message) -> w::PeerMessage {
    let (call, cost, body) = match m.body {
        Body::Request { call, request } => {
            (call_to_wire(call), Cost::default(), request_out(request))
        }
        Body::Response {
            call,
            cost,
            response,
        } => (call_to_wire(call), cost, response_out(response)),
        Body::Notice(notice) => (0, Cost::default(), notice_out(notice)),
    };
    w::PeerMessage {
        source: m.source.0,
        source_incarnation: m.source_incarnation.map(Incarnation::to_wire),
        destination: m.destination.0,
        destination_incarnation: m.destination_incarnation.map(Incarnation::to_wire),
        call,
        service_ns: cost.service.0,
        wait_ns: cost.wait.0,
        body: Some(body),
        out_of_band: Vec::new(),
    }
}

/// The response to a request that could not be read; none if it was not a request.
pub(crate) fn refused(me: MpId, to: u32, call: u64, why: Malformed) -> Option<w::PeerMessage> {
    let call = call_from_wire(call).ok()?;
    Some(to_wire(Message {
        // It says nothing about what this process holds.
        source: me,
        source_incarnation: None,
        destination: MpId(to),
        destination_incarnation: None,
        body: Body::Response {
            call,
            cost: Cost::default(),
            response: Response::Refused(why.into()),
        },
    }))
}

fn request_out(request: PeerRequest) -> W {
    match request {
        PeerRequest::Access {
            access,
            ap,
            want_copy,
        } => W::Access(w::PeerAccess {
            access: Some(access::to_wire(access)),
            ap: ap.0,
            want_copy,
        }),
        PeerRequest::Renew => W::Renew(w::PeerRenew {}),
        PeerRequest::Flush { ap } => W::Flush(w::PeerFlush { ap: ap.0 }),
        PeerRequest::Declare { spec, creator } => W::Declare(w::PeerDeclare {
            spec: Some(spec.into()),
            creator: creator.0,
        }),
        PeerRequest::Open(name) => W::Open(name),
        PeerRequest::Create(v) => W::Create((*v).clone().into()),
        PeerRequest::Names { after } => W::Names(w::NamesOfHome { after }),
        PeerRequest::Invalidate { object, version } => W::Invalidate(w::Invalidate {
            object: object.to_wire(),
            version,
        }),
        PeerRequest::Update {
            object,
            version,
            data,
            no_hurry,
        } => W::Update(w::Update {
            object: object.to_wire(),
            version,
            data,
            no_hurry,
        }),
        PeerRequest::Ballot(ballot) => W::Ballot(seat::ballot_out(ballot)),
        PeerRequest::Replicate(replica) => W::Replicate(seat::replica_out(replica)),
        PeerRequest::Compare(compare) => W::Compare(seat::compare_out(compare)),
    }
}

fn announced_out(Announced { variable, owners }: Announced) -> w::Announced {
    let owners = owners.into_iter();
    w::Announced {
        variable: Some((*variable).clone().into()),
        owners: owners
            .map(|(mp, incarnation)| w::OwnerIncarnation {
                mp: mp.0,
                incarnation: incarnation.to_wire(),
            })
            .collect(),
    }
}

fn response_out(response: Response) -> W {
    match response {
        Response::Read {
            version,
            data,
            copy,
            delegation: _,
            lease,
        } => W::ReadDone(w::PeerReadDone {
            version,
            data,
            copy,
            lease_ns: lease.map(|l| l.0),
        }),
        Response::Written { version } => W::WriteDone(w::WriteDone { version }),
        Response::Atomic {
            previous,
            stored,
            version,
        } => W::AtomicDone(w::AtomicDone {
            previous,
            stored,
            version,
        }),
        Response::Granted {
            epoch,
            version,
            value,
        } => W::Granted(w::Granted {
            epoch,
            version,
            value,
        }),
        Response::Released { version } => W::Released(w::Released { version }),
        Response::Renewed => W::Renewed(w::Renewed {}),
        Response::Flushed => W::FlushDone(w::FlushDone {}),
        Response::Variable(announced) => W::Variable(announced_out(announced)),
        Response::Created => W::Created(w::Created {}),
        Response::Names(names) => W::KnownNames(w::KnownNames {
            announced: names.announced.into_iter().map(announced_out).collect(),
            told: names.told.iter().map(|v| (**v).clone().into()).collect(),
            more: names.more,
        }),
        Response::CopyAck {
            object,
            version,
            no_hurry,
        } => W::CopyAck(w::CopyAck {
            object: object.to_wire(),
            version,
            no_hurry,
        }),
        Response::Answer(answer) => W::Answer(seat::answer_out(answer)),
        Response::Replicated => W::Replicated(w::Replicated {}),
        Response::Compared(compared) => W::Compared(seat::compared_out(compared)),
        Response::Moved(config) => W::Moved(seat::config_out(config)),
        Response::Refused(refusal) => W::Error(refusal.into()),
    }
}

fn notice_out(notice: Notice) -> W {
    use w::process_gone::Process;
    let gone = |process, back| {
        W::Gone(w::ProcessGone {
            process: Some(process),
            back,
        })
    };
    match notice {
        Notice::Abandon { ap, object } => W::Abandon(w::PeerAbandon {
            ap: ap.0,
            object: object.map(ObjectId::to_wire),
        }),
        Notice::BarrierArrive {
            group,
            name,
            generation,
        } => W::BarrierArrive(w::BarrierArrive {
            group: group.map(|g| g.0),
            name,
            generation,
        }),
        Notice::BarrierWithdraw {
            group,
            name,
            generation,
        } => W::BarrierWithdraw(w::BarrierArrive {
            group: group.map(|g| g.0),
            name,
            generation,
        }),
        Notice::BarrierRelease {
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
        Notice::ApGone { ap, back } => gone(Process::Ap(ap.0), back),
        Notice::MpGone { mp, back } => gone(Process::Mp(mp.0), back),
        Notice::Seated(config) => W::Seated(seat::config_out(config)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::messages::{
        Access, AccessKind, Answer, AtomicOp, Ballot, ElementRange, Keep, Replica, Vote, WriteData,
    };
    use crate::core::replica::seat::{Config, Seat, State};
    use bytes::Bytes;
    use dosmos_proto::{
        CopyPolicy, ElementType, ErrorCode, Layout, Placement, Refusal, VarId, Variable,
        VariableSpec,
    };

    fn all() -> Vec<Body> {
        let object = ObjectId::new(VarId(7), 3);
        let ap = ApId(2);
        let data = Bytes::from_static(b"12345678");
        let layout = Layout::new(ElementType::F64, (4, 4), (2, 2)).unwrap();
        let spec = VariableSpec::new("x", layout)
            .unwrap()
            .with_placement(Placement::RoundRobin(Some("/a".into())))
            .with_policy(CopyPolicy::Update)
            .with_lock(dosmos_proto::LockKind::Spin);
        let owners = vec![MpId(1), MpId(0)];
        let variable = Variable::new(VarId(7), spec.clone(), owners, GroupId(1));
        let variable = Arc::new(variable.unwrap());
        let refusal = Refusal::new(ErrorCode::StaleEpoch, "over");
        let seat = Seat {
            mp: MpId(1),
            replicas: 2,
        };
        let config = Config {
            seat,
            term: 1025,
            members: vec![(MpId(1), Incarnation::new(1, 7))],
        };
        let vote = Vote {
            granted: true,
            promised: 1026,
            accepted: config.clone(),
        };
        let swap = AtomicOp::CompareExchange {
            expected: 1,
            desired: 2,
        };
        let access = |kind| PeerRequest::Access {
            access: Access { object, kind },
            ap,
            want_copy: false,
        };
        let atomic = |op| {
            access(AccessKind::Atomic {
                element: 1,
                element_type: ElementType::I32,
                op,
                epoch: Some(4),
            })
        };
        let range = ElementRange {
            first: 1,
            end: Some(3),
        };
        let requests = [
            access(AccessKind::Read {
                range,
                epoch: None,
                keep: Keep::Nothing,
            }),
            PeerRequest::Access {
                access: Access {
                    object,
                    kind: AccessKind::Read {
                        range: ElementRange::ALL,
                        epoch: Some(2),
                        keep: Keep::Nothing,
                    },
                },
                ap,
                want_copy: true,
            },
            access(AccessKind::Write {
                write: WriteData {
                    adds: true,
                    first: 1,
                    runs: None,
                    data: data.clone(),
                    accesses: 7,
                },
                epoch: Some(4),
            }),
            access(AccessKind::Write {
                write: WriteData {
                    adds: false,
                    first: 1,
                    runs: Some(dosmos_proto::Runs::from_wire(1, &[2, 1, 1]).unwrap()),
                    data: data.clone(),
                    accesses: 1,
                },
                epoch: None,
            }),
            atomic(AtomicOp::FetchAdd(3)),
            atomic(swap),
            access(AccessKind::Acquire { want_value: true }),
            access(AccessKind::Release {
                epoch: Some(4),
                write: Some(WriteData {
                    adds: false,
                    first: 3,
                    runs: None,
                    data: data.clone(),
                    accesses: 9,
                }),
            }),
            access(AccessKind::Release {
                epoch: None,
                write: None,
            }),
            PeerRequest::Renew,
            PeerRequest::Flush { ap },
            PeerRequest::Declare {
                spec,
                creator: MpId(1),
            },
            PeerRequest::Open("x".into()),
            PeerRequest::Create(Arc::clone(&variable)),
            PeerRequest::Names {
                after: "grid".into(),
            },
            PeerRequest::Invalidate { object, version: 2 },
            PeerRequest::Update {
                object,
                version: 2,
                data: data.clone(),
                no_hurry: true,
            },
            PeerRequest::Ballot(Ballot::Prepare(seat, 1025)),
            PeerRequest::Ballot(Ballot::Accept(config.clone())),
            PeerRequest::Ballot(Ballot::Lead(vec![(seat, 7)])),
            PeerRequest::Ballot(Ballot::Recover),
            PeerRequest::Replicate(Replica {
                seat,
                term: 7,
                joining: 3,
                object,
                state: State {
                    version: 5,
                    epoch: 6,
                    data: Some(data.clone()),
                },
            }),
        ];
        let responses = [
            Response::Read {
                version: 1,
                data,
                copy: true,
                delegation: None,
                lease: Some(Nanos(7)),
            },
            Response::Written { version: 1 },
            Response::Atomic {
                previous: 3,
                stored: true,
                version: 1,
            },
            Response::Granted {
                epoch: 2,
                version: 1,
                value: Some(Bytes::from_static(b"all of it")),
            },
            Response::Released { version: 1 },
            Response::Renewed,
            Response::Flushed,
            Response::Variable(Announced {
                variable,
                owners: vec![(MpId(1), Incarnation::new(1, 7))],
            }),
            Response::Created,
            Response::CopyAck {
                object,
                version: 2,
                no_hurry: true,
            },
            Response::Answer(Answer::Vote(vote.clone())),
            Response::Answer(Answer::Led(vec![(seat, 0)])),
            Response::Answer(Answer::Known {
                active: true,
                anew: false,
                votes: vec![(vote.promised, vote.accepted)],
            }),
            Response::Replicated,
            Response::Moved(config.clone()),
            Response::Refused(refusal.clone()),
        ];
        let notices = [
            Notice::Abandon {
                ap,
                object: Some(object),
            },
            Notice::Abandon { ap, object: None },
            Notice::BarrierArrive {
                group: Some(GroupId(1)),
                name: "b".into(),
                generation: 3,
            },
            Notice::BarrierWithdraw {
                group: None,
                name: "b".into(),
                generation: 3,
            },
            Notice::BarrierRelease {
                group: None,
                name: "b".into(),
                generation: 3,
                failed: Some(refusal),
            },
            Notice::Seated(config),
            Notice::ApGone { ap, back: true },
            Notice::MpGone {
                mp: MpId(3),
                back: false,
            },
        ];
        let call = CallId {
            role: Role::Home,
            number: 3,
        };
        let cost = Cost {
            service: Nanos(5),
            wait: Nanos(6),
        };
        let requests = requests
            .into_iter()
            .map(|request| Body::Request { call, request });
        let responses = responses.into_iter().map(|response| Body::Response {
            call,
            cost,
            response,
        });
        requests
            .chain(responses)
            .chain(notices.into_iter().map(Body::Notice))
            .collect()
    }

    #[test]
    fn every_message_survives_the_wire() {
        for body in all() {
            let sent = Message {
                source: MpId(1),
                source_incarnation: Some(Incarnation::new(1, 2)),
                destination: MpId(2),
                destination_incarnation: Some(Incarnation::new(2, 3)),
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
