//! Requests of application processes, checked on the way in, and the replies to them.

use bytes::Bytes;
use dosmos_proto::wire as w;
use dosmos_proto::wire::ap_reply::Body as Out;
use dosmos_proto::wire::ap_request::Body as In;
use dosmos_proto::{GroupId, Malformed, Nanos, ObjectId, Refusal, Topology};

use super::access;
use crate::core::Welcome;
use crate::core::messages::{LocalAccesses, LocalKind, Reply, Request, Return, Scope, Wanted};

/// The first message of a session.
pub fn hello(request: w::ApRequest) -> Result<(u64, w::ApHello), Malformed> {
    match request.body {
        Some(In::Hello(hello)) => Ok((request.id, hello)),
        _ => Err(Malformed::new(
            "session",
            "its first request must be `hello`",
        )),
    }
}

/// Any later message: its timeout and the request.
pub fn request(request: w::ApRequest) -> Result<(Option<Nanos>, Request), Malformed> {
    let timeout = request.timeout_ms.map(|ms| Nanos::from_millis(ms.into()));
    let body = match request.body.ok_or(Malformed::missing("request"))? {
        In::Hello(_) => return Err(Malformed::new("session", "a second `hello`")),
        In::Declare(spec) => Request::Declare(spec.try_into()?),
        In::Open(name) => Request::Open(name),
        In::Access(access) if request.no_hurry => Request::Posted(access::from_wire(access)?),
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

/// Accesses that an application process served itself.
pub fn local(accesses: Vec<w::LocalAccesses>) -> Vec<LocalAccesses> {
    let of = |a: w::LocalAccesses| LocalAccesses {
        object: ObjectId::from_wire(a.object),
        kind: match a.kind() {
            w::LocalKind::Read => LocalKind::Read,
            w::LocalKind::Write => LocalKind::Write,
            w::LocalKind::Section => LocalKind::Section,
            w::LocalKind::SectionRead => LocalKind::SectionRead,
            w::LocalKind::SectionWrite => LocalKind::SectionWrite,
            w::LocalKind::GrantedRead => LocalKind::GrantedRead,
        },
        count: a.count,
        first: Nanos(a.first_ns),
        last: Nanos(a.last_ns),
        bytes: a.bytes,
        version: a.version,
        from_version: a.from_version,
        elements: (a.first_element, a.end_element),
    };
    accesses.into_iter().map(of).collect()
}

/// What an application process made of objects that are delegated to it.
pub fn returns(returns: Vec<w::Return>) -> Vec<Return> {
    let of = |r: w::Return| Return {
        object: ObjectId::from_wire(r.object),
        delegation: r.delegation,
        version: r.version,
        kept: r.kept,
        parts: r.parts.into_iter().map(|p| (p.first, p.data)).collect(),
        served: r.served,
        epoch: r.epoch,
        // A section goes on at the owner only if the object is there.
        in_section: r.in_section && !r.kept,
    };
    returns.into_iter().map(of).collect()
}

/// Not a reply: others need an object that is delegated to the application process.
pub fn recall(object: ObjectId, delegation: u64, wanted: Wanted) -> w::ApReply {
    use w::recall::Wanted as W;
    let wanted = match wanted {
        Wanted::Elements(first, end) => W::Elements(w::Elements { first, end }),
        Wanted::Everything => W::Everything(w::Everything {}),
        Wanted::Lost => W::Lost(w::Lost {}),
    };
    w::ApReply {
        body: Some(Out::Recall(w::Recall {
            object: object.to_wire(),
            delegation,
            wanted: Some(wanted),
        })),
        ..w::ApReply::default()
    }
}

/// Not a reply: a copy is void.
pub fn invalidate(object: ObjectId) -> w::ApReply {
    w::ApReply {
        body: Some(Out::Invalidate(object.to_wire())),
        ..w::ApReply::default()
    }
}

/// That a copy has this content now.
pub fn update(object: ObjectId, version: u64, data: Bytes) -> w::ApReply {
    w::ApReply {
        body: Some(Out::Update(w::CopyUpdate {
            object: object.to_wire(),
            version,
            data,
        })),
        ..w::ApReply::default()
    }
}

/// That what it has of an object is of this version now.
pub fn confirm(object: ObjectId, version: u64) -> w::ApReply {
    w::ApReply {
        body: Some(Out::Confirm(w::CopyConfirm {
            object: object.to_wire(),
            version,
        })),
        ..w::ApReply::default()
    }
}

/// A reply.
pub fn reply(id: u64, reply: Reply) -> w::ApReply {
    let body = match reply {
        Reply::Variable(v) => Out::Variable(w::Variable::from((*v).clone())),
        Reply::Read {
            version,
            data,
            keep,
            delegation,
            unchanged,
        } => Out::Read(w::ReadDone {
            version,
            data,
            keep,
            delegation: delegation.map(|d| d.number),
            unchanged,
            epoch: delegation.map_or(0, |d| d.epoch),
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
        Reply::Granted {
            epoch,
            version,
            value,
        } => Out::Granted(w::Granted {
            epoch,
            version,
            value,
        }),
        Reply::Released { version } => Out::Released(w::Released { version }),
        Reply::Passed(opening) => Out::Barrier(w::BarrierDone {
            generation: opening.generation,
        }),
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
pub fn refused(id: u64, refusal: Refusal) -> w::ApReply {
    reply(id, Reply::Refused(refusal))
}

/// The answer to `hello`.
pub fn welcome(id: u64, welcome: Welcome, topology: &Topology) -> w::ApReply {
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
        ..w::Welcome::default()
    });
    w::ApReply {
        id,
        body: Some(body),
        ..w::ApReply::default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may
mod tests {
    use super::*;

    #[test]
    fn an_access_that_nobody_waits_for_is_a_posted_one() {
        let of = |no_hurry| {
            let kind = w::object_access::Kind::Acquire(w::Acquire::default());
            let access = w::ObjectAccess {
                kind: Some(kind),
                ..w::ObjectAccess::default()
            };
            let asked = w::ApRequest {
                body: Some(In::Access(access)),
                no_hurry,
                ..w::ApRequest::default()
            };
            request(asked).unwrap().1
        };
        assert!(matches!(of(false), Request::Access(_)));
        assert!(matches!(of(true), Request::Posted(_)));
    }
}
