//! Writes, and operations that failed.

use dosmos_proto::Nanos;
use dosmos_trace::{Op, Record};

use crate::found::Question;
use crate::kind::Kind;
use crate::process::{Open, by_own_clock};
use crate::verifier::Verifier;

/// Whether a write changed nothing: an atomic operation that stored nothing.
fn is_void(write: &Record) -> bool {
    write.flags.atomic && write.bytes == 0
}

impl Verifier {
    pub(crate) fn write(&mut self, slot: usize, write: &Record) {
        let (ap, object) = (write.ap, write.object);
        let process = &mut self.processes[ap.index()];
        let section = process.section(object).filter(|_| !by_own_clock(write));
        let in_section = match section {
            Some(section) => {
                if write.version < section.acquire.version && !self.objects[slot].unversioned {
                    let acquire = section.acquire;
                    let names = &self.names;
                    let records = [acquire, *write];
                    self.found
                        .certain(names, Kind::StaleSection, object, &records, || {
                            format!(
                                "the section of {} starts from version {}, and a write in it is of version {}",
                                names.ap(ap), acquire.version, write.version
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
            None => false,
        };
        let o = &mut self.objects[slot];
        if !in_section && !is_void(write) {
            o.writes += write.accesses();
        }
        self.touch(slot, write, in_section);
        if write.flags.atomic {
            let process = &mut self.processes[ap.index()];
            let o = &mut self.objects[slot];
            if let Some(before) = &o.atomics {
                process.loose.join(before);
            }
            o.atomics = Some(process.loose.clone());
            self.next_phase(ap);
        }
    }

    /// A write is over before what its process does next.
    pub(crate) fn has_written(&mut self, open: Open) {
        let write = open.record;
        // What is in a section is published by its release.
        let in_section = !by_own_clock(&write)
            && self.processes[write.ap.index()]
                .section(write.object)
                .is_some_and(|s| s.acquire.end() <= write.start);
        let with_release = write.flags.in_process && !by_own_clock(&write);
        // Nor is what was asked for before the owner, by its clock, ended its section.
        let until = |end: &Record| {
            let error = self.clock_error(write.mp, end.peer);
            error.map_or(Nanos::MAX, |error| end.start + error)
        };
        let undone = !by_own_clock(&write)
            && self.objects[open.slot].ended.iter().any(|(grant, end)| {
                grant.ap == write.ap && grant.end() <= write.start && write.start <= until(end)
            });
        if in_section || undone || with_release || is_void(&write) {
            return;
        }
        let process = &mut self.processes[write.ap.index()];
        if write.start < process.in_doubt_until {
            self.found.doubt(Question::Unpublished, write.object.var);
        } else {
            let last = process.unpublished.entry(write.object).or_insert(open);
            if last.record.version <= write.version {
                *last = open;
            }
        }
        if by_own_clock(&write) {
            return;
        }
        let seen = self.objects[open.slot].seen(write.ap);
        if seen.wrote.is_none_or(|w| w.version <= write.version) {
            seen.wrote = Some(write);
        }
    }

    /// An operation that failed changed nothing, but what it should have published may not be.
    pub(crate) fn failed(&mut self, slot: usize, record: &Record) {
        let process = &mut self.processes[record.ap.index()];
        process.failed = true;
        match record.op {
            Op::Release | Op::Barrier => {
                process.in_doubt_until = process.in_doubt_until.max(record.end());
                let writes = std::mem::take(&mut process.unpublished);
                for object in writes.into_keys() {
                    self.found.doubt(Question::Unpublished, object.var);
                }
                if record.op == Op::Barrier {
                    self.barrier_failed(record);
                }
            }
            // It may have been applied although nobody was told.
            Op::Write => self.objects[slot].writes += record.accesses(),
            Op::Read | Op::Acquire => {}
        }
    }
}
