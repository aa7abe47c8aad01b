//! Data races, and what atomic operations order.

use dosmos_proto::ObjectId;
use dosmos_trace::Op;

use crate::clocks::Clock;
use crate::context::Context;
use crate::found::{Found, Question};
use crate::records::by_own_clock;
use crate::shadow::{Access, Race, Shadow, Wanted};
use crate::steps::Step;

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
    wanted: Wanted,
    objects: Vec<Object>,
}

impl Races {
    /// Looks for these races.
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            objects: Vec::new(),
        }
    }

    pub(crate) fn add_object(&mut self) {
        self.objects.push(Object::default());
    }

    /// An access begins: a read comes after the atomic operations on its object, and one of these after those before.
    pub(crate) fn access(&mut self, step: &Step, in_section: bool, context: &mut Context) {
        let (ap, is_read) = (step.record.ap, step.record.op == Op::Read);
        if is_read && let Some(atomics) = &self.objects[step.slot].atomics {
            context.order.follow(ap, atomics);
        }
        self.touch(step, in_section, context);
        if !is_read && step.record.flags.atomic {
            let (atomics, order) = (&mut self.objects[step.slot].atomics, &mut context.order);
            if let Some(before) = atomics {
                order.follow(ap, before);
            }
            *atomics = Some(order.past(ap).loose.clone());
            order.next_phase(ap);
        }
    }

    /// Looks for a data race with an access before.
    fn touch(&mut self, step: &Step, in_section: bool, context: &mut Context) {
        // What is fetched ahead of accesses is not seen by the program.
        if self.wanted == Wanted::Nothing || step.record.flags.ahead {
            return;
        }
        let (record, of) = (&step.record, step.record.object.var);
        let Context { order, found } = context;
        let layout = found.names().variable(of).map(|v| v.spec().layout());
        let elements = layout.and_then(|l| l.elements_of(record.object.index));
        let width = layout.map_or(0, |l| u64::from(l.element().bytes()));
        let access = Access::of(
            record,
            in_section,
            (elements, width),
            order.phase(record.ap),
        );
        let past = order.past(record.ap);
        let object = &mut self.objects[step.slot];
        let before = object.shadow.crowded;
        let order = (&past.clock, &past.loose);
        let race = object.shadow.take(access, order, self.wanted);
        if object.shadow.crowded && !before {
            found.doubt(Question::Crowded, of);
        }
        let Some(race) = race else {
            return;
        };
        if found.names().is_ordered_by_words(of) {
            return found.doubt(Question::Words, of);
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
    pub(crate) fn close(&self, ids: &[ObjectId], found: &mut Found) {
        for (object, id) in self.objects.iter().zip(ids) {
            if object.unsure {
                found.doubt(Question::Elements, id.var);
            }
        }
    }
}

fn say(race: &Race, later: &Access, found: &mut Found) {
    let records = [race.earlier.record, later.record];
    let in_sections = [race.earlier.in_section, later.in_section];
    found.race(later.record.object, &records, in_sections, |names| {
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
