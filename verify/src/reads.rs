//! Reads: what each had to see, and what its process and its copy showed before.

use dosmos_trace::Record;

use crate::found::Question;
use crate::kind::Kind;
use crate::object::{Publication, Required};
use crate::process::Open;
use crate::process::by_own_clock;
use crate::races::{Access, Touch};
use crate::verifier::Verifier;

impl Verifier {
    pub(crate) fn read(&mut self, slot: usize, read: &Record) {
        self.looked.reads += 1;
        let o = &mut self.objects[slot];
        if o.highest.is_none_or(|h| h.version < read.version) {
            o.highest = Some(*read);
        }
        let process = &mut self.processes[read.ap.index()];
        let section = process.section(read.object).map(|s| s.acquire);
        let copied = read.flags.optimized && !read.flags.in_process;
        let last_of_copy = if copied { o.read_copy(read) } else { None };
        if !o.unversioned {
            match section {
                Some(acquire) => {
                    if read.version < acquire.version && !read.flags.in_process {
                        let names = &self.names;
                        self.found.certain(
                            names,
                            Kind::StaleSection,
                            read.object,
                            &[acquire, *read],
                            || {
                                format!(
                                    "the section of {} starts from version {}, and a read in it shows version {}",
                                    names.ap(read.ap), acquire.version, read.version
                                )
                            },
                        );
                    }
                }
                None => self.compare(slot, read, last_of_copy),
            }
        }
        if let Some(atomics) = self.objects[slot].atomics.clone() {
            self.processes[read.ap.index()].loose.join(&atomics);
        }
        self.touch(slot, read, section.is_some());
    }

    fn compare(&mut self, slot: usize, read: &Record, last_of_copy: Option<Record>) {
        let o = &self.objects[slot];
        let process = &self.processes[read.ap.index()];
        let names = &self.names;
        let old = |p: &Publication| read.version < p.version;
        // The version of what is delegated goes up when it is given back.
        let own = |p: &Publication| p.ap == read.ap && by_own_clock(read) && by_own_clock(&p.write);
        match o.required(&process.clock, read) {
            Required::At(p) | Required::Between(p, _) if old(p) && !own(p) => {
                if by_own_clock(read) || by_own_clock(&p.write) {
                    return self.found.doubt(Question::OwnClock, read.object.var);
                }
                let kind = match () {
                    () if p.ap == read.ap => Kind::OwnWriteMissed,
                    () if read.flags.optimized => Kind::StaleCopy,
                    () => Kind::LostWrite,
                };
                let mut records = vec![p.write];
                records.extend((p.by != p.write).then_some(p.by));
                records.extend(process.learned.filter(|l| *l != p.by));
                records.push(*read);
                let why = || {
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
                };
                self.found.certain(names, kind, read.object, &records, why);
                return;
            }
            Required::Between(_, newest) if read.version < newest => {
                self.found.doubt(Question::Forgotten, read.object.var);
            }
            _ => {}
        }
        if by_own_clock(read) {
            return;
        }
        let seen = o.seen.iter().find(|s| s.ap == read.ap);
        if let Some(wrote) = seen.and_then(|s| s.wrote)
            && read.version < wrote.version
        {
            let records = [wrote, *read];
            self.found
                .certain(names, Kind::OwnWriteMissed, read.object, &records, || {
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
        let back = |before: &Record| {
            (read.version < before.version)
                .then(|| o.changed_between(read.version, before.version))
                .flatten()
        };
        if let Some(before) = before
            && let Some(p) = back(&before)
        {
            let records = [p.write, p.by, before, *read];
            self.found
                .certain(names, Kind::ReadBack, read.object, &records, || {
                    format!(
                        "{} read version {} and then version {}, and version {} changed the content",
                        names.ap(read.ap), before.version, read.version, p.version
                    )
                });
        } else if let Some(before) = last_of_copy
            && let Some(p) = back(&before)
        {
            let records = [p.write, p.by, before, *read];
            self.found
                .certain(names, Kind::FracturedCopy, read.object, &records, || {
                    format!(
                        "the copy at {} showed version {} and then, to another reader, version {}; version {} changed the content",
                        names.mp(read.mp), before.version, read.version, p.version
                    )
                });
        }
    }

    /// A read is over before what its process does next.
    pub(crate) fn has_read(&mut self, open: &Open) {
        let read = open.record;
        if by_own_clock(&read) {
            return;
        }
        let seen = self.objects[open.slot].seen(read.ap);
        if seen.read.is_none_or(|r| r.version <= read.version) {
            seen.read = Some(read);
        }
    }

    /// Looks for a data race with an access before.
    pub(crate) fn touch(&mut self, slot: usize, record: &Record, in_section: bool) {
        if !self.options.races || self.processes.len() < 2 {
            return;
        }
        let layout = self.names.variable(record.object.var);
        let layout = layout.map(|v| v.spec().layout());
        let elements = layout.and_then(|l| l.elements_of(record.object.index));
        let width = layout.map_or(0, |l| u64::from(l.element().bytes()));
        let all = (0, elements.unwrap_or(u32::MAX));
        let range = if record.range.0 < record.range.1 {
            record.range
        } else {
            all
        };
        let whole = u64::from(range.1 - range.0) * width;
        let accesses = record.accesses();
        let known = record.range.0 < record.range.1 || elements == Some(1);
        let exact = known
            && !by_own_clock(record)
            && (record.flags.atomic
                || whole == 0
                || record.bytes == whole
                || record.bytes == whole.saturating_mul(accesses));
        let process = &self.processes[record.ap.index()];
        let access = Access {
            touch: Touch::of(record, in_section),
            range,
            exact,
            phase: process.phase(),
            record: *record,
        };
        let shadow = &mut self.objects[slot].shadow;
        let before = shadow.crowded;
        let race = shadow.take(access, &process.clock, &process.loose);
        if shadow.crowded && !before {
            self.found.doubt(Question::Crowded, record.object.var);
        }
        let Some(race) = race else {
            return;
        };
        let of = record.object.var;
        if self.names.is_ordered_by_words(of) {
            return self.found.doubt(Question::Words, of);
        }
        if self.disordered {
            return self.found.doubt(Question::Order, of);
        }
        if by_own_clock(record) || by_own_clock(&race.earlier.record) {
            self.objects[slot].unsure = true;
            return;
        }
        if !race.exact {
            return self.found.doubt(Question::Elements, of);
        }
        let names = &self.names;
        let earlier = race.earlier.record;
        let records = [earlier, *record];
        let said = |r: &Record| format!("the {} of {}", r.op, names.ap(r.ap));
        self.found
            .certain(names, Kind::DataRace, record.object, &records, || {
                let (first, end) = (
                    race.earlier.range.0.max(range.0),
                    race.earlier.range.1.min(range.1),
                );
                format!(
                    "{} and {} touch elements {first} to {end}, and no acquire, release or barrier orders them",
                    said(&earlier), said(record)
                )
            });
    }
}
