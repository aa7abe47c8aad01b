//! Reads outside sections: what each had to see, and what its process and its copy showed before.

use dosmos_proto::{ApId, MpId, ObjectId};
use dosmos_trace::Record;

use crate::context::Context;
use crate::found::{Found, Question};
use crate::kind::Kind;
use crate::locks::Locks;
use crate::publications::{Publication, Publications, Required};
use crate::records::by_own_clock;
use crate::steps::Step;

/// What a process saw last.
#[derive(Debug)]
struct Seen {
    ap: ApId,
    read: Option<Record>,
    /// Its last write outside sections.
    wrote: Option<Record>,
}

#[derive(Debug, Default)]
struct Object {
    seen: Vec<Seen>,
    /// The last read of the copy at each memory process.
    copies: Vec<(MpId, Record)>,
    /// The read of the highest version.
    highest: Option<Record>,
}

impl Object {
    fn seen(&mut self, ap: ApId) -> &mut Seen {
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

    /// A read of the copy at `mp`: the one before, if it was over by then.
    fn read_copy(&mut self, read: &Record) -> Option<Record> {
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

#[derive(Debug, Default)]
pub(crate) struct Reads {
    objects: Vec<Object>,
}

impl Reads {
    pub(crate) fn add_object(&mut self) {
        self.objects.push(Object::default());
    }

    /// A read begins; the last one of the same copy, if it was over by then.
    pub(crate) fn read(&mut self, slot: usize, read: &Record) -> Option<Record> {
        let o = &mut self.objects[slot];
        if o.highest.is_none_or(|h| h.version < read.version) {
            o.highest = Some(*read);
        }
        let copied = read.flags.optimized && !read.flags.in_process;
        if copied { o.read_copy(read) } else { None }
    }

    /// Whether a read outside sections shows what it had to; `last_of_copy` is the one before of the same copy.
    pub(crate) fn check(
        &self,
        step: &Step,
        last_of_copy: Option<Record>,
        publications: &Publications,
        context: &mut Context,
    ) {
        let (slot, read) = (step.slot, &step.record);
        let Context { order, found } = context;
        let old = |p: &Publication| read.version < p.version;
        // The version of what is delegated goes up when it is given back.
        let own = |p: &Publication| p.ap == read.ap && by_own_clock(read) && by_own_clock(&p.write);
        match publications.required(slot, &order.past(read.ap).clock, read) {
            Required::At(p) | Required::Between(p, _) if old(p) && !own(p) => {
                return missed(p, read, context);
            }
            Required::Between(_, newest) if read.version < newest => {
                found.doubt(Question::Forgotten, read.object.var);
            }
            _ => {}
        }
        if by_own_clock(read) {
            return;
        }
        let seen = self.objects[slot].seen.iter().find(|s| s.ap == read.ap);
        if let Some(wrote) = seen.and_then(|s| s.wrote)
            && read.version < wrote.version
        {
            let records = [wrote, *read];
            found.certain(Kind::OwnWriteMissed, read.object, &records, |names| {
                format!(
                    "{} wrote to version {} and then read version {}",
                    names.ap(read.ap),
                    wrote.version,
                    read.version
                )
            });
            return;
        }
        let before = seen.and_then(|s| s.read);
        let back = |before: &Record| publications.changed(slot, read.version, before.version);
        if let Some(before) = before
            && let Some(p) = back(&before)
        {
            let records = [p.write, p.by, before, *read];
            found.certain(Kind::ReadBack, read.object, &records, |names| {
                format!(
                    "{} read version {} and then version {}, and version {} changed the content",
                    names.ap(read.ap),
                    before.version,
                    read.version,
                    p.version
                )
            });
        } else if let Some(before) = last_of_copy
            && let Some(p) = back(&before)
        {
            let records = [p.write, p.by, before, *read];
            found.certain(Kind::FracturedCopy, read.object, &records, |names| {
                format!(
                    "the copy at {} showed version {} and then, to another reader, version {}; version {} changed the content",
                    names.mp(read.mp), before.version, read.version, p.version
                )
            });
        }
    }

    /// A read is over before what its process does next.
    pub(crate) fn has_read(&mut self, slot: usize, read: &Record) {
        if by_own_clock(read) {
            return;
        }
        let seen = self.objects[slot].seen(read.ap);
        if seen.read.is_none_or(|r| r.version <= read.version) {
            seen.read = Some(*read);
        }
    }

    /// A write outside sections is over before what its process does next.
    pub(crate) fn has_written(&mut self, slot: usize, write: &Record) {
        if by_own_clock(write) {
            return;
        }
        let seen = self.objects[slot].seen(write.ap);
        if seen.wrote.is_none_or(|w| w.version <= write.version) {
            seen.wrote = Some(*write);
        }
    }

    /// The read of the highest version by a process so far.
    pub(crate) fn last_read(&self, slot: usize, ap: ApId) -> Option<Record> {
        let seen = self.objects[slot].seen.iter().find(|s| s.ap == ap);
        seen.and_then(|s| s.read)
    }

    /// A process of the same name as one before begins, which saw nothing yet.
    pub(crate) fn started_again(&mut self, ap: ApId) {
        for object in &mut self.objects {
            object.seen.retain(|s| s.ap != ap);
        }
    }

    /// Versions of the objects `ids` that were read and that nobody can have made.
    pub(crate) fn close(
        &self,
        ids: &[ObjectId],
        locks: &Locks,
        publications: &Publications,
        found: &mut Found,
    ) {
        for (slot, id) in ids.iter().enumerate() {
            let (releases, writes) = (locks.releases(slot), publications.writes(slot));
            let possible = releases + writes;
            let highest = self.objects[slot].highest;
            let Some(read) = highest.filter(|r| r.version > possible) else {
                continue;
            };
            if locks.is_unversioned(slot) {
                continue;
            }
            let last = locks.last_release(slot);
            let records: Vec<Record> = last.into_iter().chain([read]).collect();
            found.presumed(Kind::UnmadeVersion, *id, &records, |_| {
                format!(
                    "version {} was read; {releases} releases and {writes} writes outside sections made at most version {possible}",
                    read.version
                )
            });
        }
    }
}

/// A read shows an older version than that of a publication before it.
fn missed(p: &Publication, read: &Record, context: &mut Context) {
    let Context { order, found } = context;
    if by_own_clock(read) || by_own_clock(&p.write) {
        return found.doubt(Question::OwnClock, read.object.var);
    }
    let kind = match () {
        () if p.ap == read.ap => Kind::OwnWriteMissed,
        () if read.flags.optimized => Kind::StaleCopy,
        () => Kind::LostWrite,
    };
    let records = p.missed_by(read, order);
    found.certain(kind, read.object, &records, |names| {
        let by = match p.released {
            true => "the release of its section",
            false => "the release or barrier after it",
        };
        format!(
            "what {} wrote is published by {by} as version {} or later; {}, which synchronised after that, read version {}",
            names.ap(p.ap),
            p.version,
            names.ap(read.ap),
            read.version
        )
    });
}
