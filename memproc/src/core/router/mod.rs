//! The router: which processes can be reached, the way of each message, and the news of lost processes
//! that link processes pass along the tree of groups.
//!
//! Whatever cannot be reached although it once could is *lost*: the neighbours whose links broke, and
//! everything behind them. A request to a lost process is refused at once.

mod neighbours;

use std::collections::BTreeSet;

use dosmos_proto::{ErrorCode, MpId, Refusal};

use super::cluster::Cluster;
use super::effects::Effect;
use super::messages::{Body, CallId, Cost, Message, Notice, Output, Response};
use neighbours::{Fate, MAX_QUEUED, Neighbours};

/// Ways to all other processes.
#[derive(Debug)]
pub(crate) struct Router {
    neighbours: Neighbours,
    lost: BTreeSet<MpId>,
    forwarded: u64,
}

impl Router {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self {
            neighbours: Neighbours::new(cluster.neighbours()),
            lost: BTreeSet::new(),
            forwarded: 0,
        }
    }

    /// Messages handed on for others so far.
    pub(crate) fn forwarded(&self) -> u64 {
        self.forwarded
    }

    /// A message for another process: a link process hands it on.
    pub(crate) fn forward(
        &mut self,
        cluster: &Cluster,
        message: Message,
        effects: &mut Vec<Effect>,
    ) {
        self.forwarded += 1;
        self.send(cluster, message, effects);
    }

    /// Sends a message on its way. Somebody else's request that has none is refused in its
    /// destination's place.
    pub(crate) fn send(&mut self, cluster: &Cluster, message: Message, effects: &mut Vec<Effect>) {
        let Some(hop) = cluster.next_hop(message.destination) else {
            return self.refuse(cluster, &message, effects);
        };
        match self.neighbours.pass(hop, message) {
            Fate::Send(message) => {
                effects.push(Effect::Output(Output::Send { to: hop, message }));
            }
            Fate::Waits => {}
            Fate::Stuck(message) => self.refuse(cluster, &message, effects),
        }
    }

    fn refuse(&mut self, cluster: &Cluster, message: &Message, effects: &mut Vec<Effect>) {
        let Body::Request { call, .. } = message.body else {
            return;
        };
        if message.source == cluster.me {
            return;
        }
        let why = self.lost_text(cluster, message.destination);
        let refusal = Message {
            source: message.destination,
            source_incarnation: None,
            destination: message.source,
            destination_incarnation: message.source_incarnation,
            body: Body::Response {
                call,
                cost: Cost::default(),
                response: Response::Refused(Refusal::new(ErrorCode::Unreachable, why)),
            },
        };
        self.send(cluster, refusal, effects);
    }

    /// Takes a request of ours back that has not left yet; whether that succeeded.
    pub(crate) fn take_back(&mut self, cluster: &Cluster, call: CallId) -> bool {
        self.neighbours.take_back(cluster.me, call)
    }

    /// The link to a neighbour is up: what waited for it goes, and it hears who is lost.
    pub(crate) fn peer_up(&mut self, cluster: &Cluster, peer: MpId, effects: &mut Vec<Effect>) {
        if !self.neighbours.contains(peer) {
            return;
        }
        let (waiting, was_down) = self.neighbours.up(peer);
        if was_down {
            for mp in cluster.through(peer) {
                self.regain(cluster, peer, mp, effects);
            }
        }
        if cluster.is_link() {
            for mp in self.lost.iter().copied() {
                let notice = Notice::MpGone { mp, back: false };
                effects.push(Effect::Notice { to: peer, notice });
            }
        }
        for message in waiting {
            self.send(cluster, message, effects);
        }
    }

    /// The link to a neighbour broke: it is lost, and all behind it.
    pub(crate) fn peer_down(&mut self, cluster: &Cluster, peer: MpId, effects: &mut Vec<Effect>) {
        if self.neighbours.down(peer) {
            for mp in cluster.through(peer) {
                self.lose(cluster, peer, mp, effects);
            }
        }
    }

    /// A neighbour that was never up cannot be reached.
    pub(crate) fn peer_trouble(&mut self, peer: MpId, why: String) {
        self.neighbours.set_trouble(peer, why);
    }

    /// News from a neighbour. Our own links know better about our neighbours.
    pub(crate) fn hear(
        &mut self,
        cluster: &Cluster,
        from: MpId,
        (mp, back): (MpId, bool),
        effects: &mut Vec<Effect>,
    ) {
        if self.neighbours.contains(mp) || cluster.next_hop(mp) != Some(from) {
            return;
        }
        if back {
            self.regain(cluster, from, mp, effects);
        } else {
            self.lose(cluster, from, mp, effects);
        }
    }

    fn lose(&mut self, cluster: &Cluster, from: MpId, mp: MpId, effects: &mut Vec<Effect>) {
        if self.lost.insert(mp) {
            self.spread(cluster, from, (mp, false), effects);
            let why = Refusal::new(ErrorCode::Unreachable, self.lost_text(cluster, mp));
            effects.push(Effect::Lost { mp, why });
        }
    }

    fn regain(&mut self, cluster: &Cluster, from: MpId, mp: MpId, effects: &mut Vec<Effect>) {
        if self.lost.remove(&mp) {
            self.spread(cluster, from, (mp, true), effects);
            effects.push(Effect::Regained { mp });
        }
    }

    /// A link process passes news on, away from where they came.
    fn spread(
        &self,
        cluster: &Cluster,
        from: MpId,
        (mp, back): (MpId, bool),
        effects: &mut Vec<Effect>,
    ) {
        if !cluster.is_link() {
            return;
        }
        let me = cluster.me;
        for to in self.neighbours.all_up() {
            let around = cluster.in_top_mesh(me, to) && cluster.in_top_mesh(me, from);
            if to != from && to != mp && !around {
                let notice = Notice::MpGone { mp, back };
                effects.push(Effect::Notice { to, notice });
            }
        }
    }

    /// Whether a request to `destination` has a chance; if not, why.
    pub(crate) fn check_reachable(
        &self,
        cluster: &Cluster,
        destination: MpId,
    ) -> Result<(), Refusal> {
        if destination == cluster.me {
            return Ok(());
        }
        let name = cluster.mp_name(destination);
        let Some(hop) = cluster.next_hop(destination) else {
            return Err(Refusal::new(
                ErrorCode::Unreachable,
                format!(
                    "there is no link process on the way to {name}; add an [[lp]] to its group"
                ),
            ));
        };
        if self.lost.contains(&destination) {
            let why = self.lost_text(cluster, destination);
            return Err(Refusal::new(ErrorCode::Unreachable, why));
        }
        if self.neighbours.is_full(hop) {
            return Err(Refusal::new(
                ErrorCode::Limit,
                format!(
                    "{MAX_QUEUED} messages wait for {} already, which has not come up; is it running?",
                    cluster.mp_name(hop)
                ),
            ));
        }
        Ok(())
    }

    fn lost_text(&self, cluster: &Cluster, mp: MpId) -> String {
        let name = cluster.mp_name(mp);
        match cluster.next_hop(mp) {
            Some(hop) if hop != mp && self.neighbours.is_down(hop) => format!(
                "{name} cannot be reached: the link to {} broke; try again once it is back",
                cluster.mp_name(hop)
            ),
            _ => format!(
                "{name} cannot be reached: it ended or its link broke; try again once it is back"
            ),
        }
    }

    /// If the way to `destination` never came up: which process is missing and what is known of it.
    pub(crate) fn missing(&self, cluster: &Cluster, destination: MpId) -> Option<String> {
        let hop = cluster.next_hop(destination)?;
        let trouble = self.neighbours.not_yet(hop)?;
        let role = if hop == destination {
            String::new()
        } else {
            format!(", on the way to {},", cluster.mp_name(destination))
        };
        let why = trouble.map_or_else(String::new, |t| format!(" ({t})"));
        Some(format!(
            "{}{role} has not come up{why}; is it running?",
            cluster.mp_name(hop)
        ))
    }
}
