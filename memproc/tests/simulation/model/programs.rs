//! What application processes ask, and what they make of the replies.

use super::*;

impl Sim {
    pub(super) fn may_act(&self, a: usize) -> bool {
        let ap = &self.aps[a];
        let waits = ap.pending.values().any(|p| p.awaited);
        let busy = ap.holding.is_some() || !ap.edits.is_empty();
        ap.alive && !self.is_stopped(a) && !waits && (ap.round < self.rounds || busy)
    }

    pub(super) fn act(&mut self, a: usize) {
        if self.finish_edit(a) {
            return;
        }
        if let Some(h) = &self.aps[a].holding {
            let object = h.object;
            if h.entered.is_some() {
                return self.go_on_inside(a, object);
            }
            match self.rng.random_range(0..4) {
                0 => self.ask_read(a, object),
                1 | 2 => self.section_write(a, object),
                _ => self.release(a, object),
            }
            return;
        }
        if self.aps[a].actions == 0 {
            return self.end_round(a);
        }
        self.aps[a].actions -= 1;
        let object = self.rng.random_range(0..self.objects.len());
        let id = self.objects[object].id;
        let writes = self.rng.random_bool(0.5);
        if writes && self.has_to_itself(a, object) {
            return self.change_here(a, object);
        }
        match &mut self.objects[object].kind {
            Kind::Locked { .. } if writes => {
                if !self.enter(a, object) {
                    self.ask(a, acquire(id), Doing::Acquire { object });
                }
            }
            Kind::Owned { writer, issued, .. } if *writer == a && writes => {
                *issued += 1;
                let seq = *issued;
                self.ask(a, write(id, seq), Doing::OwnedWrite { object, seq });
            }
            Kind::Counter { issued, .. } if writes => {
                *issued += 1;
                self.ask(a, fetch_add(id, 1), Doing::Add { object });
            }
            _ => self.ask_read(a, object),
        }
    }

    pub(super) fn end_round(&mut self, a: usize) {
        let round = self.aps[a].round;
        self.aps[a].round += 1;
        self.aps[a].actions = self.rng.random_range(2..10);
        if !self.disturbed {
            self.arrived.entry(round).or_default().insert(a);
        }
        self.ask_barrier(a, round);
    }

    pub(super) fn ask_barrier(&mut self, a: usize, round: u64) {
        let call = self.arrive(a);
        self.ask(a, barrier("all"), Doing::Barrier { round, call });
    }

    pub(super) fn ask(&mut self, a: usize, request: Request, doing: Doing) {
        // What the process has written so far: published when this returns, if it is a release or
        // a barrier.
        let written: Vec<(usize, u64)> = match doing {
            Doing::Release { .. } | Doing::Barrier { .. } | Doing::Publish => self.written_by(a),
            _ => Vec::new(),
        };
        if let Doing::Barrier { round, .. } = doing {
            let before = self.before.entry(round).or_default();
            for (object, seq) in &written {
                let most = before.entry(*object).or_default();
                *most = (*most).max(*seq);
            }
        }
        let awaited = match doing {
            Doing::OwnedWrite { .. } => self.rng.random_bool(0.3),
            Doing::Release { .. } => self.rng.random_bool(0.6),
            Doing::Read { overlaps, .. } => !overlaps,
            _ => true,
        };
        let timeout = (self.faults.timeouts && self.rng.random_bool(0.3))
            .then(|| Nanos::from_millis(self.rng.random_range(1..3_000)));
        self.disturbed |= timeout.is_some();
        if !matches!(doing, Doing::Read { .. } | Doing::Acquire { .. }) {
            self.report(a);
            self.publish(a);
        }
        // So that records tell what came first.
        self.c.now += Nanos(1);
        let id = self.c.ask_within(a as u32, timeout, request);
        if let Doing::SectionWrite { object }
        | Doing::OwnedWrite { object, .. }
        | Doing::Release {
            object,
            writes: true,
            ..
        }
        | Doing::Add { object } = doing
        {
            self.aps[a].held.entry(object).or_default().wrote(id);
        }
        let ap = &mut self.aps[a];
        let unpublished = !matches!(
            doing,
            Doing::Read { .. } | Doing::Acquire { .. } | Doing::Barrier { .. } | Doing::Publish
        );
        ap.sent += u64::from(unpublished);
        let pending = Pending {
            doing,
            sent: ap.sent,
            written,
            awaited,
            lost: doing.object().is_some_and(|o| self.objects[o].lost),
        };
        self.aps[a].pending.insert(id, pending);
    }

    pub(super) fn written_by(&self, a: usize) -> Vec<(usize, u64)> {
        let objects = self.objects.iter().enumerate();
        objects
            .filter_map(|(i, o)| match o.kind {
                Kind::Owned { writer, issued, .. } if writer == a => Some((i, issued)),
                Kind::Counter { .. } => self.aps[a].own.get(&i).map(|own| (i, *own)),
                Kind::Locked { .. } => self.aps[a].quiet.get(&i).map(|at| (i, *at)),
                Kind::Owned { .. } => None,
            })
            .collect()
    }

    pub(super) fn ask_read(&mut self, a: usize, object: usize) {
        let in_section = self.aps[a].holding.as_ref().map(|h| h.object) == Some(object);
        let keeps = self.objects[object].cached && !in_section;
        if keeps && self.read_held(a, object) {
            return;
        }
        let floor = self.floor(a, object, self.published(object));
        let id = self.objects[object].id;
        let writer = match self.objects[object].kind {
            Kind::Owned { writer, .. } => writer == a,
            Kind::Counter { .. } | Kind::Locked { .. } => true,
        };
        let request = match (keeps, self.rng.random_range(0..4)) {
            (false, _) => read(id),
            (true, _) if self.style == Style::Parts => match writer {
                true => read_to_have(id),
                false => read_range(id, HALF),
            },
            (true, _) if self.style == Style::Taken => match writer {
                true => read(id),
                false => read_to_have(id),
            },
            (true, 0) => read_range(id, HALF),
            (true, 1) => read_to_keep(id),
            (true, _) => read_to_have(id),
        };
        let overlaps = keeps && self.rng.random_bool(0.3);
        let doing = Doing::Read {
            object,
            floor,
            overlaps,
        };
        self.ask(a, request, doing);
    }

    /// What a reader sees at least, if so much had been published as far as it may know.
    pub(super) fn floor(&self, a: usize, object: usize, published: u64) -> u64 {
        let own = self.aps[a].own.get(&object).copied().unwrap_or(0);
        match &self.objects[object].kind {
            Kind::Owned {
                writer, written, ..
            } if *writer == a => written.last().copied().unwrap_or(0),
            _ => own.max(published),
        }
    }

    pub(super) fn published(&self, object: usize) -> u64 {
        match &self.objects[object].kind {
            Kind::Locked { returned, .. } => *returned as u64,
            Kind::Owned { published, .. } | Kind::Counter { published, .. } => *published,
        }
    }

    /// Half of the object, with the section's number; the other half comes with the next write.
    pub(super) fn section_write(&mut self, a: usize, object: usize) {
        let id = self.objects[object].id;
        let next = self.next_number;
        let Some(h) = &mut self.aps[a].holding else {
            return;
        };
        let number = *h.wrote.get_or_insert(next);
        if number == next {
            self.next_number += 1;
        }
        let first = if h.working[0] == number { 2 } else { 0 };
        h.working[first..first + 2].fill(number);
        let request = write_bytes(id, first as u32, elements(&[number; 2]), None);
        self.ask(a, request, Doing::SectionWrite { object });
    }

    pub(super) fn release(&mut self, a: usize, object: usize) {
        let id = self.objects[object].id;
        let Some(h) = &self.aps[a].holding else {
            return;
        };
        // A section writes its number everywhere before it ends, or as it ends.
        let number = h.wrote;
        let mut rest = None;
        if let Some(n) = number.filter(|n| h.working != [*n; 4]) {
            if self.rng.random_bool(0.5) {
                return self.section_write(a, object);
            }
            let first = if h.working[0] == n { 2 } else { 0 };
            rest = Some(written(first, elements(&[n; 2]), 1));
        }
        let writes = rest.is_some();
        let (zombie, epoch) = (h.zombie, h.epoch);
        self.aps[a].holding = None;
        if let Kind::Locked {
            history, holder, ..
        } = &mut self.objects[object].kind
        {
            history.extend(number);
            if number.is_some() {
                self.aps[a].own.insert(object, history.len() as u64 - 1);
            }
            if !zombie {
                *holder = None;
            }
        }
        let request = release_with(id, Some(epoch), rest);
        let doing = Doing::Release {
            object,
            epoch,
            number,
            writes,
        };
        self.ask(a, request, doing);
    }

    /// A release that failed is repeated, with all that its section wrote, unless the section is over.
    fn release_again(&mut self, a: usize, failed: Doing, code: ErrorCode) {
        let Doing::Release {
            object,
            epoch,
            number,
            ..
        } = failed
        else {
            return;
        };
        let again = [ErrorCode::Unreachable, ErrorCode::Deadline];
        if !again.contains(&code) && code != ErrorCode::ProcessLost {
            return;
        }
        let content = number.map(|n| written(0, elements(&[n; 4]), 1));
        let request = release_with(self.objects[object].id, Some(epoch), content);
        let doing = Doing::Release {
            object,
            epoch,
            number,
            writes: number.is_some(),
        };
        self.ask(a, request, doing);
    }

    pub(super) fn take_reply(&mut self, ap: ApId, id: u64, reply: Reply) {
        let a = ap.index();
        if self.lookups.remove(&(ap, id)) {
            self.check_number(&reply);
            self.looked = Some(reply);
            return;
        }
        let Some(Pending {
            doing,
            sent,
            written,
            lost,
            ..
        }) = self.aps[a].pending.remove(&id)
        else {
            self.must(false, &format!("{ap} got an answer it did not wait for"));
            return;
        };
        self.hear(a, doing, id, &reply);
        let reply = match reply {
            // What it has already, unless it wrote meanwhile.
            Reply::Read {
                unchanged: true, ..
            } => match doing.object().and_then(|o| self.aps[a].held.get(&o)?.get()) {
                Some((data, version)) => Reply::Read {
                    version,
                    data: data.clone(),
                    keep: true,
                    delegation: None,
                    unchanged: false,
                },
                None => return self.count(doing),
            },
            reply => reply,
        };
        match reply {
            Reply::Refused(refusal) => {
                self.must(self.disturbed, &format!("refused: {refusal}"));
                self.refusals += 1;
                if let Doing::Release {
                    object,
                    writes: true,
                    ..
                } = doing
                {
                    // Its write may have been done.
                    let id = self.objects[object].id;
                    *self.unsure.entry(id).or_default() += 1;
                }
                self.say(|| format!("({})", refusal.message));
                if refusal.code == ErrorCode::Unreachable {
                    // It is told once; then it goes on without.
                    self.aps[a].told.extend(written);
                }
                self.failed(a, doing, refusal.code);
            }
            reply => {
                let copy = matches!(doing, Doing::Read { object, .. }
                    if self.aps[a].told_at < self.objects[object].copies_until);
                let what = format!("{doing:?} on a lost object gave {reply:?}");
                self.must(!lost || copy, &what);
                self.count_all(doing);
                for (object, seq) in written {
                    let told = self.aps[a].told.get(&object).copied().unwrap_or(0);
                    if seq <= told {
                        continue;
                    }
                    match &mut self.objects[object].kind {
                        Kind::Owned {
                            published, written, ..
                        } => {
                            // Answered or not: nothing can have failed, unless something was disturbed.
                            let last = match self.disturbed {
                                true => written.range(told + 1..=seq).last().copied().unwrap_or(0),
                                false => seq,
                            };
                            *published = (*published).max(last);
                        }
                        Kind::Counter { published, .. } => *published = (*published).max(seq),
                        Kind::Locked { returned, .. } => *returned = (*returned).max(seq as usize),
                    }
                }
                if let Doing::Release { .. } | Doing::Barrier { .. } | Doing::Publish = doing {
                    let published = &mut self.aps[a].published;
                    *published = (*published).max(sent);
                }
                self.succeeded(a, doing, &reply);
            }
        }
    }

    /// With what a release writes.
    pub(super) fn count_all(&mut self, doing: Doing) {
        self.count(doing);
        if let Doing::Release {
            object,
            writes: true,
            ..
        } = doing
        {
            self.count(Doing::SectionWrite { object });
        }
    }

    pub(super) fn count(&mut self, doing: Doing) {
        use dosmos_trace::Op;
        let (object, op) = match doing {
            Doing::Read { object, .. } => (object, Op::Read),
            Doing::SectionWrite { object }
            | Doing::Add { object }
            | Doing::OwnedWrite { object, .. } => (object, Op::Write),
            Doing::Acquire { object } => (object, Op::Acquire),
            Doing::Release { object, .. } => (object, Op::Release),
            Doing::Barrier { .. } | Doing::Publish => return,
        };
        let id = self.objects[object].id;
        self.done.entry(id).or_default().count(op, 1);
    }

    /// A refusal, after a fault. One whose section is in doubt starts again.
    pub(super) fn failed(&mut self, a: usize, doing: Doing, code: ErrorCode) {
        match doing {
            Doing::Release { object, .. } => {
                self.make_uncertain(object);
                self.release_again(a, doing, code);
            }
            Doing::Acquire { .. } => self.aps[a].doubtful = false,
            Doing::Barrier { call, .. } => {
                self.arrival_failed(a, call);
                self.aps[a].failures += 1;
                // It tries again.
                if self.aps[a].failures < 5 && self.aps[a].round > 0 {
                    self.aps[a].round -= 1;
                }
            }
            Doing::SectionWrite { object }
            | Doing::Read {
                object,
                overlaps: false,
                ..
            } => {
                let holds = self.aps[a].holding.as_ref();
                if holds.is_some_and(|h| h.object == object) {
                    self.kill(a);
                    self.revive(a);
                }
            }
            _ => {}
        }
    }

    pub(super) fn succeeded(&mut self, a: usize, doing: Doing, reply: &Reply) {
        match (doing, reply) {
            (
                Doing::Read {
                    object,
                    floor,
                    overlaps: true,
                },
                Reply::Read { data, .. },
            ) => {
                // In no order with what else the process does; only as new as what it knew then.
                let holds = self.aps[a].holding.as_ref().map(|h| h.object) == Some(object);
                if !holds {
                    let before = self.aps[a].seen.remove(&object).unwrap_or(0);
                    self.check_read(a, object, floor, data);
                    let seen = self.aps[a].seen.entry(object).or_default();
                    *seen = before.max(*seen);
                }
            }
            (Doing::Read { object, floor, .. }, Reply::Read { version, data, .. }) => {
                self.check_version(a, object, *version);
                self.check_read(a, object, floor, data);
            }
            (
                Doing::Acquire { object },
                Reply::Granted {
                    epoch,
                    version,
                    value: _,
                },
            ) => {
                self.check_version(a, object, *version);
                self.granted(a, object, *epoch);
            }
            (Doing::Release { object, number, .. }, Reply::Released { version }) => {
                self.check_version(a, object, *version);
                if let (
                    Some(number),
                    Kind::Locked {
                        history, returned, ..
                    },
                ) = (number, &mut self.objects[object].kind)
                {
                    let at = history.iter().position(|n| *n == number).unwrap_or(0);
                    *returned = (*returned).max(at);
                }
            }
            (Doing::Add { object }, Reply::Atomic { previous, .. }) => {
                let fell_back = self.objects[object].fell_back;
                let Kind::Counter { handed_out, .. } = &mut self.objects[object].kind else {
                    return;
                };
                let new = handed_out.insert(*previous);
                self.aps[a].own.insert(object, previous + 1);
                self.must(
                    new || fell_back,
                    &format!("{previous} was handed out twice"),
                );
            }
            (Doing::Barrier { round, call }, Reply::Passed(Opening { generation, .. })) => {
                self.arrival_passed(a, call, *generation);
                if !self.disturbed {
                    self.must(*generation == round + 1, "generations out of step");
                    let all = self.arrived.get(&round).map_or(0, HashSet::len) == self.aps.len();
                    self.must(all, "a barrier opened before everybody arrived");
                    self.aps[a].passed = self.before[&round].clone();
                }
            }
            (Doing::OwnedWrite { object, seq }, Reply::Written { .. }) => {
                if let Kind::Owned { written, .. } = &mut self.objects[object].kind {
                    written.insert(seq);
                }
            }
            (Doing::SectionWrite { .. }, Reply::Written { .. })
            | (Doing::Publish, Reply::Published) => {}
            (doing, reply) => self.must(false, &format!("{reply:?} answers {doing:?}")),
        }
    }
}
