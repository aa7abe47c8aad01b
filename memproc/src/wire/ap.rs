//! Requests of application processes, checked on the way in, and the replies to them.

use dosmos_proto::wire as w;
use dosmos_proto::wire::ap_reply::Body as Out;
use dosmos_proto::wire::ap_request::Body as In;
use dosmos_proto::{ElementType, GroupId, Malformed, Nanos, ObjectId, Refusal, Topology};

use crate::core::Welcome;
use crate::core::input::{AtomicOp, Reply, Request, Scope, Span};

/// The first message of a session.
pub(crate) fn hello(request: w::ApRequest) -> Result<(u64, w::ApHello), Malformed> {
    match request.body {
        Some(In::Hello(hello)) => Ok((request.id, hello)),
        _ => Err(Malformed::new(
            "session",
            "its first request must be `hello`",
        )),
    }
}

/// Any later message: its patience and what it asks for.
pub(crate) fn request(request: w::ApRequest) -> Result<(Nanos, Request), Malformed> {
    let patience = Nanos::from_millis(request.timeout_ms.unwrap_or(0).into());
    let body = match request.body.ok_or(Malformed::missing("request"))? {
        In::Hello(_) => return Err(Malformed::new("session", "a second `hello`")),
        In::Declare(spec) => Request::Declare(spec.try_into()?),
        In::Open(name) => Request::Open(name),
        In::Access(access) => ap_access(access)?,
        In::Barrier(r) => Request::Barrier {
            scope: match r.group {
                Some(group) => Scope::Group(GroupId(group)),
                None if r.group_path.is_empty() => Scope::All,
                None => Scope::Path(r.group_path),
            },
            name: r.name,
        },
        In::Publish(_) => Request::Publish,
        In::Cancel(c) => Request::Cancel(c.id),
        In::Bye(_) => Request::Bye,
    };
    Ok((patience, body))
}

fn ap_access(access: w::ObjectAccess) -> Result<Request, Malformed> {
    use w::object_access::Kind;
    let object = ObjectId::from_wire(access.object);
    Ok(match access.kind.ok_or(Malformed::missing("access"))? {
        Kind::Read(r) => Request::Read {
            object,
            span: span(r),
        },
        Kind::Write(r) => Request::Write {
            object,
            first: r.first,
            data: r.data,
            epoch: r.epoch.unwrap_or(0),
        },
        Kind::Atomic(r) => Request::Atomic {
            object,
            element: r.element,
            kind: kind(&r)?,
            epoch: r.epoch.unwrap_or(0),
            op: atomic(r.op)?,
        },
        Kind::Acquire(_) => Request::Acquire(object),
        Kind::Release(r) => Request::Release {
            object,
            epoch: r.epoch.unwrap_or(0),
        },
    })
}

pub(super) fn span(read: w::Read) -> Span {
    Span {
        first: read.first,
        end: read.end.unwrap_or(0),
    }
}

pub(super) fn kind(atomic: &w::Atomic) -> Result<ElementType, Malformed> {
    atomic.r#type().try_into()
}

pub(super) fn atomic(op: Option<w::atomic::Op>) -> Result<AtomicOp, Malformed> {
    Ok(match op.ok_or(Malformed::missing("atomic operation"))? {
        w::atomic::Op::FetchAdd(n) => AtomicOp::FetchAdd(n),
        w::atomic::Op::CompareExchange(c) => AtomicOp::CompareExchange {
            expected: c.expected,
            desired: c.desired,
        },
    })
}

/// A reply.
pub(crate) fn reply(id: u64, reply: Reply) -> w::ApReply {
    let body = match reply {
        Reply::Variable(v) => Out::Variable(w::Variable::from((*v).clone())),
        Reply::Read { version, data } => Out::Read(w::ReadDone { version, data }),
        Reply::Written { version } => Out::Write(w::WriteDone { version }),
        Reply::Atomic {
            previous,
            stored,
            version,
        } => Out::Atomic(w::AtomicDone {
            previous,
            stored,
            version,
        }),
        Reply::Granted { epoch, version } => Out::Granted(w::Granted { epoch, version }),
        Reply::Released { version } => Out::Released(w::Released { version }),
        Reply::Passed { generation } => Out::Barrier(w::BarrierDone { generation }),
        Reply::Published => Out::Published(w::Published {}),
        Reply::Farewell => Out::Farewell(w::Farewell {}),
        Reply::Refused(refusal) => Out::Error(refusal.into()),
    };
    w::ApReply {
        id,
        body: Some(body),
        ..w::ApReply::default()
    }
}

/// A refusal.
pub(crate) fn refused(id: u64, refusal: Refusal) -> w::ApReply {
    reply(id, Reply::Refused(refusal))
}

/// The answer to `hello`.
pub(crate) fn welcome(id: u64, welcome: Welcome, topology: &Topology) -> w::ApReply {
    let groups = topology.memory_processes.iter().map(|mp| match mp.link {
        true => String::new(),
        false => topology.group_name(mp.group),
    });
    let homes = topology.application_processes.iter();
    let body = Out::Welcome(w::Welcome {
        ap: welcome.ap.0,
        memory_process: welcome.memory_process,
        group: welcome.group,
        rank: welcome.rank.0,
        size: welcome.rank.1,
        group_rank: welcome.group_rank.0,
        group_size: welcome.group_rank.1,
        memory_processes: welcome.memory_processes,
        memory_process_groups: groups.collect(),
        application_homes: homes.map(|ap| ap.memory_process.0).collect(),
        incarnation: welcome.incarnation,
    });
    w::ApReply {
        id,
        body: Some(body),
        ..w::ApReply::default()
    }
}
