//! What goes wrong: processes that die or are started again, links that break.

use super::*;

impl Sim {
    pub(super) fn death(&mut self) {
        let a = self.rng.random_range(0..self.aps.len());
        if self.c.stopped.contains(&self.c.mp_of(ApId(a as u32))) {
            return;
        }
        if !self.aps[a].alive {
            return self.revive(a);
        }
        if self.rng.random_bool(0.2) {
            // A second process of the same name.
            let refused = self.c.connect(ApId(a as u32)).is_err();
            return self.must(refused, "a second process of one name was let in");
        }
        self.disturbed = true;
        self.kill(a);
    }

    pub(super) fn kill(&mut self, a: usize) {
        self.forget(a);
        self.c.gone(ApId(a as u32));
    }

    /// An application process ended; what it did last is in doubt.
    pub(super) fn forget(&mut self, a: usize) {
        self.lose_section(a);
        self.fill_streams();
        for (told, _) in std::mem::take(&mut self.aps[a].stream) {
            if let Told::Reply(id) = told {
                self.forget_reply(a, id);
            }
        }
        self.forget_hits(a);
        let had: Vec<usize> = (0..self.objects.len())
            .filter(|o| self.aps[a].held.get(o).is_some_and(Held::is_exclusive))
            .collect();
        had.into_iter().for_each(|o| self.fall_back(a, o));
        self.aps[a].held.clear();
        self.aps[a].edits.clear();
        self.aps[a].quiet.clear();
        (self.aps[a].sent, self.aps[a].published) = (0, 0);
        self.aps[a].holding = None;
        let pending = std::mem::take(&mut self.aps[a].pending);
        for pending in pending.into_values() {
            match pending.doing {
                // It may be on its way.
                Doing::Release { object, writes, .. } => {
                    self.make_uncertain(object);
                    let unsure = self.unsure.entry(self.objects[object].id).or_default();
                    *unsure += u64::from(writes);
                }
                Doing::Barrier { call, .. } => self.arrival_failed(a, call),
                _ => {}
            }
        }
        if self.faults
            != (Faults {
                deaths: true,
                ..Faults::default()
            })
        {
            // What its owners cannot tell the copies now is not published by the next process of its name.
            let written = self.written_by(a);
            self.aps[a].told.extend(written);
        }
        self.aps[a].alive = false;
        self.aps[a].stopped = false;
        self.aps[a].doubtful = false;
    }

    /// What was done and its process did not learn of is recorded all the same.
    fn forget_reply(&mut self, a: usize, id: u64) {
        let reply = self.c.replies.remove(&(ApId(a as u32), id));
        self.lookups.remove(&(ApId(a as u32), id));
        let Some(Pending { doing, .. }) = self.aps[a].pending.get(&id) else {
            return;
        };
        let doing = *doing;
        if reply.is_some_and(|r| !matches!(r, Reply::Refused(_))) {
            self.count_all(doing);
        }
    }

    /// What it did itself and told nobody is recorded nowhere.
    fn forget_hits(&mut self, a: usize) {
        self.collect(a);
        for accesses in std::mem::take(&mut self.aps[a].collected) {
            let done = self.done.entry(accesses.object).or_default();
            match accesses.kind {
                LocalKind::Read | LocalKind::SectionRead | LocalKind::GrantedRead => {
                    done.reads -= accesses.count;
                }
                LocalKind::Write | LocalKind::SectionWrite => done.writes -= accesses.count,
                LocalKind::Section => {
                    done.acquires -= accesses.count;
                    done.releases -= accesses.count;
                }
            }
        }
    }

    pub(super) fn revive(&mut self, a: usize) {
        let connected = self.c.connect(ApId(a as u32));
        self.must(connected.is_ok(), "a process could not come back");
        self.aps[a].alive = true;
    }

    /// The section of `a` is lost without a release: nobody will see what it wrote.
    pub(super) fn lose_section(&mut self, a: usize) {
        let Some(h) = &mut self.aps[a].holding else {
            return;
        };
        if let Kind::Locked { holder, .. } = &mut self.objects[h.object].kind
            && *holder == Some(a)
        {
            *holder = None;
        }
        h.zombie = true;
    }

    pub(super) fn is_uncertain(&self, object: usize) -> bool {
        matches!(
            self.objects[object].kind,
            Kind::Locked {
                uncertain: true,
                ..
            }
        )
    }

    pub(super) fn make_uncertain(&mut self, object: usize) {
        if let Kind::Locked { uncertain, .. } = &mut self.objects[object].kind {
            *uncertain = true;
        }
    }

    /// Whether time should pass.
    pub(super) fn time_matters(&self) -> bool {
        self.faults.timeouts || self.faults.stops || !self.down.is_empty()
    }

    /// Somebody is stopped, or continued.
    pub(super) fn stop(&mut self) {
        if self.rng.random_bool(0.5) && self.go_on() {
            return;
        }
        self.disturbed = true;
        if self.rng.random_bool(0.5) {
            let a = self.rng.random_range(0..self.aps.len());
            self.say(|| format!("ap{a} is stopped"));
            self.aps[a].stopped = true;
        } else {
            let count = self.c.cores.len() as u32;
            let mp = MpId(self.rng.random_range(0..count));
            let name = self.c.topology.mp_name(mp);
            self.say(|| format!("{name} is stopped"));
            self.c.stopped.insert(mp);
        }
    }

    /// Who is stopped goes on; whether there was somebody.
    pub(super) fn go_on(&mut self) -> bool {
        let mut some = !std::mem::take(&mut self.c.stopped).is_empty();
        for ap in &mut self.aps {
            some |= std::mem::take(&mut ap.stopped);
        }
        if some {
            self.say(|| "those that are stopped go on".to_owned());
        }
        some
    }

    /// An application process does not wait any longer.
    pub(super) fn cancel(&mut self) {
        let a = self.rng.random_range(0..self.aps.len());
        let mut waits: Vec<u64> = self.aps[a].pending.keys().copied().collect();
        waits.sort_unstable();
        if waits.is_empty() || !self.aps[a].alive || self.is_stopped(a) {
            return;
        }
        self.disturbed = true;
        let id = waits[self.rng.random_range(0..waits.len())];
        self.c.ask(a as u32, Request::Cancel(id));
    }

    /// Whether an application process can do nothing, or its memory process.
    pub(super) fn is_stopped(&self, a: usize) -> bool {
        let mp = self.c.mp_of(ApId(a as u32));
        self.aps[a].stopped || self.c.stopped.contains(&mp)
    }

    /// Everything that is on its way arrives.
    pub(super) fn run_out(&mut self) {
        loop {
            let busy = self.c.busy();
            if busy.is_empty() {
                break;
            }
            busy.into_iter().for_each(|pair| self.c.deliver(pair));
        }
        self.note_quiet(false);
    }

    /// A memory or link process ends and is started again with nothing of what it knew.
    pub(super) fn restart(&mut self) {
        self.disturbed = true;
        self.restarted = true;
        let count = self.c.topology.memory_processes().len() as u32;
        let mp = MpId(self.rng.random_range(0..count));
        // Whoever is in a section, or about to be, may be cut off from its owner.
        self.put_in_doubt();
        for object in &mut self.objects {
            object.lost |= object.owner == mp;
        }
        let aps = 0..self.aps.len();
        let its: Vec<usize> = aps
            .filter(|a| self.c.mp_of(ApId(*a as u32)) == mp)
            .collect();
        for a in &its {
            self.forget(*a);
        }
        self.c.stopped.remove(&mp);
        let linked = self.down.iter().all(|(a, b)| *a != mp && *b != mp);
        let link = self.c.topology.mp(mp).is_some_and(|m| m.link);
        if linked && !link && self.rng.random_bool(0.3) {
            self.c.restart_unnoticed(mp);
            let until = self.c.now + Nanos::from_millis(2_250);
            for object in self.objects.iter_mut().filter(|o| o.owner == mp) {
                object.copies_until = until;
            }
            // Those who wait for its application processes do not know yet.
            self.arrivals.iter_mut().for_each(|calls| {
                calls.iter_mut().for_each(barriers::Arrival::is_in_doubt);
            });
        } else {
            self.c.restart(mp);
        }
        self.declare_more();
        for a in its {
            self.revive(a);
            for object in 0..self.objects.len() {
                let open = Request::Open(self.objects[object].name.clone());
                let id = self.c.ask(a as u32, open);
                self.lookups.insert((ApId(a as u32), id));
            }
        }
    }

    /// Somebody declares another variable, which has a number of its own.
    fn declare_more(&mut self) {
        let a = self.rng.random_range(0..self.aps.len());
        if !self.aps[a].alive || self.is_stopped(a) {
            return;
        }
        let name = format!("w{}", self.steps);
        let owner = self.c.mp_of(ApId(a as u32));
        let owner = self.c.topology.mp_name(owner);
        let spec = vector(&name, ELEMENTS, 1, &[&owner], CopyPolicy::Invalidate);
        let id = self.c.ask(a as u32, Request::Declare(spec));
        self.lookups.insert((ApId(a as u32), id));
    }

    /// A link breaks, or one comes back, or an end notices.
    pub(super) fn cut(&mut self) {
        let unaware = self.c.unaware();
        let (noticed, mended) = match self.faults.lasting {
            true => (0.03, 0.1),
            false => (0.3, 0.6),
        };
        if !unaware.is_empty() && self.rng.random_bool(noticed) {
            let (mp, neighbour) = unaware[self.rng.random_range(0..unaware.len())];
            return self.c.notice(mp, neighbour);
        }
        if !self.down.is_empty() && self.rng.random_bool(mended) {
            let (a, b) = self
                .down
                .swap_remove(self.rng.random_range(0..self.down.len()));
            return self.c.up(a, b);
        }
        let pairs: Vec<_> = self.c.pairs();
        let pair = pairs[self.rng.random_range(0..pairs.len())];
        if self.down.contains(&pair) {
            return;
        }
        self.disturbed = true;
        self.down.push(pair);
        self.put_in_doubt();
        if !self.faults.one_sided || (self.faults.cuts && self.rng.random_bool(0.3)) {
            self.c.down(pair.0, pair.1);
        } else if self.rng.random_bool(0.5) {
            self.c.cut_at(pair.0, pair.1);
        } else {
            self.c.cut_at(pair.1, pair.0);
        }
    }

    /// Whoever is in a section, or about to be, may be cut off from its owner.
    pub(super) fn put_in_doubt(&mut self) {
        for a in 0..self.aps.len() {
            self.lose_section(a);
            let ap = &mut self.aps[a];
            let acquires = |p: &Pending| matches!(p.doing, Doing::Acquire { .. });
            ap.doubtful = ap.pending.values().any(acquires);
        }
        for object in 0..self.objects.len() {
            self.make_uncertain(object);
            if let Kind::Locked { holder, .. } = &mut self.objects[object].kind {
                *holder = None;
            }
        }
    }
}
