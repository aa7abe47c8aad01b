//! What goes wrong: deadlines, application processes that leave, neighbours that are lost, and the
//! tidings of them that travel along the tree of groups.
//!
//! Whatever a lost process was needed for fails at once, naming it; whatever it held passes on.

use dosmos_proto::{ApId, ErrorCode, MpId, ObjectId, Refusal};

use super::barrier::{Gone, coordinator};
use super::calls::{Call, Kind, What};
use super::input::{Answer, Ask, Body, Message, Output, Tell};
use super::peers::Fate;
use super::replies::Cost;
use super::{Core, Cx};

impl Core {
    /// Ends the operations whose time is over.
    pub(super) fn expire(&mut self, cx: &mut Cx) {
        for call in self.calls.due(cx.now) {
            self.give_up(cx, call);
        }
    }

    /// An application process does not wait for its request `id` any more.
    pub(super) fn cancel(&mut self, cx: &mut Cx, ap: ApId, id: u64) {
        let is = |c: &Call| matches!(&c.kind, Kind::Operation(op) if op.ap == ap && op.id == id);
        for call in self.calls.select(is) {
            self.give_up(cx, call);
        }
    }

    fn give_up(&mut self, cx: &mut Cx, call: u64) {
        let Some((to, op)) = self.calls.get(call).and_then(|c| match &c.kind {
            Kind::Operation(op) => Some((c.to, op.clone())),
            _ => None,
        }) else {
            return;
        };
        let recalled = self.peers.recall(self.cluster.me, call);
        if let What::Acquire { object, sent: true } = op.what
            && !recalled
        {
            // Sent behind the acquire, so that a grant on its way is taken back too.
            self.abandon_at(cx, to, op.ap, Some(object));
        }
        let refusal = self.overdue(to, &op);
        self.finish(cx, call, Err(refusal), Cost::default());
    }

    fn overdue(&self, to: MpId, op: &super::calls::Operation) -> Refusal {
        if let Some(missing) = self.peers.missing(&self.cluster, to) {
            return Refusal::new(
                ErrorCode::Unreachable,
                format!("{missing} ({} waited {})", self.doing(op), op.patience),
            );
        }
        let owner = self.cluster.mp_name(to);
        let detail = match &op.what {
            What::Acquire { object, .. } => self
                .holder_text(*object)
                .unwrap_or_else(|| format!("{owner}, its owner, did not grant it")),
            What::Barrier { barrier, .. } => self.barrier_text(*barrier),
            What::Release { sent: None, .. } | What::Publish => {
                "earlier writes could not be told to all holders of copies".to_owned()
            }
            What::Declare(_) | What::Open(_) => {
                format!("{owner}, home of the name, did not answer")
            }
            _ => format!("{owner}, its owner, did not answer; it may still take effect"),
        };
        Refusal::new(
            ErrorCode::Deadline,
            format!(
                "{} was not done within {}: {detail}",
                self.doing(op),
                op.patience
            ),
        )
    }

    fn doing(&self, op: &super::calls::Operation) -> String {
        let ap = self.cluster.ap_name(op.ap);
        let on = |verb: &str, object: ObjectId| format!("{verb} of {}", self.object_name(object));
        let what = match &op.what {
            What::Declare(name) => format!("declaration of {name}"),
            What::Open(name) => format!("look-up of {name}"),
            What::Read { object, .. } => on("read", *object),
            What::Write { object, .. } => on("write", *object),
            What::Acquire { object, .. } => on("acquire", *object),
            What::Release { object, .. } => on("release", *object),
            What::Barrier { .. } => "barrier".to_owned(),
            What::Publish => "publishing of writes".to_owned(),
        };
        format!("{what} by {ap}")
    }

    /// An application process is gone: its locks pass on, its operations end, others are told.
    pub(super) fn leave(&mut self, cx: &mut Cx, ap: ApId, politely: bool) {
        if !self.sessions.get(ap).is_some_and(|s| s.connected) {
            return;
        }
        let session = self.sessions.get_mut(ap);
        let mut owners = std::mem::take(&mut session.dirty);
        let sections = std::mem::take(&mut session.sections);
        owners.extend(sections.values().filter(|s| !s.lost).map(|s| s.owner));
        session.preparing.clear();
        session.acquiring.clear();
        session.connected = false;
        session.releasing = 0;
        session.outstanding = 0;
        for call in self.calls.of_ap(ap) {
            self.peers.recall(self.cluster.me, call);
            let Some(closed) = self.calls.close(call) else {
                continue;
            };
            let Kind::Operation(op) = closed.kind else {
                continue;
            };
            match op.what {
                What::Acquire { .. } => {
                    owners.insert(closed.to);
                }
                What::Barrier { barrier, .. } => self.barriers.forget_call(barrier, call),
                What::Read {
                    object,
                    fetch: true,
                    ..
                } => {
                    self.copies.fetch_ends(object, call, None);
                }
                _ => {}
            }
            if let Some((kind, object, ..)) = op.what.traced() {
                let mut record = self.record(cx, ap, op.start, kind, object);
                record.origin = self.cluster.origin(self.cluster.me, closed.to);
                record.peer = closed.to;
                record.flags.failed = true;
                cx.record(record);
            }
        }
        for owner in owners {
            self.abandon_at(cx, owner, ap, None);
        }
        self.barrier_loses(cx, ap, Gone::Left);
        self.announce_leave(cx, ap, politely);
    }

    /// Tells those who may wait for it at barriers: all coordinators, and if it died, everyone with
    /// application processes.
    fn announce_leave(&mut self, cx: &mut Cx, ap: ApId, politely: bool) {
        let t = self.cluster.topology.clone();
        let mut told: Vec<MpId> = if politely {
            let groups = t.group_of_ap(ap).into_iter().flat_map(|g| t.ancestry(g));
            std::iter::once(None)
                .chain(groups.map(Some))
                .filter_map(|g| coordinator(&self.cluster, g))
                .collect()
        } else {
            t.aps_in(None)
                .filter_map(|ap| self.cluster.mp_of(ap))
                .collect()
        };
        told.sort_unstable();
        told.dedup();
        told.retain(|mp| *mp != self.cluster.me);
        for mp in &told {
            self.tell(cx, *mp, Tell::ApGone { ap, back: false });
        }
        self.sessions.get_mut(ap).left = Some(told);
    }

    /// The link to a neighbour is up: what waited for it goes, and it hears who is lost.
    pub(super) fn peer_up(&mut self, cx: &mut Cx, peer: MpId) {
        if !self.peers.is_neighbour(peer) {
            return;
        }
        let (waiting, was_down) = self.peers.up(peer);
        if was_down {
            for mp in self.cluster.through(peer) {
                self.regain(cx, peer, mp);
            }
        }
        if self.cluster.is_link() {
            let lost: Vec<MpId> = self.peers.lost().collect();
            for mp in lost {
                self.tell(cx, peer, Tell::MpGone { mp, back: false });
            }
        }
        for message in waiting {
            self.send(cx, message);
        }
    }

    /// The link to a neighbour broke: it is lost, and all behind it.
    pub(super) fn peer_down(&mut self, cx: &mut Cx, peer: MpId) {
        if self.peers.down(peer) {
            for mp in self.cluster.through(peer) {
                self.lose(cx, peer, mp);
            }
        }
    }

    /// Tidings from a neighbour. Our own links know better about our neighbours.
    pub(super) fn mp_gone(&mut self, cx: &mut Cx, from: MpId, mp: MpId, back: bool) {
        if self.peers.is_neighbour(mp) || self.cluster.next_hop(mp) != Some(from) {
            return;
        }
        if back {
            self.regain(cx, from, mp);
        } else {
            self.lose(cx, from, mp);
        }
    }

    fn lose(&mut self, cx: &mut Cx, from: MpId, mp: MpId) {
        if !self.peers.lose(mp) {
            return;
        }
        self.spread(cx, from, mp, false);
        let refusal = Refusal::new(
            ErrorCode::Unreachable,
            self.peers.lost_text(&self.cluster, mp),
        );
        self.sessions.lose_owner(mp);
        for object in self.copies.owned_by(mp) {
            self.copies.drop_copy(object);
            self.hand_over(cx, object, mp, true);
        }
        self.barrier_loses_coordinator(cx, mp, &refusal);
        for call in self.calls.select(|c| c.to == mp) {
            match self.calls.get(call).map(|c| &c.kind) {
                Some(Kind::Operation(op)) => {
                    let doing = self.doing(op);
                    let refusal =
                        Refusal::new(refusal.code, format!("{doing}: {}", refusal.message));
                    self.finish(cx, call, Err(refusal), Cost::default());
                }
                Some(_) => {
                    let answer = Answer::Refused(refusal.clone());
                    self.answered(cx, mp, call, answer, Default::default());
                }
                None => {}
            }
        }
        self.owner_loses(cx, mp);
        for ap in self.aps_of(mp) {
            self.barrier_loses(cx, ap, Gone::Cut);
        }
    }

    fn regain(&mut self, cx: &mut Cx, from: MpId, mp: MpId) {
        if self.peers.regain(mp) {
            self.spread(cx, from, mp, true);
            for ap in self.aps_of(mp) {
                self.barrier_regains(ap, Gone::Cut);
            }
        }
    }

    fn aps_of(&self, mp: MpId) -> Vec<ApId> {
        let aps = self.cluster.topology.aps_in(None);
        aps.filter(|ap| self.cluster.mp_of(*ap) == Some(mp))
            .collect()
    }

    /// A link process passes tidings on, away from where they came.
    fn spread(&mut self, cx: &mut Cx, from: MpId, mp: MpId, back: bool) {
        if !self.cluster.is_link() {
            return;
        }
        let me = self.cluster.me;
        for to in self.peers.all_up() {
            let around = self.cluster.in_top_mesh(me, to) && self.cluster.in_top_mesh(me, from);
            if to != from && to != mp && !around {
                self.tell(cx, to, Tell::MpGone { mp, back });
            }
        }
    }

    /// A message for another process: a link process hands it on.
    pub(super) fn forward(&mut self, cx: &mut Cx, mut message: Message) {
        self.counters.forwarded += 1;
        message.hops += 1;
        self.send(cx, message);
    }

    /// Sends a message on its way. A request that has none is refused in its destination's place.
    pub(super) fn send(&mut self, cx: &mut Cx, message: Message) {
        match self.peers.route(&self.cluster, message) {
            Fate::Send(to, message) => cx.out.push(Output::Send { to, message }),
            Fate::Waits => {}
            Fate::Stuck(message) => {
                let elsewhere = message.source != self.cluster.me;
                if elsewhere && matches!(message.body, Body::Ask(_)) {
                    let why = self.peers.lost_text(&self.cluster, message.destination);
                    let refusal = Refusal::new(ErrorCode::Unreachable, why);
                    self.send(
                        cx,
                        Message {
                            source: message.destination,
                            destination: message.source,
                            hops: 0,
                            body: Body::Answer(Answer::Refused(refusal)),
                            ..message
                        },
                    );
                }
            }
        }
    }

    pub(super) fn ask(&mut self, cx: &mut Cx, to: MpId, call: u64, ask: Ask) {
        self.post(cx, to, call, Body::Ask(ask));
    }

    pub(super) fn tell(&mut self, cx: &mut Cx, to: MpId, tell: Tell) {
        self.post(cx, to, 0, Body::Tell(tell));
    }

    fn post(&mut self, cx: &mut Cx, to: MpId, call: u64, body: Body) {
        let message = Message {
            source: self.cluster.me,
            destination: to,
            call,
            hops: 0,
            service: dosmos_proto::Nanos::ZERO,
            wait: dosmos_proto::Nanos::ZERO,
            body,
        };
        self.send(cx, message);
    }
}
