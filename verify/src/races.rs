//! Data races, and what atomic operations order.

use dosmos_proto::ObjectId;
use dosmos_trace::Record;

use crate::clocks::Clock;
use crate::found::{Found, Question};
use crate::kind::Kind;
use crate::locks::Locks;
use crate::order::Order;
use crate::records::by_own_clock;
use crate::shadow::{Access, Race, Shadow, Touch};

#[derive(Debug, Default)]
struct Object {
    shadow: Shadow,
    /// An access in an application process may have been a race.
    unsure: bool,
    /// What atomic operations on it come after.
    atomics: Option<Clock>,
}

#[derive(Debug)]
pub(crate) struct Races {
    wanted: bool,
    objects: Vec<Object>,
}

impl Races {
    /// Looks for races only if `wanted`.
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            objects: Vec::new(),
        }
    }

    pub(crate) fn add_object(&mut self) {
        self.objects.push(Object::default());
    }

    pub(crate) fn read(
        &mut self,
        slot: usize,
        read: &Record,
        in_section: bool,
        order: &mut Order,
        found: &mut Found,
    ) {
        if let Some(atomics) = &self.objects[slot].atomics {
            order.follow(read.ap, atomics);
        }
        self.touch(slot, read, in_section, order, found);
    }

    pub(crate) fn write(
        &mut self,
        slot: usize,
        write: &Record,
        in_section: bool,
        order: &mut Order,
        found: &mut Found,
    ) {
        self.touch(slot, write, in_section, order, found);
        if write.flags.atomic {
            let atomics = &mut self.objects[slot].atomics;
            if let Some(before) = atomics {
                order.follow(write.ap, before);
            }
            *atomics = Some(order.past(write.ap).loose.clone());
            order.next_phase(write.ap);
        }
    }

    /// Looks for a data race with an access before.
    fn touch(
        &mut self,
        slot: usize,
        record: &Record,
        in_section: bool,
        order: &Order,
        found: &mut Found,
    ) {
        if !self.wanted {
            return;
        }
        let of = record.object.var;
        let layout = found.names().variable(of).map(|v| v.spec().layout());
        let elements = layout.and_then(|l| l.elements_of(record.object.index));
        let width = layout.map_or(0, |l| u64::from(l.element().bytes()));
        let access = access(record, in_section, (elements, width), order);
        let past = order.past(record.ap);
        let object = &mut self.objects[slot];
        let before = object.shadow.crowded;
        let race = object.shadow.take(access, &past.clock, &past.loose);
        if object.shadow.crowded && !before {
            found.doubt(Question::Crowded, of);
        }
        let Some(race) = race else {
            return;
        };
        if found.names().is_ordered_by_words(of) {
            return found.doubt(Question::Words, of);
        }
        if found.is_disordered() {
            return found.doubt(Question::Order, of);
        }
        if by_own_clock(record) || by_own_clock(&race.earlier.record) {
            object.unsure = true;
            return;
        }
        if !race.exact {
            return found.doubt(Question::Elements, of);
        }
        say(&race, &access, found);
    }

    /// What may have been a race, of the objects `ids`.
    pub(crate) fn close(&self, ids: &[ObjectId], locks: &Locks, found: &mut Found) {
        for (slot, id) in ids.iter().enumerate() {
            let sections_only = || found.names().is_inside_in_sections_only(id.var);
            let ordered = locks.releases(slot) > 0 && sections_only();
            if self.objects[slot].unsure && !ordered {
                found.doubt(Question::Elements, id.var);
            }
        }
    }
}

/// What `record` does with an object of so many elements, each of so many bytes.
fn access(
    record: &Record,
    in_section: bool,
    (elements, width): (Option<u32>, u64),
    order: &Order,
) -> Access {
    let said = record.range.0 < record.range.1;
    let all = (0, elements.unwrap_or(u32::MAX));
    let range = if said { record.range } else { all };
    let whole = u64::from(range.1 - range.0) * width;
    let known = said || elements == Some(1);
    let exact = known
        && !by_own_clock(record)
        && (record.flags.atomic
            || whole == 0
            || record.bytes == whole
            || record.bytes == whole.saturating_mul(record.accesses()));
    Access {
        touch: Touch::of(record, in_section),
        range,
        exact,
        phase: order.phase(record.ap),
        record: *record,
    }
}

fn say(race: &Race, later: &Access, found: &mut Found) {
    let records = [race.earlier.record, later.record];
    found.certain(Kind::DataRace, later.record.object, &records, |names| {
        let [earlier, later_one] = records.map(|r| format!("the {} of {}", r.op, names.ap(r.ap)));
        let (first, end) = (
            race.earlier.range.0.max(later.range.0),
            race.earlier.range.1.min(later.range.1),
        );
        format!(
            "{earlier} and {later_one} touch elements {first} to {end}, and no acquire, release or barrier orders them"
        )
    });
}
