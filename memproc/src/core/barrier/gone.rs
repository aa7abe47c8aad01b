//! Who does not take part any more, in the order in which it was heard: the first is the one to blame, later ones
//! usually left because of it.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, GroupId, Refusal, blame};

use crate::core::context::Context;

/// Why an application process does not take part any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It left.
    Left,
    /// Its memory process is lost.
    Cut,
}

/// All that are gone.
#[derive(Debug, Default)]
pub(super) struct Absent {
    /// With their positions in the order.
    by_ap: BTreeMap<ApId, (u64, Gone)>,
    heard: u64,
}

impl Absent {
    /// One is gone from now on.
    pub(super) fn add(&mut self, ap: ApId, cause: Gone) {
        self.heard += 1;
        let (_, known) = self.by_ap.entry(ap).or_insert((self.heard, cause));
        if cause == Gone::Left {
            *known = cause;
        }
    }

    /// One is back, if it was gone for this cause or had left.
    pub(super) fn remove(&mut self, ap: ApId, cause: Gone) {
        let known = self.by_ap.get(&ap).map(|(_, known)| *known);
        if known == Some(cause) || cause == Gone::Left {
            self.by_ap.remove(&ap);
        }
    }

    /// Whether one is gone.
    pub(super) fn has(&self, ap: ApId) -> bool {
        self.by_ap.contains_key(&ap)
    }

    /// Why a barrier of a group, or of all, cannot open: the first of its participants that is gone.
    pub(super) fn refusal(&self, cx: &Context, group: Option<GroupId>) -> Option<Refusal> {
        let t = &cx.cluster.topology;
        let takes_part = |ap: ApId| {
            let its = t.group_of_ap(ap);
            group.is_none_or(|g| its.is_some_and(|its| t.within(its, g)))
        };
        let of_group = self.by_ap.iter().filter(|(ap, _)| takes_part(**ap));
        let (ap, (_, cause)) = of_group.min_by_key(|(_, (heard, _))| *heard)?;
        let name = cx.cluster.ap_name(*ap);
        Some(match (cause, cx.cluster.mp_of(*ap)) {
            (Gone::Cut, Some(mp)) => blame::is_lost(&name, &cx.cluster.mp_name(mp)),
            _ => blame::has_left(&name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_left_is_not_back_when_its_memory_process_is() {
        let mut gone = Absent::default();
        gone.add(ApId(0), Gone::Cut);
        gone.add(ApId(1), Gone::Cut);
        gone.add(ApId(1), Gone::Left);
        gone.add(ApId(2), Gone::Cut);
        for ap in [0, 1] {
            gone.remove(ApId(ap), Gone::Cut);
        }
        // Who connects again is back, whatever was heard of it.
        gone.remove(ApId(2), Gone::Left);
        assert_eq!(gone.by_ap, [(ApId(1), (2, Gone::Left))].into());
    }
}
