//! Flushes under way: an owner tells holders of copies what an application process wrote outside sections.

use dosmos_proto::{ApId, Incarnation, MpId};
use rustc_hash::FxHashMap;

use super::pending::call;
use crate::core::context::Context;
use crate::core::effects::Effect;
use crate::core::messages::PeerRequest;

/// Writes of an application process that an owner is telling to holders of copies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    pub(super) ap: ApId,
    pub(super) to: MpId,
    /// Which start of the owner was written to.
    pub(super) incarnation: Option<Incarnation>,
}

/// All of them, by number.
#[derive(Debug, Default)]
pub(super) struct Flushes(FxHashMap<u64, Flush>);

impl Flushes {
    /// Has an owner tell the copies.
    pub(super) fn send(&mut self, cx: &mut Context, number: u64, flush: Flush) {
        let request = PeerRequest::Flush { ap: flush.ap };
        cx.request_of(flush.to, flush.incarnation, call(number), request);
        self.0.insert(number, flush);
    }

    /// Has the owner here tell the copies, and does not wait for `hearer` to acknowledge.
    pub(super) fn send_ahead(
        &mut self,
        cx: &mut Context,
        number: u64,
        (ap, incarnation): (ApId, Option<Incarnation>),
        hearer: MpId,
    ) {
        let to = cx.me();
        let flush = Flush {
            ap,
            to,
            incarnation,
        };
        self.0.insert(number, flush);
        let call = call(number);
        cx.effect(Effect::PublishAhead { ap, call, hearer });
    }

    /// A process is heard for the first time. If it was started again since flushes were sent to it, their responses are lost:
    /// a flush that is repeated does no harm, and one that was meant for an earlier start is refused.
    pub(super) fn send_again(&self, cx: &mut Context, owner: MpId) {
        for (number, flush) in self.at(owner) {
            let request = PeerRequest::Flush { ap: flush.ap };
            cx.request_of(owner, flush.incarnation, call(number), request);
        }
    }

    /// Ends a flush that `from` responded to.
    pub(super) fn close(&mut self, number: u64, from: MpId) -> Option<Flush> {
        self.0.get(&number).filter(|f| f.to == from)?;
        self.0.remove(&number)
    }

    /// An application process is gone: nobody waits for its flushes, and the next process of its name for its own only.
    pub(super) fn forget(&mut self, ap: ApId) {
        self.0.retain(|_, f| f.ap != ap);
    }

    /// Ends the flushes at an owner that is lost, oldest first.
    pub(super) fn lose(&mut self, owner: MpId) -> Vec<Flush> {
        let lost = self.at(owner);
        self.0.retain(|_, f| f.to != owner);
        lost.into_iter().map(|(_, flush)| flush).collect()
    }

    /// Flushes at an owner, oldest first.
    fn at(&self, owner: MpId) -> Vec<(u64, Flush)> {
        let its = self.0.iter().filter(|(_, f)| f.to == owner);
        let mut list: Vec<(u64, Flush)> = its.map(|(number, flush)| (*number, *flush)).collect();
        list.sort_unstable_by_key(|(number, _)| *number);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::View;
    use crate::core::test_topology;
    use dosmos_proto::Nanos;

    #[test]
    fn flushes_at_an_owner_that_is_lost_end_in_their_order() {
        let view = View::of_test(test_topology(&["/a"], 3, 1), MpId(0));
        let mut effects = Vec::new();
        let cx = &mut Context::new(Nanos(1), &view, &mut effects);
        let mut all = Flushes::default();
        for (number, ap, to) in [(1, 0, 1), (2, 1, 2), (3, 2, 1), (4, 3, 1)] {
            let flush = Flush {
                ap: ApId(ap),
                to: MpId(to),
                incarnation: None,
            };
            all.send(cx, number, flush);
        }
        all.forget(ApId(3));
        let lost: Vec<u32> = all.lose(MpId(1)).iter().map(|f| f.ap.0).collect();
        assert_eq!(lost, [0, 2]);
        assert!(all.close(2, MpId(1)).is_none(), "another was asked");
        assert!(all.close(2, MpId(2)).is_some() && all.close(2, MpId(2)).is_none());
    }
}
