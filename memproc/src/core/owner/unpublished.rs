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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::View;
    use crate::core::test_topology;
    use dosmos_proto::{MpId, Nanos, VarId};

    #[test]
    fn what_is_published_is_a_version_of_each_object_written() {
        let view = View::of_test(test_topology(&["/a"], 1, 2), MpId(0));
        let mut effects = Vec::new();
        let cx = &mut Context::new(Nanos(1), &view, &mut effects);
        let objects = [0, 1].map(|index| ObjectId::new(VarId(1), index));
        let mut all = Objects::of_test(&objects);
        let mut unpublished = Unpublished::default();
        let [one, other] = [ApId(0), ApId(1)];
        for object in [objects[0], objects[1], objects[0]] {
            unpublished.wrote(cx, one, object);
        }
        unpublished.wrote(cx, other, objects[1]);
        assert_eq!(unpublished.of(one), Some(objects.into()));
        assert_eq!(unpublished.new_versions(one, &mut all), objects);
        assert_eq!(
            (unpublished.of(one), unpublished.of(other)),
            (None, Some([objects[1]].into()))
        );
        assert_eq!(unpublished.new_versions(other, &mut all), [objects[1]]);
        let versions = objects.map(|o| all.get(&o).unwrap().version);
        assert_eq!(versions, [1, 2]);
        assert!(unpublished.new_versions(one, &mut all).is_empty());
    }

    #[test]
    fn what_was_published_ahead_is_waited_for_once() {
        let objects = [0, 1].map(|index| ObjectId::new(VarId(1), index));
        let mut unpublished = Unpublished::default();
        unpublished.put_ahead(ApId(0), [objects[0]].into());
        unpublished.put_ahead(ApId(0), [objects[1]].into());
        assert!(unpublished.take_ahead(ApId(1)).is_empty());
        assert_eq!(unpublished.take_ahead(ApId(0)), objects.into());
        assert!(unpublished.take_ahead(ApId(0)).is_empty());
    }
}
