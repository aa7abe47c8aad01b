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
