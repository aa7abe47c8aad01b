//! What the tasks and the writer thread of an event manager share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dosmos_node::drain;
use dosmos_node::processor::process_time;
use dosmos_proto::time::Clock;
use dosmos_proto::{ApId, EmpId, MpId, Nanos, Topology, VarId, Variable, wire};
use dosmos_trace::query::table::{self, RankQuery, Ranking, Share, VariableFigures, VariableTable};
use dosmos_trace::query::{
    ApOrigins, Completeness, EmpStatus, MetaObjects, MetaQuery, ProcessStatus, QueryError,
};
use dosmos_trace::selection::Selection;
use dosmos_trace::store::{Commit, Manifest, StoreView};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tonic::Status;

use crate::core::{Durable, Manager};

/// Replies to one memory process, or to one event manager that hands contents over.
pub(super) type Replies<T> = mpsc::UnboundedSender<Result<T, Status>>;

/// Records received and not on disk at which no more are read from the memory processes; they keep
/// them, up to their own bound.
const MOST_PENDING: usize = 500_000;

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

pub(super) struct State {
    pub(super) manager: Manager,
    /// Where to tell memory processes that are connected what is durable.
    pub(super) replies: BTreeMap<MpId, Replies<wire::IngestReply>>,
    pub(super) senders: HashMap<EmpId, Replies<wire::ExchangeReply>>,
    /// Answered when all that was pending when they were put here is on disk.
    pub(super) waiters: Vec<oneshot::Sender<Result<(), String>>>,
    pub(super) trouble: String,
    /// Somebody removed the directory of the store: what is written to its open files is lost.
    store_gone: bool,
    pub(super) closing: bool,
}

impl Shared {
    pub(super) fn new(config: &crate::config::Config, view: StoreView, manager: Manager) -> Self {
        Self {
            state: Mutex::new(State {
                manager,
                replies: BTreeMap::new(),
                senders: HashMap::new(),
                waiters: Vec::new(),
                trouble: String::new(),
                store_gone: false,
                closing: false,
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
        state.replies.clear();
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
        match drain::until(timeout, || self.lock().manager.outbox().is_empty()).await {
            true => Ok(()),
            false => Err("another event manager does not take what is due to it".to_owned()),
        }
    }

    /// Waits while too much is pending.
    pub(super) async fn wait_for_room(&self) {
        loop {
            let room = self.room.notified();
            if self.lock().manager.pending().records() < MOST_PENDING {
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
        let links = state.manager.links().values();
        let lost = links.map(|l| l.counters().lost_hand_overs);
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
        self.lock().manager.metas().query(query, completeness)
    }

    pub(super) fn rank(&self, query: &RankQuery) -> Result<Ranking, QueryError> {
        let completeness = self.completeness();
        let among: HashSet<VarId> = query.among.iter().copied().collect();
        let state = self.lock();
        let sums = state
            .manager
            .metas()
            .sums((!among.is_empty()).then_some(&among));
        let ranking = table::rank_over(
            state.manager.variables().values(),
            &sums,
            &self.share,
            query,
        )?;
        Ok(Ranking {
            completeness,
            ..ranking
        })
    }

    pub(super) fn describe(&self, wanted: &HashSet<VarId>) -> VariableTable {
        let completeness = self.completeness();
        let state = self.lock();
        let mut sums = state.manager.metas().sums(Some(wanted));
        let known = wanted
            .iter()
            .filter_map(|id| state.manager.variables().get(id));
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
        for replies in state.replies.values() {
            told += u32::from(replies.send(Ok(selection_reply(&selection))).is_ok());
        }
        let connected: Vec<MpId> = state.replies.keys().copied().collect();
        state.manager.select(selection, &connected);
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
        let (exchanged_out, exchanged_in) = state.manager.metas().exchanged();
        EmpStatus {
            name: self.topology.emp_name(self.me),
            now: self.clock.now(),
            processes: state.process_statuses(&self.topology),
            records: usage.records,
            pending: state.manager.pending().records() as u64,
            stored_bytes: usage.bytes,
            chunks: usage.chunks,
            cpu: process_time(),
            store: self.store.clone(),
            trouble: state.trouble.clone(),
            exchanged_out,
            exchanged_in,
            selection: state.manager.selection().cloned(),
        }
    }
}

impl State {
    /// A commit is on disk.
    pub(super) fn durable(&mut self, commit: &Commit) {
        for told in self.manager.durable(commit) {
            // A connection that just ended will ask again.
            match told {
                Durable::Batch(mp, sequence) => {
                    let replies = self.replies.get(&mp);
                    let _ = replies.map(|r| r.send(Ok(durable_reply(sequence))));
                }
                Durable::Content(from, sequence) => {
                    let replies = self.senders.get(&from);
                    let _ = replies.map(|r| r.send(Ok(exchange_reply(sequence))));
                }
            }
        }
    }

    /// Of each memory process: how old the newest record of its last batch was on arrival.
    pub(super) fn lags(&self) -> Vec<(MpId, Nanos)> {
        let links = self.manager.links().iter();
        links.map(|(&mp, link)| (mp, link.lag())).collect()
    }

    /// What a memory process that connects is to be told, if anything was changed.
    pub(super) fn selection_reply(&self) -> Option<wire::IngestReply> {
        self.manager.selection().map(selection_reply)
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

    fn process_statuses(&self, topology: &Topology) -> Vec<ProcessStatus> {
        let mut aps: BTreeMap<MpId, Vec<ApOrigins>> = BTreeMap::new();
        for (ap, process) in (0u32..).map(ApId).zip(topology.application_processes()) {
            let by_origin = self.manager.metas().accesses_of(ap);
            let its = aps.entry(process.memory_process).or_default();
            its.push(ApOrigins { ap, by_origin });
        }
        self.manager
            .links()
            .iter()
            .map(|(&mp, link)| ProcessStatus {
                mp,
                connected: self.replies.contains_key(&mp),
                counters: *link.counters(),
                clock_offset_ns: link.clock().map_or(0, |c| c.offset_ns),
                clock_error: link.clock().map_or(Nanos::MAX, |c| c.error),
                by_origin: self.manager.metas().accesses_at(mp),
                last_record: link.last_record(),
                aps: aps.remove(&mp).unwrap_or_default(),
            })
            .collect()
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
