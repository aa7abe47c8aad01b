//! Which memory processes have a copy of which object.

use dosmos_proto::{CopyPolicy, MpId, ObjectId};
use rustc_hash::FxHashMap;

/// Copies by object.
#[derive(Debug, Default)]
pub(crate) struct Copies(FxHashMap<ObjectId, Vec<MpId>>);

impl Copies {
    pub(crate) fn has(&self, mp: MpId, object: ObjectId) -> bool {
        self.0.get(&object).is_some_and(|h| h.contains(&mp))
    }

    pub(crate) fn add(&mut self, mp: MpId, object: ObjectId) {
        let holders = self.0.entry(object).or_default();
        if !holders.contains(&mp) {
            holders.push(mp);
        }
    }

    pub(crate) fn drop_at(&mut self, mp: MpId, object: ObjectId) {
        if let Some(holders) = self.0.get_mut(&object) {
            holders.retain(|h| *h != mp);
        }
    }

    /// The object changed by a process of `writer`: the memory processes that have to be told. With the policy
    /// `invalidate` they lose their copies.
    pub(crate) fn told(&mut self, object: ObjectId, policy: CopyPolicy, writer: MpId) -> Vec<MpId> {
        let Some(holders) = self.0.get_mut(&object) else {
            return Vec::new();
        };
        match policy {
            CopyPolicy::Invalidate => {
                let mut told = std::mem::take(holders);
                told.retain(|h| *h != writer);
                told
            }
            CopyPolicy::Update => holders.iter().copied().filter(|h| *h != writer).collect(),
        }
    }
}
