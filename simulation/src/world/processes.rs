//! Processes: how they start, stop, are killed and go on.

use std::sync::Arc;

use dosmos_memproc::recorder::Recording;
use dosmos_proto::{EmpId, Incarnation, MpId};
use rand::RngExt;

use crate::clock::Clock;
use crate::coroutine::Coroutine;
use crate::manager::EventManager;
use crate::memory::Memory;
use crate::network::{APART, Message, Pid};
use crate::plan::Kind;
use crate::program::{Part, Program};

use super::{Account, Event, MS, PROBE, SECOND, TICK, World};

impl World {
    /// Starts a process.
    pub(crate) fn start(&mut self, pid: Pid) {
        // Of clocks that nothing relates `verify` cannot decide.
        let skewed = self.rng.random_bool(0.5) && self.plan.kind != Kind::Plain;
        // The wall clock is right, wrong, or was stepped since the last start.
        let (ahead, ppm) = match skewed {
            true => (
                self.rng.random_range(-2_000_000_000..2_000_000_000_i64),
                self.rng.random_range(-200..200),
            ),
            false => (0, 0),
        };
        let mut clock = Clock::new(self.now, ahead, ppm);
        // An application process is on the machine of its memory process.
        if let Pid::Ap(a) | Pid::Intruder(a) = pid {
            let home = self.plan.topology.application_processes()[a].memory_process;
            let its = self.processes.get(&Pid::Mp(home.index()));
            clock = its.and_then(|p| p.clock).unwrap_or(clock);
        }
        let process = self.processes.entry(pid).or_default();
        process.start += 1;
        process.up = true;
        process.stopped = false;
        process.clock = Some(clock);
        let start = process.start;
        self.trail.add(self.now, &[0xf0, start as u8]);
        self.say(|| format!("{pid:?} starts, {start}"));
        match pid {
            Pid::Emp(e) => self.start_manager(e, clock),
            Pid::Mp(m) => self.start_memory(m, start),
            Pid::Ap(_) | Pid::Intruder(_) => {
                if let Pid::Ap(a) = pid {
                    // What an earlier start only sent is confirmed by nothing that this one does.
                    self.common.history().not_published(a);
                }
                self.start_program(pid);
            }
        }
    }

    pub(super) fn start_manager(&mut self, e: usize, clock: Clock) {
        let me = EmpId(e as u32);
        let topology = Arc::clone(&self.plan.topology);
        match EventManager::start(&topology, me, clock, &mut self.disks[e]) {
            Ok(manager) => {
                self.managers[e] = Some(manager);
                self.writing[e] = false;
                self.after_manager(e);
            }
            // A full disk: it is tried again.
            Err(_) => {
                self.processes.entry(Pid::Emp(e)).or_default().up = false;
                self.at(self.now + SECOND, Event::Restart(Pid::Emp(e)));
            }
        }
    }

    pub(super) fn start_memory(&mut self, m: usize, start: u32) {
        let me = MpId(m as u32);
        let incarnation = Incarnation::new(start, self.rng.random());
        let recording = Recording {
            buffer_bytes: match self.plan.fault_every {
                Some(_) if self.rng.random_bool(0.2) => 20_000,
                _ => 64 << 20,
            },
            ..Recording::default()
        };
        let memory = Memory::new(&self.plan.topology, me, incarnation, recording);
        let dials = memory.dials();
        self.memories[m] = Some(memory);
        self.active[m] = self.now;
        self.packing[m] = false;
        for peer in dials {
            self.dial_soon(Pid::Mp(m), Pid::Mp(peer.index()), MS);
        }
        // And those that dial it try again soon.
        self.dial_soon(Pid::Mp(m), self.manager_of(m), MS);
        self.at(self.now + TICK, Event::Tick(m));
        self.at(self.now + PROBE, Event::Probe(m));
    }

    pub(super) fn manager_of(&self, m: usize) -> Pid {
        let process = &self.plan.topology.memory_processes()[m];
        Pid::Emp(process.event_manager.index())
    }

    pub(super) fn start_program(&mut self, pid: Pid) {
        let (a, part) = match pid {
            Pid::Intruder(a) => (a, Part::Intruder),
            Pid::Ap(a) => (a, self.part),
            _ => return,
        };
        let (common, seed) = (Arc::clone(&self.common), self.rng.random());
        let program = Coroutine::new(move |seat| {
            Program::run(common, seat, a, seed, part);
        });
        self.programs.insert(pid, program);
        self.at(self.now, Event::Wake(pid));
    }

    /// All application processes begin a part of the program.
    pub(crate) fn begin(&mut self, part: Part) {
        self.part = part;
        for a in 0..self.plan.topology.application_processes().len() {
            self.start(Pid::Ap(a));
        }
    }

    /// Whether no program runs.
    pub(crate) fn programs_are_over(&self) -> bool {
        self.programs.is_empty()
    }

    /// A process ends at once, as by `kill -9`.
    pub(crate) fn kill(&mut self, pid: Pid) {
        if !self.is_up(pid) {
            return;
        }
        self.trail.add(self.now, &[0xf1]);
        self.say(|| format!("{pid:?} is killed"));
        let process = self.processes.entry(pid).or_default();
        process.up = false;
        process.stopped = false;
        for event in std::mem::take(&mut process.held) {
            // Who dialled it learns that nobody is there.
            if let Event::Arrive(conn, end, Message::Open) = event {
                self.send(conn, 1 - end, Message::Closed);
            }
        }
        match pid {
            Pid::Ap(a) => {
                if let Some(mut program) = self.programs.remove(&pid) {
                    program.kill();
                    self.common.history().died(a, self.now);
                }
                self.lines.remove(&pid);
            }
            Pid::Intruder(_) => {
                self.programs.remove(&pid);
                self.lines.remove(&pid);
            }
            Pid::Mp(m) => {
                let name = self.plan.topology.mp_name(MpId(m as u32));
                let group = self.plan.group_of(&name);
                self.common.history().owner_lost(&name, group, self.now);
                if let Some(memory) = self.memories[m].take() {
                    self.account(m, &memory, false);
                }
            }
            Pid::Emp(e) => self.managers[e] = None,
        }
        for (conn, end) in self.network.open_ends(pid) {
            self.network.close(conn, end);
            self.send(conn, 1 - end, Message::Closed);
        }
    }

    pub(crate) fn account(&mut self, m: usize, memory: &Memory, whole: bool) {
        let (made, dropped) = memory.accounts();
        self.accounts.push(Account {
            mp: MpId(m as u32),
            incarnation: memory.incarnation(),
            made,
            dropped,
            whole,
        });
    }

    /// A process does nothing until it is continued.
    pub(crate) fn stop(&mut self, pid: Pid, time: u64) {
        self.trail.add(self.now, &[0xf2]);
        self.say(|| format!("{pid:?} is stopped for {} ms", time / MS));
        self.processes.entry(pid).or_default().stopped = true;
        self.at(self.now + time, Event::Continue(pid));
    }

    pub(crate) fn go_on(&mut self, pid: Pid) {
        let process = self.processes.entry(pid).or_default();
        if !process.stopped {
            return;
        }
        process.stopped = false;
        let held = std::mem::take(&mut process.held);
        self.say(|| format!("{pid:?} goes on"));
        if let Pid::Ap(a) = pid {
            self.common.history().went_on(a, self.now);
        }
        for event in held {
            self.happen(event);
            // To handle one takes that long, also of those that are there together.
            self.now += APART;
        }
    }
}
