//! What the library of an application process does: copies and objects that it holds itself, told by a stream that
//! it reads late.

use super::*;

/// The elements of an object.
const ALL: (u32, u32) = (0, ELEMENTS as u32);

impl Sim {
    /// A read of a copy that the process has itself, if it has one.
    pub(super) fn read_held(&mut self, a: usize, object: usize) -> bool {
        let bytes = ELEMENTS * 8;
        let held = self.aps[a].held.entry(object).or_default();
        let held = held.read(ALL, bytes);
        let Some((data, version, _)) = held.map(|(d, v, f)| (d.clone(), v, f)) else {
            return false;
        };
        let known = self.aps[a].floors.get(object).copied().unwrap_or(0);
        let passed = self.aps[a].passed.get(&object).copied().unwrap_or(0);
        let known = known.max(passed);
        let floor = self.floor(a, object, known);
        self.say(|| {
            format!(
                "ap{a} reads its copy of v{object}: {} v{version}",
                number(&data)
            )
        });
        self.count(Doing::Read {
            object,
            floor,
            overlaps: false,
        });
        self.check_version(a, object, version);
        self.check_read(a, object, floor, &data);
        true
    }

    /// Tells the memory process of accesses that it did not see.
    pub(super) fn report(&mut self, a: usize) {
        self.collect(a);
        let mut accesses = std::mem::take(&mut self.aps[a].collected);
        if !accesses.is_empty() {
            accesses.sort_by_key(|r| r.object);
            self.c.ask(a as u32, Request::Report(accesses));
        }
    }

    /// What was accessed until now is reported apart from what comes after.
    pub(super) fn collect(&mut self, a: usize) {
        let now = self.c.now;
        let since = std::mem::replace(&mut self.aps[a].collected_at, now);
        let mut reads = Vec::new();
        for (object, held) in &mut self.aps[a].held {
            let served = held.take_served();
            let (from_version, version) = served.sections.versions;
            let sections = held::Hits {
                count: served.sections.count,
                version,
                ..held::Hits::default()
            };
            for (hits, kind) in [
                (served.reads, LocalKind::Read),
                (served.writes, LocalKind::Write),
                (sections, LocalKind::Section),
                (served.sections.reads, LocalKind::SectionRead),
                (served.sections.writes, LocalKind::SectionWrite),
            ] {
                if hits.count > 0 {
                    reads.push(LocalAccesses {
                        object: self.objects[*object].id,
                        kind,
                        count: hits.count,
                        first: since,
                        last: now,
                        bytes: hits.bytes,
                        version: hits.version,
                        from_version,
                        elements: hits.elements,
                    });
                }
            }
        }
        self.aps[a].collected.extend(reads);
    }

    /// Whether the process has an object to itself that it may write outside sections.
    pub(super) fn has_to_itself(&self, a: usize, object: usize) -> bool {
        let may = match self.objects[object].kind {
            Kind::Owned { writer, .. } => writer == a,
            Kind::Counter { .. } => true,
            Kind::Locked { .. } => false,
        };
        let held = self.aps[a].held.get(&object);
        may && held.is_some_and(|h| h.is_exclusive() && h.get().is_some())
    }

    /// A write or fetch-add of an object that the process has to itself: at once, or in an edit that it
    /// finishes later.
    pub(super) fn change_here(&mut self, a: usize, object: usize) {
        let edits = self.rng.random_bool(0.3);
        let bytes = ELEMENTS * 8;
        let new = match &mut self.objects[object].kind {
            Kind::Owned { issued, .. } => {
                *issued += 1;
                Some(*issued)
            }
            Kind::Counter { issued, .. } => {
                *issued += 1;
                None
            }
            Kind::Locked { .. } => return,
        };
        let next = |before: u64| new.unwrap_or(before + 1);
        let held = self.aps[a].held.entry(object).or_default();
        let before = if edits {
            let Some((content, delegation, _)) = held.take(ALL.1, bytes, false) else {
                return;
            };
            let before = number(&content);
            let content = with_first(&content, next(before));
            self.aps[a].edits.push((object, delegation, content));
            self.count(Doing::Read {
                object,
                floor: 0,
                overlaps: false,
            });
            before
        } else {
            let changed = held.change(ALL, bytes, |content| {
                let before = number(content);
                *content = with_first(content, next(before));
                before
            });
            let Some((before, ..)) = changed else {
                return;
            };
            before
        };
        self.say(|| {
            format!(
                "ap{a} {} v{object} itself: {before} becomes {}",
                if edits { "edits" } else { "changes" },
                next(before)
            )
        });
        self.count(Doing::Add { object });
        let fell_back = self.objects[object].fell_back;
        match &mut self.objects[object].kind {
            Kind::Owned { written, .. } => drop(written.insert(next(before))),
            Kind::Counter { handed_out, .. } => {
                let new = handed_out.insert(before) || fell_back;
                self.aps[a].own.insert(object, before + 1);
                self.must(new, &format!("{before} was handed out twice"));
            }
            Kind::Locked { .. } => {}
        }
    }

    /// A section of an object that the process has to itself, if it has; nobody else hears of it.
    pub(super) fn enter(&mut self, a: usize, object: usize) -> bool {
        self.fill_streams();
        let held = self.aps[a].held.entry(object).or_default();
        let Some((content, entered)) = held.begin_section() else {
            return false;
        };
        let content = number(content);
        self.say(|| format!("ap{a} enters v{object} itself, epoch {}", entered.epoch));
        self.check_version(a, object, entered.version);
        // Others may know that the object was taken from it.
        self.aps[a].doubtful = self.is_taken(a, object);
        self.granted(a, object, entered.epoch);
        let sure = !self.objects[object].fell_back && !self.is_uncertain(object);
        if let Some(h) = &mut self.aps[a].holding {
            h.entered = Some(entered);
            let expected = h.working[0];
            let current = h.zombie || !sure || content == expected;
            self.must(
                current,
                &format!("ap{a} found {content} in v{object}, not {expected}"),
            );
        }
        true
    }

    /// Whether it was said that an object was taken from a process, which has not heard it.
    fn is_taken(&self, a: usize, object: usize) -> bool {
        let id = self.objects[object].id;
        let mut told = self.aps[a].stream.iter();
        told.any(|(told, _)| matches!(told, Told::Recall(of, _, Wanted::Lost) if *of == id))
    }

    /// What a process does in a section that it began itself: something else, or it ends it.
    pub(super) fn go_on_inside(&mut self, a: usize, object: usize) {
        let other = self.rng.random_range(0..self.objects.len());
        match self.rng.random_range(0..3) {
            0 if other != object => self.ask_read(a, other),
            0 => {}
            _ => self.leave(a, object),
        }
    }

    /// The end of such a section.
    fn leave(&mut self, a: usize, object: usize) {
        let holding = self.aps[a].holding.take();
        let Some((zombie, entered)) = holding.and_then(|h| Some((h.zombie, h.entered?))) else {
            return;
        };
        let number = self.rng.random_bool(0.7).then_some(self.next_number);
        self.next_number += u64::from(number.is_some());
        let unpublished = self.aps[a].sent != self.aps[a].published;
        let held = self.aps[a].held.entry(object).or_default();
        if let Some(back) = unpublished.then(|| held.give_back()).flatten() {
            self.send_back(a, object, back);
        }
        let held = self.aps[a].held.entry(object).or_default();
        let writes = held::Hits {
            count: u64::from(number.is_some()),
            bytes: ELEMENTS * 8,
            version: entered.version,
            elements: ALL,
        };
        let change = number.map(|n| move |content: &mut Bytes| *content = elements(&[n; 4]));
        let ended = held.end_section(entered, (held::Hits::default(), writes), change);
        if let Kind::Locked {
            history, holder, ..
        } = &mut self.objects[object].kind
        {
            history.extend(number);
            if !zombie {
                *holder = None;
            }
            if number.is_some() && !zombie {
                self.aps[a].own.insert(object, history.len() as u64 - 1);
            }
        }
        self.say(|| {
            format!(
                "ap{a} leaves v{object} {}, writes {number:?}",
                if ended.is_some() {
                    "itself"
                } else {
                    "by message"
                }
            )
        });
        if let Some((version, ..)) = ended {
            for done in [
                Doing::Acquire { object },
                Doing::Release {
                    object,
                    epoch: 0,
                    number,
                    writes: false,
                },
            ] {
                self.count(done);
            }
            if number.is_some() {
                self.count(Doing::SectionWrite { object });
            }
            self.check_version(a, object, version);
            if let (Kind::Locked { history, .. }, false) = (&self.objects[object].kind, zombie) {
                // Others may learn of it when the process next communicates.
                let last = history.len() as u64 - 1;
                self.aps[a].quiet.insert(object, last);
            }
            return;
        }
        let rest = number.map(|n| written(0, elements(&[n; 4]), 1));
        let request = release_with(self.objects[object].id, Some(entered.epoch), rest);
        let doing = Doing::Release {
            object,
            epoch: entered.epoch,
            number,
            writes: number.is_some(),
        };
        self.ask(a, request, doing);
    }

    /// Ends the oldest edit of a process, if it has one open.
    pub(super) fn finish_edit(&mut self, a: usize) -> bool {
        if self.aps[a].edits.is_empty() {
            return false;
        }
        let (object, delegation, content) = self.aps[a].edits.remove(0);
        let held = self.aps[a].held.entry(object).or_default();
        held.put(delegation, content);
        let answers = held.answers();
        self.say(|| format!("ap{a} has edited v{object}"));
        answers
            .into_iter()
            .for_each(|back| self.send_back(a, object, back));
        true
    }

    /// Publishes what the process changed of what others read.
    pub(super) fn publish(&mut self, a: usize) {
        for object in 0..self.objects.len() {
            let held = self.aps[a].held.get_mut(&object);
            if let Some(back) = held.and_then(Held::publish) {
                self.send_back(a, object, back);
            }
        }
    }

    /// Sends what goes back to an owner, after what was counted.
    pub(super) fn send_back(&mut self, a: usize, object: usize, back: Back<Bytes>) {
        self.report(a);
        if back.in_section {
            self.count(Doing::Acquire { object });
        }
        let part = |content: &Bytes, (first, end): (u32, u32)| {
            let range = first as usize * 8..content.len().min(end as usize * 8);
            (first, content.slice(range))
        };
        let (kept, parts) = match back.made {
            Made::Nothing => (false, Vec::new()),
            Made::All(content) => (false, vec![part(&content, (0, ELEMENTS as u32))]),
            Made::Parts(content, ranges) => {
                let ranges = ranges.into_iter();
                (true, ranges.map(|range| part(&content, range)).collect())
            }
        };
        let back = Return {
            object: self.objects[object].id,
            delegation: back.delegation,
            version: back.version,
            kept,
            parts,
            served: back.served,
            epoch: back.epoch,
            in_section: back.in_section,
        };
        self.c.ask(a as u32, Request::Return(vec![back]));
    }

    /// An object is taken from a process that had it to itself.
    pub(super) fn fall_back(&mut self, a: usize, object: usize) {
        self.taken_away(a, object);
        let ap = &mut self.aps[a];
        for list in [&mut ap.seen, &mut ap.own, &mut ap.versions, &mut ap.quiet] {
            list.remove(&object);
        }
    }

    /// Others see an object without what a process that had it to itself did not return.
    fn taken_away(&mut self, a: usize, object: usize) {
        self.disturbed = true;
        self.objects[object].fell_back = true;
        self.make_uncertain(object);
        let inside = |h: &&mut Holding| h.object == object && h.entered.is_some();
        if self.aps[a].holding.as_mut().filter(inside).is_some() {
            self.lose_section(a);
        }
    }

    /// Everybody has taken everything: what was published is known to all.
    pub(super) fn all_is_told(&mut self) {
        self.take_replies();
        let floors: Vec<u64> = (0..self.objects.len()).map(|o| self.published(o)).collect();
        for ap in &mut self.aps {
            ap.floors.clone_from(&floors);
        }
    }

    /// What was written to the streams since the last time, with what had been published by then.
    pub(super) fn fill_streams(&mut self) {
        if self.c.told.is_empty() {
            return;
        }
        let then = Then {
            floors: (0..self.objects.len()).map(|o| self.published(o)).collect(),
            at: self.c.now,
        };
        let told = std::mem::take(&mut self.c.told);
        for (ap, told) in told {
            if let Told::Recall(id, _, Wanted::Lost) = told {
                // From now on others see it without what only this process knows.
                let object = self.objects.iter().position(|o| o.id == id);
                object
                    .into_iter()
                    .for_each(|o| self.taken_away(ap.index(), o));
            }
            self.aps[ap.index()].stream.push_back((told, then.clone()));
        }
    }

    /// Application processes take what they are told, some of it late.
    pub(super) fn take_some_replies(&mut self) {
        self.fill_streams();
        for a in 0..self.aps.len() {
            let waiting = self.aps[a].stream.len();
            if self.is_stopped(a) {
                continue;
            }
            let taken = match self.rng.random_range(0..4) {
                0 => 0,
                1 => self.rng.random_range(0..=waiting),
                _ => waiting,
            };
            (0..taken).for_each(|_| self.take_one(a));
        }
    }

    /// Until nothing is on its way.
    pub(super) fn settle(&mut self) {
        loop {
            self.c.run();
            if !self.take_replies() {
                return;
            }
        }
    }

    /// They take all; whether there was something.
    pub(super) fn take_replies(&mut self) -> bool {
        self.fill_streams();
        let mut some = false;
        for a in 0..self.aps.len() {
            while !self.aps[a].stream.is_empty() && !self.is_stopped(a) {
                some = true;
                self.take_one(a);
            }
        }
        some
    }

    pub(super) fn take_one(&mut self, a: usize) {
        let Some((told, then)) = self.aps[a].stream.pop_front() else {
            return;
        };
        (self.aps[a].floors, self.aps[a].told_at) = (then.floors, then.at);
        match told {
            Told::Invalidate(id) => {
                let object = self.objects.iter().position(|o| o.id == id);
                let held = object.and_then(|o| self.aps[a].held.get_mut(&o));
                held.into_iter().for_each(Held::invalidate);
            }
            Told::Update(id, version, content) => {
                let object = self.objects.iter().position(|o| o.id == id);
                let held = object.and_then(|o| self.aps[a].held.get_mut(&o));
                held.into_iter()
                    .for_each(|h| h.update(content.clone(), version));
            }
            Told::Confirm(id, version) => {
                let object = self.objects.iter().position(|o| o.id == id);
                let held = object.and_then(|o| self.aps[a].held.get_mut(&o));
                held.into_iter().for_each(|h| h.confirm(version));
            }
            Told::Recall(id, delegation, wanted) => {
                self.publish(a);
                self.recalled(a, id, delegation, wanted);
            }
            Told::Reply(id) => {
                let ap = ApId(a as u32);
                if let Some(reply) = self.c.replies.remove(&(ap, id)) {
                    if orders(&reply) {
                        self.collect(a);
                    }
                    self.take_reply(ap, id, reply);
                }
            }
        }
    }

    /// What the library does when others need an object that is delegated to its process.
    pub(super) fn recalled(&mut self, a: usize, id: ObjectId, delegation: u64, wanted: Wanted) {
        let Some(object) = self.objects.iter().position(|o| o.id == id) else {
            return;
        };
        let held = self.aps[a].held.entry(object).or_default();
        let wanted = match wanted {
            Wanted::Elements(first, end) => held::Wanted::Elements(first, end),
            Wanted::Everything => held::Wanted::Everything,
            Wanted::Lost => {
                if held.delegation() == Some(delegation) {
                    held.lose();
                    self.fall_back(a, object);
                }
                return;
            }
        };
        if let Answer::Now(back) = held.recall(delegation, wanted) {
            self.send_back(a, object, back);
        }
    }

    /// What the library does with a reply before anybody learns of it.
    pub(super) fn hear(&mut self, a: usize, doing: Doing, id: u64, reply: &Reply) {
        let Some(object) = doing.object() else {
            return;
        };
        let held = self.aps[a].held.entry(object).or_default();
        match reply {
            Reply::Read {
                version,
                data,
                delegation: Some(delegation),
                unchanged,
                ..
            } => {
                let content = (!unchanged).then(|| data.clone());
                let Delegated { number, epoch } = *delegation;
                if !held.entrust(id, content, *version, (number, epoch)) {
                    self.send_back(a, object, Back::nothing(number));
                }
            }
            Reply::Granted { version, .. } | Reply::Released { version } => held.confirm(*version),
            Reply::Read {
                version,
                data,
                keep: true,
                ..
            } => held.keep(id, data.clone(), *version),
            Reply::Read { version, .. } => held.confirm(*version),
            _ => {}
        }
    }
}

/// Whether what comes after a reply in its process comes after something in others (`orders` in dsm-lib/src/shared.rs).
fn orders(reply: &Reply) -> bool {
    match reply {
        Reply::Passed(_) | Reply::Granted { .. } | Reply::Released { .. } => true,
        Reply::Read { delegation, .. } => delegation.is_some(),
        _ => false,
    }
}
