//! What happens to processes when its time has come.

use std::cmp::Reverse;

use dosmos_proto::Nanos;
use rand::RngExt;

use crate::memory::{Memory, Sent};
use crate::network::{Message, Pid};

use super::{Event, MS, PROBE, Queued, RECENT, RENEWING, RETRY, SELDOM, TICK, World};

impl World {
    /// The process that an event happens to, which may be stopped.
    pub(super) fn subject(&self, event: &Event) -> Option<Pid> {
        match event {
            Event::Arrive(conn, end, _) => Some(self.network.conn(*conn)?.pid(*end)),
            Event::Wake(pid) | Event::Look(pid) | Event::Dial(pid, _) => Some(*pid),
            Event::Tick(m) | Event::Pack(m) | Event::Probe(m) => Some(Pid::Mp(*m)),
            Event::Write(e) | Event::Written(e) => Some(Pid::Emp(*e)),
            Event::Notice(conn, end) => self.network.conn(*conn).map(|c| c.pid(*end)),
            Event::Fault
            | Event::Lose(_)
            | Event::Restart(_)
            | Event::Continue(_)
            | Event::Room(_) => None,
        }
    }

    /// Until when the next event is; none if there is none.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse(next)| next.0)
    }

    /// Lets the next event happen.
    pub(crate) fn step(&mut self) {
        let Some(Reverse(Queued(at, _, start, event))) = self.queue.pop() else {
            return;
        };
        // Some handled what had waited for it.
        self.now = at.max(self.now);
        if start != self.start_of(&event) {
            return;
        }
        self.note(&event);
        if let Some(pid) = self.subject(&event)
            && let Some(process) = self.processes.get_mut(&pid)
        {
            if process.stopped {
                return process.held.push(event);
            }
            if !process.up && !matches!(event, Event::Arrive(_, _, Message::Open)) {
                return;
            }
        }
        self.happen(event);
    }

    pub(super) fn note(&mut self, event: &Event) {
        self.scratch.clear();
        match event {
            Event::Arrive(conn, end, message) => {
                self.scratch.extend(conn.to_le_bytes());
                self.scratch.push(*end as u8);
                message.encode(&mut self.scratch);
                if let Some(conn) = self.network.conn(*conn).copied() {
                    let (from, to) = (conn.pid(1 - end), conn.pid(*end));
                    self.trail.say(self.now, || {
                        format!("{from:?} -> {to:?}: {}", message.words())
                    });
                }
            }
            Event::Wake(Pid::Ap(a)) => self.scratch.extend([0xe1, *a as u8]),
            Event::Written(e) => self.scratch.extend([0xe2, *e as u8]),
            _ => self.scratch.push(0xe0),
        }
        self.trail.add(self.now, &self.scratch);
    }

    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(conn, end, message) => self.arrive(conn, end, message),
            Event::Wake(pid) => self.run_program(pid),
            Event::Look(pid) => {
                let now = self.now;
                let line = self.lines.get_mut(&pid).filter(|l| l.look_at <= now);
                if let Some(line) = line {
                    line.look_at = u64::MAX;
                    self.look(pid);
                }
            }
            Event::Tick(m) => self.tick(m),
            Event::Pack(m) => {
                self.packing[m] = false;
                self.on_memory(m, |memory, _, sent| memory.pack(false, sent));
            }
            Event::Probe(m) => {
                self.on_memory(m, |memory, now, sent| {
                    memory.probe(now, sent);
                    memory.pack(true, sent);
                });
                self.at(self.now + PROBE, Event::Probe(m));
            }
            Event::Dial(from, to) => self.dial(from, to),
            Event::Write(e) => self.write(e),
            Event::Written(e) => {
                let now = self.clock(Pid::Emp(e));
                let mut sent = Sent::new();
                self.writing[e] = false;
                if let Some(manager) = &mut self.managers[e] {
                    manager.written(now, &mut self.disks[e], &mut sent);
                }
                self.send_all(Pid::Emp(e), sent);
                self.after_manager(e);
            }
            Event::Fault => self.fault(),
            Event::Lose(pid) => self.lose(pid),
            Event::Restart(pid) => {
                // Programs that ended for good begin together.
                let program = matches!(pid, Pid::Ap(_));
                if !self.is_up(pid) && (self.faults || !program) {
                    self.start(pid);
                }
            }
            Event::Continue(pid) => self.go_on(pid),
            Event::Notice(conn, end) => self.hang_up(conn, end),
            Event::Room(e) => self.disks[e].set_full(false),
        }
    }

    pub(crate) fn on_memory(&mut self, m: usize, work: impl FnOnce(&mut Memory, Nanos, &mut Sent)) {
        let now = self.clock(Pid::Mp(m));
        let mut sent = Sent::new();
        if let Some(memory) = &mut self.memories[m] {
            work(memory, now, &mut sent);
        }
        self.send_all(Pid::Mp(m), sent);
        self.after(Pid::Mp(m));
    }

    pub(super) fn tick(&mut self, m: usize) {
        self.on_memory(m, Memory::tick);
        let most = match self.now - self.renewed[m] {
            0..RECENT => RENEWING,
            _ => SELDOM,
        };
        let pause = self.pause(self.active[m], TICK, most);
        self.at(self.now + pause, Event::Tick(m));
    }

    pub(super) fn write(&mut self, e: usize) {
        let took = self.rng.random_range(10_000..2 * MS);
        let Some(manager) = &mut self.managers[e] else {
            return;
        };
        match manager.write(&mut self.disks[e]) {
            true => self.at(self.now + took, Event::Written(e)),
            false => self.at(self.now + RETRY, Event::Write(e)),
        }
    }
}
