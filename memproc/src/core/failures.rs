//! Which other memory processes hear that an application process of ours left, and that it is back.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, MpId};

use super::barrier::group::coordinator;
use super::context::Context;
use super::messages::Notice;

/// Application processes of ours that left, and which processes were told.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    told: BTreeMap<ApId, Vec<MpId>>,
}

impl Failures {
    /// An application process left. Tells those who may wait for it at barriers: all coordinators, and
    /// if it died, everyone with application processes.
    pub(crate) fn leave(&mut self, cx: &mut Context, ap: ApId, orderly: bool) {
        let t = &cx.cluster.topology;
        let mut to = with_participants(cx);
        if orderly {
            let groups = t.group_of_ap(ap).into_iter().flat_map(|g| t.ancestry(g));
            let coordinators: Vec<MpId> = std::iter::once(None)
                .chain(groups.map(Some))
                .filter_map(|g| coordinator(cx.cluster, g))
                .collect();
            to.retain(|mp| coordinators.contains(mp));
        }
        for mp in &to {
            cx.notice(*mp, Notice::ApGone { ap, back: false });
        }
        self.told.insert(ap, to);
    }

    /// The way to a process is new: what it was told before may be lost or forgotten.
    pub(crate) fn tell_again(&self, cx: &mut Context, mp: MpId) {
        for (ap, to) in &self.told {
            if to.contains(&mp) {
                let ap = *ap;
                cx.notice(mp, Notice::ApGone { ap, back: false });
            }
        }
    }

    /// It connected again: those who were told that it left are told. A process that was started again does not know whom
    /// its earlier start told.
    pub(crate) fn come_back(&mut self, cx: &mut Context, ap: ApId) {
        let to = match self.told.remove(&ap) {
            None if cx.own_incarnation().start() > 1 => with_participants(cx),
            told => told.unwrap_or_default(),
        };
        for mp in to {
            cx.notice(mp, Notice::ApGone { ap, back: true });
        }
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
