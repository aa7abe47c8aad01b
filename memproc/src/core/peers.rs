//! The neighbours: which are up, what waits for those not up yet, and which processes are cut off.
//!
//! At the start of a cluster nobody is up at once: messages to a neighbour that was never up wait for
//! it. One that was up and is down is lost with everything behind it, and so says every later
//! request, at once.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ErrorCode, MpId, Refusal};

use super::cluster::Cluster;
use super::input::{Body, Message};

/// Most messages that wait for one neighbour.
const MAX_QUEUED: usize = 65_536;

#[derive(Debug, Default)]
enum Phase {
    #[default]
    NotYet,
    Up,
    Down,
}

#[derive(Debug, Default)]
struct Peer {
    phase: Phase,
    waiting: Vec<Message>,
    trouble: Option<String>,
}

/// The neighbours of this process.
#[derive(Debug)]
pub(crate) struct Peers {
    table: BTreeMap<MpId, Peer>,
    /// Processes that cannot be reached although they once could: neighbours, and those behind them.
    lost: BTreeSet<MpId>,
}

/// What to do with a message.
pub(crate) enum Fate {
    /// Send it to this neighbour.
    Send(MpId, Message),
    /// It waits for the neighbour to come up.
    Waits,
    /// It has no way.
    Stuck(Message),
}

impl Peers {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self {
            table: cluster.neighbours().map(|n| (n, Peer::default())).collect(),
            lost: BTreeSet::new(),
        }
    }

    pub(crate) fn is_neighbour(&self, mp: MpId) -> bool {
        self.table.contains_key(&mp)
    }

    /// Marks a neighbour up; gives what waited for it, and whether it had been down.
    pub(crate) fn up(&mut self, mp: MpId) -> (Vec<Message>, bool) {
        let Some(peer) = self.table.get_mut(&mp) else {
            return (Vec::new(), false);
        };
        let was_down = matches!(peer.phase, Phase::Down);
        peer.phase = Phase::Up;
        peer.trouble = None;
        (std::mem::take(&mut peer.waiting), was_down)
    }

    /// Marks a neighbour down; whether it was up.
    pub(crate) fn down(&mut self, mp: MpId) -> bool {
        match self.table.get_mut(&mp) {
            Some(peer) if matches!(peer.phase, Phase::Up) => {
                peer.phase = Phase::Down;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn trouble(&mut self, mp: MpId, why: String) {
        if let Some(peer) = self.table.get_mut(&mp) {
            peer.trouble = Some(why);
        }
    }

    /// Neighbours that are up, in order.
    pub(crate) fn all_up(&self) -> Vec<MpId> {
        self.table
            .iter()
            .filter(|(_, p)| matches!(p.phase, Phase::Up))
            .map(|(mp, _)| *mp)
            .collect()
    }

    /// Notes that a process is cut off; whether that is new.
    pub(crate) fn lose(&mut self, mp: MpId) -> bool {
        self.lost.insert(mp)
    }
    /// Notes that it is not any more; whether that is new.
    pub(crate) fn regain(&mut self, mp: MpId) -> bool {
        self.lost.remove(&mp)
    }
    pub(crate) fn lost(&self) -> impl Iterator<Item = MpId> {
        self.lost.iter().copied()
    }

    /// Whether a request to `destination` has a chance; if not, why.
    pub(crate) fn reach(&self, cluster: &Cluster, destination: MpId) -> Result<(), Refusal> {
        if destination == cluster.me {
            return Ok(());
        }
        let refuse = |code, why| Err(Refusal::new(code, why));
        let name = cluster.mp_name(destination);
        let Some(hop) = cluster.next_hop(destination) else {
            return refuse(
                ErrorCode::Unreachable,
                format!(
                    "there is no link process on the way to {name}; add an [[lp]] to its group"
                ),
            );
        };
        if self.lost.contains(&destination) {
            return refuse(ErrorCode::Unreachable, self.lost_text(cluster, destination));
        }
        match self.table.get(&hop) {
            Some(peer) if peer.waiting.len() >= MAX_QUEUED => refuse(
                ErrorCode::Limit,
                format!(
                    "{MAX_QUEUED} messages wait for {} already, which has not come up; is it running?",
                    cluster.mp_name(hop)
                ),
            ),
            _ => Ok(()),
        }
    }

    /// Says that a process was lost, and where.
    pub(crate) fn lost_text(&self, cluster: &Cluster, mp: MpId) -> String {
        let name = cluster.mp_name(mp);
        match cluster.next_hop(mp) {
            Some(hop) if hop != mp && matches!(self.table[&hop].phase, Phase::Down) => format!(
                "{name} cannot be reached: the link to {} broke; try again once it is back",
                cluster.mp_name(hop)
            ),
            _ => format!(
                "{name} cannot be reached: it ended or its link broke; try again once it is back"
            ),
        }
    }

    /// If the way to `destination` never came up: whom we miss and what we know of it.
    pub(crate) fn missing(&self, cluster: &Cluster, destination: MpId) -> Option<String> {
        let hop = cluster.next_hop(destination)?;
        let peer = self.table.get(&hop)?;
        if !matches!(peer.phase, Phase::NotYet) {
            return None;
        }
        let role = if hop == destination {
            String::new()
        } else {
            format!(", on the way to {},", cluster.mp_name(destination))
        };
        let why = peer
            .trouble
            .as_ref()
            .map_or_else(String::new, |t| format!(" ({t})"));
        Some(format!(
            "{}{role} has not come up{why}; is it running?",
            cluster.mp_name(hop)
        ))
    }

    /// Finds the way of a message.
    pub(crate) fn route(&mut self, cluster: &Cluster, message: Message) -> Fate {
        let Some(hop) = cluster.next_hop(message.destination) else {
            return Fate::Stuck(message);
        };
        let Some(peer) = self.table.get_mut(&hop) else {
            return Fate::Stuck(message);
        };
        match peer.phase {
            Phase::Up => Fate::Send(hop, message),
            Phase::NotYet if peer.waiting.len() < MAX_QUEUED => {
                peer.waiting.push(message);
                Fate::Waits
            }
            Phase::NotYet | Phase::Down => Fate::Stuck(message),
        }
    }

    /// Takes a request back that still waits for a neighbour; whether it did.
    pub(crate) fn recall(&mut self, me: MpId, call: u64) -> bool {
        for peer in self.table.values_mut() {
            let before = peer.waiting.len();
            peer.waiting
                .retain(|m| !(m.call == call && m.source == me && matches!(m.body, Body::Ask(_))));
            if peer.waiting.len() < before {
                return true;
            }
        }
        false
    }
}
