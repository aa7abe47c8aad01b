//! The memory process as a state machine: something happened in, things to do out.
//!
//! Invariant: nothing here awaits, reads a clock, draws a random number or touches the network; the
//! same inputs give the same outputs. So a whole cluster runs inside one test, message by message.
//!
//! | file | what |
//! |---|---|
//! | `input` | what goes in and out |
//! | `requests`, `replies` | the requester's role (SMP): an application process's request, and its reply |
//! | `publish` | the order of flushes, releases and barriers of one application process |
//! | `owner`, `rounds` | the owner's role (PMP), the same for near and far requesters; how it publishes |
//! | `object`, `lock`, `copies`, `calls`, `sessions` | their state |
//! | `directory`, `places` | variables: names, numbers, owners; checks of objects and elements |
//! | `barrier` | barriers |
//! | `cluster`, `peers` | routes and neighbours |
//! | `faults` | deadlines, leaving, losses |

mod barrier;
mod calls;
mod cluster;
mod copies;
mod directory;
mod faults;
mod hash;
pub mod input;
mod lock;
mod object;
mod owner;
mod peers;
mod places;
mod publish;
mod replies;
mod requests;
mod rounds;
mod sessions;
#[cfg(test)]
#[allow(unreachable_pub)] // also used by the tests outside the crate
mod testing;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use dosmos_proto::{
    ApId, CopyPolicy, ErrorCode, GroupId, LockKind, MpId, Nanos, ObjectId, Placement, Refusal,
    Topology, VarId,
};
use dosmos_trace::Record;

use calls::{Calls, Kind, Operation, What};
use cluster::Cluster;
pub(crate) use hash::FastMap;
use input::{Body, Input, Item, Message, Output, Reply, Tell};
use owner::Asker;
use replies::Cost;

pub use sessions::MAX_OUTSTANDING;

/// What the configuration says of a variable, over what its declaration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableOverride {
    /// Its name.
    pub name: String,
    /// What releases do to copies.
    pub policy: Option<CopyPolicy>,
    /// Owners.
    pub placement: Option<Placement>,
    /// How processes take turns.
    pub lock: Option<LockKind>,
}

/// What the core is told once, at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// All processes of the cluster.
    pub topology: Arc<Topology>,
    /// Which of them this is.
    pub me: MpId,
    /// The same in all processes.
    pub overrides: Vec<VariableOverride>,
    /// How long an operation may take if the application process does not say.
    pub default_deadline: Nanos,
    /// Which start of this process it is: different at every start.
    pub incarnation: u64,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests of own application processes.
    pub requests: u64,
    /// Requests of other memory processes.
    pub served: u64,
    /// Messages handed on.
    pub forwarded: u64,
    /// Copies held now.
    pub copies: u64,
    /// Objects owned now.
    pub objects: u64,
}

/// What an application process is told when it connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Its number.
    pub ap: ApId,
    /// Name of this memory process.
    pub memory_process: String,
    /// Path of its group.
    pub group: String,
    /// Its position among all application processes, and their number.
    pub rank: (u32, u32),
    /// Its position among those of its group and sub-groups, and their number.
    pub group_rank: (u32, u32),
    /// Names of all memory processes, by number.
    pub memory_processes: Vec<String>,
    /// Which start of the memory process this is.
    pub incarnation: u64,
}

/// The state machine of one memory or link process.
#[derive(Debug)]
pub struct Core {
    cluster: Cluster,
    settings: Settings,
    directory: directory::Directory,
    /// Variables whose home said that all owners know them.
    announced: HashSet<VarId>,
    // As owner.
    objects: FastMap<ObjectId, object::Object>,
    /// Written outside sections and not told to the copies, by writer.
    dirty: FastMap<ApId, BTreeSet<ObjectId>>,
    rounds: FastMap<u64, rounds::Round>,
    next_round: u64,
    // As requester.
    sessions: sessions::Sessions,
    calls: Calls,
    copies: copies::Copies,
    barriers: barrier::Barriers,
    peers: peers::Peers,
    counters: Counters,
    closing: bool,
}

/// What a step of the core works with: the time, and where its outputs go.
struct Cx<'a> {
    now: Nanos,
    out: &'a mut Vec<Output>,
}

impl Cx<'_> {
    fn record(&mut self, record: Record) {
        self.out.push(Output::Trace(Item::Record(record)));
    }

    fn reply(&mut self, ap: ApId, id: u64, reply: Reply) {
        let remote = false;
        self.out.push(Output::Reply {
            ap,
            id,
            reply,
            remote,
        });
    }
}

impl Core {
    /// A process that has seen nothing yet.
    pub fn new(settings: Settings) -> Self {
        let cluster = Cluster::new(Arc::clone(&settings.topology), settings.me);
        let peers = peers::Peers::new(&cluster);
        Self {
            cluster,
            settings,
            directory: directory::Directory::default(),
            announced: HashSet::new(),
            objects: FastMap::default(),
            dirty: FastMap::default(),
            rounds: FastMap::default(),
            next_round: 1,
            sessions: sessions::Sessions::default(),
            calls: Calls::default(),
            copies: copies::Copies::default(),
            barriers: barrier::Barriers::default(),
            peers,
            counters: Counters::default(),
            closing: false,
        }
    }

    /// The neighbours this process has links to.
    pub fn neighbours(&self) -> Vec<MpId> {
        self.cluster.neighbours().collect()
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        Counters {
            copies: self.copies.count(),
            objects: self.directory.owned(),
            ..self.counters
        }
    }

    /// An application process introduces itself.
    ///
    /// # Errors
    /// If it is unknown, belongs to another memory process, or is connected already.
    pub fn connect(
        &mut self,
        now: Nanos,
        name: &str,
        out: &mut Vec<Output>,
    ) -> Result<Welcome, Refusal> {
        let me = self.cluster.mp_name(self.cluster.me);
        if self.closing {
            let why = format!("{me} is ending");
            return Err(Refusal::new(ErrorCode::ShuttingDown, why));
        }
        let ap = self.cluster.own_ap(name)?;
        let session = self.sessions.get_mut(ap);
        if session.connected {
            return Err(Refusal::new(
                ErrorCode::AlreadyConnected,
                format!(
                    "{name} is connected to {me} already; end that process or use another name"
                ),
            ));
        }
        session.connected = true;
        if let Some(told) = session.left.take() {
            let mut cx = Cx { now, out };
            for mp in told {
                self.tell(&mut cx, mp, Tell::ApGone { ap, back: true });
            }
        }
        self.barrier_regains(ap, barrier::Gone::Left);
        Ok(self.welcome(ap))
    }

    fn welcome(&self, ap: ApId) -> Welcome {
        let t = &self.cluster.topology;
        let group = self.cluster.group_of(self.cluster.me);
        let rank_in = |group: Option<GroupId>| {
            let members = t.aps_in(group);
            let mut rank = (0, 0);
            for member in members {
                rank.0 += u32::from(member < ap);
                rank.1 += 1;
            }
            rank
        };
        Welcome {
            ap,
            memory_process: self.cluster.mp_name(self.cluster.me),
            group: t.group_name(group),
            rank: rank_in(None),
            group_rank: rank_in(Some(group)),
            memory_processes: t.memory_processes.iter().map(|m| m.name.clone()).collect(),
            incarnation: self.settings.incarnation,
        }
    }

    /// Something happened at `now`; what is to be done about it goes to `out`, in order.
    pub fn handle(&mut self, now: Nanos, input: Input, out: &mut Vec<Output>) {
        let cx = &mut Cx { now, out };
        match input {
            Input::Request {
                ap,
                id,
                patience,
                request,
            } => {
                let patience = match patience {
                    Nanos::ZERO => self.settings.default_deadline,
                    given => given,
                };
                let op = Operation {
                    ap,
                    id,
                    start: now,
                    patience,
                    due: now + patience,
                    what: What::Open(String::new()),
                };
                self.request(cx, op, request);
            }
            Input::ApGone(ap) => self.leave(cx, ap, false),
            Input::PeerUp(mp) => self.peer_up(cx, mp),
            Input::PeerDown(mp) => self.peer_down(cx, mp),
            Input::PeerTrouble(mp, why) => self.peers.trouble(mp, why),
            Input::Message { from, message } => self.message(cx, from, message),
            Input::Tick => self.expire(cx),
            Input::Shutdown => self.close(cx),
        }
    }

    fn message(&mut self, cx: &mut Cx, from: MpId, message: Message) {
        // What comes another way than along the tree is not in order with the rest.
        if self.cluster.next_hop(message.source) != Some(from) {
            return;
        }
        if message.destination != self.cluster.me {
            return self.forward(cx, message);
        }
        match message.body {
            Body::Ask(ask) => {
                let asker = Asker {
                    mp: message.source,
                    ap: ApId::default(),
                    call: message.call,
                    received: cx.now,
                };
                self.serve(cx, asker, ask);
            }
            Body::Answer(answer) => {
                let cost = (message.service, message.wait);
                self.answered(cx, message.source, message.call, answer, cost);
            }
            Body::Tell(tell) => self.told(cx, from, message.source, tell),
        }
    }

    fn told(&mut self, cx: &mut Cx, from: MpId, source: MpId, tell: Tell) {
        match tell {
            Tell::Abandon { ap, object } => self.owner_abandon(cx, ap, object),
            Tell::BarrierArrive {
                group,
                name,
                generation,
                ..
            } => self.barrier_arrived(cx, source, group, &name, generation),
            Tell::BarrierRelease {
                group,
                name,
                generation,
                failed,
            } => self.barrier_released(cx, group, &name, generation, failed.as_ref()),
            Tell::ApGone { ap, .. } if self.cluster.mp_of(ap).is_none() => {}
            Tell::ApGone { ap, back: false } => self.barrier_loses(cx, ap, barrier::Gone::Left),
            Tell::ApGone { ap, back: true } => self.barrier_regains(ap, barrier::Gone::Left),
            Tell::MpGone { mp, back } => self.mp_gone(cx, from, mp, back),
        }
    }

    /// The process ends: everyone who waits is told.
    fn close(&mut self, cx: &mut Cx) {
        self.closing = true;
        let why = format!("{} is ending", self.cluster.mp_name(self.cluster.me));
        for call in self.calls.select(|c| matches!(c.kind, Kind::Operation(_))) {
            let refusal = Refusal::new(ErrorCode::ShuttingDown, why.clone());
            self.finish(cx, call, Err(refusal), Cost::default());
        }
        for ap in self.sessions.connected() {
            self.leave(cx, ap, true);
        }
    }
}

#[cfg(test)]
pub(crate) use testing::topology as test_topology;
