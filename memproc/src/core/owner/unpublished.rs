//! What application processes wrote outside sections and the copies do not know, or may not know yet.

use std::collections::BTreeSet;

use dosmos_proto::{ApId, ObjectId};
use rustc_hash::FxHashMap;

use super::objects::Objects;
use crate::core::context::Context;
use crate::core::effects::Effect;

/// The objects written, by writer.
#[derive(Debug, Default)]
pub(super) struct Unpublished {
    /// Not told to the copies.
    dirty: FxHashMap<ApId, BTreeSet<ObjectId>>,
    /// Published ahead of an arrival at a barrier, or since the writer's memory process was lost, and perhaps not acknowledged.
    ahead: FxHashMap<ApId, BTreeSet<ObjectId>>,
}

impl Unpublished {
    /// A write for everyone is remembered until its writer publishes.
    pub(super) fn wrote(&mut self, cx: &mut Context, ap: ApId, object: ObjectId) {
        cx.effect(Effect::Changed { object });
        self.dirty.entry(ap).or_default().insert(object);
    }

    /// What `ap` wrote becomes the next version of each object, of which the copies are to be told.
    pub(super) fn new_versions(&mut self, ap: ApId, objects: &mut Objects) -> Vec<ObjectId> {
        let written = self.dirty.remove(&ap).unwrap_or_default();
        for object in &written {
            if let Some(o) = objects.get_mut(object) {
                o.version += 1;
            }
        }
        written.into_iter().collect()
    }

    /// What `ap` wrote and did not publish.
    pub(super) fn of(&self, ap: ApId) -> Option<BTreeSet<ObjectId>> {
        self.dirty.get(&ap).cloned()
    }

    /// What was published ahead for `ap` is not waited for, until it publishes next.
    pub(super) fn put_ahead(&mut self, ap: ApId, objects: BTreeSet<ObjectId>) {
        self.ahead.entry(ap).or_default().extend(objects);
    }

    /// What `ap` published ahead.
    pub(super) fn take_ahead(&mut self, ap: ApId) -> BTreeSet<ObjectId> {
        self.ahead.remove(&ap).unwrap_or_default()
    }
}
