//! What the tasks and the writer thread of an event manager share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dosmos_node::correction::Corrector;
use dosmos_node::drain;
use dosmos_node::metrics::AccessCounts;
use dosmos_node::processor::process_time;
use dosmos_proto::time::Clock;
use dosmos_proto::{ApId, EmpId, MpId, Nanos, ProcessCounters, Topology, VarId, Variable, wire};
use dosmos_trace::Record;
use dosmos_trace::meta::MetaState;
use dosmos_trace::query::table::{self, RankQuery, Ranking, Share, VariableFigures, VariableTable};
use dosmos_trace::query::{
    ApOrigins, Completeness, EmpStatus, MetaObjects, MetaQuery, ProcessStatus, QueryError,
};
use dosmos_trace::selection::Selection;
use dosmos_trace::store::{Commit, Event, Item, Manifest, RecordingCounters, Snapshot, StoreView};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tonic::Status;

use crate::core::{Dictionary, Ingest, Outbox, Pending};

/// Replies to one memory process, or to one event manager that hands contents over.
pub(super) type Replies<T> = mpsc::UnboundedSender<Result<T, Status>>;

/// Records received and not on disk at which no more are read from the memory processes; they keep
/// them, up to their own bound.
const MOST_PENDING: usize = 2_000_000;

/// Who opens a stream introduces itself within this time.
pub(super) const GREETING: Duration = Duration::from_secs(10);

/// What the tasks and the writer thread share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Tells the writer thread that there is something to write.
    pub(super) work: Condvar,
    /// Tells the exchange tasks that something is due.
    pub(super) due: Notify,
    /// Tells ingest tasks that there is room again.
    pub(super) room: Notify,
    /// Set when the process ends: whoever serves a stream lets go of it.
    ended: watch::Sender<bool>,
    pub(super) clock: Clock,
    pub(super) view: StoreView,
    pub(super) topology: Topology,
    pub(super) me: EmpId,
    /// Which variables are counted here, and which are here as a whole.
    share: Share,
    pub(super) store: String,
}

#[derive(Default)]
pub(super) struct Link {
    /// Where to tell it what is durable; none while it is not connected.
    pub(super) replies: Option<Replies<wire::IngestReply>>,
    counters: ProcessCounters,
    last_record: Nanos,
    /// Corrects the times of its batches, by what its last probe said.
    pub(super) clock: Corrector,
    said: Option<RecordingCounters>,
    /// How old the newest record of the last batch was on arrival.
    lag: Nanos,
}

pub(super) struct State {
    pub(super) ingest: Ingest,
    pub(super) pending: Pending,
    /// Declarations that were received.
    pub(super) dictionary: Dictionary,
    pub(super) metas: MetaState,
    /// Accesses in the log, for metrics.
    pub(super) accesses: AccessCounts,
    pub(super) outbox: Outbox,
    pub(super) links: BTreeMap<MpId, Link>,
    pub(super) senders: HashMap<EmpId, Replies<wire::ExchangeReply>>,
    /// Answered when all that was pending when they were put here is on disk.
    pub(super) waiters: Vec<oneshot::Sender<Result<(), String>>>,
    pub(super) trouble: String,
    /// Somebody removed the directory of the store: what is written to its open files is lost.
    store_gone: bool,
    pub(super) closing: bool,
    /// The variables of `metas`.
    variables: BTreeMap<VarId, Variable>,
    /// What the memory processes were told to record; none: what the cluster file says.
    selection: Option<Selection>,
    /// What the cluster file says.
    configured: Selection,
}

impl Shared {
    pub(super) fn new(
        config: &crate::config::Config,
        view: StoreView,
        ingest: Ingest,
        metas: MetaState,
        outbox: Outbox,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                ingest,
                pending: Pending::default(),
                dictionary: Dictionary::default(),
                metas,
                accesses: AccessCounts::default(),
                outbox,
                links: BTreeMap::new(),
                senders: HashMap::new(),
                waiters: Vec::new(),
                trouble: String::new(),
                store_gone: false,
                closing: false,
                variables: BTreeMap::new(),
                selection: None,
                configured: config.selection.clone(),
            }),
            work: Condvar::new(),
            due: Notify::new(),
            room: Notify::new(),
            ended: watch::Sender::new(false),
            clock: Clock::start(),
            view,
            topology: config.topology.clone(),
            me: config.me,
            share: Share::new(&config.topology, &[config.me]),
            store: config.store.display().to_string(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.work
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `stream` until it or this process ends.
    pub(super) async fn until_ended(&self, stream: impl Future<Output = ()>) {
        let mut ended = self.ended.subscribe();
        tokio::select! {
            () = stream => {}
            _ = ended.wait_for(|e| *e) => {}
        }
    }

    /// Ends all streams.
    pub(super) fn end(&self) {
        self.ended.send_replace(true);
        let mut state = self.lock();
        state.senders.clear();
        state.links.values_mut().for_each(|l| l.replies = None);
    }

    /// Waits until everything received so far is on disk.
    pub(super) async fn flush(&self) -> Result<(), String> {
        let done = {
            let mut state = self.lock();
            if state.closing {
                return Ok(());
            }
            let (tell, done) = oneshot::channel();
            state.waiters.push(tell);
            done
        };
        self.work.notify_one();
        done.await.unwrap_or(Ok(()))
    }

    /// Waits until everything received so far is on disk, and what of it is due to other event managers
    /// is on theirs; for the latter no longer than `timeout`.
    pub(super) async fn settle(&self, timeout: Duration) -> Result<(), String> {
        self.flush().await?;
        match drain::until(timeout, || self.lock().outbox.is_empty()).await {
            true => Ok(()),
            false => Err("another event manager does not take what is due to it".to_owned()),
        }
    }

    /// What all that is on disk comes to.
    pub(super) fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        let due = state.outbox.due();
        Snapshot {
            metas: state.metas.clone(),
            due: due.map(|(to, content)| (to, content.clone())).collect(),
        }
    }

    /// Goes on from what was saved; what followed is replayed.
    pub(super) fn resume(&self, snapshot: Snapshot) {
        let variables = self.view.catalog().variables;
        let mut state = self.lock();
        state.metas = snapshot.metas;
        variables.iter().for_each(|v| state.dictionary.add(v));
        for (to, content) in snapshot.due {
            state.outbox.push(to, content);
        }
        state.variables = variables.into_iter().map(|v| (v.id(), v)).collect();
    }

    /// Waits while too much is pending.
    pub(super) async fn wait_for_room(&self) {
        loop {
            let room = self.room.notified();
            if self.lock().pending.records() < MOST_PENDING {
                return;
            }
            room.await;
        }
    }

    pub(super) fn completeness(&self) -> Completeness {
        let mut completeness = self.view.completeness();
        let state = self.lock();
        if !state.trouble.is_empty() {
            completeness.notes.push(state.trouble.clone());
        }
        if state.store_gone {
            let name = self.topology.emp_name(self.me);
            completeness.missing_stores.push(name);
        }
        let lost = state.links.values().map(|l| l.counters.lost_hand_overs);
        match lost.sum::<u64>() {
            0 => {}
            n => completeness.notes.push(format!(
                "{n} hand-overs of copies were dropped: accesses to copies are counted too low"
            )),
        }
        completeness
    }

    /// Whether the directory of the store is what it was: open files can be written after they were removed.
    pub(super) fn store_is_there(&self) -> bool {
        Manifest::is_in(Path::new(&self.store))
    }

    pub(super) fn meta_objects(&self, query: &MetaQuery) -> MetaObjects {
        let completeness = self.completeness();
        self.lock().metas.query(query, completeness)
    }

    pub(super) fn rank(&self, query: &RankQuery) -> Result<Ranking, QueryError> {
        let completeness = self.completeness();
        let state = self.lock();
        let sums = state.metas.sums(None);
        let ranking = table::rank_over(state.variables.values(), &sums, &self.share, query)?;
        Ok(Ranking {
            completeness,
            ..ranking
        })
    }

    pub(super) fn describe(&self, wanted: &HashSet<VarId>) -> VariableTable {
        let completeness = self.completeness();
        let state = self.lock();
        let mut sums = state.metas.sums(Some(wanted));
        let known = wanted.iter().filter_map(|id| state.variables.get(id));
        let row = |v: &Variable| VariableFigures {
            variable: v.clone(),
            sums: sums.remove(&v.id()).unwrap_or_default(),
        };
        VariableTable {
            rows: known.map(row).collect(),
            completeness,
        }
    }

    /// Tells the memory processes what to record from now on; those that are not connected, when they
    /// are. How many were told, and how many were not connected.
    pub(super) fn select(&self, selection: Selection) -> (u32, u32) {
        let mut state = self.lock();
        let mut told = 0;
        for link in state.links.values() {
            if let Some(replies) = &link.replies {
                told += u32::from(replies.send(Ok(selection_reply(&selection))).is_ok());
            }
        }
        state.selection = Some(selection);
        let connected = state.links.iter().filter(|(_, l)| l.replies.is_some());
        let connected: Vec<MpId> = connected.map(|(&mp, _)| mp).collect();
        for mp in connected {
            state.note_selection(mp);
        }
        self.work.notify_one();
        let processes = self.topology.memory_processes().iter();
        let mine = processes.filter(|p| p.event_manager == self.me).count();
        (
            told,
            u32::try_from(mine).unwrap_or(u32::MAX).saturating_sub(told),
        )
    }

    pub(super) fn status(&self) -> EmpStatus {
        let usage = self.view.usage();
        let state = self.lock();
        let (exchanged_out, exchanged_in) = state.metas.exchanged();
        EmpStatus {
            name: self.topology.emp_name(self.me),
            now: self.clock.now(),
            processes: state.process_statuses(&self.topology),
            records: usage.records,
            pending: state.pending.records() as u64,
            stored_bytes: usage.bytes,
            chunks: usage.chunks,
            cpu: process_time(),
            store: self.store.clone(),
            trouble: state.trouble.clone(),
            exchanged_out,
            exchanged_in,
            selection: state.selection.clone(),
        }
    }
}

impl State {
    /// A commit is on disk: meta-objects take it into account, in the order of the log.
    pub(super) fn durable(&mut self, commit: &Commit) {
        let mut events = commit.events.iter().peekable();
        for (i, record) in (0u32..).zip(&commit.records) {
            while let Some((_, event)) = events.next_if(|(at, _)| *at <= i) {
                self.event(event);
            }
            self.record(record);
        }
        events.for_each(|(_, event)| self.event(event));
        for mark in &commit.marks {
            if self.ingest.durable(mark)
                && let Some(replies) = self.links.get(&mark.mp).and_then(|l| l.replies.as_ref())
            {
                // A connection that just ended will ask again.
                let _ = replies.send(Ok(durable_reply(mark.sequence)));
            }
        }
        self.acknowledge_senders(commit);
    }

    fn acknowledge_senders(&mut self, commit: &Commit) {
        for (_, event) in &commit.events {
            if let Event::Received { from, .. } = event
                && let Some(replies) = self.senders.get(from)
            {
                let sequence = self.metas.last_received(*from);
                let _ = replies.send(Ok(exchange_reply(sequence)));
            }
        }
    }

    /// Takes one entry of the log into account.
    pub(super) fn replay(&mut self, item: Item<'_>) {
        match item {
            Item::Record(record) => self.record(record),
            Item::Event(event) => self.event(event),
        }
    }

    fn record(&mut self, record: &Record) {
        self.metas.apply(record);
        self.accesses.count(record);
    }

    /// Of each memory process: how old the newest record of its last batch was on arrival.
    pub(super) fn lags(&self) -> Vec<(MpId, Nanos)> {
        self.links
            .iter()
            .map(|(&mp, link)| (mp, link.lag))
            .collect()
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::HandOver(hand_over) => {
                if let Some((to, content)) = self.metas.hand_over(hand_over) {
                    self.outbox.push(to, content);
                }
            }
            Event::Received { from, content } => {
                self.metas.receive(*from, content);
            }
            Event::Variable(variable) => {
                self.metas.declare(variable);
                self.dictionary.add(variable);
                self.variables.insert(variable.id(), variable.clone());
            }
            Event::Barrier(_)
            | Event::Counters { .. }
            | Event::Selection { .. }
            | Event::Report { .. }
            | Event::Times(_)
            | Event::Imported(_)
            | Event::Clock { .. }
            | Event::Processor { .. } => {}
        }
    }

    /// What a memory process that connects is to be told, if anything was changed.
    pub(super) fn selection_reply(&self) -> Option<wire::IngestReply> {
        self.selection.as_ref().map(selection_reply)
    }

    /// The directory of the store was removed.
    pub(super) fn lose_store(&mut self, store: &str) {
        if !self.store_gone {
            self.store_gone = true;
            self.trouble = format!(
                "the trace store {store} was removed while it was written: its records are lost"
            );
            tracing::error!("{}", self.trouble);
        }
    }

    /// Puts into the log what a memory process leaves out from now on: a reader of the store knows that it is not there.
    pub(super) fn note_selection(&mut self, mp: MpId) {
        let selection = self.selection.as_ref().unwrap_or(&self.configured);
        if selection.leaves_out().is_some()
            && let Some(incarnation) = self.ingest.incarnation(mp)
        {
            self.pending.event(Event::Selection {
                mp,
                incarnation: incarnation.to_wire(),
                selection: selection.clone(),
            });
        }
    }

    fn process_statuses(&self, topology: &Topology) -> Vec<ProcessStatus> {
        let mut aps: BTreeMap<MpId, Vec<ApOrigins>> = BTreeMap::new();
        for (ap, process) in (0u32..).map(ApId).zip(topology.application_processes()) {
            let by_origin = self.metas.accesses_of(ap);
            let its = aps.entry(process.memory_process).or_default();
            its.push(ApOrigins { ap, by_origin });
        }
        self.links
            .iter()
            .map(|(&mp, link)| ProcessStatus {
                mp,
                connected: link.replies.is_some(),
                counters: link.counters,
                clock_offset_ns: link.clock.estimate().map_or(0, |c| c.offset_ns),
                clock_error: link.clock.estimate().map_or(Nanos::MAX, |c| c.error),
                by_origin: self.metas.accesses_at(mp),
                last_record: link.last_record,
                aps: aps.remove(&mp).unwrap_or_default(),
            })
            .collect()
    }
}

impl Link {
    /// Takes what a batch says of its process; returns what is new about completeness.
    pub(super) fn batch(
        &mut self,
        counters: Option<ProcessCounters>,
        sampling: f64,
        last_record: Nanos,
    ) -> Option<RecordingCounters> {
        self.last_record = self.last_record.max(last_record);
        self.counters = counters?;
        let says = RecordingCounters {
            recorded: self.counters.recorded,
            dropped: self.counters.dropped,
            extra_dropped: self.counters.extra_dropped,
            unselected: self.counters.unselected,
            sampling,
        };
        let told = |s: RecordingCounters| (s.dropped, s.unselected, s.sampling);
        let news = self.said.map(told) != Some(told(says));
        news.then(|| {
            self.said = Some(says);
            says
        })
    }

    /// What it has counted, all told.
    pub(super) fn counted(&self) -> Option<RecordingCounters> {
        let said = self.said?;
        Some(RecordingCounters {
            recorded: self.counters.recorded,
            ..said
        })
    }

    /// Processor time that serving took.
    pub(super) fn serving(&self) -> Nanos {
        self.counters.serving()
    }

    /// A batch arrived at `now`, with records up to `last`.
    pub(super) fn arrived(&mut self, now: Nanos, last: Nanos) {
        self.lag = now - last;
    }
}

fn selection_reply(selection: &Selection) -> wire::IngestReply {
    wire::IngestReply {
        body: Some(wire::ingest_reply::Body::Selection(
            selection.clone().into(),
        )),
    }
}

pub(super) fn durable_reply(sequence: u64) -> wire::IngestReply {
    wire::IngestReply {
        body: Some(wire::ingest_reply::Body::Durable(sequence)),
    }
}

pub(super) fn exchange_reply(sequence: u64) -> wire::ExchangeReply {
    wire::ExchangeReply {
        body: Some(wire::exchange_reply::Body::Durable(sequence)),
    }
}
