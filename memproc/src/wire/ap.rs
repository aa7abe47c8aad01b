//! Requests of application processes, checked on the way in, and the replies to them.

use dosmos_proto::wire as w;
use dosmos_proto::wire::ap_reply::Body as Out;
use dosmos_proto::wire::ap_request::Body as In;
use dosmos_proto::{GroupId, Malformed, Nanos, ObjectId, Refusal, Topology};

use super::access;
use crate::core::Welcome;
use crate::core::messages::{CachedReads, Reply, Request, Scope};

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

/// Any later message: its timeout and the request.
pub(crate) fn request(request: w::ApRequest) -> Result<(Option<Nanos>, Request), Malformed> {
    let timeout = request.timeout_ms.map(|ms| Nanos::from_millis(ms.into()));
    let body = match request.body.ok_or(Malformed::missing("request"))? {
        In::Hello(_) => return Err(Malformed::new("session", "a second `hello`")),
        In::Declare(spec) => Request::Declare(spec.try_into()?),
        In::Open(name) => Request::Open(name),
        In::Access(access) => Request::Access(access::from_wire(access)?),
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
        In::Report(_) => Request::Report(Vec::new()),
    };
    Ok((timeout, body))
}

/// Reads that an application process served itself.
pub(crate) fn reads(reads: Vec<w::CachedReads>) -> Vec<CachedReads> {
    let read = |r: w::CachedReads| CachedReads {
        object: ObjectId::from_wire(r.object),
        count: r.count,
        first: Nanos(r.first_ns),
        last: Nanos(r.last_ns),
        bytes: r.bytes,
        version: r.version,
    };
    reads.into_iter().map(read).collect()
}

/// Not a reply: a copy is void.
pub(crate) fn invalidate(object: ObjectId) -> w::ApReply {
    w::ApReply {
        body: Some(Out::Invalidate(object.to_wire())),
        ..w::ApReply::default()
    }
}

/// A reply.
pub(crate) fn reply(id: u64, reply: Reply) -> w::ApReply {
    let body = match reply {
        Reply::Variable(v) => Out::Variable(w::Variable::from((*v).clone())),
        Reply::Read {
            version,
            data,
            keep,
        } => Out::Read(w::ReadDone {
            version,
            data,
            keep,
        }),
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
    let groups = topology.memory_processes().iter().map(|mp| match mp.link {
        true => String::new(),
        false => topology.group_name(mp.group),
    });
    let homes = topology.application_processes().iter();
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
        incarnation: welcome.incarnation.to_wire(),
    });
    w::ApReply {
        id,
        body: Some(body),
        ..w::ApReply::default()
    }
}
