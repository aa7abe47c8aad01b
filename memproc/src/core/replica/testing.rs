//! What tests of replicas share: a seat, decisions about it, and one process of its group. The test plays the others, and the roles of the
//! process that are not about replicas.

use std::collections::BTreeMap;

use bytes::Bytes;
use dosmos_proto::{Incarnation, MpId, Nanos, ObjectId, VarId};

use super::Replicas;
use super::seat::{Config, Seat, State};
use crate::core::cluster::Cluster;
use crate::core::context::{Context, View};
use crate::core::directory::variables::Variables;
use crate::core::effects::{Caller, Effect};
use crate::core::incarnations::Incarnations;
use crate::core::messages::{Answer, Ballot, CallId, PeerRequest, Response, Role, Vote};
use crate::core::router::Router;
use crate::core::test_topology;

pub(super) const SEAT: Seat = Seat {
    mp: MpId(0),
    replicas: 1,
};
/// Later than any time that is looked back on.
pub(super) const START: Nanos = Nanos::from_millis(10_000);
/// The shortest time.
pub(super) const TICK: Nanos = Nanos(1);
pub(super) const FIRST: Incarnation = Incarnation::new(1, 0);
pub(super) const SECOND: Incarnation = Incarnation::new(2, 0);

/// That the first starts of these keep the seat, of which the first serves it.
pub(super) fn decision(term: u64, members: &[u32]) -> Config {
    let members = members.iter().map(|mp| (MpId(*mp), FIRST)).collect();
    Config {
        seat: SEAT,
        term,
        members,
    }
}

pub(super) fn object(index: u32) -> ObjectId {
    ObjectId::new(VarId(1), index)
}

/// Of this version; its content is different from that of others.
pub(super) fn state(version: u64) -> State {
    State {
        version,
        epoch: 1,
        data: Some(Bytes::copy_from_slice(&version.to_le_bytes())),
    }
}

/// The first start of a process asks.
pub(super) fn caller(mp: u32) -> Caller {
    Caller {
        mp: MpId(mp),
        incarnation: Some(FIRST),
        call: CallId {
            role: Role::Replica,
            number: 1,
        },
        received: START,
    }
}

/// A process of a group.
pub(super) struct Process {
    pub(super) view: View,
    pub(super) replicas: Replicas,
    pub(super) now: Nanos,
    /// The numbers of its questions that have no response, by whom it asked.
    asked: BTreeMap<MpId, Vec<u64>>,
}

impl Process {
    /// The first start of `me` in a group of this size, which hears the first starts of the others.
    pub(super) fn new(me: u32, processes: u32) -> Self {
        let mut process = Self::alone(me, &["/a"], processes, FIRST);
        for mp in (0..processes).filter(|mp| *mp != me) {
            process.hears(mp, FIRST);
        }
        process
    }

    /// A process of groups of this size, which hears nobody yet.
    pub(super) fn alone(me: u32, groups: &[&str], processes: u32, own: Incarnation) -> Self {
        let cluster = Cluster::new(test_topology(groups, processes, 0), MpId(me));
        let view = View {
            router: Router::new(&cluster),
            variables: Variables::new(Vec::new(), own),
            incarnations: Incarnations::new(own),
            cluster,
        };
        Self {
            view,
            replicas: Replicas::default(),
            now: START,
            asked: BTreeMap::new(),
        }
    }

    /// This start of another process is there.
    pub(super) fn hears(&mut self, mp: u32, start: Incarnation) {
        let View {
            cluster,
            router,
            incarnations,
            ..
        } = &mut self.view;
        router.peer_up(cluster, MpId(mp), &mut Vec::new());
        incarnations.meet(MpId(mp), start);
    }

    /// The link to another process breaks.
    pub(super) fn loses(&mut self, mp: u32) {
        let View {
            cluster,
            router,
            incarnations,
            ..
        } = &mut self.view;
        router.peer_down(cluster, MpId(mp), &mut Vec::new());
        incarnations.forget(MpId(mp));
    }

    /// It does something; what it wants done for that.
    pub(super) fn does(&mut self, act: impl FnOnce(&mut Replicas, &mut Context)) -> Vec<Effect> {
        let mut effects = Vec::new();
        let cx = &mut Context::new(self.now, &self.view, &mut effects);
        act(&mut self.replicas, cx);
        for effect in &effects {
            if let Effect::Request { to, call, .. } = effect {
                self.asked.entry(*to).or_default().push(call.number);
            }
        }
        effects
    }

    /// It looks at its clock at this time.
    pub(super) fn tick(&mut self, now: Nanos) -> Vec<Effect> {
        self.now = now;
        self.does(Replicas::tick)
    }

    /// There is a variable with objects of the seat.
    pub(super) fn uses(&mut self, seat: Seat) -> Vec<Effect> {
        self.view.variables.seats_mut().use_seat(seat);
        self.does(|r, cx| r.in_use(cx, seat))
    }

    /// It hears of a decision.
    pub(super) fn seated(&mut self, config: &Config) -> Vec<Effect> {
        self.view.variables.seats_mut().install(config);
        self.does(|r, cx| r.seated(cx, config))
    }

    /// It asks for a decision about the seat.
    pub(super) fn elects(&mut self, others: &[u32]) -> Vec<Effect> {
        let others = decision(0, others).members;
        self.does(|r, cx| r.elect(cx, SEAT, others))
    }

    /// A process responds to what it was asked last.
    pub(super) fn receives(&mut self, from: u32, response: Response) -> Vec<Effect> {
        let from = MpId(from);
        let number = self.asked.get_mut(&from).and_then(Vec::pop).unwrap();
        let start = self.view.incarnations.of(from);
        self.does(|r, cx| r.receive(cx, (from, start), number, response))
    }

    /// A voter grants what it was asked last; it had accepted this.
    pub(super) fn granted(&mut self, from: u32, accepted: &Config) -> Vec<Effect> {
        let vote = Vote {
            granted: true,
            promised: 0,
            accepted: accepted.clone(),
        };
        self.receives(from, Response::Answer(Answer::Vote(vote)))
    }
}

/// Who is asked what.
pub(super) fn requests(effects: &[Effect]) -> Vec<(u32, PeerRequest)> {
    let request = |effect: &Effect| match effect {
        Effect::Request { to, request, .. } => Some((to.0, request.clone())),
        _ => None,
    };
    effects.iter().filter_map(request).collect()
}

/// Which votes are asked for, of whom.
pub(super) fn ballots(effects: &[Effect]) -> Vec<(u32, Ballot)> {
    let ballot = |(to, request)| match request {
        PeerRequest::Ballot(ballot) => Some((to, ballot)),
        _ => None,
    };
    requests(effects).into_iter().filter_map(ballot).collect()
}

/// That this vote is asked for, of each of these.
pub(super) fn asked_of(voters: &[u32], ballot: &Ballot) -> Vec<(u32, Ballot)> {
    voters.iter().map(|to| (*to, ballot.clone())).collect()
}

/// What is responded.
pub(super) fn responses(effects: &[Effect]) -> Vec<Response> {
    let response = |effect: &Effect| match effect {
        Effect::Respond { response, .. } => Some(response.clone()),
        _ => None,
    };
    effects.iter().filter_map(response).collect()
}
