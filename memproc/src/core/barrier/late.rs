//! Arrivals whose time is over: who still waits to hear who is missing, and how that is said.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, GroupId, MpId, Nanos};

use crate::core::cluster::{Cluster, list};
use crate::core::context::Context;
use crate::core::effects::Waiter;

/// Whoever gave up no longer ago is not missed by those who give up now: they came together.
const TOGETHER: Nanos = Nanos::from_millis(1000);

/// Those of ours whose time was over at a barrier that has not opened since.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// They had arrived; when they gave up.
    gave_up: BTreeMap<ApId, Nanos>,
    /// The same, at the coordinator: members of which all had arrived.
    members: BTreeMap<MpId, Nanos>,
    /// Operations that wait for the coordinator to say who is missing.
    asking: Vec<Waiter>,
}

impl Late {
    pub(super) fn gives_up(&mut self, now: Nanos, ap: ApId) {
        self.gave_up.insert(ap, now);
    }
    pub(super) fn arrives(&mut self, ap: ApId) {
        self.gave_up.remove(&ap);
    }
    /// It opened, or failed.
    pub(super) fn is_over(&mut self) {
        self.gave_up.clear();
        self.members.clear();
    }

    /// At the coordinator: a member takes its arrival back.
    pub(super) fn member_gives_up(&mut self, now: Nanos, member: MpId) {
        self.members.insert(member, now);
    }
    pub(super) fn member_arrives(&mut self, member: MpId) {
        self.members.remove(&member);
    }

    pub(super) fn asks(&mut self, waiter: Waiter) {
        self.asking.push(waiter);
    }
    pub(super) fn is_asking(&self) -> bool {
        !self.asking.is_empty()
    }
    /// An operation is over.
    pub(super) fn forget(&mut self, waiter: Waiter) {
        self.asking.retain(|w| *w != waiter);
    }
    /// Those who wait to hear who is missing.
    pub(super) fn take_asking(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.asking)
    }

    /// Those of `own` that did not come: neither `arrived`, nor came and gave up.
    pub(super) fn missing(
        &self,
        cx: &Context,
        own: &[ApId],
        arrived: &BTreeSet<ApId>,
    ) -> Vec<String> {
        let came = |ap: &&ApId| arrived.contains(ap) || is_recent(cx, self.gave_up.get(ap));
        let missing = own.iter().filter(|ap| !came(ap));
        missing.map(|ap| cx.cluster.ap_name(*ap)).collect()
    }

    /// At the coordinator: who may be missing at the other `members`, of which those in `here` have arrived.
    pub(super) fn missing_elsewhere(
        &self,
        cx: &Context,
        group: Option<GroupId>,
        (members, here): (&[MpId], &BTreeSet<MpId>),
    ) -> Vec<String> {
        let came = |m: &MpId| here.contains(m) || is_recent(cx, self.members.get(m));
        let missing = members.iter().filter(|m| **m != cx.me() && !came(m));
        missing.map(|m| missing_at(cx.cluster, group, *m)).collect()
    }
}

fn is_recent(cx: &Context, gave_up: Option<&Nanos>) -> bool {
    gave_up.is_some_and(|at| cx.now - *at <= TOGETHER)
}

/// Who of a barrier's participants at `member` may be missing: all that is known elsewhere is that not all of them arrived.
fn missing_at(cluster: &Cluster, group: Option<GroupId>, member: MpId) -> String {
    let aps = cluster.topology.aps_in(group);
    let aps = aps.filter(|ap| cluster.mp_of(*ap) == Some(member));
    let names: Vec<String> = aps.map(|ap| cluster.ap_name(ap)).collect();
    let names_text = list(names.iter().map(String::as_str));
    match names.len() {
        1 => names_text,
        _ => format!("one or more of {names_text}"),
    }
}

/// That a barrier did not open, and for whom.
pub(super) fn did_not_open(
    cluster: &Cluster,
    name: &str,
    missing: &[String],
    coordinator: MpId,
) -> String {
    if missing.is_empty() {
        return format!(
            "barrier {name:?} did not open: all of {} arrived, others did not (its coordinator is {})",
            cluster.mp_name(cluster.me),
            cluster.mp_name(coordinator)
        );
    }
    let missing = list(missing.iter().map(String::as_str));
    format!("barrier {name:?} did not open: {missing} did not arrive")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::View;
    use crate::core::test_topology;

    const NOW: Nanos = Nanos::from_millis(10_000);

    /// Two application processes at each of two memory processes, and one at each of two others; at the first.
    fn views() -> [View; 2] {
        [2, 1].map(|aps| View::of_test(test_topology(&["/a"], 2, aps), MpId(0)))
    }

    #[test]
    fn who_gave_up_just_before_is_not_missed() {
        let [view, _] = views();
        let mut effects = Vec::new();
        let own = [ApId(0), ApId(1)];
        let mut missing = |late: &Late, now: Nanos, arrived: &[u32]| {
            let arrived = arrived.iter().map(|ap| ApId(*ap)).collect();
            let cx = Context::new(now, &view, &mut effects);
            late.missing(&cx, &own, &arrived).join(" ")
        };
        let mut late = Late::default();
        assert_eq!(missing(&late, NOW, &[]), "ap0 ap1");
        assert_eq!(missing(&late, NOW, &[1]), "ap0");
        late.gives_up(NOW, ApId(0));
        assert_eq!(missing(&late, NOW + TOGETHER, &[1]), "");
        assert_eq!(missing(&late, NOW + TOGETHER + Nanos(1), &[1]), "ap0");
        // It comes again, and is taken back for another reason than its time.
        late.arrives(ApId(0));
        assert_eq!(missing(&late, NOW, &[1]), "ap0");
        late.gives_up(NOW, ApId(0));
        late.is_over();
        assert_eq!(missing(&late, NOW, &[1]), "ap0");
    }

    #[test]
    fn the_coordinator_names_who_may_be_missing_elsewhere() {
        let mut effects = Vec::new();
        let mut late = Late::default();
        let mut missing = |late: &Late, view: &View, here: &[u32]| {
            let here = here.iter().map(|mp| MpId(*mp)).collect();
            let cx = Context::new(NOW, view, &mut effects);
            let members = [MpId(0), MpId(1)];
            late.missing_elsewhere(&cx, None, (&members, &here))
                .join(" ")
        };
        let [two, one] = views();
        assert_eq!(missing(&late, &two, &[]), "one or more of ap2, ap3");
        assert_eq!(missing(&late, &one, &[]), "ap1");
        assert_eq!(missing(&late, &one, &[1]), "");
        late.member_gives_up(NOW, MpId(1));
        assert_eq!(missing(&late, &one, &[]), "");
        late.member_arrives(MpId(1));
        assert_eq!(missing(&late, &one, &[]), "ap1");
        late.member_gives_up(NOW, MpId(1));
        late.is_over();
        assert_eq!(missing(&late, &one, &[]), "ap1");
    }

    #[test]
    fn an_operation_that_is_over_does_not_wait_to_hear_who_is_missing() {
        let waiter = |operation| Waiter {
            ap: ApId(0),
            operation,
        };
        let mut late = Late::default();
        late.asks(waiter(1));
        late.asks(waiter(2));
        late.forget(waiter(1));
        assert!(late.is_asking());
        assert_eq!(late.take_asking(), [waiter(2)]);
        assert!(!late.is_asking());
    }
}
