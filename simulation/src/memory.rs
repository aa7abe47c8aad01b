//! A memory or link process: its core and its recorder, and which connection is whose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dosmos_memproc::core::messages::{Input, Output, Request as CoreRequest};
use dosmos_memproc::core::{Core, Settings};
use dosmos_memproc::recorder::{Recorder, Recording};
use dosmos_memproc::wire;
use dosmos_proto::wire::{
    ApReply, ApRequest, ClockProbe, IngestBye, IngestReply, IngestRequest, PeerMessage, Skip,
    ingest_reply, ingest_request,
};
use dosmos_proto::{
    ApId, Incarnation, MpId, Nanos, PROTOCOL, PhaseTimes, ProcessCounters, Refusal, Topology,
};

use crate::network::{ConnId, Message};

/// To whom something is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// The other end of a connection.
    Conn(ConnId),
    /// Nobody: the connection ends, at this end.
    End(ConnId),
}

/// What a process wants sent.
pub(crate) type Sent = Vec<(To, Message)>;

/// The stream to the event manager.
#[derive(Clone, Copy, Debug, Default)]
struct Reports {
    conn: Option<ConnId>,
    welcomed: bool,
    clock_known: bool,
}

/// One start of a memory process.
pub(crate) struct Memory {
    me: MpId,
    topology: Arc<Topology>,
    incarnation: Incarnation,
    core: Core,
    recorder: Recorder,
    aps: BTreeMap<ApId, ConnId>,
    by_conn: BTreeMap<ConnId, ApId>,
    peers: BTreeMap<MpId, ConnId>,
    /// Peers whose link is greeted.
    attached: BTreeSet<MpId>,
    reports: Reports,
    out: Vec<Output>,
    /// Something was recorded that is not packed.
    recorded: bool,
    /// An application process that was let in a second time.
    twice: Option<ApId>,
}

impl Memory {
    pub(crate) fn new(
        topology: &Arc<Topology>,
        me: MpId,
        incarnation: Incarnation,
        recording: Recording,
    ) -> Self {
        let settings = Settings {
            topology: Arc::clone(topology),
            me,
            incarnation,
            overrides: Vec::new(),
            default_timeout: Nanos::from_millis(60_000),
            in_application: false,
        };
        Self {
            me,
            topology: Arc::clone(topology),
            incarnation,
            core: Core::new(settings),
            recorder: Recorder::new(Arc::clone(topology), me, recording),
            aps: BTreeMap::new(),
            by_conn: BTreeMap::new(),
            peers: BTreeMap::new(),
            attached: BTreeSet::new(),
            reports: Reports::default(),
            out: Vec::new(),
            recorded: false,
            twice: None,
        }
    }

    pub(crate) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The neighbours that it dials.
    pub(crate) fn dials(&self) -> Vec<MpId> {
        let mut all = self.core.neighbours();
        all.retain(|n| *n > self.me);
        all
    }

    /// Whether something waits to be packed; asked once.
    pub(crate) fn take_recorded(&mut self) -> bool {
        std::mem::take(&mut self.recorded)
    }

    /// An application process that was let in although one of its name was there.
    pub(crate) fn twice(&self) -> Option<ApId> {
        self.twice
    }

    pub(crate) fn is_linked(&self, peer: MpId) -> bool {
        self.peers.contains_key(&peer)
    }

    fn feed(&mut self, now: Nanos, input: Input, sent: &mut Sent) {
        let mut out = std::mem::take(&mut self.out);
        self.core.handle(now, input, &mut out);
        self.dispatch(&mut out, sent);
        self.out = out;
    }

    fn dispatch(&mut self, out: &mut Vec<Output>, sent: &mut Sent) {
        for output in out.drain(..) {
            match output {
                Output::Reply {
                    ap,
                    id,
                    reply,
                    remote,
                } => {
                    let mut reply = wire::ap::reply(id, reply);
                    reply.remote = remote;
                    self.tell(ap, reply, sent);
                }
                Output::Invalidate { ap, object } => {
                    self.tell(ap, wire::ap::invalidate(object), sent);
                }
                Output::Update {
                    ap,
                    object,
                    version,
                    data,
                } => self.tell(ap, wire::ap::update(object, version, data), sent),
                Output::Confirm {
                    ap,
                    object,
                    version,
                } => self.tell(ap, wire::ap::confirm(object, version), sent),
                Output::Recall {
                    ap,
                    object,
                    delegation,
                    wanted,
                } => self.tell(ap, wire::ap::recall(object, delegation, wanted), sent),
                Output::Send { to, message } => {
                    if let Some(conn) = self.peers.get(&to).filter(|_| self.attached.contains(&to))
                    {
                        let message = Box::new(wire::peer::to_wire(message));
                        sent.push((To::Conn(*conn), Message::Peer(message)));
                    }
                }
                Output::Trace(item) => {
                    self.recorder.push(item, Nanos::ZERO);
                    self.recorded = true;
                }
            }
        }
    }

    fn tell(&self, ap: ApId, reply: ApReply, sent: &mut Sent) {
        if let Some(conn) = self.aps.get(&ap) {
            sent.push((To::Conn(*conn), Message::Reply(Box::new(reply))));
        }
    }

    pub(crate) fn tick(&mut self, now: Nanos, sent: &mut Sent) {
        self.feed(now, Input::Tick, sent);
    }

    /// A request arrived on a connection of an application process.
    pub(crate) fn request(
        &mut self,
        now: Nanos,
        conn: ConnId,
        request: ApRequest,
        sent: &mut Sent,
    ) {
        match self.by_conn.get(&conn) {
            Some(ap) => self.served(now, *ap, request, sent),
            None => self.greeted(now, conn, request, sent),
        }
    }

    fn greeted(&mut self, now: Nanos, conn: ConnId, first: ApRequest, sent: &mut Sent) {
        let id = first.id;
        let hello = wire::ap::hello(first).map_err(Refusal::from);
        let mut out = std::mem::take(&mut self.out);
        let welcomed = hello.and_then(|(_, hello)| self.core.connect(now, &hello.name, &mut out));
        self.dispatch(&mut out, sent);
        self.out = out;
        let reply = match welcomed {
            Ok(welcome) => {
                if self.aps.insert(welcome.ap, conn).is_some() {
                    self.twice = Some(welcome.ap);
                }
                self.by_conn.insert(conn, welcome.ap);
                wire::ap::welcome(id, welcome, &self.topology)
            }
            Err(refusal) => {
                let refused = Message::Reply(Box::new(wire::ap::refused(id, refusal)));
                sent.push((To::Conn(conn), refused));
                return sent.push((To::End(conn), Message::Closed));
            }
        };
        sent.push((To::Conn(conn), Message::Reply(Box::new(reply))));
    }

    fn served(&mut self, now: Nanos, ap: ApId, mut request: ApRequest, sent: &mut Sent) {
        let id = request.id;
        let local = wire::ap::local(std::mem::take(&mut request.local));
        let returns = wire::ap::returns(std::mem::take(&mut request.returns));
        for piece in std::mem::take(&mut request.times) {
            let piece = PhaseTimes { ap, ..piece.into() };
            self.recorder.times(piece);
            self.recorded = true;
        }
        let beside = [
            (!local.is_empty()).then_some(CoreRequest::Report(local)),
            (!returns.is_empty()).then_some(CoreRequest::Return(returns)),
        ];
        let input = |timeout, request| Input::Request {
            ap,
            id,
            timeout,
            request,
        };
        for request in beside.into_iter().flatten() {
            self.feed(now, input(None, request), sent);
        }
        match wire::ap::request(request) {
            Ok((timeout, request)) => {
                let bye = request == CoreRequest::Bye;
                self.feed(now, input(timeout, request), sent);
                if bye {
                    self.forget_ap(ap);
                }
            }
            Err(malformed) => self.tell(ap, wire::ap::refused(id, malformed.into()), sent),
        }
    }

    fn forget_ap(&mut self, ap: ApId) {
        if let Some(conn) = self.aps.remove(&ap) {
            self.by_conn.remove(&conn);
        }
    }

    /// A link to a peer is up, in place of one that may still look alive, which is then to be ended.
    pub(crate) fn attach_peer(&mut self, now: Nanos, peer: MpId, conn: ConnId, sent: &mut Sent) {
        if let Some(before) = self.peers.remove(&peer) {
            sent.push((To::End(before), Message::Closed));
            if self.attached.remove(&peer) {
                self.feed(now, Input::PeerDown(peer), sent);
            }
        }
        self.peers.insert(peer, conn);
        self.attached.insert(peer);
        self.feed(now, Input::PeerUp(peer), sent);
    }

    pub(crate) fn peer(&mut self, now: Nanos, from: MpId, message: PeerMessage, sent: &mut Sent) {
        if let Ok(message) = wire::peer::message(message) {
            self.feed(now, Input::Message { from, message }, sent);
        }
    }

    /// The greeting of a link.
    pub(crate) fn greeting(&self, peer: MpId) -> PeerMessage {
        use dosmos_proto::wire::{PeerHello, peer_message::Body};
        PeerMessage {
            source: self.me.0,
            destination: peer.0,
            body: Some(Body::Hello(PeerHello {
                name: self.topology.mp_name(self.me),
                protocol: PROTOCOL,
                topology: self.topology.fingerprint(),
                inbox: String::new(),
            })),
            ..PeerMessage::default()
        }
    }

    /// A connection of an application process ended.
    pub(crate) fn ap_gone(&mut self, now: Nanos, conn: ConnId, sent: &mut Sent) {
        if let Some(ap) = self.by_conn.get(&conn).copied() {
            self.forget_ap(ap);
            self.feed(now, Input::ApGone(ap), sent);
        }
    }

    /// A link to a peer ended, or could not be made.
    pub(crate) fn peer_gone(&mut self, now: Nanos, peer: MpId, conn: ConnId, sent: &mut Sent) {
        if self.peers.get(&peer) == Some(&conn) {
            self.peers.remove(&peer);
            if self.attached.remove(&peer) {
                self.feed(now, Input::PeerDown(peer), sent);
            }
        }
        if peer > self.me {
            let why = "the link is lost".to_owned();
            self.feed(now, Input::PeerTrouble(peer, why), sent);
        }
    }

    pub(crate) fn shut_down(&mut self, now: Nanos, sent: &mut Sent) {
        self.feed(now, Input::Shutdown, sent);
    }

    fn counters(&self) -> ProcessCounters {
        let core = self.core.counters();
        let mut counters = ProcessCounters {
            requests: core.requests,
            served: core.served,
            forwarded: core.forwarded,
            copies: core.copies,
            objects: core.objects,
            ..ProcessCounters::default()
        };
        self.recorder.measure(&mut counters);
        counters
    }

    /// What it made and dropped, of records.
    pub(crate) fn accounts(&self) -> (u64, u64) {
        let counters = self.counters();
        (counters.recorded, counters.dropped)
    }

    /// The connection to the event manager was dialled.
    pub(crate) fn greet_manager(&mut self, conn: ConnId, sent: &mut Sent) {
        self.reports = Reports {
            conn: Some(conn),
            ..Reports::default()
        };
        let topology = (*self.topology).clone();
        let hello = ingest_request::Body::Hello(dosmos_proto::wire::IngestHello {
            memory_process: topology.mp_name(self.me),
            incarnation: self.incarnation.to_wire(),
            protocol: PROTOCOL,
            topology: Some(topology.into()),
        });
        sent.push((To::Conn(conn), ingest(hello)));
    }

    /// The connection to the event manager ended; whether it was the current one.
    pub(crate) fn manager_gone(&mut self, conn: ConnId) -> bool {
        let current = self.reports.conn == Some(conn);
        if current {
            self.reports = Reports::default();
        }
        current
    }

    pub(crate) fn has_manager(&self) -> bool {
        self.reports.conn.is_some()
    }

    /// The event manager says something.
    pub(crate) fn told(&mut self, now: Nanos, conn: ConnId, reply: &IngestReply, sent: &mut Sent) {
        use ingest_reply::Body;
        if self.reports.conn != Some(conn) {
            return;
        }
        let ended = match &reply.body {
            Some(Body::Welcome(welcome)) => match self.recorder.welcome(welcome.durable) {
                Ok(gap) => {
                    self.reports.welcomed = true;
                    if let Some(gap) = gap {
                        let (to, records) = (gap.to, gap.records);
                        let skip = ingest_request::Body::Skip(Skip { to, records });
                        sent.push((To::Conn(conn), ingest(skip)));
                        // Names are told again.
                        self.recorded = true;
                    }
                    (0..4).for_each(|_| self.probe(now, sent));
                    false
                }
                Err(_) => true,
            },
            Some(Body::Durable(number)) => self.recorder.outbox().acknowledged(*number).is_err(),
            Some(Body::Clock(s)) => {
                let clock = self.recorder.clock();
                clock.with_clock(s.clock);
                let (received, replied) = (Nanos(s.received_ns), Nanos(s.replied_ns));
                clock.sample(Nanos(s.sent_ns), received, replied, now);
                if !std::mem::replace(&mut self.reports.clock_known, true) {
                    self.probe(now, sent);
                }
                false
            }
            _ => true,
        };
        if ended {
            return sent.push((To::End(conn), Message::Closed));
        }
        self.send_batches(sent);
    }

    /// Asks the event manager for its time.
    pub(crate) fn probe(&mut self, now: Nanos, sent: &mut Sent) {
        if let Some(conn) = self.reports.conn.filter(|_| self.reports.welcomed) {
            let estimate = self.recorder.clock().estimate(now);
            let probe = ClockProbe {
                sent_ns: now.0,
                estimate: estimate.map(Into::into),
            };
            let probe = ingest_request::Body::Clock(probe);
            sent.push((To::Conn(conn), ingest(probe)));
        }
    }

    /// Packs what was recorded; `heartbeat`: counters alone, if there is nothing else.
    pub(crate) fn pack(&mut self, heartbeat: bool, sent: &mut Sent) {
        self.recorder.set_aside();
        let counters = self.counters();
        let mut packed = false;
        while let Some(raw) = self.recorder.take() {
            self.recorder.pack(raw, counters);
            packed = true;
        }
        if heartbeat && !packed && self.reports.welcomed && self.recorder.idle() {
            self.recorder.pack(Default::default(), counters);
        }
        self.send_batches(sent);
    }

    /// At the end: what was left out is known only now.
    pub(crate) fn pack_last(&mut self, sent: &mut Sent) {
        let counters = self.counters();
        self.recorder.pack(Default::default(), counters);
        self.send_batches(sent);
    }

    fn send_batches(&mut self, sent: &mut Sent) {
        let Some(conn) = self.reports.conn.filter(|_| self.reports.clock_known) else {
            return;
        };
        while let Some(batch) = self.recorder.outbox().next_to_send() {
            if let Ok(batch) = <IngestRequest as prost::Message>::decode(batch) {
                sent.push((To::Conn(conn), Message::Ingest(Box::new(batch))));
            }
        }
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.recorder.is_drained()
    }

    /// Says goodbye to the event manager.
    pub(crate) fn say_bye(&mut self, sent: &mut Sent) {
        if let Some(conn) = self.reports.conn {
            let last = self.recorder.outbox().next_number() - 1;
            let bye = ingest_request::Body::Bye(IngestBye { last });
            sent.push((To::Conn(conn), ingest(bye)));
        }
    }
}

fn ingest(body: ingest_request::Body) -> Message {
    Message::Ingest(Box::new(IngestRequest { body: Some(body) }))
}
