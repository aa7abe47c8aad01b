//! What programs did and saw, compared with the consistency contract (docs/design/consistency.md#contract).
//!
//! The value of an object has a *rank*: of an object with one writer, the number that it wrote; of a counter, its value; of
//! an object that is written in sections, the place of the section in their order. A process *knows* a rank of each object:
//! what was published before it last synchronised, transitively. A read must not give a lower one.
//!
//! What nobody else is told of may be lost with a process, and an object with its owner: such an object is *weak*, and only
//! what holds of it all the same is checked.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::GroupId;
use dsm_lib::ObjectId;

/// What an object is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Written in sections of the owner's queue only, all elements the same number.
    Queue,
    /// Written and read in sections of another lock kind only.
    Words,
    /// Written by one process, outside sections, counting up.
    Owned(usize),
    /// Added to by everybody.
    Counter,
}

/// Where an object is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) owner: String,
    pub(crate) group: Option<GroupId>,
    /// Copies are kept in application processes.
    pub(crate) near: bool,
    /// As many memory processes of its group may be lost at once, and take nothing with them: it has as many replicas, and the others are a
    /// majority of the group.
    pub(crate) may_lose: u32,
}

/// How a section ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Open,
    /// Its release returned.
    Released,
    /// Nobody knows whether its release was done.
    Unknown,
}

#[derive(Clone, Debug)]
struct Section {
    by: usize,
    epoch: u64,
    found: u64,
    granted: u64,
    wrote: Option<u64>,
    /// When its release was asked for.
    asked: Option<u64>,
    end: End,
}

/// What a process knows: a rank of each object.
pub(crate) type Known = BTreeMap<ObjectId, u64>;

#[derive(Debug)]
struct Object {
    name: String,
    usage: Use,
    place: Place,
    weak: bool,
    /// How many of its replicas may be missing: something went wrong since.
    missing: u32,
    /// When its owner was started again: it is gone.
    lost: Option<u64>,
    /// Its owner may have been started again since it was declared, before anybody used it.
    maybe_lost: bool,
    issued: u64,
    /// Of a counter: what was handed out.
    handed_out: BTreeSet<u64>,
    sections: Vec<Section>,
    /// Of numbers written in sections: what their writers knew when they released them.
    published: BTreeMap<u64, Known>,
    /// Of words: who holds it, and what it holds.
    holder: Option<usize>,
    content: u64,
}

#[derive(Clone, Debug)]
struct Arrival {
    asked: u64,
    ended: Option<(u64, bool)>,
    knew: Known,
    /// What it had written itself: what it writes while it waits is not published by the barrier.
    own: Known,
}

#[derive(Clone, Debug, Default)]
struct Process {
    knows: Known,
    /// What it wrote or released itself and was confirmed.
    own: Known,
    /// The same, without what was only sent.
    confirmed: Known,
    /// Up to where it was told that what it wrote may not be published.
    told: Known,
    seen: Known,
    /// When it was last stopped and went on: until then it could not hear of anything.
    went_on: u64,
}

/// What went wrong in a group of memory processes since all had caught up: replicas that may be missing.
#[derive(Debug, Default)]
struct Losses {
    missing: u32,
    /// As many were missing when the last of its processes was started again, that one too.
    started_again: u32,
}

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct History {
    objects: BTreeMap<ObjectId, Object>,
    processes: Vec<Process>,
    /// Memory processes that were.
    started_again: BTreeSet<String>,
    arrivals: BTreeMap<String, Vec<Vec<Arrival>>>,
    next_number: u64,
    /// Something went wrong so far: operations may fail.
    disturbed: bool,
    /// Memory processes were lost, or may have been taken for lost.
    shaken: bool,
    /// What went wrong in groups of memory processes since all had caught up.
    losses: BTreeMap<Option<GroupId>, Losses>,
    /// Since all had caught up, some did not hear each other: any of them may be taken for lost.
    cut_off: bool,
    violation: Option<String>,
    operations: u64,
    refusals: u64,
    deaths: u64,
    /// What was refused since it was last asked.
    notes: Vec<String>,
}

impl History {
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            processes: vec![Process::default(); processes],
            next_number: 1,
            ..Self::default()
        }
    }

    /// What does not hold, if something did not.
    pub(crate) fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    pub(crate) fn operations(&self) -> u64 {
        self.operations
    }

    pub(crate) fn refusals(&self) -> u64 {
        self.refusals
    }

    /// What was refused since this was last asked.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// How many application processes were killed.
    pub(crate) fn deaths(&self) -> u64 {
        self.deaths
    }

    /// From now on operations may fail.
    pub(crate) fn disturb(&mut self) {
        self.disturbed = true;
    }

    pub(crate) fn must(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(what());
        }
    }

    /// An operation failed.
    pub(crate) fn refused(&mut self, a: usize, what: &str) {
        self.refusals += 1;
        self.notes.push(format!("ap{a}: {what}"));
        let gone = |o: &&Object| what.contains(&format!("{} is lost: all", o.name));
        let gone = self.objects.values().find(gone);
        if let Some((name, false)) = gone.map(|o| (o.name.clone(), o.weak)) {
            self.must(false, || format!("ap{a}: {what}, and {name} has replicas"));
        }
        let disturbed = self.disturbed;
        self.must(disturbed, || {
            format!("ap{a}: {what}, and nothing went wrong")
        });
    }

    /// A process uses an object for the first time.
    pub(crate) fn declared(&mut self, id: ObjectId, name: &str, usage: Use, place: Place) {
        let missing = if self.shaken { place.may_lose } else { 0 };
        // It may have been made long before, for a process that did not hear of it.
        let losses = self.losses.get(&place.group).map(|l| l.started_again);
        let weak = place.may_lose > 0 && losses.is_some_and(|missing| missing > place.may_lose);
        let maybe_lost = weak || self.started_again.contains(&place.owner);
        let new = || Object {
            name: name.to_owned(),
            usage,
            place,
            weak,
            missing,
            lost: None,
            maybe_lost,
            issued: 0,
            handed_out: BTreeSet::new(),
            sections: Vec::new(),
            published: BTreeMap::new(),
            holder: None,
            content: 0,
        };
        let known = self.objects.entry(id).or_insert_with(new);
        let same = known.name == name;
        let other = known.name.clone();
        self.must(same, || format!("{name} and {other} have one number"));
    }

    /// A memory process was started again: what it owned is gone, at the latest when leases are over.
    pub(crate) fn owner_lost(&mut self, owner: &str, group: Option<GroupId>, now: u64) {
        self.started_again.insert(owner.to_owned());
        let losses = self.losses.entry(group).or_default();
        losses.missing += 1;
        losses.started_again = match self.cut_off {
            true => u32::MAX,
            false => losses.missing,
        };
        let (kept, others): (Vec<_>, Vec<_>) = self
            .objects
            .values_mut()
            .partition(|o| o.place.may_lose > 0);
        for object in others.into_iter().filter(|o| o.place.owner == owner) {
            object.lost.get_or_insert(now);
            object.weak = true;
        }
        for object in kept.into_iter().filter(|o| o.place.group == group) {
            let all = object.missing >= object.place.may_lose;
            object.maybe_lost |= all;
            object.weak |= all;
            object.missing += 1;
        }
        self.shaken = true;
    }

    /// A memory process may be taken for lost by its group.
    pub(crate) fn seems_lost(&mut self, group: Option<GroupId>) {
        let its = self.objects.values_mut().filter(|o| o.place.group == group);
        its.for_each(|o| o.missing += 1);
        self.losses.entry(group).or_default().missing += 1;
        self.shaken = true;
    }

    /// All memory processes are there and have been for so long that what has replicas has all of them.
    pub(crate) fn caught_up(&mut self) {
        self.shaken = false;
        self.cut_off = false;
        self.losses.clear();
        self.objects.values_mut().for_each(|o| o.missing = 0);
    }

    pub(crate) fn is_shaken(&self) -> bool {
        self.shaken
    }

    /// Memory processes do not hear each other, or one hears nobody: it may be taken for lost.
    pub(crate) fn shaken(&mut self) {
        self.shaken = true;
        self.cut_off = true;
        let all = self.objects.values_mut();
        all.for_each(|o| o.missing = o.missing.max(o.place.may_lose));
    }

    /// A process was killed, or was silent for so long that objects are taken from it.
    pub(crate) fn silent(&mut self, a: usize) {
        for object in self.objects.values_mut() {
            let writer = !matches!(object.usage, Use::Owned(by) if by != a);
            object.weak |= object.place.near && writer;
            object.weak |= object.usage == Use::Words;
        }
    }

    /// A process ended: what it had under way is in doubt.
    pub(crate) fn died(&mut self, a: usize, now: u64) {
        self.disturb();
        self.deaths += 1;
        self.silent(a);
        for object in self.objects.values_mut() {
            let its = object.sections.iter_mut().filter(|s| s.by == a);
            its.filter(|s| s.end == End::Open)
                .for_each(|s| s.end = End::Unknown);
        }
        for calls in self.arrivals.values_mut() {
            let open = calls[a].iter_mut().filter(|c| c.ended.is_none());
            open.for_each(|c| c.ended = Some((now, false)));
        }
        self.processes[a] = Process::default();
    }

    /// A link broke: sections may be lost.
    pub(crate) fn cut(&mut self) {
        self.disturb();
    }

    /// A process that was stopped goes on.
    pub(crate) fn went_on(&mut self, a: usize, now: u64) {
        self.processes[a].went_on = now;
    }

    /// An object of which an operation gave a result was not lost when it was asked.
    fn not_lost(&mut self, a: usize, id: ObjectId, asked: u64, what: &str) {
        /// Copies may be read as long as their lease runs.
        const LEASE: u64 = 2_300_000_000;
        self.operations += 1;
        let object = &self.objects[&id];
        let heard = |lost: u64| lost.max(self.processes[a].went_on) + LEASE;
        let late = object.lost.is_some_and(|lost| asked > heard(lost));
        let name = object.name.clone();
        self.must(!late, || format!("ap{a}: {what} of {name}, which was lost"));
    }

    /// What a process knows when it publishes: also what it wrote itself.
    fn publishes(&self, a: usize) -> Known {
        let process = &self.processes[a];
        let mut all = process.knows.clone();
        // What it only sent may have failed, which it hears when it has published.
        let own = if self.disturbed {
            &process.confirmed
        } else {
            &process.own
        };
        for (id, rank) in own {
            if *rank > process.told.get(id).copied().unwrap_or(0) {
                let known = all.entry(*id).or_default();
                *known = (*known).max(*rank);
            }
        }
        all
    }

    fn learn(&mut self, a: usize, news: &Known) {
        for (id, rank) in news {
            let known = self.processes[a].knows.entry(*id).or_default();
            *known = (*known).max(*rank);
        }
    }

    /// A release, barrier or publication succeeded: what was sent before it, that is `own`, was done.
    fn synchronised(&mut self, a: usize, own: &Known) {
        let process = &mut self.processes[a];
        for (id, rank) in own {
            if *rank > process.told.get(id).copied().unwrap_or(0) {
                let confirmed = process.confirmed.entry(*id).or_default();
                *confirmed = (*confirmed).max(*rank);
            }
        }
    }

    /// A release, barrier or publication failed: what was written before it may not be published.
    pub(crate) fn not_published(&mut self, a: usize) {
        let process = &mut self.processes[a];
        process.told = process.own.clone();
    }

    /// A process is about to write the next number to an object of its own.
    pub(crate) fn next_write(&mut self, id: ObjectId) -> u64 {
        match self.objects.get_mut(&id) {
            Some(object) => {
                object.issued += 1;
                object.issued
            }
            None => 0,
        }
    }

    /// It was written, or, if it is not known when that was asked, is on its way.
    pub(crate) fn written(&mut self, a: usize, id: ObjectId, number: u64, asked: Option<u64>) {
        if let Some(asked) = asked {
            self.not_lost(a, id, asked, "a write");
            let confirmed = self.processes[a].confirmed.entry(id).or_default();
            *confirmed = (*confirmed).max(number);
        }
        let own = self.processes[a].own.entry(id).or_default();
        *own = (*own).max(number);
    }

    pub(crate) fn added(&mut self, a: usize, id: ObjectId, previous: u64, asked: u64) {
        self.not_lost(a, id, asked, "an addition");
        let Some(object) = self.objects.get_mut(&id) else {
            return;
        };
        let (weak, issued, name) = (object.weak, object.issued, object.name.clone());
        let new = object.handed_out.insert(previous);
        self.must(new || weak, || {
            format!("{previous} of {name} was handed out twice")
        });
        self.must(previous < issued, || {
            format!("{name} was {previous} after {issued} additions")
        });
        self.must_know(a, id, previous, "added to");
        self.processes[a].own.insert(id, previous + 1);
        self.processes[a].confirmed.insert(id, previous + 1);
    }

    /// A read gave these elements.
    pub(crate) fn read(&mut self, a: usize, id: ObjectId, elements: &[u64], asked: u64) {
        self.not_lost(a, id, asked, "a read");
        let object = &self.objects[&id];
        let name = object.name.clone();
        let value = elements.first().copied().unwrap_or(0);
        if object.usage != Use::Counter {
            let whole = elements.iter().all(|e| *e == value);
            // A process that was lost had published what others read of it, but not the rest.
            let in_parts =
                matches!(object.usage, Use::Owned(_)) && object.place.near && object.weak;
            self.must(whole || in_parts, || {
                format!("ap{a} read {elements:?} of {name}: a mixture")
            });
        }
        let object = &self.objects[&id];
        let rank = match object.usage {
            Use::Queue | Use::Words => {
                let by = object.sections.iter().find(|s| s.wrote == Some(value));
                let asked = by.is_some_and(|s| s.asked.is_some() || s.by == a);
                let released = value == 0 || asked;
                let epoch = by.map_or(0, |s| s.epoch);
                self.must(released, || {
                    format!("ap{a} read {value} of {name}, which was not released")
                });
                epoch
            }
            Use::Owned(_) | Use::Counter => {
                let issued = object.issued;
                self.must(value <= issued, || {
                    format!("ap{a} read {value} of {name}, of which {issued} was the last")
                });
                value
            }
        };
        self.must_know(a, id, rank, "read");
        self.processes[a].seen.insert(id, rank);
    }

    fn must_know(&mut self, a: usize, id: ObjectId, rank: u64, what: &str) {
        let object = &self.objects[&id];
        if object.weak || object.usage == Use::Words {
            return;
        }
        let process = &self.processes[a];
        let of = |known: &Known| known.get(&id).copied().unwrap_or(0);
        let own = match object.usage {
            // What it released itself may not have been done, if that failed.
            Use::Queue => 0,
            // Nor may what it only sent: it hears of that when it synchronises next.
            _ if self.disturbed => of(&process.confirmed),
            _ => of(&process.own),
        };
        let (known, seen) = (of(&process.knows), of(&process.seen));
        let least = known.max(seen).max(own);
        let name = object.name.clone();
        self.must(rank >= least, || {
            format!(
                "ap{a} {what} {name} at {rank}, and knew {known}, had seen {seen}, had written {own}"
            )
        });
    }

    /// A lock was granted, in which the process found this.
    pub(crate) fn granted(
        &mut self,
        a: usize,
        id: ObjectId,
        epoch: u64,
        found: u64,
        (asked, now): (u64, u64),
    ) -> usize {
        self.not_lost(a, id, asked, "an acquire");
        let Some(object) = self.objects.get_mut(&id) else {
            return 0;
        };
        let section = Section {
            by: a,
            epoch,
            found,
            granted: now,
            wrote: None,
            asked: None,
            end: End::Open,
        };
        object.sections.push(section);
        let number = object.sections.len() - 1;
        if object.usage == Use::Words {
            let before = object.holder.replace(a);
            let (content, weak, name) = (object.content, object.weak, object.name.clone());
            self.must(before.is_none() || weak, || {
                format!("ap{a} and {before:?} hold {name}")
            });
            self.must(found == content || weak, || {
                format!("ap{a} found {found} in {name}, where {content} was written last")
            });
        }
        let news = self.objects[&id].published.get(&found).cloned();
        let weak = self.objects[&id].weak;
        if let Some(news) = news.filter(|_| !weak) {
            self.learn(a, &news);
        }
        number
    }

    /// A number that no section has written.
    pub(crate) fn next_number(&mut self, id: ObjectId, section: usize) -> u64 {
        self.next_number += 1;
        let number = self.next_number - 1;
        if let Some(object) = self.objects.get_mut(&id) {
            object.sections[section].wrote = Some(number);
        }
        number
    }

    /// The release of a section is about to be asked for.
    pub(crate) fn releasing(&mut self, a: usize, id: ObjectId, section: usize, now: u64) {
        let mut knew = self.publishes(a);
        let Some(object) = self.objects.get_mut(&id) else {
            return;
        };
        let section = &mut object.sections[section];
        section.asked.get_or_insert(now);
        if let Some(number) = section.wrote {
            let rank = knew.entry(id).or_default();
            *rank = (*rank).max(section.epoch);
            object.published.insert(number, knew);
            object.content = number;
        }
        object.holder = None;
    }

    pub(crate) fn released(&mut self, a: usize, id: ObjectId, section: usize) {
        self.operations += 1;
        let own = self.processes[a].own.clone();
        self.synchronised(a, &own);
        let own = self.publishes(a);
        let Some(object) = self.objects.get_mut(&id) else {
            return;
        };
        let section = &mut object.sections[section];
        section.end = End::Released;
        let (epoch, wrote) = (section.epoch, section.wrote);
        let knew = wrote.and_then(|number| object.published.get_mut(&number));
        if let Some(knew) = knew {
            for (id, rank) in own {
                let known = knew.entry(id).or_default();
                *known = (*known).max(rank);
            }
        }
        if wrote.is_some() && object.usage == Use::Queue {
            let own = self.processes[a].own.entry(id).or_default();
            *own = (*own).max(epoch);
        }
    }

    /// Nobody knows how the section ended.
    pub(crate) fn in_doubt(&mut self, id: ObjectId, section: usize) {
        if let Some(object) = self.objects.get_mut(&id) {
            object.sections[section].end = End::Unknown;
            if object.usage == Use::Words {
                object.weak = true;
                object.holder = None;
            }
        }
    }

    /// A process comes to a barrier.
    pub(crate) fn arrives(&mut self, a: usize, name: &str, now: u64) -> usize {
        let (knew, own) = (self.publishes(a), self.processes[a].own.clone());
        let all = self.processes.len();
        let calls = self
            .arrivals
            .entry(name.to_owned())
            .or_insert_with(|| vec![Vec::new(); all]);
        calls[a].push(Arrival {
            asked: now,
            ended: None,
            knew,
            own,
        });
        calls[a].len() - 1
    }

    /// It did not pass.
    pub(crate) fn gave_up(&mut self, a: usize, name: &str, call: usize, now: u64) {
        if let Some(calls) = self.arrivals.get_mut(name) {
            calls[a][call].ended = Some((now, false));
        }
    }

    /// It passed: everybody was there.
    pub(crate) fn passed(&mut self, a: usize, name: &str, call: usize, now: u64) {
        /// An arrival that failed may count until what takes it back has arrived.
        const TAKEN_BACK: u64 = 15_000_000_000;
        self.operations += 1;
        let Some(calls) = self.arrivals.get_mut(name) else {
            return;
        };
        calls[a][call].ended = Some((now, true));
        let (asked, own) = (calls[a][call].asked, calls[a][call].own.clone());
        // It may pass what an earlier arrival of its own opened that was not taken back in time.
        let earlier = calls[a][..call].iter().rev().map_while(|c| match c.ended {
            Some((at, false)) if at + TAKEN_BACK >= asked => Some(c.asked),
            _ => None,
        });
        let asked = earlier.last().unwrap_or(asked);
        let (mut news, mut missing) = (Vec::new(), None);
        for (b, its) in calls.iter().enumerate().filter(|(b, _)| *b != a) {
            let counts = |c: &&Arrival| match c.ended {
                None => true,
                Some((at, true)) => at >= asked,
                Some((at, false)) => at + TAKEN_BACK >= asked,
            };
            let found: Vec<&Arrival> = its.iter().filter(counts).collect();
            match found[..] {
                [] => missing = Some(b),
                // Of several it is not known which counted.
                [one] => news.push(one.knew.clone()),
                _ => {}
            }
        }
        self.must(missing.is_none(), || {
            format!(
                "ap{a} passed the barrier {name}, and ap{} was not there",
                missing.unwrap_or(0)
            )
        });
        self.synchronised(a, &own);
        news.iter().for_each(|known| self.learn(a, known));
    }

    /// Everything came to rest: sections of each object, in their order, each began where the one before ended, and none
    /// began before the one before was given up.
    pub(crate) fn check_sections(&mut self) {
        let mut wrong = None;
        for object in self.objects.values() {
            if object.weak || object.usage != Use::Queue {
                continue;
            }
            let mut sections: Vec<&Section> = object.sections.iter().collect();
            sections.sort_by_key(|s| s.epoch);
            // What may be found: the number released last, and those of which it is not known.
            let (mut possible, mut last) = (vec![0], None::<&Section>);
            for section in sections {
                if let Some(last) = last {
                    let apart = last.asked.is_some_and(|asked| asked <= section.granted);
                    if last.epoch == section.epoch || !apart {
                        wrong = Some(format!("{}: {last:?} and {section:?} overlap", object.name));
                    }
                }
                if !possible.contains(&section.found) {
                    wrong = Some(format!(
                        "{}: {section:?} found none of {possible:?}",
                        object.name
                    ));
                }
                if possible.len() > 1 {
                    possible = vec![section.found];
                }
                match (section.end, section.wrote) {
                    (End::Released, Some(number)) => possible = vec![number],
                    (End::Unknown | End::Open, Some(number)) => possible.push(number),
                    (_, None) => {}
                }
                if section.end == End::Released {
                    last = Some(section);
                }
            }
        }
        if let Some(wrong) = wrong {
            self.must(false, || wrong);
        }
    }

    /// What everybody read at the end must be the same, and what was done last.
    pub(crate) fn check_end(&mut self, read: &BTreeMap<ObjectId, Vec<(usize, u64)>>) {
        for (id, values) in read {
            let Some(object) = self.objects.get(id) else {
                continue;
            };
            let name = object.name.clone();
            let first = values.first().map_or(0, |v| v.1);
            let same = values.iter().all(|(_, v)| *v == first);
            let lost = object.lost.is_some() || object.maybe_lost;
            let fits = match object.usage {
                Use::Counter => {
                    let last = object.handed_out.last().map_or(0, |n| n + 1);
                    let all = object.handed_out.len() as u64 == object.issued;
                    first >= last && (self.disturbed || (all && first == object.issued))
                }
                _ => true,
            };
            let weak = object.weak;
            self.must(same || lost, || {
                format!("at the end they read {values:?} of {name}")
            });
            self.must(fits || weak, || format!("at the end {name} is {first}"));
        }
    }

    /// Whether an object's owner was started again.
    pub(crate) fn is_lost(&self, id: ObjectId) -> bool {
        self.objects
            .get(&id)
            .is_some_and(|o| o.lost.is_some() || o.maybe_lost)
    }

    /// Whether what was written to an object of this name may be lost with a process that had it to itself
    /// (docs/reliability.md#answers-of-the-monitor, number 29).
    pub(crate) fn may_be_lost(&self, name: &str) -> bool {
        let is_it = |o: &&Object| o.name == name || o.name == format!("{name}[0]");
        self.objects
            .values()
            .any(|o| is_it(&o) && o.place.near && o.weak)
    }

    /// Whether what is known of an object may be lost with a process.
    pub(crate) fn is_weak(&self, id: ObjectId) -> bool {
        self.objects.get(&id).is_some_and(|o| o.weak)
    }
}
