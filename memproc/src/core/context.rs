//! What a role works with during one step: the time, what it may look at, and the effects through
//! which alone it reaches the other roles and the outside.

use dosmos_proto::{ApId, ErrorCode, Incarnation, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::{Op, Origin, Record, Side};

use super::cluster::Cluster;
use super::directory::variables::Variables;
use super::effects::{Caller, Effect};
use super::incarnations::Incarnations;
use super::messages::{CallId, Item, Notice, Output, PeerRequest, Reply, Response};
use super::replica::seat::{Config, Seat};
use super::replica::seats::Standing;
use super::router::Router;

/// To the cluster, all threads of an application process are one.
const TAKE_TURNS: &str = "threads of one process that take turns on an object need a mutex of the program around their sections";

/// What every role may look at, and nobody but the engine changes.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) cluster: Cluster,
    pub(crate) variables: Variables,
    pub(crate) router: Router,
    pub(crate) incarnations: Incarnations,
}

/// What a role works with.
pub(crate) struct Context<'a> {
    pub(crate) now: Nanos,
    pub(crate) cluster: &'a Cluster,
    pub(crate) variables: &'a Variables,
    effects: &'a mut Vec<Effect>,
    router: &'a Router,
    incarnations: &'a Incarnations,
}

impl<'a> Context<'a> {
    pub(crate) fn new(now: Nanos, view: &'a View, effects: &'a mut Vec<Effect>) -> Self {
        Self {
            now,
            cluster: &view.cluster,
            variables: &view.variables,
            effects,
            router: &view.router,
            incarnations: &view.incarnations,
        }
    }

    /// This process.
    pub(crate) fn me(&self) -> MpId {
        self.cluster.me
    }

    /// Which start of this process it is.
    pub(crate) fn own_incarnation(&self) -> Incarnation {
        self.incarnations.own()
    }

    /// Which start of another process is heard, if it is.
    pub(crate) fn incarnation_of(&self, mp: MpId) -> Option<Incarnation> {
        self.incarnations.of(mp)
    }

    /// Whether this start of this process keeps a seat by this decision.
    pub(crate) fn is_member(&self, config: &Config) -> bool {
        let seats = self.variables.seats();
        seats.is_member(self.cluster, config, self.own_incarnation())
    }

    /// What this process is to a seat.
    pub(crate) fn standing(&self, seat: Seat) -> Standing {
        let seats = self.variables.seats();
        seats.standing(self.cluster, self.own_incarnation(), (seat, self.now))
    }

    /// For how long nobody else can serve a seat, if this process serves it.
    pub(crate) fn lease_of(&self, seat: Seat) -> Option<Nanos> {
        match self.standing(seat) {
            Standing::Serves(time) => Some(time),
            Standing::Unsure | Standing::Elsewhere => None,
        }
    }

    /// Whether a request to `mp` has a chance; if not, why.
    pub(crate) fn check_reachable(&self, mp: MpId) -> Result<(), Refusal> {
        self.router.check_reachable(self.cluster, mp)
    }

    /// If the way to `mp` never came up: which process is missing and what is known of it.
    pub(crate) fn missing(&self, mp: MpId) -> Option<String> {
        self.router.missing(self.cluster, mp)
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Sends a request to the present start of a process.
    pub(crate) fn request(&mut self, to: MpId, call: CallId, request: PeerRequest) {
        self.request_of(to, None, call, request);
    }

    /// Sends a request that only one start of a process can serve, if one is named.
    pub(crate) fn request_of(
        &mut self,
        to: MpId,
        incarnation: Option<Incarnation>,
        call: CallId,
        request: PeerRequest,
    ) {
        self.effect(Effect::Request {
            to,
            incarnation,
            call,
            request,
        });
    }

    pub(crate) fn respond(&mut self, to: Caller, response: Response, wait: Nanos) {
        self.effect(Effect::Respond { to, response, wait });
    }

    pub(crate) fn notice(&mut self, to: MpId, notice: Notice) {
        self.effect(Effect::Notice { to, notice });
    }

    /// The refusal of an acquire of what an application process holds.
    pub(crate) fn held_already(&self, ap: ApId, object: &str, epoch: u64) -> Refusal {
        let ap = self.cluster.ap_name(ap);
        let why = format!(
            "{ap} already holds {object} (epoch {epoch}); release it first, in whichever thread acquired it; {TAKE_TURNS}"
        );
        Refusal::new(ErrorCode::AlreadyHeld, why)
    }

    /// The refusal of an acquire of what an application process waits for.
    pub(crate) fn awaited_already(&self, ap: ApId, object: &str) -> Refusal {
        let ap = self.cluster.ap_name(ap);
        let why = format!("{ap} already waits for {object}; one acquire at a time; {TAKE_TURNS}");
        Refusal::new(ErrorCode::AlreadyHeld, why)
    }

    /// Something for the outside.
    pub(crate) fn output(&mut self, output: Output) {
        self.effect(Effect::Output(output));
    }

    pub(crate) fn trace(&mut self, item: Item) {
        self.output(Output::Trace(item));
    }

    pub(crate) fn reply(&mut self, ap: ApId, id: u64, reply: Reply, remote: bool) {
        self.output(Output::Reply {
            ap,
            id,
            reply,
            remote,
        });
    }

    /// A requester's record with what this process knows of itself: local, without cost or content.
    pub(crate) fn record(&self, ap: ApId, start: Nanos, op: Op, object: ObjectId) -> Record {
        Record {
            start,
            duration: self.now - start,
            wait: Nanos::ZERO,
            service: Nanos::ZERO,
            op,
            side: Side::Requester,
            origin: Origin::Local,
            flags: dosmos_trace::record::Flags::default(),
            object,
            ap,
            mp: self.cluster.me,
            peer: self.cluster.me,
            count: 1,
            bytes: 0,
            version: 0,
            range: (0, 0),
        }
    }
}

#[cfg(test)]
use std::sync::Arc;

#[cfg(test)]
use dosmos_proto::Topology;

#[cfg(test)]
impl View {
    /// What a process knows at its first start, with no neighbour up and no variable.
    pub(crate) fn of_test(topology: Arc<Topology>, me: MpId) -> Self {
        Self::of_start(topology, me, 1)
    }

    /// The same of another start.
    pub(crate) fn of_start(topology: Arc<Topology>, me: MpId, start: u32) -> Self {
        let cluster = Cluster::new(topology, me);
        let own = Incarnation::new(start, 0);
        Self {
            router: Router::new(&cluster),
            variables: Variables::new(Vec::new(), own),
            incarnations: Incarnations::new(own),
            cluster,
        }
    }
}
