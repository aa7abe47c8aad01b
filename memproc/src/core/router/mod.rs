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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::messages::{PeerRequest, Role};
    use crate::core::test_topology;

    /// mp0 in `/a`, mp1 in `/b`, mp2 in `/b/c`, and the link processes of these groups: 3, 4 and 5.
    const GROUPS: [&str; 3] = ["/a", "/b", "/b/c"];
    const MPS: [MpId; 3] = [MpId(0), MpId(1), MpId(2)];
    const LINKS: [MpId; 3] = [MpId(3), MpId(4), MpId(5)];

    struct At {
        cluster: Cluster,
        router: Router,
    }

    /// All neighbours are up.
    fn at(me: MpId) -> At {
        let cluster = Cluster::new(test_topology(&GROUPS, 1, 0), me);
        let router = Router::new(&cluster);
        let mut at = At { cluster, router };
        let neighbours: Vec<MpId> = at.cluster.neighbours().collect();
        for peer in neighbours {
            at.does(|router, cluster, effects| router.peer_up(cluster, peer, effects));
        }
        at
    }

    impl At {
        /// What becomes of something: `→4 mp1` is a message to neighbour 4 for mp1, `→4 R mp1` a refusal, `4: -1` and `4: +1` are
        /// news for neighbour 4 of process 1, `-1` and `+1` what the roles here hear.
        fn does(&mut self, what: impl Fn(&mut Router, &Cluster, &mut Vec<Effect>)) -> String {
            let mut effects = Vec::new();
            what(&mut self.router, &self.cluster, &mut effects);
            let text = effects.iter().map(|e| match e {
                Effect::Output(Output::Send { to, message }) => match &message.body {
                    Body::Response { .. } => format!("→{} R mp{}", to.0, message.destination.0),
                    _ => format!("→{} mp{}", to.0, message.destination.0),
                },
                Effect::Notice {
                    to,
                    notice: Notice::MpGone { mp, back },
                } => format!("{}: {}{}", to.0, if *back { '+' } else { '-' }, mp.0),
                Effect::Lost { mp, .. } => format!("-{}", mp.0),
                Effect::Regained { mp } => format!("+{}", mp.0),
                other => format!("{other:?}"),
            });
            text.collect::<Vec<_>>().join(" ")
        }

        fn loses(&mut self, peer: MpId) -> String {
            self.does(|r, c, e| r.peer_down(c, peer, e))
        }

        fn hears(&mut self, from: MpId, mp: MpId, back: bool) -> String {
            self.does(|r, c, e| r.hear(c, from, (mp, back), e))
        }

        fn sends(&mut self, source: MpId, destination: MpId, request: bool) -> String {
            let call = CallId {
                role: Role::Requester,
                number: 7,
            };
            let request = match request {
                true => Body::Request {
                    call,
                    request: PeerRequest::Renew,
                },
                false => Body::Notice(Notice::MpGone {
                    mp: source,
                    back: true,
                }),
            };
            let message = Message {
                source,
                source_incarnation: None,
                destination,
                destination_incarnation: None,
                body: request,
            };
            self.does(|r, c, e| r.forward(c, message.clone(), e))
        }
    }

    #[test]
    fn a_link_process_refuses_what_has_no_way_in_the_place_of_its_receiver() {
        let mut link = at(LINKS[1]);
        assert_eq!(link.sends(MPS[0], MPS[2], true), "→5 mp2");
        assert_eq!(link.loses(LINKS[2]), "1: -2 3: -2 -2 1: -5 3: -5 -5");
        assert_eq!(link.sends(MPS[0], MPS[2], true), "→3 R mp0");
        // Its own request is refused before it is sent, and nobody waits for a notice.
        assert_eq!(link.sends(LINKS[1], MPS[2], true), "");
        assert_eq!(link.sends(MPS[0], MPS[2], false), "");
        assert_eq!(link.router.forwarded(), 4);
    }

    #[test]
    fn news_go_away_from_where_they_came_and_not_around_the_mesh_of_top_groups() {
        let mut link = at(LINKS[1]);
        // From another top-level group: into this one and below.
        assert_eq!(link.hears(LINKS[0], MPS[0], false), "1: -0 5: -0 -0");
        assert_eq!(link.hears(LINKS[0], MPS[0], false), "", "once");
        assert_eq!(link.hears(LINKS[0], MPS[0], true), "1: +0 5: +0 +0");
        // From below: up and to the memory processes here.
        assert_eq!(link.hears(LINKS[2], MPS[2], false), "1: -2 3: -2 -2");
        // Not from who is not on the way, nor of a neighbour, whose link is known here.
        assert_eq!(link.hears(LINKS[0], MPS[2], true), "");
        assert_eq!(link.hears(LINKS[2], MPS[1], false), "");
        // Only link processes pass news on.
        let mut mp = at(MPS[1]);
        assert_eq!(mp.hears(LINKS[1], MPS[0], false), "-0");
    }

    #[test]
    fn a_new_neighbour_hears_who_is_lost_and_what_is_behind_it_is_back() {
        let mut link = at(LINKS[1]);
        link.loses(LINKS[2]);
        let up = link.does(|r, c, e| r.peer_up(c, LINKS[2], e));
        assert_eq!(up, "1: +2 3: +2 +2 1: +5 3: +5 +5");
        link.loses(MPS[1]);
        let up = link.does(|r, c, e| r.peer_up(c, LINKS[2], e));
        assert_eq!(up, "5: -1");
        let stranger = link.does(|r, c, e| r.peer_up(c, MPS[2], e));
        assert_eq!(stranger, "");
    }

    #[test]
    fn why_a_process_cannot_be_reached_names_the_link_that_broke() {
        let mut mp = at(MPS[1]);
        assert!(mp.router.check_reachable(&mp.cluster, MPS[0]).is_ok());
        mp.hears(LINKS[1], MPS[0], false);
        let why = |at: &At, of: MpId| {
            let refusal = at.router.check_reachable(&at.cluster, of);
            refusal.unwrap_err().message
        };
        assert!(why(&mp, MPS[0]).contains("mp0 cannot be reached: it ended or its link broke"));
        mp.loses(LINKS[1]);
        assert!(why(&mp, MPS[0]).contains("mp0 cannot be reached: the link to lp.b broke"));
        assert!(why(&mp, LINKS[1]).contains("lp.b cannot be reached: it ended"));
        // Before anything is up.
        let cluster = Cluster::new(test_topology(&GROUPS, 1, 0), MPS[1]);
        let mut router = Router::new(&cluster);
        router.peer_trouble(LINKS[1], "connection refused".into());
        let missing = |of| router.missing(&cluster, of).unwrap();
        assert_eq!(
            missing(MPS[0]),
            "lp.b, on the way to mp0, has not come up (connection refused); is it running?"
        );
        assert_eq!(
            missing(LINKS[1]),
            "lp.b has not come up (connection refused); is it running?"
        );
        assert_eq!(mp.router.missing(&mp.cluster, MPS[0]), None, "it was up");
    }

    #[test]
    fn a_request_that_waits_for_its_first_neighbour_is_taken_back_once() {
        let cluster = Cluster::new(test_topology(&GROUPS, 1, 0), MPS[1]);
        let router = Router::new(&cluster);
        let mut at = At { cluster, router };
        assert_eq!(at.sends(MPS[1], MPS[0], true), "");
        let call = CallId {
            role: Role::Requester,
            number: 7,
        };
        assert!(at.router.take_back(&at.cluster, call));
        assert!(!at.router.take_back(&at.cluster, call));
    }
}
