//! Exclusive sections: grants, releases, and the order that they make.

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::Record;

use crate::clocks::Past;
use crate::context::Context;
use crate::found::{Found, Question};
use crate::kind::Kind;
use crate::made::Made;
use crate::names::Names;
use crate::order::Order;
use crate::publications::{Publications, Required};
use crate::records::{by_own_clock, is_void};
use crate::steps::Step;

/// Sections kept of one object, the last ones.
const SECTIONS: usize = 3;

/// Grants of one object that a process did not wait for, of which it is known that they may end.
const UNWANTED: usize = 4;

/// A section that is open.
#[derive(Debug)]
struct Section {
    object: ObjectId,
    /// Its grant.
    acquire: Record,
    /// A write in it.
    wrote: Option<Record>,
    /// The highest version of a write in it.
    highest: u64,
    /// A release of it failed: it may be over.
    may_be_over: bool,
    /// One that serves its object ended it, or another one of its process.
    may_have_ended: bool,
}

impl Section {
    /// Whether it began some time after its record says: in the application process, which tells when it reported last. What was
    /// done by messages with an older version was before it.
    fn began_later(&self) -> bool {
        self.acquire.flags.in_process
    }

    /// Whether a write may have been in it: those of sections in the application process are told with them, all others in such a
    /// process were outside sections.
    fn may_have(&self, write: &Record) -> bool {
        !by_own_clock(write) || self.began_later() && self.acquire.start < write.start
    }
}

/// A section that was released.
#[derive(Debug)]
struct Released {
    acquire: Record,
    release: Record,
    past: Past,
}

#[derive(Debug, Default)]
struct Lock {
    /// The last sections, by rising versions.
    released: Vec<Released>,
    /// Sections that the owner ended without a release: grant and end.
    ended: Vec<(Record, Record)>,
    /// Ends that do not count yet, and from which versions their owner had granted the sections.
    granted_from: Vec<(ApId, Nanos, u64)>,
    /// Versions that releases made.
    releases: Made,
    /// Processes that did not wait for a grant, once for each: it may come, and end, all the same.
    unwanted: Vec<ApId>,
    /// A grant from this version was not waited for any longer.
    given_up: u64,
    /// Its releases have no versions.
    unversioned: bool,
}

#[derive(Debug)]
pub(crate) struct Locks {
    objects: Vec<Lock>,
    /// The open sections of each process.
    open: Vec<Vec<Section>>,
}

impl Locks {
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            objects: Vec::new(),
            open: (0..processes).map(|_| Vec::new()).collect(),
        }
    }

    pub(crate) fn add_object(&mut self) {
        self.objects.push(Lock::default());
    }

    pub(crate) fn is_unversioned(&self, slot: usize) -> bool {
        self.objects[slot].unversioned
    }

    /// Versions that releases made.
    pub(crate) fn releases(&self, slot: usize) -> u64 {
        self.objects[slot].releases.all()
    }

    /// The release of the highest version, as far as is known.
    pub(crate) fn last_release(&self, slot: usize) -> Option<Record> {
        self.objects[slot].released.last().map(|s| s.release)
    }

    /// Whether what a grant starts from was released. Or somebody's writes outside sections made this version.
    pub(crate) fn is_released(&self, slot: usize, grant: &Record) -> bool {
        let last = self.objects[slot].released.last();
        grant.version <= last.map_or(0, |s| s.release.version)
    }

    /// Whether all that can have made what a grant starts from was seen, if publications of writes outside sections made
    /// `published` versions up to that. If one of its releases comes after all, something was taken in another order than it was done.
    pub(crate) fn is_accounted_for(&mut self, slot: usize, grant: &Record, published: u64) -> bool {
        let seen = grant.version <= self.objects[slot].releases.before(grant) + published;
        if seen {
            self.give_up(slot, grant);
        }
        seen
    }

    /// What a grant starts from is not waited for any longer.
    pub(crate) fn give_up(&mut self, slot: usize, grant: &Record) {
        let given_up = &mut self.objects[slot].given_up;
        *given_up = grant.version.max(*given_up);
    }

    fn section(&self, ap: ApId, object: ObjectId) -> Option<&Section> {
        self.open[ap.index()].iter().find(|s| s.object == object)
    }

    fn take_section(&mut self, ap: ApId, object: ObjectId) -> Option<Section> {
        let open = &mut self.open[ap.index()];
        let at = open.iter().position(|s| s.object == object)?;
        Some(open.swap_remove(at))
    }

    /// A grant counts for its process.
    pub(crate) fn granted(&mut self, step: &Step, published: &Publications, context: &mut Context) {
        let (slot, grant) = (step.slot, &step.record);
        let Context { order, found } = context;
        let (ap, object) = (grant.ap, grant.object);
        let before = self.take_section(ap, object);
        if let Some(section) = before.filter(|s| !s.may_be_over) {
            let records = [section.acquire, *grant];
            found.presumed(Kind::AcquiredTwice, object, &records, |names| {
                format!(
                    "{} was granted {} again, and had not released it",
                    names.ap(ap),
                    names.object(object)
                )
            });
        }
        let lock = &self.objects[slot];
        if lock.unversioned {
            return;
        }
        match published.required(slot, &order.past(ap).clock, grant) {
            Required::At(p) | Required::Between(p, _)
                if grant.version < p.version && by_own_clock(&p.write) =>
            {
                found.doubt(Question::OwnClock, object.var);
            }
            Required::At(p) | Required::Between(p, _) if grant.version < p.version => {
                let records = p.missed_by(grant, order);
                found.certain(Kind::StaleGrant, object, &records, |names| {
                    format!(
                        "{} published version {} or later, and {}, which synchronised after that, was granted version {}",
                        names.ap(p.ap), p.version, names.ap(ap), grant.version
                    )
                });
            }
            Required::Between(_, newest) if grant.version < newest => {
                found.doubt(Question::Forgotten, object.var);
            }
            _ => {}
        }
        order.learn(grant, lock.past_before(grant));
        self.begin(grant);
    }

    /// Sections in the application process begin: of an object that was delegated to it since, perhaps, with what the others had
    /// released.
    pub(crate) fn begin_in_process(&mut self, step: &Step, order: &mut Order) {
        let acquire = &step.record;
        order.learn(acquire, self.objects[step.slot].past_before(acquire));
        self.begin(acquire);
    }

    /// A section begins.
    fn begin(&mut self, acquire: &Record) {
        self.open[acquire.ap.index()].push(Section {
            object: acquire.object,
            acquire: *acquire,
            wrote: None,
            highest: acquire.version,
            may_be_over: false,
            may_have_ended: false,
        });
    }

    /// A release failed, and may have been done although nobody was told.
    pub(crate) fn release_failed(&mut self, release: &Record) {
        self.may_be_over(release.ap, release.object);
    }

    fn may_be_over(&mut self, ap: ApId, object: ObjectId) {
        let open = self.open[ap.index()].iter_mut();
        for section in open.filter(|s| s.object == object) {
            section.may_be_over = true;
        }
    }

    /// A process asked for a section and did not get it.
    pub(crate) fn acquire_failed(&mut self, slot: usize, acquire: &Record) {
        let unwanted = &mut self.objects[slot].unwanted;
        if unwanted.iter().filter(|ap| **ap == acquire.ap).count() < UNWANTED {
            unwanted.push(acquire.ap);
        }
    }

    /// A read begins; whether it is in a section.
    pub(crate) fn read(&self, slot: usize, read: &Record, found: &mut Found) -> bool {
        let Some(section) = self.section(read.ap, read.object) else {
            return false;
        };
        let acquire = section.acquire;
        let old = read.version < acquire.version && !read.flags.in_process;
        if old && section.began_later() {
            return false;
        }
        if old && !self.objects[slot].unversioned {
            found.certain(Kind::StaleSection, read.object, &[acquire, *read], |names| {
                format!(
                    "the section of {} starts from version {}, and a read in it shows version {}",
                    names.ap(read.ap), acquire.version, read.version
                )
            });
        }
        true
    }

    /// A write begins; whether it is in a section.
    pub(crate) fn write(&mut self, slot: usize, write: &Record, found: &mut Found) -> bool {
        let open = &mut self.open[write.ap.index()];
        let section = open.iter_mut().find(|s| s.object == write.object);
        let Some(section) = section.filter(|s| s.may_have(write)) else {
            return false;
        };
        let acquire = section.acquire;
        if write.version < acquire.version && section.began_later() {
            return false;
        }
        if write.version < acquire.version && !self.objects[slot].unversioned {
            found.certain(Kind::StaleSection, write.object, &[acquire, *write], |names| {
                format!(
                    "the section of {} starts from version {}, and a write in it is of version {}",
                    names.ap(write.ap), acquire.version, write.version
                )
            });
        }
        if !is_void(write) {
            if section.wrote.is_none_or(|w| w.version <= write.version) {
                section.wrote = Some(*write);
            }
            section.highest = section.highest.max(write.version);
        }
        true
    }

    /// Whether a write that is over was in a section: it is published by its release, or by nothing if its owner ended it.
    pub(crate) fn was_in_section(&self, slot: usize, write: &Record, names: &Names) -> bool {
        let section = self.section(write.ap, write.object);
        if by_own_clock(write) {
            return section.is_some_and(|s| s.may_have(write));
        }
        // What was asked for before the owner, by its clock, ended the section was in it.
        let until = |end: &Record| {
            let error = names.clock_error(write.mp, end.peer);
            error.map_or(Nanos::MAX, |error| end.start + error)
        };
        write.flags.in_process // and leaves with the release
            || section.is_some_and(|s| s.acquire.end() <= write.start)
            || self.objects[slot].ended.iter().any(|(grant, end)| {
                grant.ap == write.ap && grant.end() <= write.start && write.start <= until(end)
            })
    }

    /// A release that succeeded: everything that its process did before is published. `last_read` is the read of the highest
    /// version by this process.
    pub(crate) fn release(
        &mut self,
        step: &Step,
        last_read: Option<Record>,
        publications: &mut Publications,
        context: &mut Context,
    ) {
        let (release, Context { order, found }) = (&step.record, context);
        let (ap, object) = (release.ap, release.object);
        let section = self.take_section(ap, object);
        let lock = &mut self.objects[step.slot];
        if release.version == 0 && !lock.unversioned {
            lock.unversioned = true;
            found.doubt(Question::Unversioned, object.var);
        }
        if section.as_ref().is_some_and(|s| s.may_have_ended) {
            found.doubt(Question::Ended, object.var);
        }
        if !lock.unversioned {
            match &section {
                Some(section) => lock.check_release(release, section, last_read, found),
                None => lock.check_lone_release(release, found),
            }
        }
        publications.publish_writes(release, found.names(), order);
        lock.releases
            .add(release.version, release, release.accesses());
        if release.version <= lock.given_up {
            found.disordered(object.var);
        }
        if let Some(section) = section {
            if let Some(write) = section.wrote {
                publications.publish_section(step, write, order);
            }
            lock.remember(Released {
                acquire: section.acquire,
                release: *release,
                past: order.past(ap).clone(),
            });
        }
        order.next_phase(ap);
    }

    /// The section that `end` is of was granted from this version, by the records of its owner.
    pub(crate) fn granted_from(&mut self, slot: usize, end: &Record, version: u64) {
        let ends = &mut self.objects[slot].granted_from;
        ends.push((end.ap, end.start, version));
    }

    /// One that serves what has replicas ended the section of a grant. That is asked for again when who serves it seems lost, so that
    /// it may have been an earlier grant from the same version, which never arrived.
    pub(crate) fn a_grant_ended(&mut self, end: &Record) {
        let its = |s: &&mut Section| {
            let from = s.acquire;
            s.object == end.object && from.version <= end.version && from.peer == end.peer
        };
        for section in self.open[end.ap.index()].iter_mut().filter(its) {
            section.may_be_over = true;
            section.may_have_ended = true;
        }
    }

    /// The owner ended the section of a process without a release. `pending` takes back its grant, from the version that is known
    /// of it, if that does not count yet.
    pub(crate) fn ended_by_owner(
        &mut self,
        slot: usize,
        end: &Record,
        pending: impl FnOnce(Option<u64>) -> Option<Record>,
    ) {
        let ends = &mut self.objects[slot].granted_from;
        let known = ends
            .iter()
            .position(|(ap, at, _)| (*ap, *at) == (end.ap, end.start));
        let from = known.map(|at| ends.swap_remove(at).2);
        let section = self.section(end.ap, end.object);
        let another = |s: &Section| {
            let granted = from.is_some_and(|version| version != s.acquire.version);
            granted || s.acquire.version > end.version || s.acquire.peer != end.peer
        };
        if section.is_some_and(another) {
            return;
        }
        // Clocks do not tell which section of this version it was.
        let unwanted = &mut self.objects[slot].unwanted;
        if let Some(at) = unwanted.iter().position(|ap| *ap == end.ap) {
            unwanted.swap_remove(at);
            return self.may_be_over(end.ap, end.object);
        }
        let section = self.take_section(end.ap, end.object);
        let grant = section.map(|s| s.acquire).or_else(|| pending(from));
        let ended = &mut self.objects[slot].ended;
        ended.retain(|(grant, _)| grant.ap != end.ap);
        ended.extend(grant.map(|grant| (grant, *end)));
    }
}

impl Lock {
    /// What the last section before a grant knew.
    fn past_before(&self, grant: &Record) -> Option<&Past> {
        let before = self.released.iter();
        let before = before.filter(|s| s.release.version <= grant.version);
        before.max_by_key(|s| s.release.version).map(|s| &s.past)
    }

    fn remember(&mut self, section: Released) {
        let version = section.release.version;
        let at = self
            .released
            .partition_point(|s| s.release.version <= version);
        self.released.insert(at, section);
        if self.released.len() > SECTIONS {
            self.released.remove(0);
        }
    }

    /// A release without a section.
    fn check_lone_release(&self, release: &Record, found: &mut Found) {
        let (ap, object) = (release.ap, release.object);
        let ended = self.ended.iter().rev().find(|(grant, end)| {
            let of = grant.ap == ap && grant.end() <= end.start;
            of && end.version < release.version
        });
        match ended {
            Some((grant, end)) => {
                let records = [*grant, *end, *release];
                found.certain(Kind::OldSection, object, &records, |names| {
                    format!(
                        "the owner had ended the section of {}, and its release succeeded",
                        names.ap(ap)
                    )
                });
            }
            None => found.presumed(Kind::ReleasedWithoutSection, object, &[*release], |names| {
                format!(
                    "{} released {} and had not acquired it",
                    names.ap(ap),
                    names.object(object)
                )
            }),
        }
    }

    fn check_release(
        &self,
        release: &Record,
        section: &Section,
        last_read: Option<Record>,
        found: &mut Found,
    ) {
        let (ap, object) = (release.ap, release.object);
        let acquire = section.acquire;
        let (from, to) = (acquire.version, release.version);
        if to <= from {
            found.certain(Kind::VersionBack, object, &[acquire, *release], |names| {
                format!(
                    "the section of {} starts from version {from}, and its release made version {to}",
                    names.ap(ap)
                )
            });
        }
        if let Some(write) = section.wrote.filter(|_| section.highest > to) {
            found.certain(Kind::TornRelease, object, &[acquire, write, *release], |names| {
                format!(
                    "a write in the section of {} is of version {}, and the section's release made version {to}",
                    names.ap(ap), section.highest
                )
            });
        }
        if let Some(read) = last_read.filter(|r| r.version >= to && to > from) {
            found.certain(Kind::ReadAhead, object, &[read, *release], |names| {
                format!(
                    "{} read version {} before its release made version {to}",
                    names.ap(ap),
                    read.version
                )
            });
        }
        for other in &self.released {
            let (other_from, other_to) = (other.acquire.version, other.release.version);
            let records = [other.acquire, other.release, acquire, *release];
            if other_to == to {
                found.certain(Kind::VersionReused, object, &records, |names| {
                    format!(
                        "{} and {} both released version {to}",
                        names.ap(other.release.ap),
                        names.ap(ap)
                    )
                });
            }
            if from < other_to && other_from < to {
                found.certain(Kind::TwoHolders, object, &records, |names| {
                    format!(
                        "{} held {} from version {other_from} to {other_to}, and {} from version {from} to {to}",
                        names.ap(other.release.ap), names.object(object), names.ap(ap)
                    )
                });
            }
        }
    }
}
