//! One object: its publications, its sections, who saw what of it last, and which copies there were.

use dosmos_proto::{ApId, MpId, Nanos};
use dosmos_trace::Record;

use crate::clocks::Clock;
use crate::pairs::Pairs;
use crate::races::Shadow;

/// Publications that are kept of one object before some between are forgotten.
const PUBLICATIONS: usize = 64;
/// From this number on, those that a newer one hides from everybody are dropped.
const TIDY: usize = 8;
/// Sections kept of one object, the last ones.
const SECTIONS: usize = 3;

/// The content changed for everybody: whoever comes after phase `phase` of `ap` sees version `version`, or a newer one.
#[derive(Clone, Debug)]
pub(crate) struct Publication {
    pub(crate) ap: ApId,
    pub(crate) phase: u32,
    pub(crate) version: u64,
    /// Of a section, whose version is known exactly; otherwise the version is the lowest possible.
    pub(crate) released: bool,
    pub(crate) write: Record,
    /// The release or barrier that published it.
    pub(crate) by: Record,
    /// Others between this one and the next newer one were forgotten.
    pub(crate) gap: bool,
}

/// What a reader must see.
pub(crate) enum Required<'a> {
    Nothing,
    /// At least this.
    At(&'a Publication),
    /// At least the first; perhaps one up to the version of the other.
    Between(&'a Publication, u64),
}

/// A section that was released.
#[derive(Clone, Debug)]
pub(crate) struct Released {
    pub(crate) acquire: Record,
    pub(crate) release: Record,
    pub(crate) clock: Clock,
    pub(crate) loose: Clock,
}

/// What a process saw last.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) ap: ApId,
    pub(crate) read: Option<Record>,
    /// Its last write outside sections.
    pub(crate) wrote: Option<Record>,
}

/// The last steps of the lock by the clock of its owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct AtOwner {
    pub(crate) released: Option<Record>,
    pub(crate) granted: Option<Record>,
    /// The grant of another process's request that ended last.
    pub(crate) latest: Option<Record>,
}

#[derive(Debug, Default)]
pub(crate) struct Object {
    /// By rising versions.
    pub(crate) publications: Vec<Publication>,
    /// The last sections, by rising versions.
    pub(crate) sections: Vec<Released>,
    /// Sections that the owner ended without a release: grant and end.
    pub(crate) ended: Vec<(Record, Record)>,
    pub(crate) seen: Vec<Seen>,
    /// The last read of the copy at each memory process.
    pub(crate) copies: Vec<(MpId, Record)>,
    pub(crate) at_owner: AtOwner,
    /// The read of the highest version.
    pub(crate) highest: Option<Record>,
    /// Versions that releases made, and that writes outside sections can have made.
    pub(crate) releases: u64,
    pub(crate) writes: u64,
    /// A grant from this version was not waited for any longer.
    pub(crate) given_up: u64,
    /// Its releases have no versions.
    pub(crate) unversioned: bool,
    pub(crate) shadow: Shadow,
    /// An access in an application process may have been a race.
    pub(crate) unsure: bool,
    /// What atomic operations on it come after.
    pub(crate) atomics: Option<Clock>,
    pub(crate) pairs: Pairs,
}

impl Object {
    /// Adds a publication; `floor` comes before the next step of everybody.
    pub(crate) fn publish(&mut self, publication: Publication, floor: &Clock) {
        let list = &mut self.publications;
        let at = list.partition_point(|p| p.version <= publication.version);
        list.insert(at, publication);
        if list.len() > TIDY {
            let hides = |p: &Publication| floor.knows(p.ap, p.phase);
            if let Some(newest) = list.iter().rposition(hides) {
                list.drain(..newest);
            }
        }
        if list.len() > PUBLICATIONS {
            thin(list);
        }
    }

    /// What `step` must see, which comes after `clock`. What its own process is still publishing it need not see.
    pub(crate) fn required(&self, clock: &Clock, step: &Record) -> Required<'_> {
        let mut newer: Option<u64> = None;
        let over = |p: &&Publication| p.ap != step.ap || p.by.end() <= step.start;
        for p in self.publications.iter().rev().filter(over) {
            if clock.knows(p.ap, p.phase) {
                return match newer {
                    Some(newer) if p.gap => Required::Between(p, newer),
                    _ => Required::At(p),
                };
            }
            newer = Some(p.version);
        }
        Required::Nothing
    }

    /// A release that made a version after `older`, at most `newer`, and changed the content.
    pub(crate) fn changed_between(&self, older: u64, newer: u64) -> Option<&Publication> {
        let mut list = self.publications.iter().rev();
        list.find(|p| p.released && older < p.version && p.version <= newer)
    }

    pub(crate) fn seen(&mut self, ap: ApId) -> &mut Seen {
        let at = match self.seen.iter().position(|s| s.ap == ap) {
            Some(at) => at,
            None => {
                self.seen.push(Seen {
                    ap,
                    read: None,
                    wrote: None,
                });
                self.seen.len() - 1
            }
        };
        &mut self.seen[at]
    }

    /// The highest version that a release made, as far as is known.
    pub(crate) fn released(&self) -> u64 {
        self.sections.last().map_or(0, |s| s.release.version)
    }

    pub(crate) fn remember(&mut self, section: Released) {
        let version = section.release.version;
        let at = self
            .sections
            .partition_point(|s| s.release.version <= version);
        self.sections.insert(at, section);
        if self.sections.len() > SECTIONS {
            self.sections.remove(0);
        }
    }

    /// A read of the copy at `mp`: the one before, if it was over by then.
    pub(crate) fn read_copy(&mut self, read: &Record) -> Option<Record> {
        match self.copies.iter_mut().find(|(mp, _)| *mp == read.mp) {
            Some((_, last)) => {
                let before = *last;
                if read.version >= last.version || last.end() <= read.start {
                    *last = *read;
                }
                (before.end() <= read.start).then_some(before)
            }
            None => {
                self.copies.push((read.mp, *read));
                None
            }
        }
    }
}

/// Forgets every second publication of the older half.
fn thin(list: &mut Vec<Publication>) {
    let half = list.len() / 2;
    let mut kept: Vec<Publication> = Vec::with_capacity(list.len());
    for (i, publication) in list.drain(..).enumerate() {
        if i < half && i % 2 == 1 {
            if let Some(before) = kept.last_mut() {
                before.gap = true;
            }
        } else {
            kept.push(publication);
        }
    }
    *list = kept;
}

/// How long after the end of an operation what must come before it is waited for, in the time of the records.
pub(crate) const SLACK: Nanos = Nanos(50_000_000);
