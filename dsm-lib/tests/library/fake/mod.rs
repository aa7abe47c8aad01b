//! A memory process that fits in one file: it follows the protocol for one application process, and
//! misbehaves on request. Variables whose names start with
//! `silent` are never answered about, `late` ones are answered when something else is asked,
//! `fatal` ones end the session, `deadly` ones the whole server; reads of `reverse` ones are answered
//! three at a time, the last first; the first release of an `unsteady` one is refused. A barrier called
//! `lose` takes all locks away. Of variables declared with copies in application processes it gives copies to
//! keep; a barrier called `change` adds one to their first bytes and takes the copies back. Of those whose
//! names start with `own` it gives the objects themselves; barriers and reads called `part`, `recall` and `steal` ask
//! for their elements 1 to 3, ask for all, and take them away. The content of those whose names start with
//! `near` comes with the grant of a section, if it is wanted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use dosmos_proto::transport::{self, Address, Listener};
use dosmos_proto::wire::memory_server::{Memory, MemoryServer};
use dosmos_proto::wire::object_access::Kind;
use dosmos_proto::wire::recall::Wanted;
use dosmos_proto::wire::{self, ap_reply::Body as Reply, ap_request::Body as Request};
use dosmos_proto::{
    Cache, ErrorCode, GroupId, MpId, ObjectId, Refusal, Runs, Token, VarId, Variable, VariableSpec,
};
use dsm_lib::{Dsm, Settings};
use futures::channel::{mpsc, oneshot};
use futures::{Stream, StreamExt};
use tonic::{Status, Streaming};

type ReplyStream = Pin<Box<dyn Stream<Item = Result<wire::ApReply, Status>> + Send>>;
type PeerStream = Pin<Box<dyn Stream<Item = Result<wire::PeerMessage, Status>> + Send>>;

/// A running fake; it ends when dropped.
pub(crate) struct Fake {
    pub(crate) address: Address,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Fake {
    /// Of an application process that waits long, and does not linger.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.address.clone(), "ap0");
        settings.token = Some(token());
        settings.deadline = Duration::from_secs(20);
        settings.grace = Duration::from_millis(10);
        settings
    }

    pub(crate) fn connect(&self) -> Dsm {
        Dsm::connect(self.settings()).unwrap()
    }

    pub(crate) fn start() -> Self {
        let (end, ended) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let log = Arc::new(Mutex::new(Vec::new()));
        let theirs = log.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let any = "127.0.0.1:0".parse().unwrap();
                let listener = Listener::bind(&any).await.unwrap();
                tell.send(listener.address().clone()).unwrap();
                let (kill, killed) = mpsc::unbounded();
                let service = MemoryServer::new(Service { log: theirs, kill });
                let serve = transport::server(token())
                    .add_service(service)
                    .serve_with_incoming(listener);
                // Ends abruptly: no graceful shutdown, connections just break.
                futures::pin_mut!(serve, ended);
                let stop = futures::future::select(ended, killed.into_future());
                futures::future::select(serve, stop).await;
            });
        });
        Self {
            address: told.recv().unwrap(),
            log,
            end: Some(end),
            thread: Some(thread),
        }
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        drop(self.end.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

struct Service {
    log: Arc<Mutex<Vec<String>>>,
    kill: mpsc::UnboundedSender<()>,
}

#[tonic::async_trait]
impl Memory for Service {
    type ApplicationStream = ReplyStream;
    type PeerStream = PeerStream;

    async fn application(
        &self,
        request: tonic::Request<Streaming<wire::ApRequest>>,
    ) -> Result<tonic::Response<ReplyStream>, Status> {
        let mut requests = request.into_inner();
        let (replies, outgoing) = mpsc::unbounded();
        let mut session = Session {
            log: self.log.clone(),
            ..Session::default()
        };
        let kill = self.kill.clone();
        tokio::spawn(async move {
            while let Ok(Some(request)) = requests.message().await {
                match session.request(request) {
                    Ok(answers) => answers
                        .into_iter()
                        .for_each(|a| drop(replies.unbounded_send(Ok(a)))),
                    Err(Trouble::Fatal) => {
                        let status = Status::aborted("mp0 crashed");
                        let _ = replies.unbounded_send(Err(status));
                        return;
                    }
                    Err(Trouble::Deadly) => {
                        let _ = kill.unbounded_send(());
                    }
                }
            }
        });
        Ok(tonic::Response::new(Box::pin(outgoing)))
    }

    async fn peer(
        &self,
        _: tonic::Request<Streaming<wire::PeerMessage>>,
    ) -> Result<tonic::Response<PeerStream>, Status> {
        Err(Status::unimplemented("no peers"))
    }
}

enum Trouble {
    Fatal,
    Deadly,
}

#[derive(Default)]
struct Session {
    log: Arc<Mutex<Vec<String>>>,
    variables: HashMap<String, Variable>,
    data: BTreeMap<u64, Vec<u8>>,
    held: BTreeMap<u64, u64>,
    epochs: u64,
    /// Names of what requests are about, by their numbers.
    waiting: HashMap<u64, String>,
    /// A release was refused.
    refused: bool,
    versions: BTreeMap<u64, u64>,
    /// Answers kept back.
    reversed: Vec<wire::ApReply>,
    /// Objects given to keep.
    kept: BTreeSet<u64>,
    /// Objects given away, and the numbers of their delegations.
    given: BTreeMap<u64, u64>,
    late: Vec<wire::ApReply>,
}

impl Session {
    fn request(&mut self, request: wire::ApRequest) -> Result<Vec<wire::ApReply>, Trouble> {
        let body = request.body.unwrap();
        for reads in &request.local {
            // Times of this session, not of an earlier one.
            assert!(0 < reads.first_ns && reads.first_ns <= reads.last_ns);
            let what = match reads.kind() {
                wire::LocalKind::Read => "cached reads".to_owned(),
                wire::LocalKind::Write => "local writes".to_owned(),
                wire::LocalKind::Section => format!(
                    "local sections, version {} to {}",
                    reads.from_version, reads.version
                ),
                wire::LocalKind::SectionRead => "reads in local sections".to_owned(),
                wire::LocalKind::SectionWrite => "writes in local sections".to_owned(),
                wire::LocalKind::GrantedRead => "reads in a section".to_owned(),
            };
            let line = format!("{} {what}", reads.count);
            self.log.lock().unwrap().push(line);
            if reads.first_element < reads.end_element {
                let line = format!("of {} to {}", reads.first_element, reads.end_element);
                self.log.lock().unwrap().push(line);
            }
        }
        request
            .returns
            .into_iter()
            .for_each(|back| self.take_back(back));
        if let Request::Report(report) = &body {
            if report.awaits_news {
                self.log.lock().unwrap().push("awaits news".to_owned());
            }
            return Ok(vec![]);
        }
        let name = self.name_of(&body);
        if let Request::Cancel(cancel) = &body {
            let name = self.waiting.remove(&cancel.id).unwrap_or_default();
            self.log.lock().unwrap().push(format!("cancel {name}"));
            return Ok(vec![]);
        }
        self.waiting.insert(request.id, name.clone());
        self.log
            .lock()
            .unwrap()
            .push(format!("{} {name}", verb(&body)));
        let reply = wire::ApReply {
            id: request.id,
            body: Some(self.answer(body).unwrap_or_else(|r| Reply::Error(r.into()))),
            ..wire::ApReply::default()
        };
        if name.starts_with("silent") {
            return Ok(vec![]);
        }
        if name.starts_with("fatal") {
            return Err(Trouble::Fatal);
        }
        if name.starts_with("deadly") {
            return Err(Trouble::Deadly);
        }
        if name.starts_with("late") {
            self.late.push(reply);
            return Ok(vec![]);
        }
        if name.starts_with("reverse") {
            self.reversed.push(reply);
            return Ok(match self.reversed.len() {
                3 => self.reversed.drain(..).rev().collect(),
                _ => vec![],
            });
        }
        let changed = match name.as_str() {
            "change" => self.change(),
            "part" => self.recall(Wanted::Elements(wire::Elements { first: 1, end: 3 })),
            "recall" => self.recall(Wanted::Everything(wire::Everything {})),
            "steal" => self.recall(Wanted::Lost(wire::Lost {})),
            _ => vec![],
        };
        let replies = self.late.drain(..).chain(changed);
        Ok(replies.chain([reply]).collect())
    }

    /// What was given to keep changes; the notices of it.
    fn change(&mut self) -> Vec<wire::ApReply> {
        let notice = |object| wire::ApReply {
            body: Some(Reply::Invalidate(object)),
            ..wire::ApReply::default()
        };
        let kept = std::mem::take(&mut self.kept);
        for object in &kept {
            self.data.get_mut(object).unwrap()[0] += 1;
        }
        kept.into_iter().map(notice).collect()
    }

    fn recall(&self, wanted: Wanted) -> Vec<wire::ApReply> {
        let recall = |(object, number): (&u64, &u64)| wire::ApReply {
            body: Some(Reply::Recall(wire::Recall {
                object: *object,
                delegation: *number,
                wanted: Some(wanted),
            })),
            ..wire::ApReply::default()
        };
        self.given.iter().map(recall).collect()
    }

    fn take_back(&mut self, back: wire::Return) {
        let (width, parts) = (self.width(back.object), back.parts.len());
        let all = self.data.get_mut(&back.object).unwrap();
        let mut elements = 0;
        for part in back.parts {
            elements += part.data.len() / width;
            let first = part.first as usize * width;
            all[first..first + part.data.len()].copy_from_slice(&part.data);
        }
        if !back.kept {
            self.given.remove(&back.object);
        }
        self.versions.insert(back.object, back.version);
        let verb = if back.kept { "published" } else { "returned" };
        let mut line = format!("{verb} {parts} parts, version {}", back.version);
        if back.kept {
            line += &format!(", {elements} elements");
        }
        if back.in_section {
            self.held.insert(back.object, back.epoch);
            line += &format!(", in section {}", back.epoch);
        }
        self.log.lock().unwrap().push(line);
    }

    fn is_called(&self, object: u64, prefix: &str) -> bool {
        let id = ObjectId::from_wire(object).var;
        let variable = self.variables.values().find(|v| v.id() == id).unwrap();
        variable.spec().name().starts_with(prefix)
    }

    fn write(&mut self, object: u64, w: &wire::Write) -> Result<(), Refusal> {
        let width = self.width(object);
        let whole = [(w.data.len() / width) as u32];
        let lengths = match w.lengths.as_slice() {
            [] => &whole[..],
            lengths => lengths,
        };
        let all = self.data.get_mut(&object).unwrap();
        let mut rest = &w.data[..];
        for (first, end) in Runs::from_wire(w.first, lengths)?.iter() {
            let bytes = first as usize * width..end as usize * width;
            let (now, later) = rest.split_at(bytes.len());
            if w.add {
                let sums = all[bytes].as_chunks_mut::<8>().0.iter_mut();
                for (sum, n) in sums.zip(now.as_chunks().0) {
                    *sum = (i64::from_le_bytes(*sum) + i64::from_le_bytes(*n)).to_le_bytes();
                }
                continue;
            }
            all[bytes].copy_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    fn caches(&self, object: u64) -> bool {
        let id = ObjectId::from_wire(object).var;
        let variable = self.variables.values().find(|v| v.id() == id).unwrap();
        variable.spec().cache() == Cache::Ap
    }

    /// The variable an operation is on; none for declarations, which are always answered.
    fn name_of(&self, body: &Request) -> String {
        let object = match body {
            Request::Access(a) => a.object,
            Request::Barrier(b) => return b.name.clone(),
            _ => return String::new(),
        };
        let id = ObjectId::from_wire(object).var;
        let found = self.variables.values().find(|v| v.id() == id);
        found
            .map(|v| v.spec().name().to_owned())
            .unwrap_or_default()
    }

    fn answer(&mut self, body: Request) -> Result<Reply, Refusal> {
        Ok(match body {
            Request::Hello(hello) if hello.name == "ap0" => Reply::Welcome(wire::Welcome {
                memory_process: "mp0".into(),
                group: "/g".into(),
                size: 2,
                group_size: 1,
                memory_processes: vec!["mp0".into(), "lp.g".into(), "mp1".into()],
                memory_process_groups: vec!["/g".into(), String::new(), "/h".into()],
                application_homes: vec![0, 2],
                ..Default::default()
            }),
            Request::Hello(hello) => {
                let why = format!("{} is not a process of this cluster", hello.name);
                return Err(Refusal::new(ErrorCode::UnknownProcess, why));
            }
            Request::Declare(spec) => self.declare(spec.try_into()?),
            Request::Open(name) => match self.variables.get(&name) {
                Some(v) => Reply::Variable(v.clone().into()),
                None => {
                    let why = format!("{name} is not declared");
                    return Err(Refusal::new(ErrorCode::UnknownVariable, why));
                }
            },
            Request::Access(wire::ObjectAccess { object, kind }) => {
                self.access(object, kind.unwrap())?
            }
            Request::Cancel(_) | Request::Report(_) => unreachable!("it gets no reply"),
            Request::Barrier(b) if b.name == "lose" => {
                self.held.clear();
                Reply::Barrier(wire::BarrierDone { generation: 1 })
            }
            Request::Barrier(_) => Reply::Barrier(wire::BarrierDone { generation: 1 }),
            Request::Publish(_) => Reply::Published(wire::Published {}),
            Request::Bye(_) => Reply::Farewell(wire::Farewell {}),
        })
    }

    fn access(&mut self, object: u64, kind: wire::object_access::Kind) -> Result<Reply, Refusal> {
        Ok(match kind {
            Kind::Read(wire::Read { epoch: Some(e), .. }) if self.held.get(&object) != Some(&e) => {
                let why = "the section is over";
                return Err(Refusal::new(ErrorCode::StaleEpoch, why));
            }
            Kind::Release(_) if self.unsteady(object) => {
                let why = "an owner that was written to cannot be reached";
                return Err(Refusal::new(ErrorCode::Unreachable, why));
            }
            Kind::Read(r) => {
                let width = self.width(object);
                let all = &self.data[&object];
                let keep = r.keep && self.caches(object);
                let end = r.end.filter(|_| !keep);
                let end = end.map_or(all.len(), |end| end as usize * width);
                let first = if keep { 0 } else { r.first as usize * width };
                if keep {
                    self.kept.insert(object);
                }
                let unchanged = keep && r.exclusive && self.is_called(object, "kept");
                let given = keep && r.exclusive && self.is_called(object, "own");
                let delegation = (given || unchanged).then_some(7);
                self.given.extend(delegation.map(|number| (object, number)));
                Reply::Read(wire::ReadDone {
                    version: self.version(object),
                    data: match unchanged {
                        true => Vec::new().into(),
                        false => all[first..end].to_vec().into(),
                    },
                    keep,
                    delegation,
                    unchanged,
                    epoch: 40,
                })
            }
            Kind::Write(_) if self.is_called(object, "refusing") => {
                let why = "nobody writes this";
                return Err(Refusal::new(ErrorCode::Invalid, why));
            }
            Kind::Write(w) => {
                self.write(object, &w)?;
                Reply::Write(wire::WriteDone::default())
            }
            Kind::Atomic(a) => self.atomic(object, &a),
            Kind::Acquire(a) => {
                if self.held.contains_key(&object) {
                    let why = "you hold it already; release it first";
                    return Err(Refusal::new(ErrorCode::AlreadyHeld, why));
                }
                self.epochs += 1;
                self.held.insert(object, self.epochs);
                let near = a.want_value && self.is_called(object, "near");
                Reply::Granted(wire::Granted {
                    epoch: self.epochs,
                    version: self.version(object),
                    value: near.then(|| self.data[&object].clone().into()),
                })
            }
            Kind::Release(r) => {
                if self.held.get(&object).copied() != r.epoch {
                    let why = "you do not hold it";
                    return Err(Refusal::new(ErrorCode::NotHeld, why));
                }
                if let Some(write) = r.write {
                    let accesses = write.accesses();
                    self.write(object, &write)?;
                    let line = format!("{accesses} writes with the release");
                    self.log.lock().unwrap().push(line);
                }
                self.held.remove(&object);
                *self.versions.entry(object).or_default() += 1;
                Reply::Released(wire::Released {
                    version: self.version(object),
                })
            }
        })
    }

    /// Whether a release is refused: the first one of an `unsteady` variable.
    fn unsteady(&mut self, object: u64) -> bool {
        let id = ObjectId::from_wire(object).var;
        let mut all = self.variables.values();
        let named = all.any(|v| v.id() == id && v.spec().name().starts_with("unsteady"));
        named && !std::mem::replace(&mut self.refused, true)
    }

    fn declare(&mut self, spec: VariableSpec) -> Reply {
        let number = self.variables.len() as u32;
        let variable = self
            .variables
            .entry(spec.name().to_owned())
            .or_insert_with(|| {
                let owners = vec![MpId(0), MpId(2)];
                Variable::new(VarId(number), spec, owners, GroupId(0)).unwrap()
            });
        for object in variable.objects() {
            let bytes = variable.spec().layout().bytes_of(object.index).unwrap();
            let zeros = || vec![0; bytes as usize];
            self.data.entry(object.to_wire()).or_insert_with(zeros);
        }
        Reply::Variable(variable.clone().into())
    }

    /// Eight-byte integers only.
    fn atomic(&mut self, object: u64, a: &wire::Atomic) -> Reply {
        let all = self.data.get_mut(&object).unwrap();
        let slot = &mut all[a.element as usize * 8..][..8];
        let previous = u64::from_le_bytes(slot.try_into().unwrap());
        let next = match a.op.as_ref().unwrap() {
            wire::atomic::Op::FetchAdd(n) => Some(previous.wrapping_add(*n)),
            wire::atomic::Op::CompareExchange(c) => (c.expected == previous).then_some(c.desired),
        };
        slot.copy_from_slice(&next.unwrap_or(previous).to_le_bytes());
        Reply::Atomic(wire::AtomicDone {
            previous,
            stored: next.is_some(),
            version: 0,
        })
    }

    fn width(&self, object: u64) -> usize {
        let id = ObjectId::from_wire(object).var;
        let variable = self.variables.values().find(|v| v.id() == id).unwrap();
        variable.spec().layout().element().bytes() as usize
    }

    fn version(&self, object: u64) -> u64 {
        self.versions.get(&object).copied().unwrap_or(0)
    }
}

fn verb(body: &Request) -> &'static str {
    match body {
        Request::Hello(_) => "hello",
        Request::Declare(_) => "declare",
        Request::Open(_) => "open",
        Request::Access(access) => match access.kind.as_ref().unwrap() {
            Kind::Read(_) => "read",
            Kind::Write(_) => "write",
            Kind::Atomic(_) => "atomic",
            Kind::Acquire(_) => "acquire",
            Kind::Release(_) => "release",
        },
        Request::Cancel(_) => "cancel",
        Request::Barrier(_) => "barrier",
        Request::Publish(_) => "publish",
        Request::Bye(_) => "bye",
        Request::Report(_) => "report",
    }
}

/// The token of the run.
pub(crate) fn token() -> Token {
    "0123456789abcdef0123456789abcdef".parse().unwrap()
}
