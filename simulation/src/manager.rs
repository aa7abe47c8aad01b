//! An event manager: its core, its store on a simulated disk, and which connection is whose.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dosmos_emp::core::{Durable, Manager};
use dosmos_proto::wire::{
    ClockSample, ExchangeHello, ExchangeReply, ExchangeRequest, IngestReply, IngestRequest,
    IngestWelcome, exchange_reply, exchange_request, ingest_reply, ingest_request,
};
use dosmos_proto::{EmpId, Incarnation, MpId, Nanos, PROTOCOL, Topology};
use dosmos_trace::run::RunId;
use dosmos_trace::selection::Selection;
use dosmos_trace::store::{Commit, Identity, SimulatedDisk, StoreError, StoreWriter};

use crate::clock::Clock;
use crate::memory::{Sent, To};
use crate::network::{ConnId, Message};

/// Contents sent to another event manager before their acknowledgement comes.
const IN_FLIGHT: usize = 1024;

/// The disk of an event manager, which outlives its starts.
pub(crate) struct Disk {
    dir: PathBuf,
    disk: SimulatedDisk,
}

impl Disk {
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            disk: SimulatedDisk::new(dir.to_owned()),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn set_full(&mut self, full: bool) {
        self.disk.set_full(full);
    }

    pub(crate) fn lose_power(&mut self, seed: u64) -> std::io::Result<()> {
        self.disk.lose_power(seed)
    }
}

/// A memory process that reports.
#[derive(Clone, Copy, Debug)]
struct Reporter {
    mp: MpId,
    incarnation: Incarnation,
}

/// The stream to another event manager.
#[derive(Clone, Copy, Debug)]
struct HandOver {
    conn: ConnId,
    greeted: bool,
    sent: u64,
    acknowledged: u64,
}

/// One start of an event manager.
pub(crate) struct EventManager {
    me: EmpId,
    topology: Arc<Topology>,
    clock: Clock,
    manager: Manager,
    /// None once it is closed.
    store: Option<StoreWriter>,
    /// What is being written.
    writing: Option<Commit>,
    reporters: BTreeMap<ConnId, Reporter>,
    current: BTreeMap<MpId, ConnId>,
    /// Event managers that hand over to this one.
    senders: BTreeMap<ConnId, EmpId>,
    to: BTreeMap<EmpId, HandOver>,
}

impl EventManager {
    /// Begins with what its disk holds.
    pub(crate) fn start(
        topology: &Arc<Topology>,
        me: EmpId,
        clock: Clock,
        disk: &mut Disk,
    ) -> Result<Self, StoreError> {
        let run: Result<RunId, _> = "00112233445566778899aabbccddeeff".parse();
        let identity = Identity {
            run: run.unwrap_or_else(|_| unreachable!("these are 32 digits")),
            event_manager: topology.emp_name(me),
            emp: me,
            topology: (**topology).clone(),
        };
        let Disk { dir, disk } = disk;
        let (store, manager) = disk.with(|| {
            let (mut store, mut recovered) = StoreWriter::open(dir, &identity)?;
            store.commit(&Manager::expected_reports(topology, me))?;
            let mut manager = Manager::new(
                (**topology).clone(),
                me,
                Selection::default(),
                recovered.marks().values(),
            );
            if let Some(snapshot) = recovered.take_snapshot() {
                manager.resume(snapshot, store.view().catalog().variables);
            }
            manager.goes_on_after(store.view().corrections());
            recovered.replay(|item| manager.replay(item));
            Ok::<_, StoreError>((store, manager))
        })?;
        Ok(Self {
            me,
            topology: Arc::clone(topology),
            clock,
            manager,
            store: Some(store),
            writing: None,
            reporters: BTreeMap::new(),
            current: BTreeMap::new(),
            senders: BTreeMap::new(),
            to: BTreeMap::new(),
        })
    }

    pub(crate) fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Something waits to be written, and nothing is being written.
    pub(crate) fn is_to_write(&self) -> bool {
        self.writing.is_none() && !self.manager.pending().is_empty()
    }

    /// Nothing is under way.
    pub(crate) fn is_settled(&self) -> bool {
        self.writing.is_none()
            && self.manager.pending().is_empty()
            && self.manager.outbox().is_empty()
    }

    /// Writes what is pending; whether the disk took it. What follows from it comes with [`written`](Self::written).
    pub(crate) fn write(&mut self, disk: &mut Disk) -> bool {
        let commit = match self.writing.take() {
            Some(commit) => commit,
            None => self.manager.take_pending(),
        };
        let Some(store) = &mut self.store else {
            return false;
        };
        let done = disk.disk.with(|| store.commit(&commit));
        self.writing = Some(commit);
        done.is_ok()
    }

    /// What was being written is on disk: whoever waits for that is told.
    pub(crate) fn written(&mut self, now: Nanos, disk: &mut Disk, sent: &mut Sent) {
        let Some(commit) = self.writing.take() else {
            return;
        };
        for told in self.manager.durable(&commit) {
            match told {
                Durable::Batch(mp, number) => {
                    if let Some(conn) = self.current.get(&mp) {
                        sent.push((To::Conn(*conn), reply(ingest_reply::Body::Durable(number))));
                    }
                }
                Durable::Content(from, number) => {
                    let conns = self.senders.iter().filter(|(_, emp)| **emp == from);
                    for (conn, _) in conns {
                        sent.push((To::Conn(*conn), content_reply(number)));
                    }
                }
            }
        }
        if let Some(store) = &mut self.store {
            let manager = &self.manager;
            // What cannot be looked after now is looked after later.
            let _ = disk
                .disk
                .with(|| store.maintain(now, || manager.snapshot()));
        }
        self.hand_over(sent);
    }

    /// Closes the store.
    pub(crate) fn close(&mut self, disk: &mut Disk) -> Result<(), StoreError> {
        let Some(mut store) = self.store.take() else {
            return Ok(());
        };
        let snapshot = self.manager.snapshot();
        disk.disk.with(|| {
            store.save(&snapshot)?;
            store.close()
        })
    }

    /// A memory process says something.
    pub(crate) fn ingest(
        &mut self,
        true_time: u64,
        conn: ConnId,
        request: IngestRequest,
        sent: &mut Sent,
    ) {
        use ingest_request::Body;
        let now = self.clock.says(true_time);
        let end = |sent: &mut Sent| sent.push((To::End(conn), Message::Closed));
        let Some(body) = request.body else {
            return end(sent);
        };
        if let Body::Hello(hello) = body {
            let mp = self.topology.find_mp(&hello.memory_process);
            let incarnation = Incarnation::from_wire(hello.incarnation);
            let durable = mp.and_then(|mp| self.manager.hello(mp, incarnation).ok());
            let (Some(mp), Some(durable)) = (mp, durable) else {
                return end(sent);
            };
            self.reporters.insert(conn, Reporter { mp, incarnation });
            self.current.insert(mp, conn);
            let welcome = ingest_reply::Body::Welcome(IngestWelcome { durable });
            return sent.push((To::Conn(conn), reply(welcome)));
        }
        let Some(Reporter { mp, incarnation }) = self.reporters.get(&conn).copied() else {
            return end(sent);
        };
        match body {
            Body::Batch(batch) => {
                if self.manager.batch(mp, incarnation, batch, now).is_err() {
                    end(sent);
                }
            }
            Body::Clock(probe) => {
                if let Some(estimate) = probe.estimate {
                    self.manager.learn_clock(mp, estimate.into());
                }
                let sample = ClockSample {
                    sent_ns: probe.sent_ns,
                    received_ns: now.0,
                    replied_ns: now.0,
                    clock: self.clock.set_at(),
                };
                sent.push((To::Conn(conn), reply(ingest_reply::Body::Clock(sample))));
            }
            Body::Skip(skip) => {
                self.manager.skip(mp, incarnation, skip.to);
            }
            Body::Bye(bye) => {
                self.manager.bye(mp, incarnation, bye.last);
                end(sent);
            }
            Body::Hello(_) => end(sent),
        }
    }

    /// Another event manager, or one that this one hands over to, says something.
    pub(crate) fn exchange(&mut self, conn: ConnId, request: ExchangeRequest, sent: &mut Sent) {
        match (request.body, self.senders.get(&conn)) {
            (Some(exchange_request::Body::Hello(hello)), None) => {
                if let Some(from) = self.topology.find_emp(&hello.event_manager) {
                    self.senders.insert(conn, from);
                    let last = self.manager.metas().last_received(from);
                    sent.push((To::Conn(conn), content_reply(last)));
                }
            }
            (Some(exchange_request::Body::Content(content)), Some(from)) => {
                self.manager.content(*from, content.into());
            }
            _ => sent.push((To::End(conn), Message::Closed)),
        }
    }

    pub(crate) fn exchanged(&mut self, conn: ConnId, reply: &ExchangeReply, sent: &mut Sent) {
        let Some((to, link)) = self.to.iter_mut().find(|(_, link)| link.conn == conn) else {
            return;
        };
        let Some(exchange_reply::Body::Durable(number)) = reply.body else {
            return sent.push((To::End(conn), Message::Closed));
        };
        link.acknowledged = link.acknowledged.max(number);
        if !std::mem::replace(&mut link.greeted, true) {
            link.sent = number;
        }
        self.manager.handed_over(*to, link.acknowledged);
        self.hand_over(sent);
    }

    /// Sends what is due to those that are connected.
    fn hand_over(&mut self, sent: &mut Sent) {
        for (to, link) in self.to.iter_mut().filter(|(_, link)| link.greeted) {
            let room = IN_FLIGHT.saturating_sub((link.sent - link.acknowledged) as usize);
            for content in self.manager.outbox().after(*to, link.sent, room) {
                link.sent = content.sequence;
                let body = Some(exchange_request::Body::Content(content.into()));
                let content = Message::Exchange(Box::new(ExchangeRequest { body }));
                sent.push((To::Conn(link.conn), content));
            }
        }
    }

    /// The event managers to which something is due that are not connected.
    pub(crate) fn wants_to_dial(&self) -> Vec<EmpId> {
        let due = self.manager.outbox().due().map(|(to, _)| to);
        let mut all: Vec<EmpId> = due.filter(|to| !self.to.contains_key(to)).collect();
        all.dedup();
        all
    }

    /// The connection to another event manager was dialled.
    pub(crate) fn greet(&mut self, to: EmpId, conn: ConnId, sent: &mut Sent) {
        let link = HandOver {
            conn,
            greeted: false,
            sent: 0,
            acknowledged: 0,
        };
        self.to.insert(to, link);
        let hello = ExchangeHello {
            event_manager: self.topology.emp_name(self.me),
            protocol: PROTOCOL,
        };
        let body = Some(exchange_request::Body::Hello(hello));
        let hello = Message::Exchange(Box::new(ExchangeRequest { body }));
        sent.push((To::Conn(conn), hello));
    }

    /// A connection ended.
    pub(crate) fn gone(&mut self, conn: ConnId) {
        if let Some(reporter) = self.reporters.remove(&conn)
            && self.current.get(&reporter.mp) == Some(&conn)
        {
            self.current.remove(&reporter.mp);
        }
        self.senders.remove(&conn);
        self.to.retain(|_, link| link.conn != conn);
    }
}

fn reply(body: ingest_reply::Body) -> Message {
    Message::IngestReply(Box::new(IngestReply { body: Some(body) }))
}

fn content_reply(number: u64) -> Message {
    let body = Some(exchange_reply::Body::Durable(number));
    Message::ExchangeReply(Box::new(ExchangeReply { body }))
}
