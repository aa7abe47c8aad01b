//! Exclusive sections and the hand-overs of their locks, as timelines show them: from records in the order of their starts.

use std::collections::HashMap;

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::record::{Op, Record};

/// A section, from the grant of the lock on. `S` is what a format knows it by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<S> {
    pub(crate) ap: ApId,
    pub(crate) object: ObjectId,
    pub(crate) begin: Nanos,
    /// Releases of the object before it.
    pub(crate) version: u64,
    pub(crate) mark: S,
}

/// The last release of an object. `R` is what a format knows it by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released<R> {
    pub(crate) by: ApId,
    at: Nanos,
    pub(crate) mark: R,
}

/// Sections that have not ended, and the last releases.
#[derive(Debug)]
pub(crate) struct Sections<S, R> {
    open: HashMap<(ApId, ObjectId), Section<S>>,
    released: HashMap<ObjectId, Released<R>>,
}

impl<S, R> Default for Sections<S, R> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            released: HashMap::new(),
        }
    }
}

/// Whether a record begins or ends a section. Of several sections in one record nobody knows when each was held.
pub(crate) fn is_of_section(r: &Record) -> bool {
    let of_lock = matches!(r.op, Op::Acquire | Op::Release);
    of_lock && r.is_access() && !r.is_of_past_sections()
}

impl<S, R> Sections<S, R> {
    /// The section that a record of a section ends: by a release, or by another acquire, and then it was lost.
    pub(crate) fn ended_by(&mut self, r: &Record) -> Option<Section<S>> {
        self.open.remove(&(r.ap, r.object))
    }

    /// An acquire was granted.
    pub(crate) fn begins(&mut self, r: &Record, mark: S) {
        let section = Section {
            ap: r.ap,
            object: r.object,
            begin: r.end(),
            version: r.version,
            mark,
        };
        self.open.insert((r.ap, r.object), section);
    }

    /// A release was asked for.
    pub(crate) fn released(&mut self, r: &Record, mark: R) {
        let released = Released {
            by: r.ap,
            at: r.start,
            mark,
        };
        self.released.insert(r.object, released);
    }

    /// The release by which another process handed the lock over to a section.
    pub(crate) fn handed_over_by(&self, section: &Section<S>) -> Option<&Released<R>> {
        let last = self.released.get(&section.object)?;
        (last.by != section.ap && last.at <= section.begin).then_some(last)
    }

    /// The sections that nobody has left, in the order of their begins.
    pub(crate) fn take_open(&mut self) -> Vec<Section<S>> {
        let mut open: Vec<_> = self.open.drain().map(|(_, section)| section).collect();
        open.sort_by_key(|section| (section.begin, section.ap, section.object));
        open
    }
}
