//! The meeting at rank 0, behind gRPC.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dosmos_node::serving::Serving;
use dosmos_proto::transport::{self, Listener};
use dosmos_proto::wire::rendezvous_server::{Rendezvous, RendezvousServer};
use dosmos_proto::{Nanos, Token, wire};
use dosmos_trace::run::RunId;
use dosmos_trace::store::{Exit, RankOutcome};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};
use tokio_stream::Stream;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::meeting::{Meeting, Order, Output, Phase};
use super::wire::{Roster, Told, announced, reported};
use crate::config::{Cluster, Protection, Seat};
use crate::launch::{Failure, Metadata, failure_lines};
use crate::output;

/// The meeting looks at the time this often.
const TICK: Duration = Duration::from_millis(100);
/// How long a stream may take to introduce itself.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// How long streams may take to end when all is over.
const CLOSE: Duration = Duration::from_secs(5);

/// What the run is, as rank 0 knows it.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) run: RunId,
    pub(super) cluster_text: String,
    pub(super) protection: Protection,
    pub(super) program: Vec<String>,
    /// For people.
    pub(super) launcher: &'static str,
    /// For people.
    pub(super) run_dir: String,
}

/// The meeting, as long as this is held.
#[derive(Debug)]
pub(super) struct Coordinator {
    shared: Arc<Shared>,
    serving: Serving,
    ticks: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    began: Instant,
    described: Described,
    state: Mutex<State>,
    over: Notify,
}

#[derive(Debug)]
struct State {
    meeting: Meeting,
    ranks: BTreeMap<u32, ToRank>,
    metadata: Option<Metadata>,
}

type Sender = UnboundedSender<Result<wire::RankOrder, Status>>;

/// Orders to a rank.
#[derive(Debug, Default)]
struct ToRank {
    all: Vec<wire::RankOrder>,
    stream: Option<Sender>,
}

impl Coordinator {
    /// Waits for the ranks of `meeting` at `listener`.
    pub(super) fn start(
        meeting: Meeting,
        described: Described,
        token: Token,
        listener: Listener,
    ) -> Self {
        let shared = Arc::new(Shared {
            began: Instant::now(),
            described,
            state: Mutex::new(State {
                meeting,
                ranks: BTreeMap::new(),
                metadata: None,
            }),
            over: Notify::new(),
        });
        let service = RendezvousServer::new(Service(Arc::clone(&shared)));
        let serving = Serving::start(transport::server(token).add_service(service), listener);
        let ticking = Arc::clone(&shared);
        let ticks = tokio::spawn(async move {
            let mut ticks = interval(TICK);
            loop {
                ticks.tick().await;
                let now = ticking.now();
                ticking.step(|meeting| meeting.tick(now));
            }
        });
        Self {
            shared,
            serving,
            ticks,
        }
    }

    /// Waits until all is over, and lets all ranks go. Whether the run went well; if not, it was said why.
    pub(super) async fn end(self) -> bool {
        loop {
            let over = self.shared.over.notified();
            if self.shared.lock().meeting.phase() == Phase::Over {
                break;
            }
            over.await;
        }
        self.ticks.abort();
        let failures = {
            let mut state = self.shared.lock();
            for rank in state.ranks.values_mut() {
                rank.stream = None;
            }
            let mut said = state.meeting.troubles().to_vec();
            said.extend(failures(&state.meeting));
            said
        };
        for failure in &failures {
            output::error(failure);
        }
        self.serving.close(CLOSE).await;
        failures.is_empty()
    }
}

/// What went wrong with the program, for people.
fn failures(meeting: &Meeting) -> Vec<String> {
    let (mut failed, mut stopped) = (Vec::new(), Vec::new());
    for outcome in meeting.outcomes() {
        let Some((exit, words)) = outcome.ended else {
            continue;
        };
        let status = match exit {
            Exit::Code(0) => continue,
            _ if outcome.stopped => {
                stopped.push(outcome.name.to_owned());
                continue;
            }
            Exit::Code(code) => format!("exit status: {code}"),
            Exit::Signal(signal) => format!("signal: {signal}"),
            Exit::NotStarted(_) => "not started".to_owned(),
            Exit::Unknown => "nobody saw its end".to_owned(),
        };
        failed.push(Failure {
            name: outcome.name.to_owned(),
            status: format!("{status}, on {}", outcome.host),
            words: words.clone(),
        });
    }
    failure_lines(&failed, &stopped)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Nanos {
        self.began.elapsed().into()
    }

    fn step(&self, change: impl FnOnce(&mut Meeting) -> Vec<Output>) {
        let mut state = self.lock();
        let out = change(&mut state.meeting);
        self.carry_out(&mut state, out);
    }

    fn carry_out(&self, state: &mut State, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Note(text) => output::note(&text),
                Output::Complete => {
                    let out = self.assign(state);
                    self.carry_out(state, out);
                }
                Output::Order(rank, order) => {
                    let order = self.told(state, order);
                    state.ranks.entry(rank).or_default().give(order.into());
                }
            }
        }
        if state.meeting.phase() == Phase::Over {
            self.over.notify_waiters();
        }
    }

    /// Everybody is there: who does what?
    fn assign(&self, state: &mut State) -> Vec<Output> {
        let seats: Vec<Seat> = state.meeting.seats().map(|(s, _)| s.clone()).collect();
        let text = &self.described.cluster_text;
        let (cluster, posts) = match Cluster::of_ranks(text, &seats, self.described.protection) {
            Ok(assigned) => assigned,
            Err(errors) => return state.meeting.refuse(&errors.join("\n")),
        };
        let mut hosts: Vec<String> = Vec::new();
        for seat in &seats {
            if !hosts.contains(&seat.host) {
                hosts.push(seat.host.clone());
            }
        }
        let described = &self.described;
        let topology = &cluster.topology;
        output::note(&format!(
            "{}: {} of {} on {}: {}, {}, {}; logs in {}/log",
            topology.name(),
            many(seats.len(), "rank"),
            described.launcher,
            many(hosts.len(), "host"),
            many(
                topology.application_processes().len(),
                "application process"
            ),
            many(topology.owners_in(None).count(), "memory process"),
            many(topology.event_managers().len(), "event manager"),
            described.run_dir,
        ));
        match Metadata::of_ranks(topology, described.run, &described.cluster_text, hosts) {
            Ok(mut metadata) => {
                metadata.program_is(&described.program);
                state.metadata = Some(metadata);
            }
            Err(e) => return state.meeting.refuse(&format!("{e:#}")),
        }
        let in_application = !cluster.in_application.is_empty();
        state.meeting.posts(&posts, in_application, self.now())
    }

    /// The order with what belongs to it.
    fn told(&self, state: &mut State, order: Order) -> Told {
        match order {
            Order::Refused(why) => Told::Refused(why),
            Order::TakePlace => Told::TakePlace(Roster {
                run: self.described.run,
                seats: state
                    .meeting
                    .seats()
                    .map(|(seat, address)| (seat.clone(), address.to_owned()))
                    .collect(),
            }),
            Order::Start => Told::Start,
            Order::Left(name) => Told::Left(name),
            Order::Record => Told::Record(record(state)),
            Order::End => Told::End,
            Order::Go => Told::Go,
        }
    }
}

/// A number of things.
fn many(n: usize, what: &str) -> String {
    match (n, what.ends_with('s')) {
        (1, _) => format!("1 {what}"),
        (_, true) => format!("{n} {what}es"),
        (_, false) => format!("{n} {what}s"),
    }
}

/// How the run goes, as JSON.
fn record(state: &mut State) -> String {
    let Some(metadata) = &mut state.metadata else {
        return String::new();
    };
    let ranks = state.meeting.outcomes().map(|outcome| RankOutcome {
        name: outcome.name.to_owned(),
        host: outcome.host.to_owned(),
        exit: outcome
            .ended
            .map_or(Exit::Unknown, |(exit, _)| exit.clone()),
    });
    let ended = state.meeting.phase() > Phase::Running;
    metadata.json(ranks.collect(), ended)
}

impl ToRank {
    fn give(&mut self, order: wire::RankOrder) {
        if let Some(stream) = &self.stream {
            // A stream that broke is replaced, and gets all orders again.
            let _ = stream.send(Ok(order.clone()));
        }
        self.all.push(order);
    }

    fn attach(&mut self, stream: Sender) {
        for order in &self.all {
            let _ = stream.send(Ok(order.clone()));
        }
        self.stream = Some(stream);
    }
}

struct Service(Arc<Shared>);

#[tonic::async_trait]
impl Rendezvous for Service {
    type AttendStream = Pin<Box<dyn Stream<Item = Result<wire::RankOrder, Status>> + Send>>;

    async fn attend(
        &self,
        request: Request<Streaming<wire::RankReport>>,
    ) -> Result<Response<Self::AttendStream>, Status> {
        let mut reports = request.into_inner();
        let first = timeout(INTRODUCTION, reports.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("no rank introduced itself"))??;
        let first = first.ok_or_else(|| Status::invalid_argument("no rank introduced itself"))?;
        let who = announced(first)?;
        let (rank, start) = (who.seat.rank, who.start);
        let (orders, stream) = unbounded_channel();
        let answer: Self::AttendStream = Box::pin(UnboundedReceiverStream::new(stream));
        {
            let mut state = self.0.lock();
            match state.meeting.announce(who) {
                Err(why) => {
                    let _ = orders.send(Ok(Told::Refused(why).into()));
                    return Ok(Response::new(answer));
                }
                Ok(out) => {
                    state.ranks.entry(rank).or_default().attach(orders);
                    self.0.carry_out(&mut state, out);
                }
            }
        }
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            while let Ok(Some(report)) = reports.message().await {
                if let Some(report) = reported(report) {
                    let now = shared.now();
                    shared.step(|meeting| meeting.report(rank, report, now));
                }
            }
            let now = shared.now();
            shared.lock().meeting.lost(rank, start, now);
        });
        Ok(Response::new(answer))
    }
}
