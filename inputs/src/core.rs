//! Memory and link processes, all connected, whose application processes and peers say anything.
//!
//! An input is a sequence of steps: a byte that says what happens, a byte that says where, the length of a message (two bytes,
//! little-endian) and the message.

use std::collections::VecDeque;

use bytes::Bytes;
use dosmos_memproc::core::messages::{Input, Message as PeerMessage, Output, Reply, Request};
use dosmos_memproc::core::{Core, Settings};
use dosmos_memproc::wire::{ap, peer};
use dosmos_proto::{ApId, Incarnation, MpId, Nanos, ObjectId, Placement, VarId, wire as w};
use prost::Message;

use crate::samples;

/// Messages between the processes after one step: far more than any step needs.
const MOST_MESSAGES: usize = 10_000;
/// Contents of a variable that a step may declare: larger ones take the memory that they ask for.
const MOST_BYTES: u64 = 1 << 20;
const TIMEOUT: Nanos = Nanos(60_000_000_000);

struct Cluster {
    now: Nanos,
    cores: Vec<Core>,
    /// On their way: from, to, what.
    messages: VecDeque<(MpId, MpId, PeerMessage)>,
    /// Numbers of the variables that were declared.
    variables: Vec<VarId>,
}

impl Cluster {
    fn new() -> Self {
        let topology = samples::topology();
        let core = |mp: usize| {
            Core::new(Settings {
                topology: topology.clone(),
                me: MpId(mp as u32),
                incarnation: Incarnation::new(1, mp as u32),
                overrides: Vec::new(),
                default_timeout: TIMEOUT,
                in_application: false,
            })
        };
        let mut cluster = Self {
            now: Nanos(1_000_000),
            cores: (0..topology.memory_processes().len()).map(core).collect(),
            messages: VecDeque::new(),
            variables: Vec::new(),
        };
        for mp in 0..cluster.cores.len() {
            for neighbour in cluster.cores[mp].neighbours() {
                cluster.handle(mp, Input::PeerUp(neighbour));
            }
        }
        for ap in 0..topology.application_processes().len() {
            cluster.connect(ap);
        }
        cluster.deliver();
        cluster
    }

    /// The application process of each memory process that has one is of the same number.
    fn connect(&mut self, ap: usize) {
        let mut out = Vec::new();
        if let Some(core) = self.cores.get_mut(ap) {
            // It may be connected already.
            let _ = core.connect(self.now, &format!("ap{ap}"), &mut out);
            self.pass_on(ap, out);
        }
    }

    fn handle(&mut self, mp: usize, input: Input) {
        let mut out = Vec::new();
        self.cores[mp].handle(self.now, input, &mut out);
        self.pass_on(mp, out);
    }

    fn pass_on(&mut self, mp: usize, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Send { to, message } => {
                    let message = peer::message(peer::to_wire(message)).unwrap();
                    self.messages.push_back((MpId(mp as u32), to, message));
                }
                Output::Reply { id, reply, .. } => {
                    if let Reply::Variable(variable) = &reply
                        && !self.variables.contains(&variable.id())
                    {
                        self.variables.push(variable.id());
                    }
                    ap::reply(id, reply);
                }
                _ => {}
            }
        }
    }

    fn deliver(&mut self) {
        let mut delivered = 0;
        while let Some((from, to, message)) = self.messages.pop_front() {
            delivered += 1;
            assert!(
                delivered < MOST_MESSAGES,
                "messages without end: {message:?}"
            );
            self.handle(to.index(), Input::Message { from, message });
        }
    }

    /// An object of a variable that exists, if there is one.
    fn existing(&self, object: &mut u64) {
        let said = ObjectId::from_wire(*object);
        if !self.variables.is_empty() {
            let var = self.variables[said.var.index() % self.variables.len()];
            *object = ObjectId::new(var, said.index).to_wire();
        }
    }

    fn request(&mut self, at: usize, mut request: w::ApRequest) {
        let ap = ApId(at as u32);
        if let Some(w::ap_request::Body::Access(access)) = &mut request.body {
            self.existing(&mut access.object);
        }
        request
            .local
            .iter_mut()
            .for_each(|l| self.existing(&mut l.object));
        request
            .returns
            .iter_mut()
            .for_each(|r| self.existing(&mut r.object));
        let id = request.id;
        let beside = [
            Request::Report(ap::local(std::mem::take(&mut request.local))),
            Request::Return(ap::returns(std::mem::take(&mut request.returns))),
        ];
        let said = ap::request(request).ok();
        let said = said
            .into_iter()
            .chain(beside.map(|request| (None, request)));
        for (timeout, request) in said {
            if matches!(&request, Request::Declare(spec) if spec.layout().total_bytes() > MOST_BYTES)
            {
                continue;
            }
            let input = Input::Request {
                ap,
                id,
                timeout,
                request,
            };
            self.handle(at, input);
        }
    }

    fn hear(&mut self, at: usize, neighbour: usize, mut message: w::PeerMessage) {
        use w::peer_message::Body;
        match &mut message.body {
            Some(Body::Access(access)) => {
                if let Some(access) = &mut access.access {
                    self.existing(&mut access.object);
                }
            }
            Some(Body::Invalidate(i)) => self.existing(&mut i.object),
            Some(Body::Update(u)) => self.existing(&mut u.object),
            Some(Body::CopyAck(a)) => self.existing(&mut a.object),
            _ => {}
        }
        let neighbours = self.cores[at].neighbours();
        let from = neighbours[neighbour % neighbours.len()];
        if let Ok(message) = peer::message(message)
            && !is_large(&message)
        {
            self.handle(at, Input::Message { from, message });
        }
    }

    fn step(&mut self, what: u8, at: usize, message: &[u8]) {
        let (kind, neighbour) = (what % 6, usize::from(what / 6));
        let at = at % self.cores.len();
        let neighbours = self.cores[at].neighbours();
        let other = neighbours[neighbour % neighbours.len()];
        let here = MpId(at as u32);
        match kind {
            0 => {
                if let Ok(request) = w::ApRequest::decode(message) {
                    self.request(at, request);
                }
            }
            1 => {
                if let Ok(message) = w::PeerMessage::decode(message) {
                    self.hear(at, neighbour, message);
                }
            }
            2 => {
                let ms = message
                    .iter()
                    .fold(1u64, |ms, b| ms.wrapping_mul(3) + u64::from(*b));
                self.now = Nanos(self.now.0 + ms.min(1 << 30) * 1_000_000);
                (0..self.cores.len()).for_each(|mp| self.handle(mp, Input::Tick));
            }
            3 => self.handle(at, Input::ApGone(ApId(at as u32))),
            4 => self.connect(at),
            _ => {
                self.messages.retain(|(from, to, _)| {
                    (*from, *to) != (here, other) && (*from, *to) != (other, here)
                });
                self.handle(at, Input::PeerDown(other));
                self.handle(other.index(), Input::PeerDown(here));
                self.handle(at, Input::PeerUp(other));
                self.handle(other.index(), Input::PeerUp(here));
            }
        }
    }
}

/// A variable that takes much memory because it is large.
fn is_large(message: &PeerMessage) -> bool {
    use dosmos_memproc::core::messages::{Body, PeerRequest, Response};
    let bytes = match &message.body {
        Body::Request { request, .. } => match request {
            PeerRequest::Declare { spec, .. } => spec.layout().total_bytes(),
            PeerRequest::Create(variable) => variable.spec().layout().total_bytes(),
            _ => 0,
        },
        Body::Response {
            response: Response::Variable(announced),
            ..
        } => announced.variable.spec().layout().total_bytes(),
        _ => 0,
    };
    bytes > MOST_BYTES
}

pub(crate) fn take(mut input: &[u8]) {
    let mut cluster = Cluster::new();
    while let [what, at, low, high, rest @ ..] = input {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (message, behind) = rest.split_at(length);
        cluster.step(*what, usize::from(*at), message);
        cluster.deliver();
        input = behind;
    }
}

/// One of each request of an application process, in a sensible order.
pub(crate) fn requests() -> Vec<w::ApRequest> {
    use w::ap_request::Body;
    use w::object_access::Kind;
    let owners = Placement::explicit(["mp0", "mp1", "mp2", "mp0"].map(String::from).to_vec());
    let spec = samples::declaration("x").with_placement(owners.unwrap());
    let access = |index: u32, kind| {
        Body::Access(w::ObjectAccess {
            object: ObjectId::new(VarId(0), index).to_wire(),
            kind: Some(kind),
        })
    };
    let write = w::Write {
        data: Bytes::from_static(&[7; 16]),
        ..w::Write::default()
    };
    let read = w::Read {
        exclusive: true,
        ..w::Read::default()
    };
    let atomic = w::Atomic {
        r#type: w::ElementType::F64.into(),
        op: Some(w::atomic::Op::FetchAdd(1)),
        ..w::Atomic::default()
    };
    let bodies = vec![
        Body::Declare(spec.into()),
        Body::Open("x".into()),
        access(0, Kind::Acquire(w::Acquire { want_value: true })),
        access(0, Kind::Write(write.clone())),
        access(0, Kind::Release(w::Release::default())),
        access(1, Kind::Write(write)),
        access(1, Kind::Read(w::Read::default())),
        access(2, Kind::Read(read)),
        access(2, Kind::Atomic(atomic)),
        Body::Publish(w::Publish {}),
        Body::Barrier(w::Barrier::default()),
        Body::Cancel(w::Cancel { id: 10 }),
        Body::Bye(w::Bye {}),
    ];
    let of = |(id, body)| w::ApRequest {
        id,
        body: Some(body),
        ..w::ApRequest::default()
    };
    (0..).zip(bodies).map(of).collect()
}

/// Messages of peers that fit to what [`requests`] do.
pub(crate) fn peer_messages() -> Vec<w::PeerMessage> {
    use w::peer_message::Body;
    let object = ObjectId::new(VarId(0), 0).to_wire();
    let access = w::ObjectAccess {
        object,
        kind: Some(w::object_access::Kind::Acquire(w::Acquire::default())),
    };
    let bodies = [
        Body::Access(w::PeerAccess {
            access: Some(access),
            ap: 1,
            want_copy: true,
        }),
        Body::Flush(w::PeerFlush { ap: 1 }),
        Body::Renew(w::PeerRenew {}),
        Body::Open("x".into()),
        Body::Create(samples::variable().into()),
        Body::Invalidate(w::Invalidate { object, version: 3 }),
        Body::Update(w::Update {
            object,
            version: 4,
            data: Bytes::from_static(&[1; 64]),
            no_hurry: false,
        }),
        Body::ReadDone(w::PeerReadDone::default()),
        Body::Granted(w::Granted::default()),
        Body::CopyAck(w::CopyAck {
            object,
            version: 3,
            no_hurry: true,
        }),
        Body::BarrierArrive(w::BarrierArrive::default()),
        Body::BarrierRelease(w::BarrierRelease::default()),
        Body::Gone(w::ProcessGone {
            back: false,
            process: Some(w::process_gone::Process::Ap(1)),
        }),
    ];
    let of = |body| w::PeerMessage {
        source: 1,
        call: 7,
        source_incarnation: Some(Incarnation::new(1, 1).to_wire()),
        body: Some(body),
        ..w::PeerMessage::default()
    };
    bodies.into_iter().map(of).collect()
}

fn put(what: u8, at: u8, message: &[u8], out: &mut Vec<u8>) {
    out.extend([what, at]);
    out.extend((message.len() as u16).to_le_bytes());
    out.extend(message);
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let (mut alone, mut two, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    for request in requests() {
        let message = request.encode_to_vec();
        put(0, 0, &message, &mut alone);
        for at in [0, 2] {
            put(0, at, &message, &mut two);
        }
    }
    put(2, 0, &[200; 8], &mut two);
    put(4, 0, &[], &mut two);
    put(0, 0, &requests()[0].encode_to_vec(), &mut peers);
    for message in peer_messages() {
        put(1, 0, &message.encode_to_vec(), &mut peers);
        put(5, 0, &[], &mut peers);
    }
    put(3, 1, &[], &mut peers);
    vec![alone, two, peers]
}
