//! The dispatcher: hands each input to its role, and each effect of a role to the role or the outside
//! that it is for. It holds no state of the protocol itself.

use dosmos_proto::{ApId, ErrorCode, GroupId, Incarnation, MpId, Nanos, Refusal};

use super::barrier::{Barriers, Gone};
use super::cluster::Cluster;
use super::context::{Context, View};
use super::directory::home::Home;
use super::directory::variables::Variables;
use super::effects::{Caller, Effect};
use super::failures::Failures;
use super::incarnations::{Incarnations, started_again};
use super::messages::{
    Body, CallId, Cost, Input, Message, Notice, Output, PeerRequest, Reply, Request, Response, Role,
};
use super::owner::Owner;
use super::replica::Replicas;
use super::replica::seat::Config;
use super::requester::{Requester, Ticket, WaitsFor};
use super::router::Router;
use super::settings::{Counters, Settings, Welcome};

/// The state machine of one memory or link process.
#[derive(Debug)]
pub struct Core {
    view: View,
    requester: Requester,
    owner: Owner,
    home: Home,
    barriers: Barriers,
    failures: Failures,
    replicas: Replicas,
    /// Requests of other memory processes so far.
    served: u64,
    /// Effects to be routed, the next one last.
    stack: Vec<Effect>,
    /// Effects of the step under way, in order.
    effects: Vec<Effect>,
}

impl Core {
    /// A process that has seen nothing yet.
    pub fn new(settings: Settings) -> Self {
        let mut cluster = Cluster::new(settings.topology, settings.me);
        cluster.in_application = settings.in_application;
        Self {
            requester: Requester::new(settings.default_timeout),
            owner: Owner::default(),
            home: Home::default(),
            barriers: Barriers::default(),
            failures: Failures::default(),
            replicas: Replicas::default(),
            served: 0,
            stack: Vec::new(),
            effects: Vec::new(),
            view: View {
                router: Router::new(&cluster),
                variables: Variables::new(settings.overrides, settings.incarnation),
                incarnations: Incarnations::new(settings.incarnation),
                cluster,
            },
        }
    }

    /// The neighbours this process has links to.
    pub fn neighbours(&self) -> Vec<MpId> {
        self.view.cluster.neighbours().collect()
    }

    /// The application processes of the cluster that have not left and are not lost, as far as this process was told. One that never
    /// came is among them.
    pub fn still_here(&self) -> Vec<ApId> {
        let aps = self.view.cluster.topology.aps_in(None);
        aps.into_iter()
            .filter(|ap| !self.barriers.is_absent(*ap))
            .collect()
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        Counters {
            requests: self.requester.requests(),
            served: self.served,
            forwarded: self.view.router.forwarded(),
            copies: self.requester.caches.count(),
            objects: self.view.variables.owned(),
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
        let ap = self.view.cluster.own_ap(name)?;
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        self.requester.connect(cx, ap)?;
        self.failures.come_back(cx, ap);
        self.barriers.regain_participant(ap, Gone::Left);
        self.route_all(now, out);
        Ok(self.welcome(ap))
    }

    fn welcome(&self, ap: ApId) -> Welcome {
        let cluster = &self.view.cluster;
        let t = &cluster.topology;
        let group = cluster.group_of(cluster.me);
        let rank_in = |group: Option<GroupId>| {
            let members = t.aps_in(group);
            members.fold((0, 0), |(rank, size), member| {
                (rank + u32::from(member < ap), size + 1)
            })
        };
        Welcome {
            ap,
            memory_process: cluster.mp_name(cluster.me),
            incarnation: self.view.incarnations.own(),
            group: t.group_name(group),
            rank: rank_in(None),
            group_rank: rank_in(Some(group)),
            memory_processes: t
                .memory_processes()
                .iter()
                .map(|m| m.name.clone())
                .collect(),
        }
    }

    /// An application process is there, although nothing it sends is read now.
    pub fn hear(&mut self, now: Nanos, ap: ApId) {
        self.requester.sessions.hear(now, ap);
    }

    /// Something happened at `now`; what is to be done about it goes to `out`, in order.
    pub fn handle(&mut self, now: Nanos, input: Input, out: &mut Vec<Output>) {
        // Before anything else is said to those who hold them.
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        self.requester.caches.end_leases(cx);
        let View {
            cluster, router, ..
        } = &mut self.view;
        match input {
            Input::Request {
                ap,
                id,
                timeout,
                request,
            } => self.request(now, (ap, id, timeout), request),
            Input::ApGone(ap) => {
                let cx = &mut Context::new(now, &self.view, &mut self.effects);
                self.requester.leave(cx, ap, false);
            }
            Input::PeerUp(mp) => {
                router.peer_up(cluster, mp, &mut self.effects);
                let cx = &mut Context::new(now, &self.view, &mut self.effects);
                self.requester.caches.forget_owner(cx, mp);
                self.failures.tell_again(cx, mp);
            }
            Input::PeerDown(mp) => router.peer_down(cluster, mp, &mut self.effects),
            Input::PeerTrouble(mp, why) => router.peer_trouble(mp, why),
            Input::Message { from, message } => self.message(now, from, message, out),
            Input::Tick => {
                for operation in self.requester.due(now) {
                    if !self.asks(now, operation) {
                        self.expire(now, operation);
                    }
                }
                let cx = &mut Context::new(now, &self.view, &mut self.effects);
                self.requester.renew_leases(cx);
                self.requester.ask_again(cx);
                self.replicas.tick(cx);
                self.home.tick(cx);
                self.owner.end_leases(cx);
                for ap in self.owner.overdue(now) {
                    if self.requester.sessions.is_silent(now, ap) {
                        self.owner.take_back(cx, ap);
                    }
                }
            }
            Input::Shutdown => {
                let cx = &mut Context::new(now, &self.view, &mut self.effects);
                self.requester.close(cx);
            }
        }
        self.route_all(now, out);
    }

    /// A request of an application process.
    fn request(
        &mut self,
        now: Nanos,
        (ap, id, timeout): (ApId, u64, Option<Nanos>),
        request: Request,
    ) {
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        let requester = &mut self.requester;
        requester.sessions.hear(now, ap);
        let ticket = requester.ticket(now, ap, id, timeout);
        let posted = matches!(request, Request::Posted(_));
        match request {
            Request::Access(access) | Request::Posted(access) => {
                requester.access(cx, Ticket { posted, ..ticket }, access);
            }
            Request::Declare(spec) => requester.declare(cx, ticket, spec),
            Request::Open(name) => requester.open(cx, ticket, &name),
            Request::Barrier { scope, name } => {
                let (barrier, coordinator) = self.barriers.place(cx, ap, &scope, &name);
                requester.barrier(cx, ticket, barrier, coordinator);
            }
            Request::Publish => requester.publish(cx, ticket),
            Request::Report(mut accesses) => {
                self.owner.hear_of_sections(ap, &mut accesses);
                requester.report(cx, ap, &accesses);
            }
            Request::Return(list) => {
                if requester.sessions.is_connected(ap) {
                    for back in &list {
                        if back.in_section {
                            let current =
                                self.owner.has_delegated(ap, back.object, back.delegation);
                            requester.section_goes_on(cx, ap, back, current);
                        }
                        self.owner.returned(cx, ap, back);
                    }
                }
            }
            Request::Cancel(id) => {
                if let Some(operation) = requester.find_operation(ap, id) {
                    self.expire(now, operation);
                }
            }
            Request::Bye => {
                requester.leave(cx, ap, true);
                cx.reply(ap, id, Reply::Farewell, false);
            }
        }
    }

    /// Whether an operation whose time is over asks another process for whom it waited.
    fn asks(&mut self, now: Nanos, operation: u64) -> bool {
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        let asks = match self.requester.waits_at(operation) {
            Some((barrier, waiter)) => self.barriers.ask(cx, barrier, waiter),
            None => self.requester.ask_owner(cx, operation),
        };
        if asks {
            self.requester.wait_for_answer(cx, operation);
        }
        asks
    }

    /// Ends an operation that nobody waits for any longer.
    fn expire(&mut self, now: Nanos, operation: u64) {
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        let detail = match self.requester.waits_for(operation) {
            WaitsFor::Lock(object) => self.owner.holder_text(cx, object),
            WaitsFor::Barrier(barrier) => self.barriers.missing_text(cx, barrier),
            WaitsFor::Response => None,
        };
        self.requester.expire(cx, operation, detail);
    }

    /// A message from a neighbour.
    fn message(&mut self, now: Nanos, from: MpId, message: Message, out: &mut Vec<Output>) {
        let View {
            cluster, router, ..
        } = &mut self.view;
        // What comes another way than along the tree is not in order with the rest.
        if cluster.next_hop(message.source) != Some(from) {
            return;
        }
        if message.destination != cluster.me {
            return router.forward(cluster, message, &mut self.effects);
        }
        let source = message.source;
        let incarnation = message.source_incarnation;
        let is_new = incarnation.is_some_and(|theirs| self.meet(now, source, theirs, out));
        let own = self.view.incarnations.own();
        let old = message.destination_incarnation.is_some_and(|i| i != own);
        let View {
            cluster, router, ..
        } = &mut self.view;
        match message.body {
            Body::Request { call, request } => {
                self.served += 1;
                let caller = Caller {
                    mp: source,
                    incarnation,
                    call,
                    received: now,
                };
                self.serve(now, caller, request, old);
            }
            _ if old => {}
            Body::Response {
                call,
                cost,
                response,
            } => self.receive(now, (source, incarnation), call, response, cost),
            Body::Notice(Notice::MpGone { mp, back }) => {
                router.hear(cluster, from, (mp, back), &mut self.effects);
            }
            Body::Notice(notice) => self.notice(now, source, notice),
        }
        if is_new {
            // After what it said, which may be what is waited for.
            let cx = &mut Context::new(now, &self.view, &mut self.effects);
            self.requester.flush_again(cx, source);
        }
    }

    /// A process is heard. If it was started again since we heard it last, what its earlier start held
    /// is lost. Whether it is heard for the first time since it was lost.
    fn meet(&mut self, now: Nanos, mp: MpId, theirs: Incarnation, out: &mut Vec<Output>) -> bool {
        if self.view.incarnations.is_new_start(mp, theirs) {
            let why = started_again(&self.view.cluster, mp);
            self.effects.push(Effect::Lost { mp, why });
            self.effects.push(Effect::Regained { mp });
            self.route_all(now, out);
        }
        self.view.incarnations.meet(mp, theirs)
    }

    /// Routes effects until none is left: what follows from one comes before the next.
    fn route_all(&mut self, now: Nanos, out: &mut Vec<Output>) {
        loop {
            self.stack.extend(self.effects.drain(..).rev());
            match self.stack.pop() {
                Some(Effect::Output(output)) => out.push(output),
                Some(effect) => self.route(now, effect),
                None => return,
            }
        }
    }

    fn route(&mut self, now: Nanos, effect: Effect) {
        let me = self.view.cluster.me;
        match effect {
            Effect::Output(_) => {}
            Effect::Request {
                to,
                incarnation,
                call,
                request,
            } if to == me => {
                let own = self.view.incarnations.own();
                let caller = Caller {
                    mp: me,
                    incarnation: Some(own),
                    call,
                    received: now,
                };
                let old = incarnation.is_some_and(|i| i != own);
                self.serve(now, caller, request, old);
            }
            Effect::Request {
                to,
                incarnation,
                call,
                request,
            } => {
                let incarnation = incarnation.or(self.view.incarnations.of(to));
                self.send(to, incarnation, Body::Request { call, request });
            }
            Effect::Respond { to, response, wait } => {
                let cost = Cost::waited(wait);
                if to.mp == me {
                    let own = self.view.incarnations.own();
                    return self.receive(now, (me, Some(own)), to.call, response, cost);
                }
                let call = to.call;
                self.owner.note_response(now, to.mp);
                let body = Body::Response {
                    call,
                    cost,
                    response,
                };
                self.send(to.mp, to.incarnation, body);
            }
            Effect::Notice { to, notice } if to == me => self.notice(now, me, notice),
            Effect::Notice { to, notice } => {
                let known = self.view.incarnations.of(to);
                let incarnation = known.filter(|_| !notice.is_for_every_start());
                self.send(to, incarnation, Body::Notice(notice));
            }
            Effect::TakeBack {
                to,
                call,
                otherwise,
            } => {
                let View {
                    cluster, router, ..
                } = &mut self.view;
                let taken = router.take_back(cluster, call);
                if let Some(notice) = otherwise.filter(|_| !taken) {
                    self.effects.push(Effect::Notice { to, notice });
                }
            }
            Effect::Seated(config) => self.seated(now, &config),
            effect => self.inform(now, effect),
        }
    }

    /// A majority decided who serves a seat.
    fn seated(&mut self, now: Nanos, config: &Config) {
        let seats = self.view.variables.seats_mut();
        let Some(before) = seats.install(config) else {
            return;
        };
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        if !before.is_held_as_by(config) {
            self.requester.moved(cx, &before, config);
        }
        self.replicas.seated(cx, config);
    }

    /// Events that one role makes and others hear of.
    fn inform(&mut self, now: Nanos, effect: Effect) {
        match effect {
            Effect::Lost { mp, .. } => self.view.incarnations.forget(mp),
            Effect::Leads {
                seat,
                until,
                settled,
            } => self.view.variables.seats_mut().lease(seat, until, settled),
            Effect::BegunAnew => self.view.variables.seats_mut().begin_anew(),
            _ => {}
        }
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        match effect {
            Effect::PublishAhead { ap, call, hearer } => {
                let caller = Caller {
                    mp: cx.me(),
                    incarnation: None,
                    call,
                    received: now,
                };
                self.owner.publish_ahead(cx, caller, ap, hearer);
            }
            Effect::Kept { object, ap } => self.requester.caches.kept(object, ap),
            Effect::Changed { object } => self.requester.caches.changed(cx, object),
            Effect::Published { object, version } => {
                self.requester.caches.published(cx, object, version);
            }
            Effect::Arrive { barrier, waiter } => self.barriers.arrive(cx, barrier, waiter),
            Effect::Withdraw { barrier, waiter } => self.barriers.withdraw(cx, barrier, waiter),
            Effect::Opened { waiter, outcome } => self.requester.opened(cx, waiter, outcome),
            Effect::Left { ap, orderly } => {
                self.owner.take_back(cx, ap);
                self.barriers.lose_participant(cx, ap, Gone::Left);
                self.failures.leave(cx, ap, orderly);
            }
            Effect::Lost { mp, why } => {
                self.barriers.lose(cx, mp, &why);
                self.requester.lose(cx, mp, &why);
                self.home.lose(cx, mp, &why);
                self.owner.lose(cx, mp);
                self.replicas.lose(mp);
                for ap in cx.cluster.aps_of(mp) {
                    self.barriers.lose_participant(cx, ap, Gone::Cut);
                }
            }
            Effect::Regained { mp } => {
                // It says again who left, and may not have been able to say who came back.
                for ap in cx.cluster.aps_of(mp) {
                    self.barriers.regain_participant(ap, Gone::Left);
                }
                self.failures.tell_again(cx, mp);
                self.requester.regain(cx, mp);
                self.replicas.regain(cx, mp);
                self.barriers.regain_coordinator(cx, mp);
            }
            Effect::SeatInUse { seat } => self.replicas.in_use(cx, seat),
            Effect::Ship(shipment) => self.replicas.ship(cx, shipment),
            Effect::Shipped { round } => self.owner.shipped(cx, round),
            Effect::Promoted { seat, states } => self.owner.promoted(cx, seat, states),
            Effect::Deposed { seat } => self.owner.deposed(cx, seat),
            Effect::Leads { seat, .. } => self.owner.serve_again(cx, seat),
            Effect::BegunAnew => self.replicas.begun_anew(cx),
            Effect::Output(_)
            | Effect::Seated(_)
            | Effect::Request { .. }
            | Effect::Respond { .. }
            | Effect::Notice { .. }
            | Effect::TakeBack { .. } => {}
        }
    }

    fn send(
        &mut self,
        destination: MpId,
        destination_incarnation: Option<Incarnation>,
        body: Body,
    ) {
        let own = self.view.incarnations.own();
        let View {
            cluster, router, ..
        } = &mut self.view;
        let message = Message {
            source: cluster.me,
            source_incarnation: Some(own),
            destination,
            destination_incarnation,
            body,
        };
        router.send(cluster, message, &mut self.effects);
    }

    /// A request of another memory process, or of a role of this one; `old` if it is meant for an
    /// earlier start of this process.
    /// What is responded to a request that is meant for an earlier start of this process.
    fn meant_for_an_earlier_start(&self, request: &PeerRequest) -> Response {
        let View {
            cluster, variables, ..
        } = &self.view;
        if let PeerRequest::Access { access, .. } = request
            && variables.seats().has_begun_anew()
            && let Some(seat) = variables.seat_of(access.object)
        {
            // Nobody of the group has anything of before.
            return Response::lost(seat);
        }
        Response::Refused(started_again(cluster, cluster.me))
    }

    fn serve(&mut self, now: Nanos, caller: Caller, request: PeerRequest, old: bool) {
        if old && !request.is_for_every_start() {
            let response = self.meant_for_an_earlier_start(&request);
            let cx = &mut Context::new(now, &self.view, &mut self.effects);
            return cx.respond(caller, response, Nanos::ZERO);
        }
        let votes = matches!(request, PeerRequest::Ballot(_));
        if self.view.cluster.is_link() && !votes {
            let me = self.view.cluster.mp_name(self.view.cluster.me);
            let why = format!("{me} is a link process; it owns nothing");
            let refusal = Refusal::new(ErrorCode::Invalid, why);
            let cx = &mut Context::new(now, &self.view, &mut self.effects);
            return cx.respond(caller, Response::Refused(refusal), Nanos::ZERO);
        }
        if let PeerRequest::Create(variable) = request {
            let own = self.view.incarnations.own();
            let View {
                cluster, variables, ..
            } = &mut self.view;
            let response = match variables.learn(cluster, own, &variable, None, &mut self.effects) {
                Ok(()) => Response::Created,
                Err(refusal) => Response::Refused(refusal),
            };
            let cx = &mut Context::new(now, &self.view, &mut self.effects);
            return cx.respond(caller, response, Nanos::ZERO);
        }
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        match request {
            PeerRequest::Access {
                access,
                ap,
                want_copy,
            } => self.owner.access(cx, caller, ap, access, want_copy),
            PeerRequest::Renew => cx.respond(caller, Response::Renewed, Nanos::ZERO),
            PeerRequest::Flush { ap } => self.owner.flush(cx, caller, ap),
            PeerRequest::Declare { spec, creator } => {
                self.home.declare(cx, caller, &spec, creator);
            }
            PeerRequest::Open(name) => self.home.open(cx, caller, &name),
            PeerRequest::Create(_) => {}
            PeerRequest::Names { after } => {
                let names = cx.variables.of_home(cx.cluster, caller.mp, &after);
                cx.respond(caller, Response::Names(names), Nanos::ZERO);
            }
            PeerRequest::Invalidate { object, version } => {
                self.requester
                    .caches
                    .revise(cx, caller, (object, version), None);
            }
            PeerRequest::Update {
                object,
                version,
                data,
                no_hurry,
            } => {
                let content = Some((data, no_hurry));
                self.requester
                    .caches
                    .revise(cx, caller, (object, version), content);
            }
            PeerRequest::Ballot(ballot) => self.replicas.ballot(cx, caller, ballot),
            PeerRequest::Replicate(replica) => self.replicas.keep_state(cx, caller, replica),
            PeerRequest::Compare(compare) => {
                self.replicas.answer_what_is_newer(cx, caller, &compare);
            }
        }
    }

    /// A response to a request of one of our roles.
    fn receive(
        &mut self,
        now: Nanos,
        (from, incarnation): (MpId, Option<Incarnation>),
        call: CallId,
        response: Response,
        cost: Cost,
    ) {
        let response = match (call.role, response) {
            (Role::Requester, Response::Variable(announced)) => {
                let own = self.view.incarnations.own();
                let View {
                    cluster, variables, ..
                } = &mut self.view;
                let owners = Some(announced.owners.as_slice());
                match variables.learn(cluster, own, &announced.variable, owners, &mut self.effects)
                {
                    Ok(()) => Response::Variable(announced),
                    Err(refusal) => Response::Refused(refusal),
                }
            }
            (_, response) => response,
        };
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        match call.role {
            Role::Replica => self
                .replicas
                .receive(cx, (from, incarnation), call.number, response),
            Role::Requester => self
                .requester
                .receive(cx, from, call.number, response, cost),
            Role::Home => self
                .home
                .receive(cx, (from, incarnation), call.number, response),
            Role::Owner => self.owner.acknowledged(cx, from, call.number),
        }
    }

    /// A notice of another process, or of a role of this one.
    fn notice(&mut self, now: Nanos, source: MpId, notice: Notice) {
        let cx = &mut Context::new(now, &self.view, &mut self.effects);
        match notice {
            Notice::Abandon { ap, object } => self.owner.abandon(cx, ap, object),
            Notice::BarrierArrive {
                group,
                name,
                generation,
            } => self.barriers.arrived(cx, source, (group, name), generation),
            Notice::BarrierWithdraw {
                group,
                name,
                generation,
            } => self
                .barriers
                .withdrawn(cx, source, (group, &name), generation),
            Notice::BarrierRelease {
                group,
                name,
                generation,
                failed,
            } => self
                .barriers
                .released(cx, (group, &name), generation, failed),
            Notice::ApGone { ap, .. } if cx.cluster.mp_of(ap).is_none() => {}
            Notice::ApGone { ap, back: false } => {
                self.barriers.lose_participant(cx, ap, Gone::Left);
            }
            Notice::Seated(config) => cx.effect(Effect::Seated(config)),
            Notice::ApGone { ap, back: true } => self.barriers.regain_participant(ap, Gone::Left),
            // Needs to know which neighbour said it: `message` hands it to the router.
            Notice::MpGone { .. } => {}
        }
    }
}
