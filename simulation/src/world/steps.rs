//! What follows a step of a process: what it sends, when it looks again, what it is to write.

use crate::coroutine::{Coroutine, Wish};
use crate::memory::Memory;
use crate::network::{Message, Pid};

use super::{BATCH_AGE, Event, GATHER, Line, MS, SECOND, World};

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
        let Some(program) = self.programs.get_mut(&pid) else {
            return;
        };
        let wish = match program.run(now, self.now) {
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

    /// A session looks at its deadlines.
    pub(super) fn look(&mut self, pid: Pid) {
        match self.programs.get(&pid).map(Coroutine::wish) {
            Some(Wish::Reply) => self.program_may_go_on(pid),
            _ => self.carry(pid, false),
        }
    }

    /// Something happened to a program's session.
    pub(super) fn program_may_go_on(&mut self, pid: Pid) {
        self.after_program(pid);
        if self.programs.get(&pid).map(Coroutine::wish) == Some(Wish::Reply) {
            self.run_program(pid);
        }
    }

    pub(super) fn after_program(&mut self, pid: Pid) {
        self.carry(pid, true);
    }

    /// Sends what the session of a program has to send, and looks at its deadlines; `active`: something happened to it.
    fn carry(&mut self, pid: Pid, active: bool) {
        let now = self.clock(pid);
        let Some(program) = self.programs.get(&pid) else {
            return;
        };
        let (mut requests, mut look) = (Vec::new(), None);
        let begun = program.on_line(now, |line| {
            look = line.look();
            requests.extend(std::iter::from_fn(|| line.next()));
        });
        let (Some(()), Pid::Ap(a) | Pid::Intruder(a)) = (begun, pid) else {
            return;
        };
        let line = match self.lines.get(&pid) {
            Some(line) => *line,
            None => self.begin_line(pid, a),
        };
        let active = match active || !requests.is_empty() {
            true => self.now,
            false => line.active,
        };
        for request in requests {
            self.send(line.conn, 1, Message::Request(Box::new(request)));
        }
        let clock = self.processes.get(&pid).and_then(|p| p.clock);
        let look_at = match (look, clock) {
            (Some(look), Some(clock)) => {
                let soonest = self.now + self.pause(active, 0, SECOND);
                clock.when(look, self.now).max(soonest)
            }
            _ => u64::MAX,
        };
        if look_at < line.look_at {
            self.at(look_at, Event::Look(pid));
        }
        let line = Line {
            active,
            look_at: look_at.min(line.look_at),
            ..line
        };
        self.lines.insert(pid, line);
    }

    /// A program's session begins: its memory process is dialled.
    fn begin_line(&mut self, pid: Pid, a: usize) -> Line {
        let home = &self.plan.topology.application_processes()[a].memory_process;
        let conn = self.network.dial(pid, Pid::Mp(home.index()));
        self.send(conn, 1, Message::Open);
        Line {
            conn,
            look_at: u64::MAX,
            active: self.now,
        }
    }

    pub(super) fn program_is_over(&mut self, pid: Pid) {
        self.say(|| format!("the program of {pid:?} is over"));
        self.programs.remove(&pid);
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
