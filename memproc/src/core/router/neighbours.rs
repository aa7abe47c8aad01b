//! The neighbours: which are up, and what waits for those not up yet.
//!
//! At the start of a cluster nobody is up at once: messages to a neighbour that was never up wait for
//! it. To one that was up and is down there is no way.

use std::collections::BTreeMap;

use dosmos_proto::MpId;

use crate::core::messages::{Body, CallId, Message};

/// Most messages that wait for one neighbour.
pub(super) const MAX_QUEUED: usize = 65_536;

#[derive(Debug, Default)]
enum Phase {
    #[default]
    NotYet,
    Up,
    Down,
}

#[derive(Debug, Default)]
struct Neighbour {
    phase: Phase,
    waiting: Vec<Message>,
    trouble: Option<String>,
}

/// The neighbours of this process.
#[derive(Debug)]
pub(super) struct Neighbours(BTreeMap<MpId, Neighbour>);

/// What to do with a message.
pub(super) enum Fate {
    /// Send it.
    Send(Message),
    /// It waits for the neighbour to come up.
    Waits,
    /// It has no way.
    Stuck(Message),
}

impl Neighbours {
    pub(super) fn new(all: impl Iterator<Item = MpId>) -> Self {
        Self(all.map(|n| (n, Neighbour::default())).collect())
    }

    pub(super) fn contains(&self, mp: MpId) -> bool {
        self.0.contains_key(&mp)
    }

    /// Marks a neighbour up; gives what waited for it, and whether it had been down.
    pub(super) fn up(&mut self, mp: MpId) -> (Vec<Message>, bool) {
        let Some(neighbour) = self.0.get_mut(&mp) else {
            return (Vec::new(), false);
        };
        let was_down = matches!(neighbour.phase, Phase::Down);
        neighbour.phase = Phase::Up;
        neighbour.trouble = None;
        (std::mem::take(&mut neighbour.waiting), was_down)
    }

    /// Marks a neighbour down; whether it was up.
    pub(super) fn down(&mut self, mp: MpId) -> bool {
        match self.0.get_mut(&mp) {
            Some(neighbour) if matches!(neighbour.phase, Phase::Up) => {
                neighbour.phase = Phase::Down;
                true
            }
            _ => false,
        }
    }

    pub(super) fn set_trouble(&mut self, mp: MpId, why: String) {
        if let Some(neighbour) = self.0.get_mut(&mp) {
            neighbour.trouble = Some(why);
        }
    }

    /// What is known of a neighbour that was never up; none if it was.
    pub(super) fn not_yet(&self, mp: MpId) -> Option<Option<&str>> {
        let neighbour = self.0.get(&mp)?;
        matches!(neighbour.phase, Phase::NotYet).then_some(neighbour.trouble.as_deref())
    }

    pub(super) fn is_down(&self, mp: MpId) -> bool {
        self.0
            .get(&mp)
            .is_some_and(|n| matches!(n.phase, Phase::Down))
    }

    /// No more messages may wait for this neighbour.
    pub(super) fn is_full(&self, mp: MpId) -> bool {
        self.0
            .get(&mp)
            .is_some_and(|n| n.waiting.len() >= MAX_QUEUED)
    }

    /// Neighbours that are up, in order.
    pub(super) fn all_up(&self) -> Vec<MpId> {
        self.0
            .iter()
            .filter(|(_, n)| matches!(n.phase, Phase::Up))
            .map(|(mp, _)| *mp)
            .collect()
    }

    /// What becomes of a message whose next hop is `hop`.
    pub(super) fn pass(&mut self, hop: MpId, message: Message) -> Fate {
        let Some(neighbour) = self.0.get_mut(&hop) else {
            return Fate::Stuck(message);
        };
        match neighbour.phase {
            Phase::Up => Fate::Send(message),
            Phase::NotYet if neighbour.waiting.len() < MAX_QUEUED => {
                neighbour.waiting.push(message);
                Fate::Waits
            }
            Phase::NotYet | Phase::Down => Fate::Stuck(message),
        }
    }

    /// Takes a request of ours back that still waits for a neighbour; whether it did.
    pub(super) fn take_back(&mut self, me: MpId, taken: CallId) -> bool {
        let is = |m: &Message| {
            m.source == me && matches!(m.body, Body::Request { call, .. } if call == taken)
        };
        self.0.values_mut().any(|neighbour| {
            let before = neighbour.waiting.len();
            neighbour.waiting.retain(|m| !is(m));
            neighbour.waiting.len() < before
        })
    }
}
