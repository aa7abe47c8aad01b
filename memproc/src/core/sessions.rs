//! What is known of each of our application processes: whether it is here, the sections it is in,
//! which owners hold writes of it that copies were not told of, and what it is publishing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dosmos_proto::{ApId, MpId, ObjectId};

use super::hash::FastMap;

/// Most requests of one application process under way at once.
pub const MAX_OUTSTANDING: u32 = 4096;

/// An exclusive section an application process is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub(crate) epoch: u64,
    /// It wrote: from now on it reads at the owner, where its writes are.
    pub(crate) wrote: bool,
    pub(crate) owner: MpId,
    /// The owner was lost and the section with it.
    pub(crate) lost: bool,
}

/// One application process.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) connected: bool,
    /// It was here and is gone; these were told.
    pub(crate) left: Option<Vec<MpId>>,
    pub(crate) outstanding: u32,
    pub(crate) sections: BTreeMap<ObjectId, Section>,
    /// Objects whose acquires are at their owners.
    pub(crate) acquiring: BTreeSet<ObjectId>,
    /// Owners with writes outside sections that copies were not told of.
    pub(crate) dirty: BTreeSet<MpId>,
    /// Flushes under way.
    pub(crate) flushing: u32,
    /// The call that wanted the last flush.
    pub(crate) flush_for: u64,
    /// `advance` is at work.
    pub(crate) advancing: bool,
    /// Releases handed to owners and not answered.
    pub(crate) releasing: u32,
    /// Calls that publish or come after one that does, in order: see `publish`.
    pub(crate) preparing: VecDeque<u64>,
}

/// All application processes that ever connected.
#[derive(Debug, Default)]
pub(crate) struct Sessions(FastMap<ApId, Session>);

impl Sessions {
    pub(crate) fn get(&self, ap: ApId) -> Option<&Session> {
        self.0.get(&ap)
    }

    pub(crate) fn get_mut(&mut self, ap: ApId) -> &mut Session {
        self.0.entry(ap).or_default()
    }

    pub(crate) fn section(&self, ap: ApId, object: ObjectId) -> Option<&Section> {
        self.0.get(&ap)?.sections.get(&object)
    }

    /// Those connected, in order.
    pub(crate) fn connected(&self) -> Vec<ApId> {
        let mut list: Vec<ApId> = self
            .0
            .iter()
            .filter(|(_, s)| s.connected)
            .map(|(ap, _)| *ap)
            .collect();
        list.sort_unstable();
        list
    }

    /// Sections on objects of an owner are lost. Unpublished writes to them are not forgotten: the
    /// next release or barrier publishes them or fails.
    pub(crate) fn lose_owner(&mut self, owner: MpId) {
        for session in self.0.values_mut() {
            for section in session.sections.values_mut() {
                section.lost |= section.owner == owner;
            }
        }
    }
}
