//! What a home that was started again has to find out: which names its earlier starts knew. Whoever uses a variable, owns
//! objects of it or keeps them knows it too, so the others are asked. Declarations and look-ups wait for their answers:
//! a name that somebody knows must not be given out again.

use std::collections::BTreeMap;

use dosmos_proto::{MpId, Nanos, VariableSpec};
use rustc_hash::FxHashMap;

use crate::core::context::Context;
use crate::core::effects::Caller;
use crate::core::lease::{LEASE, MARGIN, RETRY};
use crate::core::messages::{CallId, PeerRequest, Role};

/// How long declarations and look-ups wait for processes that do not answer. Those are asked when they are back.
const WAIT: Nanos = Nanos(LEASE.0 + MARGIN.0);

/// What waits until it is known which names there are.
#[derive(Debug)]
pub(super) enum Wanted {
    Declare(Box<VariableSpec>, MpId),
    Open(String),
}

/// How far one has said what it knows.
#[derive(Debug, Default)]
struct Left {
    /// It goes on after this name.
    after: String,
    /// The call by which it is asked for that.
    asked: Option<u64>,
    not_before: Nanos,
}

/// Who was asked, and what waits.
#[derive(Debug, Default)]
pub(super) struct Rebuild {
    began: Option<Nanos>,
    /// Who has not said everything.
    left: BTreeMap<MpId, Left>,
    calls: FxHashMap<u64, MpId>,
    waiting: Vec<(Caller, Wanted)>,
}

impl Rebuild {
    /// Whether it is not known yet which names there are.
    pub(super) fn is_under_way(&self, cx: &Context) -> bool {
        if cx.own_incarnation().start() <= 1 {
            return false;
        }
        let over = |began: Nanos| self.left.is_empty() || began + WAIT <= cx.now;
        !self.began.is_some_and(over)
    }

    /// Asks whoever was not asked and can be reached. `next_call` numbers the questions.
    pub(super) fn ask(&mut self, cx: &mut Context, next_call: &mut u64) {
        if cx.own_incarnation().start() <= 1 || cx.cluster.is_link() {
            return;
        }
        if self.began.is_none() {
            self.began = Some(cx.now);
            let me = cx.me();
            let others = cx.cluster.owners().iter().filter(|mp| **mp != me);
            self.left = others.map(|mp| (*mp, Left::default())).collect();
        }
        for (mp, left) in &mut self.left {
            let there = cx.check_reachable(*mp).is_ok() && cx.missing(*mp).is_none();
            if left.asked.is_some() || !there || cx.now < left.not_before {
                continue;
            }
            let call = CallId {
                role: Role::Home,
                number: *next_call,
            };
            *next_call += 1;
            left.asked = Some(call.number);
            self.calls.insert(call.number, *mp);
            let after = left.after.clone();
            cx.request(*mp, call, PeerRequest::Names { after });
        }
    }

    /// Whose answer has this number; it is not waited for any longer.
    pub(super) fn take(&mut self, number: u64) -> Option<MpId> {
        let mp = self.calls.remove(&number)?;
        if let Some(left) = self.left.get_mut(&mp) {
            left.asked = None;
        }
        Some(mp)
    }

    /// A process has said everything up to this name, and has no more if there is none.
    pub(super) fn heard(&mut self, mp: MpId, up_to: Option<String>) {
        match (up_to, self.left.get_mut(&mp)) {
            (Some(name), Some(left)) => left.after = name,
            _ => _ = self.left.remove(&mp),
        }
    }

    /// A process could not answer: it is asked again in a moment.
    pub(super) fn refused(&mut self, mp: MpId, now: Nanos) {
        if let Some(left) = self.left.get_mut(&mp) {
            left.not_before = now + RETRY;
        }
    }

    /// A process is lost: it is asked again when it is back, for everything, since it may be another start.
    pub(super) fn lose(&mut self, mp: MpId) {
        self.calls.retain(|_, to| *to != mp);
        if let Some(left) = self.left.get_mut(&mp) {
            *left = Left::default();
        }
    }

    pub(super) fn wait(&mut self, caller: Caller, wanted: Wanted) {
        self.waiting.push((caller, wanted));
    }

    pub(super) fn take_waiting(&mut self) -> Vec<(Caller, Wanted)> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::View;
    use crate::core::effects::Effect;
    use crate::core::test_topology;

    const NOW: Nanos = Nanos::from_millis(10_000);

    /// The second start of mp0, of three; `down` cannot be reached.
    fn view(start: u32, down: Option<MpId>) -> View {
        let mut view = View::of_start(test_topology(&["/a"], 3, 0), MpId(0), start);
        let mut effects = Vec::new();
        for peer in [MpId(1), MpId(2)] {
            view.router.peer_up(&view.cluster, peer, &mut effects);
        }
        if let Some(peer) = down {
            view.router.peer_down(&view.cluster, peer, &mut effects);
        }
        view
    }

    /// Who is asked, and after which names.
    fn asks(rebuild: &mut Rebuild, view: &View, now: Nanos, next: &mut u64) -> Vec<String> {
        let mut effects = Vec::new();
        rebuild.ask(&mut Context::new(now, view, &mut effects), next);
        let asked = effects.iter().filter_map(|e| match e {
            Effect::Request {
                to,
                request: PeerRequest::Names { after },
                ..
            } => Some(format!("{} {after}", to.0).trim().to_owned()),
            _ => None,
        });
        asked.collect()
    }

    fn under_way(rebuild: &Rebuild, view: &View, now: Nanos) -> bool {
        let mut effects = Vec::new();
        rebuild.is_under_way(&Context::new(now, view, &mut effects))
    }

    #[test]
    fn a_home_that_was_started_again_asks_all_others_until_they_have_said_everything() {
        let view = view(2, None);
        let (mut rebuild, mut next) = (Rebuild::default(), 1);
        assert!(under_way(&rebuild, &view, NOW));
        assert_eq!(asks(&mut rebuild, &view, NOW, &mut next), ["1", "2"]);
        assert!(asks(&mut rebuild, &view, NOW, &mut next).is_empty(), "once");
        assert_eq!((rebuild.take(1), rebuild.take(1)), (Some(MpId(1)), None));
        rebuild.heard(MpId(1), Some("m".into()));
        assert_eq!(asks(&mut rebuild, &view, NOW, &mut next), ["1 m"]);
        assert_eq!(rebuild.take(2), Some(MpId(2)));
        rebuild.heard(MpId(2), None);
        assert!(under_way(&rebuild, &view, NOW));
        assert_eq!(rebuild.take(3), Some(MpId(1)));
        rebuild.heard(MpId(1), None);
        assert!(!under_way(&rebuild, &view, NOW));
    }

    #[test]
    fn who_refused_is_asked_again_in_a_moment_and_who_was_lost_for_everything() {
        let view = view(2, None);
        let (mut rebuild, mut next) = (Rebuild::default(), 1);
        asks(&mut rebuild, &view, NOW, &mut next);
        rebuild.take(1);
        rebuild.refused(MpId(1), NOW);
        let early = NOW + RETRY - Nanos(1);
        assert!(asks(&mut rebuild, &view, early, &mut next).is_empty());
        assert_eq!(asks(&mut rebuild, &view, NOW + RETRY, &mut next), ["1"]);
        // Of another one that has said a part.
        rebuild.take(2);
        rebuild.heard(MpId(2), Some("m".into()));
        assert_eq!(asks(&mut rebuild, &view, NOW + RETRY, &mut next), ["2 m"]);
        rebuild.lose(MpId(2));
        assert_eq!(rebuild.take(4), None, "its answer is not waited for");
        assert_eq!(rebuild.take(3), Some(MpId(1)), "that of the other is");
        assert_eq!(
            asks(&mut rebuild, &view, NOW + RETRY, &mut next),
            ["1", "2"]
        );
    }

    #[test]
    fn who_cannot_be_reached_is_not_waited_for_for_ever() {
        let view = view(2, Some(MpId(2)));
        let (mut rebuild, mut next) = (Rebuild::default(), 1);
        assert_eq!(asks(&mut rebuild, &view, NOW, &mut next), ["1"]);
        rebuild.take(1);
        rebuild.heard(MpId(1), None);
        assert!(under_way(&rebuild, &view, NOW + WAIT - Nanos(1)));
        assert!(!under_way(&rebuild, &view, NOW + WAIT));
    }

    #[test]
    fn at_the_first_start_there_is_nothing_to_ask() {
        let view = view(1, None);
        let (mut rebuild, mut next) = (Rebuild::default(), 1);
        assert!(asks(&mut rebuild, &view, NOW, &mut next).is_empty());
        assert!(!under_way(&rebuild, &view, NOW));
        // Nor for a link process, which is the home of nothing.
        let view = View::of_start(test_topology(&["/a", "/b"], 1, 0), MpId(2), 2);
        assert!(asks(&mut rebuild, &view, NOW, &mut next).is_empty());
    }
}
