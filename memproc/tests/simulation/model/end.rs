//! The end of a run: every fault is over, and everything has to work and agree.

use super::*;

impl Sim {
    /// All links come back and everybody goes on; what goes on after the faults is checked as before, and what is there
    /// at the end.
    pub(super) fn end(&mut self) {
        self.heal();
        self.everybody_publishes();
        self.barriers_open();
        self.locks_are_free();
        self.all_see_the_same();
        (0..self.aps.len()).for_each(|a| self.report(a));
    }

    fn heal(&mut self) {
        self.faults = Faults::default();
        self.go_on();
        for (a, b) in std::mem::take(&mut self.down) {
            self.c.up(a, b);
        }
        for _ in 0..10_000 {
            self.take_some_replies();
            if !self.step() && !self.take_replies() {
                break;
            }
        }
        self.settle();
        // Leases end, and whoever waits for somebody who is lost gives up, a second later if nobody says for whom it waited.
        for time in [5_000, 120_000, 5_000] {
            if self.disturbed {
                self.c.pass(Nanos::from_millis(time));
                self.settle();
            }
        }
        // Edits end, and so do sections.
        for a in 0..self.aps.len() {
            while self.finish_edit(a) {}
            while let Some(object) = self.aps[a].holding.as_ref().map(|h| h.object) {
                self.release(a, object);
                self.settle();
            }
        }
        self.settle();
        let open: Vec<usize> = (0..self.aps.len())
            .filter(|a| !self.aps[*a].pending.is_empty())
            .collect();
        self.must(open.is_empty(), &format!("{open:?} were never answered"));
        for a in 0..self.aps.len() {
            if !self.aps[a].alive {
                self.revive(a);
            }
        }
        self.open_again();
        // Who was started again is heard by all.
        self.all_is_told();
        for object in 0..self.objects.len() {
            for a in 0..self.aps.len() {
                self.ask_read(a, object);
                self.settle();
            }
        }
    }

    /// Whoever came back looks the variables up; a home that was started again may not know them.
    fn open_again(&mut self) {
        for a in 0..self.aps.len() {
            self.aps[a].knows.clear();
            for object in 0..self.objects.len() {
                let open = Request::Open(self.objects[object].name.clone());
                let reply = self.call(a, open);
                let found = matches!(reply, Some(Reply::Variable(_)));
                self.aps[a].knows.push(found);
                self.must(
                    found || self.restarted,
                    &format!("ap{a} knows v{object} no more: {reply:?}"),
                );
            }
        }
    }

    /// A request outside the programs.
    fn call(&mut self, a: usize, request: Request) -> Option<Reply> {
        self.c.now += Nanos(1);
        let id = self.c.ask(a as u32, request);
        self.lookups.insert((ApId(a as u32), id));
        self.looked = None;
        self.settle();
        self.looked.take()
    }

    /// Who can use an object.
    fn who_knows(&self, object: usize) -> Vec<usize> {
        let all = 0..self.aps.len();
        all.filter(|a| !self.objects[object].lost && self.aps[*a].knows[object])
            .collect()
    }

    /// What could not be published is said once.
    fn everybody_publishes(&mut self) {
        for a in 0..self.aps.len() {
            let refused = self.refusals;
            self.ask(a, Request::Publish, Doing::Publish);
            self.settle();
            if self.refusals > refused {
                let refused = self.refusals;
                self.ask(a, Request::Publish, Doing::Publish);
                self.settle();
                self.must(self.refusals == refused, "it is refused again and again");
            }
        }
    }

    /// Who came back arrives again, until all pass.
    fn barriers_open(&mut self) {
        let mut left: Vec<usize> = (0..self.aps.len()).collect();
        for _ in 0..4 {
            let passed: Vec<usize> = self.arrivals.iter().map(|c| barriers::passed(c)).collect();
            for a in left.iter().copied() {
                let round = self.aps[a].round;
                self.aps[a].round += 1;
                self.arrived.entry(round).or_default().insert(a);
                self.ask_barrier(a, round);
            }
            self.settle();
            left.retain(|a| barriers::passed(&self.arrivals[*a]) == passed[*a]);
            let waits = |a: &usize| !self.aps[*a].pending.is_empty();
            let waiting = left.iter().filter(|a| waits(a)).count();
            self.must(
                waiting == 0 || waiting < left.len(),
                "a barrier does not open",
            );
            left.retain(|a| !waits(a));
            if left.is_empty() && waiting == 0 {
                return;
            }
        }
        self.must(false, "a barrier does not open however often it is called");
    }

    /// Everybody can have every lock, and finds what was released last.
    fn locks_are_free(&mut self) {
        for object in 0..self.objects.len() {
            if !matches!(self.objects[object].kind, Kind::Locked { .. }) {
                continue;
            }
            for a in self.who_knows(object) {
                self.ask(
                    a,
                    acquire(self.objects[object].id),
                    Doing::Acquire { object },
                );
                self.settle();
                let holds = self.aps[a].holding.is_some();
                self.must(holds, &format!("ap{a} does not get v{object}"));
                self.become_certain(a, object);
                self.ask_read(a, object);
                self.settle();
                self.section_write(a, object);
                self.settle();
                while self.aps[a].holding.is_some() {
                    self.release(a, object);
                    self.settle();
                }
            }
        }
    }

    /// What the first section after the faults finds is what was released last.
    fn become_certain(&mut self, a: usize, object: usize) {
        let Kind::Locked { uncertain, .. } = &self.objects[object].kind else {
            return;
        };
        if !*uncertain {
            return;
        }
        let found = self.look(a, object);
        let same = found.iter().all(|n| *n == found[0]);
        self.must(same, &format!("v{object} is {found:?}: a mixture"));
        let Kind::Locked {
            history,
            uncertain,
            returned,
            ..
        } = &mut self.objects[object].kind
        else {
            return;
        };
        let known = history.contains(&found[0]);
        *uncertain = false;
        // In the order in which they took effect: this one is the last.
        history.retain(|n| *n != found[0]);
        history.push(found[0]);
        *returned = history.len() - 1;
        for ap in &mut self.aps {
            ap.seen.remove(&object);
            ap.own.remove(&object);
        }
        if let Some(h) = &mut self.aps[a].holding {
            h.working = [found[0]; 4];
        }
        self.must(known, &format!("v{object} is {found:?}: never released"));
    }

    /// What `a` reads, unchecked.
    fn look(&mut self, a: usize, object: usize) -> Vec<u64> {
        let reply = self.call(a, read(self.objects[object].id));
        let Some(Reply::Read { data, .. }) = reply else {
            self.must(false, &format!("ap{a} cannot read v{object}: {reply:?}"));
            return Vec::new();
        };
        self.count(Doing::Read {
            object,
            floor: 0,
            overlaps: false,
        });
        let words = data.chunks_exact(8);
        words.map(|w| number(&Bytes::copy_from_slice(w))).collect()
    }

    /// Everything came to rest: nothing is lost, and everybody sees the same.
    fn all_see_the_same(&mut self) {
        self.all_is_told();
        for object in 0..self.objects.len() {
            // Whoever has it to itself shows it.
            let mut all: Vec<Vec<u64>> = Vec::new();
            for a in self.who_knows(object) {
                self.ask_read(a, object);
                self.settle();
                let found = self.look(a, object);
                all.push(found);
            }
            let Some(value) = all.first().map(|found| found[0]) else {
                continue;
            };
            let same = all.iter().all(|found| *found == all[0]);
            self.must(same, &format!("they see {all:?} of v{object}"));
            let whole = !self.objects[object].fell_back;
            let fits = match &self.objects[object].kind {
                Kind::Counter {
                    handed_out, issued, ..
                } => {
                    let last = handed_out.iter().max().map_or(0, |n| n + 1);
                    let all = handed_out.len() as u64 == *issued;
                    value <= *issued
                        && (!whole || value >= last)
                        && (self.disturbed || (all && value == *issued))
                }
                Kind::Owned {
                    issued, written, ..
                } => {
                    let last = written.last().copied().unwrap_or(0);
                    value <= *issued && (!whole || value >= last)
                }
                Kind::Locked { history, .. } => history.last() == Some(&value),
            };
            self.must(fits, &format!("v{object} is {value} at the end"));
        }
    }
}
