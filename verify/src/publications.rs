//! What was written and whom it must reach: which versions of each object were published when, and what each process wrote
//! and did not publish.

use std::mem;

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::{Op, Record};
use rustc_hash::FxHashMap;

use crate::clocks::{Clock, Start};
use crate::found::{Found, Question};
use crate::made::Made;
use crate::names::Names;
use crate::order::Order;
use crate::records::is_void;
use crate::steps::Step;

/// Publications that are kept of one object before some between are forgotten.
const PUBLICATIONS: usize = 64;

/// The content changed for everybody: whoever comes after this phase of this start of `ap` sees version `version`, or a newer one.
#[derive(Clone, Debug)]
pub(crate) struct Publication {
    pub(crate) ap: ApId,
    phase: (Start, u32),
    pub(crate) version: u64,
    /// Of a section, whose version is known exactly; otherwise the version is the lowest possible.
    pub(crate) released: bool,
    pub(crate) write: Record,
    /// The release or barrier that published it.
    pub(crate) by: Record,
    /// Others between this one and the next newer one were forgotten.
    gap: bool,
}

impl Publication {
    fn is_known_by(&self, clock: &Clock) -> bool {
        let (start, phase) = self.phase;
        clock.knows(start, phase)
    }

    /// The records that show that `step`, which comes after it, had to see it.
    pub(crate) fn missed_by(&self, step: &Record, order: &Order) -> Vec<Record> {
        let mut records = vec![self.write];
        records.extend((self.by != self.write).then_some(self.by));
        records.extend(order.learned(step.ap).filter(|l| *l != self.by));
        records.push(*step);
        records
    }
}

/// What a reader must see.
pub(crate) enum Required<'a> {
    Nothing,
    /// At least this.
    At(&'a Publication),
    /// At least the first; perhaps one up to the version of the other.
    Between(&'a Publication, u64),
}

#[derive(Debug, Default)]
struct Object {
    /// By rising versions.
    publications: Vec<Publication>,
    /// Versions that writes outside sections can have made.
    writes: u64,
    /// Those that their publications made.
    published: Made,
}

#[derive(Debug)]
struct Process {
    /// Written outside sections and not published: the last write of each object.
    unpublished: FxHashMap<ObjectId, Step>,
    /// A release or barrier failed then: what began to be written before may not be published by a later one.
    in_doubt_until: Nanos,
}

#[derive(Debug)]
pub(crate) struct Publications {
    objects: Vec<Object>,
    processes: Vec<Process>,
}

impl Publications {
    pub(crate) fn new(processes: usize) -> Self {
        let process = |_| Process {
            unpublished: FxHashMap::default(),
            in_doubt_until: Nanos::ZERO,
        };
        Self {
            objects: Vec::new(),
            processes: (0..processes).map(process).collect(),
        }
    }

    pub(crate) fn add_object(&mut self) {
        self.objects.push(Object::default());
    }

    /// Versions that writes outside sections can have made.
    pub(crate) fn writes(&self, slot: usize) -> u64 {
        self.objects[slot].writes
    }

    /// Versions that publications of writes outside sections made, in all.
    pub(crate) fn all_published(&self, slot: usize) -> u64 {
        self.objects[slot].published.all()
    }

    /// The same up to that of a grant.
    pub(crate) fn published(&self, slot: usize, grant: &Record) -> u64 {
        self.objects[slot].published.before(grant)
    }

    /// A write outside sections begins.
    pub(crate) fn write(&mut self, slot: usize, write: &Record) {
        if !is_void(write) {
            self.objects[slot].writes += write.accesses();
        }
    }

    /// A write that no section publishes is over before what its process does next.
    pub(crate) fn has_written(&mut self, step: &Step, found: &mut Found) {
        let write = &step.record;
        let process = &mut self.processes[write.ap.index()];
        if write.start < process.in_doubt_until {
            return found.doubt(Question::Unpublished, write.object.var);
        }
        let last = process.unpublished.entry(write.object).or_insert(*step);
        if last.record.version <= write.version {
            *last = *step;
        }
    }

    /// An operation that failed changed nothing, but what it should have published may not be.
    pub(crate) fn failed(&mut self, Step { slot, record }: &Step, found: &mut Found) {
        match record.op {
            Op::Release | Op::Barrier => {
                if record.op == Op::Release {
                    // As with writes below.
                    self.objects[*slot].writes += record.accesses();
                }
                let process = &mut self.processes[record.ap.index()];
                process.in_doubt_until = process.in_doubt_until.max(record.end());
                for object in mem::take(&mut process.unpublished).into_keys() {
                    found.doubt(Question::Unpublished, object.var);
                }
            }
            // It may have been applied although nobody was told.
            Op::Write => self.objects[*slot].writes += record.accesses(),
            Op::Read | Op::Acquire => {}
        }
    }

    /// A process of the same name as one before begins. What that one wrote and did not publish is nothing that this one
    /// publishes.
    pub(crate) fn started_again(&mut self, ap: ApId) {
        self.processes[ap.index()].unpublished.clear();
    }

    /// What a process wrote outside sections is published with `by`.
    pub(crate) fn publish_writes(&mut self, by: &Record, names: &Names, order: &Order) {
        let process = &mut self.processes[by.ap.index()];
        if process.unpublished.is_empty() {
            return;
        }
        for Step { slot, record } in mem::take(&mut process.unpublished).into_values() {
            let version = match names.has_replicas(record.object.var) {
                // It was released when it was answered, as its own version.
                true => record.version,
                // The version of the publication is at least one higher than that of the write.
                false => record.version + 1,
            };
            self.objects[slot].published.add(version, by, 1);
            self.publish(slot, (record, version, false), by, order);
        }
    }

    /// What a section wrote is published with its release.
    pub(crate) fn publish_section(&mut self, release: &Step, write: Record, order: &Order) {
        let (slot, by) = (release.slot, &release.record);
        self.publish(slot, (write, by.version, true), by, order);
    }

    fn publish(&mut self, slot: usize, what: (Record, u64, bool), by: &Record, order: &Order) {
        let (write, version, released) = what;
        let publication = Publication {
            ap: by.ap,
            phase: order.phase(by.ap),
            version,
            released,
            write,
            by: *by,
            gap: false,
        };
        let list = &mut self.objects[slot].publications;
        let at = list.partition_point(|p| p.version <= version);
        list.insert(at, publication);
        // Those that a newer one hides from everybody are dropped.
        let hides = |p: &Publication| p.is_known_by(order.floor());
        if let Some(newest) = list.iter().rposition(hides) {
            list.drain(..newest);
        }
        if list.len() > PUBLICATIONS {
            thin(list);
        }
    }

    /// What `step` must see, which comes after `clock`. What its own process is still publishing it need not see.
    pub(crate) fn required(&self, slot: usize, clock: &Clock, step: &Record) -> Required<'_> {
        let mut newer: Option<u64> = None;
        let over = |p: &&Publication| p.ap != step.ap || p.by.end() <= step.start;
        let list = self.objects[slot].publications.iter().rev();
        for p in list.filter(over) {
            if p.is_known_by(clock) {
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
    pub(crate) fn changed(&self, slot: usize, older: u64, newer: u64) -> Option<&Publication> {
        let list = self.objects[slot].publications.iter().rev();
        let mut list = list.take_while(|p| older < p.version);
        list.find(|p| p.released && p.version <= newer)
    }
}

/// Forgets every second publication of the older half.
fn thin(list: &mut Vec<Publication>) {
    let newer = list.split_off(list.len() / 2);
    let older = list.iter().step_by(2).map(|p| Publication {
        gap: true,
        ..p.clone()
    });
    *list = older.chain(newer).collect();
}
