//! Whole processes over sockets: sessions, links, records at an event manager, start in any order,
//! loss and return, end.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dosmos_memproc::{Config, Overflow, Recording, Summary, run};
use dosmos_proto::transport::{self, Address, Listener};
use dosmos_proto::wire::ap_reply::Body as Out;
use dosmos_proto::wire::ap_request::Body as In;
use dosmos_proto::wire::event_manager_server::{EventManager, EventManagerServer};
use dosmos_proto::wire::memory_client::MemoryClient;
use dosmos_proto::wire::{self as w};
use dosmos_proto::{
    AddressBook, Cache, ElementType, Layout, MpId, Nanos, ObjectId, PROTOCOL, Placement, Token,
    Topology, VarId, VariableSpec,
};
use dosmos_trace::selection::Selection;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::topology::topology;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until something holds.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TIMEOUT, wait)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

fn in_runtime<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        timeout(3 * TIMEOUT, test).await.expect("the test hangs");
    });
}

struct Process {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Summary>,
}

impl Process {
    async fn stop(self) -> Summary {
        let _ = self.stop.send(());
        timeout(TIMEOUT, self.task).await.unwrap().unwrap()
    }
}

struct Cluster {
    topology: Arc<Topology>,
    dir: tempfile::TempDir,
    recording: Recording,
}

impl Cluster {
    fn new(groups: &[&str], mps: u32, aps: u32) -> Self {
        Self {
            topology: topology(groups, mps, aps),
            dir: dosmos_testseeds::scratch(),
            recording: Recording::default(),
        }
    }

    fn book(&self) -> AddressBook {
        AddressBook::new(HashMap::new(), Some(self.dir.path()))
    }

    async fn start(&self, mp: u32) -> Process {
        let name = self.topology.mp_name(MpId(mp));
        // One kind of socket each, so that both are used.
        let address = match mp % 2 {
            0 => Address::Unix(self.dir.path().join(name.replace('/', "_"))),
            _ => Address::Tcp("127.0.0.1:0".into()),
        };
        let listener = Listener::bind(&address).await.unwrap();
        let config = Config {
            topology: (*self.topology).clone(),
            me: MpId(mp),
            recording: self.recording.clone(),
            overrides: Vec::new(),
            default_deadline: Nanos::ZERO,
            in_application: false,
            metrics: None,
        };
        let (stop, stopped) = oneshot::channel();
        let book = self.book();
        let task = tokio::task::spawn_local(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            run(config, listener, book, stopped).await.unwrap()
        });
        Process { stop, task }
    }

    async fn start_all(&self) -> Vec<Process> {
        let mut all = Vec::new();
        for mp in 0..self.topology.memory_processes().len() as u32 {
            all.push(self.start(mp).await);
        }
        all
    }

    async fn client(&self, ap: u32) -> Client {
        let name = format!("ap{ap}");
        let mp = self.topology.application_processes()[ap as usize].memory_process;
        Client::connect(&self.book(), &self.topology.mp_name(mp), &name, PROTOCOL).await
    }
}

/// Whoever does not show the token of the run is no application process and no neighbour.
#[test]
fn strangers_are_refused() {
    in_runtime(async {
        let c = Cluster::new(&["/a"], 1, 1);
        let _processes = c.start_all().await;
        drop(c.client(0).await);
        let address = c.book().resolve(&c.topology.mp_name(MpId(0))).unwrap();
        let other = Token::generate().unwrap();
        for token in [None, Some(&other)] {
            let channel = transport::connect(&address, token, TIMEOUT).await.unwrap();
            let mut client = MemoryClient::new(channel);
            let nothing = tokio_stream::empty();
            let said = client.application(nothing).await.unwrap_err();
            assert_eq!(said.code(), tonic::Code::Unauthenticated, "{said}");
            let said = client.peer(tokio_stream::empty()).await.unwrap_err();
            assert_eq!(said.code(), tonic::Code::Unauthenticated, "{said}");
        }
    });
}

/// An application process, raw.
struct Client {
    out: mpsc::UnboundedSender<w::ApRequest>,
    replies: Streaming<w::ApReply>,
    next: u64,
    held: HashMap<u64, Out>,
}

impl Client {
    async fn connect(book: &AddressBook, mp: &str, name: &str, protocol: u32) -> Self {
        eventually("the address is published", || book.resolve(mp).is_some()).await;
        let address = book.resolve(mp).unwrap();
        let channel = transport::connect(&address, book.token().as_ref(), TIMEOUT)
            .await
            .unwrap();
        let (out, queue) = mpsc::unbounded_channel();
        out.send(w::ApRequest {
            id: 1,
            timeout_ms: None,
            body: Some(In::Hello(w::ApHello {
                name: name.into(),
                protocol,
                ..w::ApHello::default()
            })),
            ..w::ApRequest::default()
        })
        .unwrap();
        let replies = MemoryClient::new(channel)
            .max_decoding_message_size(dosmos_proto::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(dosmos_proto::MAX_MESSAGE_BYTES)
            .application(UnboundedReceiverStream::new(queue))
            .await
            .unwrap()
            .into_inner();
        Self {
            out,
            replies,
            next: 2,
            held: HashMap::new(),
        }
    }

    fn send(&mut self, body: In) -> u64 {
        let id = self.next;
        self.next += 1;
        let request = w::ApRequest {
            id,
            timeout_ms: Some(10_000),
            body: Some(body),
            ..w::ApRequest::default()
        };
        self.out.send(request).unwrap();
        id
    }

    async fn reply(&mut self, id: u64) -> Out {
        loop {
            if let Some(body) = self.held.remove(&id) {
                return body;
            }
            let next = timeout(TIMEOUT, self.replies.message()).await.unwrap();
            let reply = next.unwrap().expect("the session ended");
            self.held.insert(reply.id, reply.body.unwrap());
        }
    }

    async fn call(&mut self, body: In) -> Out {
        let id = self.send(body);
        self.reply(id).await
    }

    async fn declare(&mut self, spec: VariableSpec) -> ObjectId {
        match self.call(In::Declare(spec.into())).await {
            Out::Variable(v) => ObjectId::new(VarId(v.id), 0),
            other => panic!("{other:?}"),
        }
    }

    async fn read(&mut self, object: ObjectId) -> Vec<u8> {
        match self.call(read(object)).await {
            Out::Read(r) => r.data.to_vec(),
            other => panic!("{other:?}"),
        }
    }
}

fn spec(name: &str, owner: &str, bytes: u64) -> VariableSpec {
    let layout = Layout::new(ElementType::U8, (1, bytes), (1, 1)).unwrap();
    let spec = VariableSpec::new(name, layout).unwrap();
    let spec = spec.with_cache(Cache::Mp);
    spec.with_placement(Placement::explicit([owner]).unwrap())
}

fn access(object: ObjectId, kind: w::object_access::Kind) -> In {
    In::Access(w::ObjectAccess {
        object: object.to_wire(),
        kind: Some(kind),
    })
}
fn read(object: ObjectId) -> In {
    access(object, w::object_access::Kind::Read(w::Read::default()))
}
fn write(object: ObjectId, data: Vec<u8>) -> In {
    access(
        object,
        w::object_access::Kind::Write(w::Write {
            first: 0,
            data: data.into(),
            epoch: None,
            lengths: Vec::new(),
            accesses: None,
            add: false,
        }),
    )
}
fn acquire(object: ObjectId) -> In {
    access(
        object,
        w::object_access::Kind::Acquire(w::Acquire::default()),
    )
}
fn release(object: ObjectId) -> In {
    access(
        object,
        w::object_access::Kind::Release(w::Release::default()),
    )
}
fn barrier() -> In {
    In::Barrier(w::Barrier {
        group: None,
        group_path: String::new(),
        name: "b".into(),
    })
}

#[test]
fn processes_find_each_other_in_any_order_and_serve_across_groups() {
    in_runtime(async {
        let c = Cluster::new(&["/a", "/b"], 1, 1);
        // The owner's side comes up long after the first request.
        let mut processes = vec![c.start(0).await];
        let mut near = c.client(0).await;
        assert!(matches!(near.reply(1).await, Out::Welcome(_)));
        let declared = near.send(In::Declare(spec("x", "mp1", 100_000).into()));
        for mp in [3, 1, 2] {
            processes.push(c.start(mp).await);
        }
        let Out::Variable(v) = near.reply(declared).await else {
            panic!()
        };
        let x = ObjectId::new(VarId(v.id), 0);
        assert!(matches!(near.call(acquire(x)).await, Out::Granted(_)));
        let data: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        assert!(matches!(
            near.call(write(x, data.clone())).await,
            Out::Write(_)
        ));
        assert!(matches!(near.call(release(x)).await, Out::Released(_)));
        let mut far = c.client(1).await;
        far.call(In::Open("x".into())).await;
        assert_eq!(far.read(x).await, data);
        let waits = far.send(barrier());
        assert!(matches!(near.call(barrier()).await, Out::Barrier(_)));
        assert!(matches!(far.reply(waits).await, Out::Barrier(_)));
        assert!(matches!(
            near.call(In::Bye(w::Bye {})).await,
            Out::Farewell(_)
        ));
        for p in processes {
            let summary = p.stop().await;
            // There is no event manager: the records are still there, and nobody minded.
            assert_eq!(summary.counters.dropped, 0);
        }
    });
}

#[test]
fn who_does_not_belong_is_refused_and_the_process_goes_on() {
    in_runtime(async {
        let c = Cluster::new(&["/a"], 1, 2);
        let _p = c.start_all().await;
        for (name, protocol, says) in [
            ("stranger", PROTOCOL, "ap0, ap1"),
            ("ap0", PROTOCOL + 1, "protocol"),
        ] {
            let mut client = Client::connect(&c.book(), "mp0", name, protocol).await;
            match client.reply(1).await {
                Out::Error(e) => assert!(e.message.contains(says), "{}", e.message),
                other => panic!("{other:?}"),
            }
        }
        let mut first = c.client(0).await;
        assert!(matches!(first.reply(1).await, Out::Welcome(_)));
        match c.client(0).await.reply(1).await {
            Out::Error(e) => assert_eq!(e.code(), w::ErrorCode::AlreadyConnected),
            other => panic!("{other:?}"),
        }
        // A request without content, then a good one.
        let id = first.next;
        first.next += 1;
        let empty = w::ApRequest {
            id,
            ..w::ApRequest::default()
        };
        first.out.send(empty).unwrap();
        assert!(matches!(first.reply(id).await, Out::Error(_)));
        let x = first.declare(spec("x", "mp0", 1)).await;
        assert_eq!(first.read(x).await, [0]);
    });
}

#[test]
fn a_session_that_breaks_passes_its_lock_on() {
    in_runtime(async {
        let c = Cluster::new(&["/a"], 2, 1);
        let _p = c.start_all().await;
        let (mut a, mut b) = (c.client(0).await, c.client(1).await);
        let x = a.declare(spec("x", "mp0", 1)).await;
        b.call(In::Open("x".into())).await;
        b.call(acquire(x)).await;
        b.call(write(x, vec![9])).await;
        let waits = a.send(acquire(x));
        drop(b);
        assert!(matches!(a.reply(waits).await, Out::Granted(g) if g.epoch == 2));
        assert_eq!(a.read(x).await, [0]);
        // And it may come back.
        let mut b = c.client(1).await;
        assert!(matches!(b.reply(1).await, Out::Welcome(_)));
    });
}

#[test]
fn a_memory_process_that_ends_fails_its_objects_only_and_is_found_again() {
    in_runtime(async {
        let c = Cluster::new(&["/a"], 2, 1);
        let p0 = c.start(0).await;
        let p1 = c.start(1).await;
        let mut a = c.client(0).await;
        let x = a.declare(spec("x", "mp0", 1)).await;
        let y = a.declare(spec("y", "mp1", 1)).await;
        a.read(y).await;
        p1.stop().await;
        // The copy of y is void as soon as the loss is noticed.
        let noticed = async {
            loop {
                match a.call(read(y)).await {
                    Out::Error(e) => return e,
                    _ => tokio::task::yield_now().await,
                }
            }
        };
        let e = timeout(TIMEOUT, noticed).await.unwrap();
        assert_eq!(e.code(), w::ErrorCode::Unreachable);
        assert!(e.message.contains("mp1"), "{}", e.message);
        assert_eq!(a.read(x).await, [0]);
        // The process comes back; what it owned does not, and it says so.
        let _p1 = c.start(1).await;
        let back = async {
            loop {
                match a.call(read(y)).await {
                    Out::Error(e) if e.code() == w::ErrorCode::Unreachable => {
                        tokio::task::yield_now().await;
                    }
                    other => return other,
                }
            }
        };
        match timeout(TIMEOUT, back).await.unwrap() {
            Out::Error(e) => assert_eq!(e.code(), w::ErrorCode::ProcessLost),
            other => panic!("{other:?}"),
        }
        p0.stop().await;
    });
}

/// Each of three is lost and started again, in a cluster of its own: whoever comes back with it declares the variables again, whose homes
/// are all three, and finds what was written. (One after the other in one cluster: `simulation`, where it is known when all caught up.)
#[test]
fn after_each_process_was_lost_once_names_and_what_has_replicas_are_there() {
    in_runtime(async {
        let specs = || {
            (0..9).map(|i| {
                let spec = spec(&format!("x{i}"), &format!("mp{}", i % 3), 1);
                spec.with_replicas(1).unwrap()
            })
        };
        for lost in [1, 2, 0] {
            let c = Cluster::new(&["/a"], 3, 1);
            let mut all = c.start_all().await;
            let mut first = c.client(0).await;
            let mut objects = Vec::new();
            for (i, spec) in (0..).zip(specs()) {
                let object = first.declare(spec).await;
                match first.call(write(object, vec![i])).await {
                    Out::Write(_) => objects.push(object),
                    other => panic!("{other:?}"),
                }
            }
            all.remove(lost as usize).stop().await;
            all.push(c.start(lost).await);
            let mut again = c.client(lost).await;
            for ((i, spec), object) in (0..).zip(specs()).zip(objects.iter().copied()) {
                // Whoever was asked on behalf of the process that was lost may say so; then it is asked again.
                let declared = loop {
                    match again.call(In::Declare(spec.clone().into())).await {
                        Out::Variable(v) => break ObjectId::new(VarId(v.id), 0),
                        Out::Error(e) if e.code() == w::ErrorCode::Unreachable => {
                            tokio::task::yield_now().await;
                        }
                        other => panic!("{other:?}"),
                    }
                };
                assert_eq!(declared, object, "x{i} after mp{lost}");
                assert_eq!(again.read(object).await, [i], "x{i} after mp{lost}");
            }
        }
    });
}

/// An event manager that keeps what it gets, and acknowledges it if allowed to.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    /// By memory process and incarnation: batches in order.
    batches: HashMap<(String, u64), Vec<w::Batch>>,
    /// Numbers that came more than once.
    repeated: u64,
    silent: bool,
    /// The process is gone: its streams end.
    gone: bool,
    probes: u64,
    byes: u64,
    /// What the memory process says is gone.
    skipped: Option<w::Skip>,
    selection: Option<w::Selection>,
}

impl Ledger {
    fn records(&self) -> usize {
        let book = self.0.lock().unwrap();
        book.batches.values().flatten().map(length).sum()
    }

    async fn serve(&self, address: &Address, token: Token) -> JoinHandle<()> {
        let listener = Listener::bind(address).await.unwrap();
        let service = EventManagerServer::new(self.clone())
            .max_decoding_message_size(dosmos_proto::MAX_MESSAGE_BYTES);
        tokio::task::spawn(async move {
            let _ = transport::server(token)
                .add_service(service)
                .serve_with_incoming(listener)
                .await;
        })
    }

    async fn ingest(
        self,
        mut requests: Streaming<w::IngestRequest>,
        out: mpsc::UnboundedSender<Result<w::IngestReply, Status>>,
    ) {
        use w::ingest_reply::Body as R;
        let say = |body| {
            let _ = out.send(Ok(w::IngestReply { body: Some(body) }));
        };
        let mut key = (String::new(), 0);
        while let Ok(Some(request)) = requests.message().await {
            let mut book = self.0.lock().unwrap();
            if book.gone {
                return;
            }
            match request.body.unwrap() {
                w::ingest_request::Body::Hello(h) => {
                    key = (h.memory_process, h.incarnation);
                    let durable = book.batches.entry(key.clone()).or_default().len() as u64;
                    say(R::Welcome(w::IngestWelcome { durable }));
                    if let Some(selection) = book.selection.clone() {
                        say(R::Selection(selection));
                    }
                }
                w::ingest_request::Body::Batch(batch) => {
                    let silent = book.silent;
                    let before = book.skipped.as_ref().map_or(0, |s| s.to);
                    let have = book.batches.get_mut(&key).unwrap();
                    let last = before + have.len() as u64;
                    if batch.sequence == last + 1 {
                        have.push(batch);
                    } else {
                        assert!(batch.sequence <= last, "a gap");
                        book.repeated += 1;
                        continue;
                    }
                    if !silent {
                        let durable = last + 1;
                        say(R::Durable(durable));
                    }
                }
                w::ingest_request::Body::Clock(p) => {
                    book.probes += 1;
                    say(R::Clock(w::ClockSample {
                        sent_ns: p.sent_ns,
                        received_ns: p.sent_ns,
                        replied_ns: p.sent_ns,
                        clock: 1,
                    }));
                }
                w::ingest_request::Body::Skip(skip) => book.skipped = Some(skip),
                w::ingest_request::Body::Bye(_) => book.byes += 1,
            }
        }
    }
}

fn no<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not here"))
}

type Answers<T> = UnboundedReceiverStream<Result<T, Status>>;

#[tonic::async_trait]
impl EventManager for Ledger {
    type IngestStream = Answers<w::IngestReply>;
    async fn ingest(
        &self,
        request: Request<Streaming<w::IngestRequest>>,
    ) -> Result<Response<Self::IngestStream>, Status> {
        let (out, queue) = mpsc::unbounded_channel();
        tokio::spawn(self.clone().ingest(request.into_inner(), out));
        Ok(Response::new(UnboundedReceiverStream::new(queue)))
    }
    type ExchangeStream = Answers<w::ExchangeReply>;
    async fn exchange(
        &self,
        _: Request<Streaming<w::ExchangeRequest>>,
    ) -> Result<Response<Self::ExchangeStream>, Status> {
        no()
    }
    async fn get_catalog(
        &self,
        _: Request<w::CatalogRequest>,
    ) -> Result<Response<w::Catalog>, Status> {
        no()
    }
    async fn get_meta_objects(
        &self,
        _: Request<w::MetaRequest>,
    ) -> Result<Response<w::MetaObjects>, Status> {
        no()
    }
    async fn rank_variables(
        &self,
        _: Request<w::RankRequest>,
    ) -> Result<Response<w::Ranking>, Status> {
        no()
    }
    async fn describe_variables(
        &self,
        _: Request<w::DescribeRequest>,
    ) -> Result<Response<w::VariableTable>, Status> {
        no()
    }
    async fn set_selection(
        &self,
        _: Request<w::SelectionRequest>,
    ) -> Result<Response<w::SelectionReply>, Status> {
        no()
    }
    async fn get_histogram(
        &self,
        _: Request<w::HistogramRequest>,
    ) -> Result<Response<w::Histogram>, Status> {
        no()
    }
    async fn get_history(
        &self,
        _: Request<w::HistoryRequest>,
    ) -> Result<Response<w::History>, Status> {
        no()
    }
    async fn get_status(
        &self,
        _: Request<w::StatusRequest>,
    ) -> Result<Response<w::Status>, Status> {
        no()
    }
    async fn get_breakdown(
        &self,
        _: Request<w::BreakdownRequest>,
    ) -> Result<Response<w::Breakdown>, Status> {
        no()
    }
    type GetRecordsStream = Answers<w::RecordsPart>;
    async fn get_records(
        &self,
        _: Request<w::RecordsRequest>,
    ) -> Result<Response<Self::GetRecordsStream>, Status> {
        no()
    }
    async fn flush(
        &self,
        _: Request<w::FlushRequest>,
    ) -> Result<Response<w::FlushDoneReply>, Status> {
        no()
    }
}

#[test]
fn records_arrive_once_across_a_restart_of_the_event_manager() {
    in_runtime(async {
        let c = Cluster::new(&["/a"], 1, 1);
        let address = Address::Unix(c.dir.path().join("emp0.sock"));
        c.book().publish("emp0", &address).unwrap();
        let p = c.start(0).await;
        let mut a = c.client(0).await;
        let x = a.declare(spec("x", "mp0", 8)).await;
        for _ in 0..100 {
            a.read(x).await;
        }
        // It comes late, takes but does not acknowledge, and dies.
        let ledger = Ledger::default();
        ledger.0.lock().unwrap().silent = true;
        let server = ledger
            .serve(&address, c.book().require_token().unwrap())
            .await;
        eventually("records arrive", || ledger.records() >= 100).await;
        server.abort();
        let _ = server.await;
        for _ in 0..50 {
            a.read(x).await;
        }
        ledger.0.lock().unwrap().silent = false;
        let _server = ledger
            .serve(&address, c.book().require_token().unwrap())
            .await;
        eventually("all records arrive", || ledger.records() >= 150).await;
        let summary = p.stop().await;
        assert!(summary.drained);
        assert_eq!(ledger.records(), 150);
        assert_eq!(summary.counters.recorded, 150);
        let book = ledger.0.lock().unwrap();
        assert!(book.probes > 0);
        assert_eq!(book.byes, 1);
        let batches: Vec<&w::Batch> = book.batches.values().flatten().collect();
        assert_eq!(batches.iter().flat_map(|b| &b.variables).count(), 1);
        let counters = batches.last().unwrap().counters.unwrap();
        assert_eq!(counters.requests, 151, "reads and the declaration");
    });
}

/// The event manager tells a run that went wrong from one that was short by whether everyone said goodbye.
#[test]
fn who_ends_as_soon_as_it_has_begun_says_goodbye() {
    in_runtime(async {
        let c = Cluster::new(&["/a"], 1, 1);
        let address = Address::Unix(c.dir.path().join("emp0.sock"));
        c.book().publish("emp0", &address).unwrap();
        let ledger = Ledger::default();
        let token = c.book().require_token().unwrap();
        let _server = ledger.serve(&address, token).await;
        c.start(0).await.stop().await;
        let book = ledger.0.lock().unwrap();
        assert_eq!(book.byes, 1);
        let batches: Vec<&w::Batch> = book.batches.values().flatten().collect();
        let last = batches.last().expect("counters, though nothing happened");
        assert_eq!(last.counters.unwrap().requests, 0);
    });
}

#[test]
fn an_event_manager_that_lost_its_store_is_told_what_is_gone_and_gets_what_follows() {
    in_runtime(async {
        let c = Cluster::new(&["/a"], 1, 1);
        let address = Address::Unix(c.dir.path().join("emp0.sock"));
        c.book().publish("emp0", &address).unwrap();
        let p = c.start(0).await;
        let mut a = c.client(0).await;
        let x = a.declare(spec("x", "mp0", 8)).await;
        let lost = Ledger::default();
        let server = lost
            .serve(&address, c.book().require_token().unwrap())
            .await;
        for _ in 0..100 {
            a.read(x).await;
        }
        let acknowledged = || {
            let book = lost.0.lock().unwrap();
            let counters = book.batches.values().flatten().filter_map(|b| b.counters);
            // Empty batches with counters come when nothing else is under way.
            lost_records(&book) >= 100 && counters.last().is_some_and(|c| c.buffered_bytes == 0)
        };
        eventually("all is acknowledged", acknowledged).await;
        // Connections outlive the server's task: their streams end by this.
        lost.0.lock().unwrap().gone = true;
        server.abort();
        let _ = server.await;
        // It comes back and knows nothing.
        let ledger = Ledger::default();
        let _server = ledger
            .serve(&address, c.book().require_token().unwrap())
            .await;
        for _ in 0..50 {
            a.read(x).await;
        }
        eventually("the rest arrives", || ledger.records() >= 50).await;
        let summary = p.stop().await;
        assert!(summary.drained);
        assert_eq!(summary.counters.dropped, 100);
        let book = ledger.0.lock().unwrap();
        assert_eq!(book.skipped.as_ref().map(|s| s.records), Some(100));
        let batches: Vec<&w::Batch> = book.batches.values().flatten().collect();
        assert_eq!(
            batches.iter().flat_map(|b| &b.variables).count(),
            1,
            "told again"
        );
        assert_eq!(batches.last().unwrap().counters.unwrap().dropped, 100);
    });
}

fn lost_records(book: &Book) -> usize {
    book.batches.values().flatten().map(length).sum()
}

/// Number of records.
fn length(batch: &w::Batch) -> usize {
    let columns = batch.records.clone().unwrap_or_default();
    dosmos_trace::wire::decode(&columns).unwrap().len()
}

#[test]
fn the_event_manager_selects_what_is_recorded() {
    in_runtime(async {
        let c = Cluster::new(&["/a"], 1, 1);
        let address = Address::Unix(c.dir.path().join("emp0.sock"));
        c.book().publish("emp0", &address).unwrap();
        let ledger = Ledger::default();
        ledger.0.lock().unwrap().selection = Some(
            Selection {
                variables: vec!["y*".into()],
                ..Selection::default()
            }
            .into(),
        );
        let _server = ledger
            .serve(&address, c.book().require_token().unwrap())
            .await;
        let p = c.start(0).await;
        eventually("the stream is up", || ledger.0.lock().unwrap().probes > 0).await;
        let mut a = c.client(0).await;
        let x = a.declare(spec("x", "mp0", 8)).await;
        let y = a.declare(spec("y1", "mp0", 8)).await;
        // The selection came with the greeting, before the first probe's answer.
        let again = ledger.0.lock().unwrap().probes;
        eventually("a probe more", || ledger.0.lock().unwrap().probes > again).await;
        for _ in 0..10 {
            a.read(x).await;
            a.read(y).await;
        }
        p.stop().await;
        assert_eq!(ledger.records(), 10);
    });
}

#[test]
fn the_blocking_policy_stops_requests_until_records_are_durable() {
    in_runtime(async {
        let mut c = Cluster::new(&["/a"], 1, 1);
        c.recording.overflow = Overflow::Block;
        c.recording.buffer_bytes = 1;
        let address = Address::Unix(c.dir.path().join("emp0.sock"));
        c.book().publish("emp0", &address).unwrap();
        let p = c.start(0).await;
        let mut a = c.client(0).await;
        let x = a.declare(spec("x", "mp0", 8)).await;
        // Reads are answered until a batch is packed, then no more.
        let mut answered = 0;
        while let Ok(()) = timeout(Duration::from_millis(500), async {
            a.read(x).await;
        })
        .await
        {
            answered += 1;
        }
        let ledger = Ledger::default();
        let _server = ledger
            .serve(&address, c.book().require_token().unwrap())
            .await;
        // The one that waited is answered, and so are others.
        let last = a.next - 1;
        a.reply(last).await;
        a.read(x).await;
        let summary = p.stop().await;
        assert_eq!(summary.counters.dropped, 0);
        assert_eq!(ledger.records(), answered + 2);
    });
}
