//! Which other memory processes hear that an application process of ours left, and that it is back.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, MpId};

use super::barrier::group::coordinator;
use super::context::Context;
use super::messages::Notice;

/// What was said last of an application process of ours that left, and to whom.
#[derive(Debug)]
struct Said {
    back: bool,
    to: Vec<MpId>,
}

/// Application processes of ours that left, also those that are back.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    said: BTreeMap<ApId, Said>,
}

impl Failures {
    /// An application process left. Tells those who may wait for it at barriers: all coordinators, and
    /// if it died, everyone with application processes; or those who go on until all have left.
    pub(crate) fn leave(&mut self, cx: &mut Context, ap: ApId, orderly: bool) {
        let t = &cx.cluster.topology;
        let mut to = with_participants(cx);
        if orderly && !cx.cluster.in_application {
            let groups = t.group_of_ap(ap).into_iter().flat_map(|g| t.ancestry(g));
            let coordinators: Vec<MpId> = std::iter::once(None)
                .chain(groups.map(Some))
                .filter_map(|g| coordinator(cx.cluster, g))
                .collect();
            to.retain(|mp| coordinators.contains(mp));
        }
        self.say(cx, ap, Said { back: false, to });
    }

    fn say(&mut self, cx: &mut Context, ap: ApId, said: Said) {
        let back = said.back;
        for mp in &said.to {
            cx.notice(*mp, Notice::ApGone { ap, back });
        }
        self.said.insert(ap, said);
    }

    /// The way to a process is new: what it was told before may be lost or forgotten, or be on its way still, behind what got
    /// lost.
    pub(crate) fn tell_again(&self, cx: &mut Context, mp: MpId) {
        for (ap, said) in &self.said {
            if said.to.contains(&mp) {
                let (ap, back) = (*ap, said.back);
                cx.notice(mp, Notice::ApGone { ap, back });
            }
        }
    }

    /// It connected again: those who were told that it left are told. A process that was started again does not know whom
    /// its earlier start told.
    pub(crate) fn come_back(&mut self, cx: &mut Context, ap: ApId) {
        let to = match self.said.remove(&ap) {
            Some(said) => said.to,
            None if cx.own_incarnation().start() > 1 => with_participants(cx),
            None => return,
        };
        self.say(cx, ap, Said { back: true, to });
    }
}

/// The others that have application processes.
fn with_participants(cx: &Context) -> Vec<MpId> {
    let aps = cx.cluster.topology.aps_in(None);
    let mut list: Vec<MpId> = aps.filter_map(|ap| cx.cluster.mp_of(ap)).collect();
    list.sort_unstable();
    list.dedup();
    list.retain(|mp| *mp != cx.me());
    list
}
