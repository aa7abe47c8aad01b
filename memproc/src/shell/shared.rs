//! What all tasks of the process share: core, recorder and the senders of all connections, behind one
//! mutex. A task that read a message locks it once, lets the core work, hands the outputs to the senders,
//! and unlocks; no lock is held across an await.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use dosmos_node::processor::{process_time, thread_time};
use dosmos_proto::spin::Spinner;
use dosmos_proto::time::Clock;
use dosmos_proto::watched::Watched;
use dosmos_proto::wire::{ApReply, ApRequest, ap_reply, ap_request};
use dosmos_proto::{AddressBook, ApId, Incarnation, MpId, Nanos, ProcessCounters, Topology};
use tokio::sync::Notify;

use super::outgoing::{BOUNDS, REPLIES, line};
use super::outgoing::{DONE, Lines, NEWS, Order, Outgoing, POSTED, Stuck, Taken};
use crate::core::Core;
use crate::core::messages::{Body, Input, Output};
use crate::recorder::Recorder;
use crate::wire;

/// What all tasks of the process share.
pub(super) struct Shared {
    pub(super) topology: Arc<Topology>,
    pub(super) me: MpId,
    pub(super) book: AddressBook,
    pub(super) clock: Clock,
    pub(super) incarnation: Incarnation,
    /// Where connections are noted, if others see to them.
    pub(super) watched: Option<Arc<Watched>>,
    state: Mutex<State>,
    /// A batch is full; one was packed; there may be room again; say goodbye to the event manager.
    pub(super) full: Notify,
    pub(super) packed: Notify,
    pub(super) room: Notify,
    pub(super) farewell: Notify,
    /// Messages come in bursts: the next is waited for awake.
    pub(super) spinner: Spinner,
    /// Processor time that this process had used when it was ready to serve.
    pub(super) started: OnceLock<Nanos>,
    pub(super) slow_peers: Lines,
    /// Lines to peers that have messages which nobody took.
    due_peers: Lines,
    recording_up: AtomicBool,
    /// The event manager was connected at some time.
    recording_was_up: AtomicBool,
}

/// What stands behind the mutex.
pub(super) struct State {
    pub(super) core: Core,
    pub(super) recorder: Recorder,
    pub(super) aps: HashMap<ApId, ApLink>,
    pub(super) peers: HashMap<MpId, PeerLink>,
    pub(super) next_session: u64,
    pub(super) closed: bool,
    pub(super) out: Vec<Output>,
}

pub(super) struct ApLink {
    pub(super) session: u64,
    pub(super) outgoing: Outgoing<ApReply>,
    /// Requests whose replies are in no hurry.
    pub(super) no_hurry: BTreeSet<u64>,
    /// Replies that are due and in a hurry.
    pub(super) awaited: usize,
    /// Its program waits for news of copies.
    pub(super) awaits_news: bool,
}

impl ApLink {
    pub(super) fn new(session: u64, outgoing: Outgoing<ApReply>) -> Self {
        Self {
            session,
            outgoing,
            no_hurry: BTreeSet::new(),
            awaited: 0,
            awaits_news: false,
        }
    }

    /// Notes whether the replies to a request are in a hurry.
    pub(super) fn note_hurry(&mut self, request: &ApRequest) {
        use ap_request::Body;
        if !matches!(request.body, Some(Body::Report(_))) {
            self.awaits_news = false;
        }
        match &request.body {
            Some(Body::Access(_)) if request.no_hurry => {
                self.no_hurry.insert(request.id);
            }
            Some(Body::Report(report)) => {
                if report.hurry {
                    self.awaited += self.no_hurry.len();
                    self.no_hurry.clear();
                }
                self.awaits_news |= report.awaits_news;
                if report.hurry || report.awaits_news {
                    self.outgoing.hurry();
                }
            }
            Some(Body::Cancel(_) | Body::Bye(_)) | None => {}
            Some(_) => self.awaited += 1,
        }
    }

    /// Sends a reply, at once or soon.
    fn send(&mut self, reply: ApReply) -> Result<(), Stuck> {
        use ap_reply::Body;
        let expected = self.no_hurry.remove(&reply.id);
        if reply.id > 0 && !expected {
            self.awaited = self.awaited.saturating_sub(1);
        }
        match &reply.body {
            // News of copies are due with the reply to whatever synchronises, unless the program reads nothing else.
            Some(Body::Invalidate(_) | Body::Update(_)) if !self.awaits_news => {
                self.outgoing.send_within(NEWS, reply)
            }
            Some(Body::Confirm(_)) => self.outgoing.send_within(NEWS, reply),
            Some(Body::Write(_)) if expected => self.outgoing.send_within(POSTED, reply),
            _ => self.outgoing.send(reply),
        }
    }
}

/// Tells an application process something; notes if so much waits for it that its session has to end.
fn tell(state: &mut State, ap: ApId, reply: ApReply, full: &mut Vec<(ApId, Stuck)>) {
    // If it is not here any more it needs no reply.
    if let Some(link) = state.aps.get_mut(&ap)
        && let Err(why) = link.send(reply)
    {
        full.push((ap, why));
    }
}

pub(super) struct PeerLink {
    pub(super) session: u64,
    pub(super) outgoing: Outgoing,
}

impl Shared {
    pub(super) fn new(
        core: Core,
        recorder: Recorder,
        (topology, me): (Arc<Topology>, MpId),
        book: AddressBook,
        incarnation: Incarnation,
        watched: Option<Arc<Watched>>,
    ) -> Self {
        Self {
            topology,
            me,
            book,
            clock: Clock::start(),
            incarnation,
            watched,
            state: Mutex::new(State {
                core,
                recorder,
                aps: HashMap::new(),
                peers: HashMap::new(),
                next_session: 1,
                closed: false,
                out: Vec::with_capacity(64),
            }),
            full: Notify::new(),
            packed: Notify::new(),
            room: Notify::new(),
            farewell: Notify::new(),
            spinner: Spinner::default(),
            started: OnceLock::new(),
            slow_peers: Lines::default(),
            due_peers: Lines::default(),
            recording_up: AtomicBool::new(false),
            recording_was_up: AtomicBool::new(false),
        }
    }

    /// A line for the messages to a peer.
    pub(super) fn line_to_peer(&self) -> (Outgoing, Taken) {
        let order = Order::First(self.due_peers.clone());
        line(BOUNDS, &self.slow_peers, order)
    }

    /// A line for the replies to an application process; whether much waits in it is told by `unread`.
    pub(super) fn line_to_application(
        &self,
        unread: &Lines,
    ) -> (Outgoing<ApReply>, Taken<ApReply>) {
        line(REPLIES, unread, Order::After(self.due_peers.clone()))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // The core does not panic; if it did, what it holds is still the best there is.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the core of something, and does what it wants done.
    pub(super) fn feed(&self, input: Input) {
        let now = self.clock.now();
        let mut state = self.lock();
        self.feed_locked(&mut state, now, input);
    }

    pub(super) fn feed_locked(&self, state: &mut State, now: Nanos, input: Input) {
        let mut out = std::mem::take(&mut state.out);
        state.core.handle(now, input, &mut out);
        self.dispatch(state, now, &mut out);
        state.out = out;
        let mut ours = state.aps.values();
        let all_wait = !state.aps.is_empty() && ours.all(|link| link.awaited > 0);
        self.spinner.waited_for(all_wait);
    }

    /// Hands outputs to where they go. `since` is when their cause arrived: what passed since is this
    /// process's service time.
    pub(super) fn dispatch(&self, state: &mut State, since: Nanos, out: &mut Vec<Output>) {
        if out.is_empty() {
            return;
        }
        let cost = self.clock.now() - since;
        let (mut stuck, mut full) = (Vec::new(), Vec::new());
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
                    tell(state, ap, reply, &mut full);
                }
                Output::Invalidate { ap, object } => {
                    tell(state, ap, wire::ap::invalidate(object), &mut full);
                }
                Output::Update {
                    ap,
                    object,
                    version,
                    data,
                } => {
                    let update = wire::ap::update(object, version, data);
                    tell(state, ap, update, &mut full);
                }
                Output::Confirm {
                    ap,
                    object,
                    version,
                } => {
                    let confirm = wire::ap::confirm(object, version);
                    tell(state, ap, confirm, &mut full);
                }
                Output::Recall {
                    ap,
                    object,
                    delegation,
                    wanted,
                } => {
                    let recall = wire::ap::recall(object, delegation, wanted);
                    tell(state, ap, recall, &mut full);
                }
                Output::Send { to, mut message } => {
                    let ours = message.source == self.me;
                    if let Body::Response { cost: told, .. } = &mut message.body
                        && ours
                    {
                        told.service += cost;
                    }
                    let no_hurry = message.body.is_in_no_hurry();
                    let message = wire::peer::to_wire(message);
                    if let Some(link) = state.peers.get(&to)
                        && let Err(why) = match no_hurry {
                            true => link.outgoing.send_within(DONE, message),
                            false => link.outgoing.send(message),
                        }
                    {
                        stuck.push((to, why));
                    }
                }
                Output::Trace(item) => {
                    let timed = state.recorder.meter().times_this_push();
                    let begun = timed.then(thread_time);
                    if state.recorder.push(item, cost) {
                        self.full.notify_one();
                    }
                    if let Some(begun) = begun {
                        state.recorder.meter().push(thread_time() - begun);
                    }
                }
            }
        }
        for (peer, why) in stuck {
            self.give_up(state, since, peer, why);
        }
        for (ap, why) in full {
            self.give_up_ap(state, since, ap, why);
        }
    }

    /// Ends the session of an application process that does not take its replies.
    fn give_up_ap(&self, state: &mut State, now: Nanos, ap: ApId, why: Stuck) {
        if let Some(link) = state.aps.remove(&ap) {
            link.outgoing.give_up(why);
            self.feed_locked(state, now, Input::ApGone(ap));
        }
    }

    /// Ends the link to a peer that does not take what it is sent.
    fn give_up(&self, state: &mut State, now: Nanos, peer: MpId, why: Stuck) {
        if let Some(link) = state.peers.remove(&peer) {
            link.outgoing.give_up(why);
            self.feed_locked(state, now, Input::PeerTrouble(peer, why.to_string()));
            self.feed_locked(state, now, Input::PeerDown(peer));
        }
    }

    /// Ends links to peers that have taken nothing for too long.
    pub(super) fn give_up_silent_peers(&self) {
        let now = self.clock.now();
        let mut state = self.lock();
        let check =
            |(peer, link): (&MpId, &PeerLink)| Some((*peer, link.outgoing.check(now).err()?));
        let silent: Vec<(MpId, Stuck)> = state.peers.iter().filter_map(check).collect();
        for (peer, why) in silent {
            self.give_up(&mut state, now, peer, why);
        }
    }

    pub(super) fn emp_name(&self) -> String {
        let mp = self.topology.mp(self.me);
        mp.map_or_else(String::new, |m| self.topology.emp_name(m.event_manager))
    }

    /// Whether the event manager is connected.
    pub(super) fn is_recording_up(&self) -> bool {
        self.recording_up.load(Ordering::Relaxed)
    }

    pub(super) fn set_recording_up(&self, up: bool) {
        self.recording_up.store(up, Ordering::Relaxed);
        self.recording_was_up.fetch_or(up, Ordering::Relaxed);
    }

    /// Whether the event manager was ever connected.
    pub(super) fn was_recording_up(&self) -> bool {
        self.recording_was_up.load(Ordering::Relaxed)
    }

    /// What this process counted so far.
    pub(super) fn counters(&self, state: &State) -> ProcessCounters {
        let core = state.core.counters();
        let mut counters = ProcessCounters {
            requests: core.requests,
            served: core.served,
            forwarded: core.forwarded,
            // Within an application process it cannot be told from that of the program.
            cpu: self.watched.is_none().then(process_time),
            started: self.started.get().copied().unwrap_or_default(),
            awake: Nanos::from(self.spinner.waited()),
            copies: core.copies,
            objects: core.objects,
            ..ProcessCounters::default()
        };
        state.recorder.measure(&mut counters);
        counters
    }

    /// Packs what is set aside; with `heartbeat`, figures alone if there is nothing else. Whether
    /// something was packed.
    pub(super) fn pack(&self, heartbeat: bool) -> bool {
        let mut packed = false;
        let mut state = self.lock();
        let counters = self.counters(&state);
        while let Some(raw) = state.recorder.take() {
            let begun = thread_time();
            state.recorder.pack(raw, counters);
            state.recorder.meter().work(thread_time() - begun);
            packed = true;
        }
        let up = self.is_recording_up();
        if !packed && heartbeat && up && state.recorder.idle() {
            state.recorder.pack(Default::default(), counters);
            packed = true;
        }
        packed
    }

    /// A batch of counters only.
    pub(super) fn pack_counters(&self) {
        let mut state = self.lock();
        let counters = self.counters(&state);
        state.recorder.pack(Default::default(), counters);
    }

    pub(super) fn next_batch(&self) -> Option<Bytes> {
        self.lock().recorder.outbox().next_to_send()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use dosmos_proto::wire::{ApRequest, ObjectAccess, Publish, Report, WriteDone, ap_request};
    use tokio_stream::StreamExt;

    use super::*;

    fn request(body: ap_request::Body) -> ApRequest {
        ApRequest {
            body: Some(body),
            ..ApRequest::default()
        }
    }

    fn news() -> ApReply {
        ApReply {
            body: Some(ap_reply::Body::Invalidate(1)),
            ..ApReply::default()
        }
    }

    #[tokio::test]
    async fn news_that_somebody_waits_for_leave_at_once() {
        let (outgoing, mut taken) = line(REPLIES, &Lines::default(), Order::Any);
        let mut link = ApLink::new(1, outgoing);
        let mut cx = Context::from_waker(Waker::noop());
        let mut is_taken = || pin!(taken.next()).poll(&mut cx).is_ready();
        link.send(news()).unwrap();
        assert!(!is_taken());
        let waits = Report {
            awaits_news: true,
            ..Report::default()
        };
        link.note_hurry(&request(ap_request::Body::Report(waits)));
        assert!(is_taken(), "what was sent before");
        link.send(news()).unwrap();
        assert!(is_taken());
        link.note_hurry(&request(ap_request::Body::Report(Report::default())));
        link.send(news()).unwrap();
        assert!(is_taken(), "it says nothing of it");
        link.note_hurry(&request(ap_request::Body::Publish(Publish {})));
        link.send(news()).unwrap();
        assert!(!is_taken());
    }

    #[test]
    fn replies_that_a_program_waits_for_are_counted() {
        let (outgoing, _taken) = line(REPLIES, &Lines::default(), Order::Any);
        let mut link = ApLink::new(1, outgoing);
        let asks = |id: u64, no_hurry: bool| ApRequest {
            id,
            no_hurry,
            body: Some(ap_request::Body::Access(ObjectAccess::default())),
            ..ApRequest::default()
        };
        let done = |id: u64| ApReply {
            id,
            body: Some(ap_reply::Body::Write(WriteDone::default())),
            ..ApReply::default()
        };
        link.note_hurry(&asks(1, false));
        link.note_hurry(&asks(2, true));
        link.note_hurry(&asks(3, true));
        assert_eq!(link.awaited, 1, "two are posted");
        link.send(news()).unwrap();
        link.send(done(2)).unwrap();
        assert_eq!(link.awaited, 1);
        link.send(done(1)).unwrap();
        assert_eq!(link.awaited, 0);
        let hurry = Report {
            hurry: true,
            ..Report::default()
        };
        link.note_hurry(&request(ap_request::Body::Report(hurry)));
        assert_eq!(link.awaited, 1, "now it waits for what it posted");
        link.send(done(3)).unwrap();
        assert_eq!(link.awaited, 0);
    }
}
