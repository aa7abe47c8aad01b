//! Exclusive sections: grants, releases, and the order that they make.

use dosmos_proto::ApId;
use dosmos_trace::Record;

use crate::found::Question;
use crate::kind::Kind;
use crate::object::{Publication, Released, Required};
use crate::process::{Open, Section, by_own_clock};
use crate::verifier::Verifier;

impl Verifier {
    /// A grant counts for its process.
    pub(crate) fn granted(&mut self, open: &Open) {
        let grant = open.record;
        let (ap, object) = (grant.ap, grant.object);
        let names = &self.names;
        let o = &mut self.objects[open.slot];
        let process = &mut self.processes[ap.index()];
        if let Some(section) = process.section(object) {
            let before = section.acquire;
            self.found
                .presumed(names, Kind::AcquiredTwice, object, &[before, grant], || {
                    format!(
                        "{} was granted {} again, and had not released it",
                        names.ap(ap),
                        names.object(object)
                    )
                });
            process.take_section(object);
        }
        if o.unversioned {
            return;
        }
        match o.required(&process.clock, &grant) {
            Required::At(p) | Required::Between(p, _)
                if grant.version < p.version && by_own_clock(&p.write) =>
            {
                self.found.doubt(Question::OwnClock, object.var);
            }
            Required::At(p) | Required::Between(p, _) if grant.version < p.version => {
                let mut records = vec![p.write];
                records.extend((p.by != p.write).then_some(p.by));
                records.extend(process.learned.filter(|l| *l != p.by));
                records.push(grant);
                self.found
                    .certain(names, Kind::StaleGrant, object, &records, || {
                        format!(
                            "{} published version {} or later, and {}, which synchronised after that, was granted version {}",
                            names.ap(p.ap), p.version, names.ap(ap), grant.version
                        )
                    });
            }
            Required::Between(_, newest) if grant.version < newest => {
                self.found.doubt(Question::Forgotten, object.var);
            }
            _ => {}
        }
        let before = o.sections.iter().rev();
        if let Some(before) = before
            .filter(|s| s.release.version <= grant.version)
            .max_by_key(|s| s.release.version)
        {
            process.clock.join(&before.clock);
            process.loose.join(&before.loose);
        }
        process.learned = Some(grant);
        process.enter(grant);
    }

    /// A release that succeeded: everything that its process did before is published.
    pub(crate) fn release(&mut self, slot: usize, release: &Record) {
        let (ap, object) = (release.ap, release.object);
        self.looked.sections += release.accesses();
        let section = self.processes[ap.index()].take_section(object);
        if release.version == 0 && !self.objects[slot].unversioned {
            self.objects[slot].unversioned = true;
            self.found.doubt(Question::Unversioned, object.var);
        }
        if !self.objects[slot].unversioned {
            self.check_release(slot, release, section.as_ref());
        }
        self.publish_writes(ap, release);
        let o = &mut self.objects[slot];
        o.releases += release.accesses();
        if release.version <= o.given_up {
            self.disordered = true;
            self.found.doubt(Question::Order, object.var);
        }
        let process = &self.processes[ap.index()];
        if let Some(section) = section {
            if let Some(write) = section.wrote {
                let publication = Publication {
                    ap,
                    phase: process.phase(),
                    version: release.version,
                    released: true,
                    write,
                    by: *release,
                    gap: false,
                };
                o.publish(publication, &self.floor);
            }
            o.remember(Released {
                acquire: section.acquire,
                release: *release,
                clock: process.clock.clone(),
                loose: process.loose.clone(),
            });
        }
        self.next_phase(ap);
    }

    fn check_release(&mut self, slot: usize, release: &Record, section: Option<&Section>) {
        let (ap, object) = (release.ap, release.object);
        let names = &self.names;
        let o = &self.objects[slot];
        let who = || names.ap(ap);
        let Some(section) = section else {
            match o.ended.iter().rev().find(|(grant, end)| {
                let of = grant.ap == ap && grant.end() <= end.start;
                of && end.version < release.version
            }) {
                Some((grant, end)) => {
                    let records = [*grant, *end, *release];
                    self.found
                        .certain(names, Kind::OldSection, object, &records, || {
                            format!(
                                "the owner had ended the section of {}, and its release succeeded",
                                who()
                            )
                        });
                }
                None => self.found.presumed(
                    names,
                    Kind::ReleasedWithoutSection,
                    object,
                    &[*release],
                    || {
                        format!(
                            "{} released {} and had not acquired it",
                            who(),
                            names.object(object)
                        )
                    },
                ),
            }
            return;
        };
        let acquire = section.acquire;
        let (from, to) = (acquire.version, release.version);
        if to <= from {
            self.found
                .certain(names, Kind::VersionBack, object, &[acquire, *release], || {
                    format!("the section of {} starts from version {from}, and its release made version {to}", who())
                });
        }
        if let Some(write) = section.wrote.filter(|_| section.highest > to) {
            self.found
                .certain(names, Kind::TornRelease, object, &[acquire, write, *release], || {
                    format!(
                        "a write in the section of {} is of version {}, and the section's release made version {to}",
                        who(), section.highest
                    )
                });
        }
        let seen = o.seen.iter().find(|s| s.ap == ap);
        if let Some(read) = seen
            .and_then(|s| s.read)
            .filter(|r| r.version >= to && to > from)
        {
            self.found
                .certain(names, Kind::ReadAhead, object, &[read, *release], || {
                    format!(
                        "{} read version {} before its release made version {to}",
                        who(),
                        read.version
                    )
                });
        }
        for other in &o.sections {
            let (other_from, other_to) = (other.acquire.version, other.release.version);
            let records = [other.acquire, other.release, acquire, *release];
            if other_to == to {
                self.found
                    .certain(names, Kind::VersionReused, object, &records, || {
                        format!(
                            "{} and {} both released version {to}",
                            names.ap(other.release.ap),
                            who()
                        )
                    });
            }
            if from < other_to && other_from < to {
                self.found
                    .certain(names, Kind::TwoHolders, object, &records, || {
                        format!(
                            "{} held {} from version {other_from} to {other_to}, and {} from version {from} to {to}",
                            names.ap(other.release.ap), names.object(object), who()
                        )
                    });
            }
        }
    }

    /// The owner ended the section of a process without a release.
    pub(crate) fn ended_by_owner(&mut self, slot: usize, end: &Record) {
        let process = &mut self.processes[end.ap.index()];
        let of = |grant: &Record| grant.version <= end.version;
        if process.section(end.object).is_some_and(|s| !of(&s.acquire)) {
            return;
        }
        let open = process.open.iter().position(|o| {
            o.slot == slot
                && o.record.op == dosmos_trace::Op::Acquire
                && o.record.start <= end.start
        });
        let grant = match process.take_section(end.object) {
            Some(section) => Some(section.acquire),
            None => open.map(|at| process.open.remove(at).record),
        };
        let ended = &mut self.objects[slot].ended;
        ended.retain(|(grant, _)| grant.ap != end.ap);
        ended.extend(grant.map(|grant| (grant, *end)));
    }

    /// What a process wrote outside sections is published with `by`.
    pub(crate) fn publish_writes(&mut self, ap: ApId, by: &Record) {
        let process = &mut self.processes[ap.index()];
        if process.unpublished.is_empty() {
            return;
        }
        let phase = process.phase();
        let writes = std::mem::take(&mut process.unpublished);
        for write in writes.into_values() {
            let publication = Publication {
                ap,
                phase,
                // That of the publication is at least one higher than that of the write.
                version: write.record.version + 1,
                released: false,
                write: write.record,
                by: *by,
                gap: false,
            };
            self.objects[write.slot].publish(publication, &self.floor);
        }
    }
}
