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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::messages::{PeerRequest, Role};

    const ME: MpId = MpId(0);
    const NEXT: MpId = MpId(1);

    fn call(number: u64) -> CallId {
        CallId {
            role: Role::Requester,
            number,
        }
    }

    fn request(source: MpId, number: u64) -> Message {
        let body = Body::Request {
            call: call(number),
            request: PeerRequest::Renew,
        };
        Message {
            source,
            source_incarnation: None,
            destination: MpId(2),
            destination_incarnation: None,
            body,
        }
    }

    fn fate(neighbours: &mut Neighbours, message: Message) -> &'static str {
        match neighbours.pass(NEXT, message) {
            Fate::Send(_) => "sent",
            Fate::Waits => "waits",
            Fate::Stuck(_) => "stuck",
        }
    }

    #[test]
    fn messages_wait_for_a_neighbour_that_was_never_up_and_not_for_one_that_is_down() {
        let mut n = Neighbours::new([NEXT].into_iter());
        assert!(!n.down(NEXT), "it was not up");
        assert!(!n.is_down(NEXT));
        assert_eq!(fate(&mut n, request(ME, 1)), "waits");
        n.set_trouble(NEXT, "refused".into());
        assert_eq!(n.not_yet(NEXT), Some(Some("refused")));
        let (waiting, was_down) = n.up(NEXT);
        assert_eq!((waiting.len(), was_down), (1, false));
        assert_eq!(n.not_yet(NEXT), None);
        assert_eq!(n.all_up(), [NEXT]);
        assert_eq!(fate(&mut n, request(ME, 2)), "sent");
        assert!(n.down(NEXT) && n.is_down(NEXT) && !n.down(NEXT));
        assert_eq!(fate(&mut n, request(ME, 3)), "stuck");
        let (waiting, was_down) = n.up(NEXT);
        assert_eq!((waiting.len(), was_down), (0, true));
        assert!(!n.is_down(NEXT));
        assert!(matches!(n.pass(MpId(9), request(ME, 4)), Fate::Stuck(_)));
    }

    #[test]
    fn no_more_wait_for_a_neighbour_than_may() {
        let mut n = Neighbours::new([NEXT].into_iter());
        for number in 1..MAX_QUEUED as u64 {
            assert_eq!(fate(&mut n, request(ME, number)), "waits");
        }
        assert!(!n.is_full(NEXT));
        assert_eq!(fate(&mut n, request(ME, 0)), "waits");
        assert!(n.is_full(NEXT));
        assert_eq!(fate(&mut n, request(ME, 0)), "stuck");
        assert_eq!(n.up(NEXT).0.len(), MAX_QUEUED);
    }

    #[test]
    fn a_request_of_ours_that_has_not_left_is_taken_back() {
        let mut n = Neighbours::new([NEXT, MpId(3)].into_iter());
        for message in [request(ME, 1), request(MpId(3), 2), request(ME, 3)] {
            assert_eq!(fate(&mut n, message), "waits");
        }
        assert!(!n.take_back(ME, call(2)), "it is another process's");
        assert!(n.take_back(ME, call(3)));
        assert!(!n.take_back(ME, call(3)));
        let left: Vec<_> = n.up(NEXT).0.iter().map(|m| m.source).collect();
        assert_eq!(left, [ME, MpId(3)]);
    }
}
