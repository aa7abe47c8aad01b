//! What goes wrong: processes that die or are started again, links that break.

use super::*;

impl Sim {
    pub(super) fn death(&mut self) {
        let a = self.rng.random_range(0..self.aps.len());
        if !self.aps[a].alive {
            return self.revive(a);
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
                self.c.replies.remove(&(ApId(a as u32), id));
                self.lookups.remove(&(ApId(a as u32), id));
            }
        }
        let had: Vec<usize> = (0..self.objects.len())
            .filter(|o| self.aps[a].held.get(o).is_some_and(Held::is_exclusive))
            .collect();
        had.into_iter().for_each(|o| self.fall_back(a, o));
        self.aps[a].held.clear();
        self.aps[a].edits.clear();
        self.aps[a].holding = None;
        let pending = std::mem::take(&mut self.aps[a].pending);
        for pending in pending.into_values() {
            // The release may be on its way.
            if let Doing::Release { object, .. } = pending.doing {
                self.make_uncertain(object);
            }
        }
        self.aps[a].alive = false;
        self.aps[a].doubtful = false;
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

    pub(super) fn make_uncertain(&mut self, object: usize) {
        if let Kind::Locked { uncertain, .. } = &mut self.objects[object].kind {
            *uncertain = true;
        }
    }

    /// A memory or link process ends and is started again with nothing of what it knew.
    pub(super) fn restart(&mut self) {
        self.disturbed = true;
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
        self.c.restart(mp);
        for a in its {
            self.revive(a);
            for object in 0..self.objects.len() {
                let open = Request::Open(self.objects[object].name.clone());
                let id = self.c.ask(a as u32, open);
                self.lookups.insert((ApId(a as u32), id));
            }
        }
    }

    /// All links come back; what goes on after the faults is checked as before.
    pub(super) fn heal(&mut self) {
        for (a, b) in std::mem::take(&mut self.down) {
            self.c.up(a, b);
        }
        for _ in 0..10_000 {
            self.take_some_replies();
            if !self.step_without_faults() && !self.take_replies() {
                break;
            }
        }
        // Leases end.
        self.c.pass(Nanos::from_millis(5_000));
        self.c.run();
        self.all_is_told();
        for object in 0..self.objects.len() {
            for a in 0..self.aps.len() {
                if self.aps[a].alive && self.aps[a].holding.is_none() {
                    self.ask_read(a, object);
                    self.settle();
                }
            }
        }
    }

    pub(super) fn step_without_faults(&mut self) -> bool {
        let faults = std::mem::take(&mut self.faults);
        let went_on = self.step();
        self.faults = faults;
        went_on
    }

    /// A link breaks, or one comes back, or an end notices.
    pub(super) fn cut(&mut self) {
        let unaware = self.c.unaware();
        if !unaware.is_empty() && self.rng.random_bool(0.3) {
            let (mp, neighbour) = unaware[self.rng.random_range(0..unaware.len())];
            return self.c.notice(mp, neighbour);
        }
        if !self.down.is_empty() && self.rng.random_bool(0.6) {
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
