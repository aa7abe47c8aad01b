//! What follows a step of a process: what it sends, when it looks again, what it is to write.

use std::collections::btree_map::Entry;

use crate::memory::Memory;
use crate::network::{Message, Pid};
use crate::thread::{Thread, Wish};

use super::{BATCH_AGE, Event, GATHER, MS, World};

impl World {
    pub(super) fn after(&mut self, pid: Pid) {
        match pid {
            Pid::Mp(m) => {
                if let Some(ap) = self.memories[m].as_ref().and_then(Memory::twice) {
                    let mut history = self.common.history();
                    history.must(false, || {
                        format!("a second process of the name of {ap} was let in")
                    });
                }
                let recorded = self.memories[m].as_mut().is_some_and(Memory::take_recorded);
                if recorded && !self.packing[m] {
                    self.packing[m] = true;
                    self.at(self.now + BATCH_AGE, Event::Pack(m));
                }
            }
            Pid::Emp(e) => self.after_manager(e),
            Pid::Ap(_) | Pid::Intruder(_) => {}
        }
    }

    pub(super) fn after_manager(&mut self, e: usize) {
        let Some(manager) = &self.managers[e] else {
            return;
        };
        let dials = manager.wants_to_dial();
        if manager.is_to_write() && !self.writing[e] {
            self.writing[e] = true;
            self.at(self.now + GATHER, Event::Write(e));
        }
        for to in dials {
            let (me, to) = (Pid::Emp(e), Pid::Emp(to.index()));
            self.dial_soon(me, to, 50 * MS);
        }
    }

    /// A program runs until it waits.
    pub(super) fn run_program(&mut self, pid: Pid) {
        let now = self.clock(pid);
        let Some(thread) = self.threads.get_mut(&pid) else {
            return;
        };
        let wish = match thread.run(now, self.now) {
            Ok(wish) => wish,
            Err(panic) => {
                let mut history = self.common.history();
                history.must(false, || {
                    format!("the program of {pid:?} panicked: {panic}")
                });
                Wish::Nothing
            }
        };
        let notes = self.common.history().take_notes();
        for note in notes {
            self.say(|| note);
        }
        self.after_program(pid);
        match wish {
            Wish::Reply => {}
            Wish::Time(time) => self.at(self.now + time, Event::Wake(pid)),
            Wish::Nothing => self.program_is_over(pid),
        }
    }

    /// Something happened to a program's session.
    pub(super) fn program_may_go_on(&mut self, pid: Pid) {
        self.after_program(pid);
        if self.threads.get(&pid).map(Thread::wish) == Some(Wish::Reply) {
            self.run_program(pid);
        }
    }

    /// Sends what the session of a program has to send, and looks at its deadlines.
    pub(super) fn after_program(&mut self, pid: Pid) {
        let now = self.clock(pid);
        let Some(thread) = self.threads.get(&pid) else {
            return;
        };
        let (mut requests, mut look) = (Vec::new(), None);
        let begun = thread.on_line(now, |line| {
            look = line.look();
            requests.extend(std::iter::from_fn(|| line.next()));
        });
        if begun.is_none() {
            return;
        }
        let (Pid::Ap(a) | Pid::Intruder(a)) = pid else {
            return;
        };
        let conn = match self.lines.entry(pid) {
            Entry::Occupied(line) => line.get().0,
            Entry::Vacant(line) => {
                let home = &self.plan.topology.application_processes()[a].memory_process;
                let conn = self.network.dial(pid, Pid::Mp(home.index()));
                line.insert((conn, u64::MAX));
                self.send(conn, 1, Message::Open);
                conn
            }
        };
        for request in requests {
            self.send(conn, 1, Message::Request(Box::new(request)));
        }
        let clock = self.processes.get(&pid).and_then(|p| p.clock);
        let (Some(look), Some(clock)) = (look, clock) else {
            return;
        };
        let at = clock.when(look, self.now);
        if let Some(line) = self.lines.get_mut(&pid)
            && at < line.1
        {
            line.1 = at;
            self.at(at, Event::Look(pid));
        }
    }

    pub(super) fn program_is_over(&mut self, pid: Pid) {
        self.say(|| format!("the program of {pid:?} is over"));
        self.threads.remove(&pid);
        self.lines.remove(&pid);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.up = false;
        }
        for (conn, end) in self.network.open_ends(pid) {
            self.network.close(conn, end);
            self.send(conn, 1 - end, Message::Closed);
        }
    }
}
