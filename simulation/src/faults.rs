//! What goes wrong, drawn from the seed: processes that are killed and started again or stopped, networks that are cut in both
//! directions or in one, disks that are full or lose power.

use dosmos_proto::GroupId;
use rand::RngExt;

use crate::network::Pid;
use crate::plan::{Fault, Kind, Loss};
use crate::world::{Event, World};

const MS: u64 = 1_000_000;
/// Within this time after all are there again, whatever was lost is kept by others again.
const CALM: u64 = 12_000 * MS;

impl World {
    /// From now on things go wrong, if they are to.
    pub(crate) fn let_things_go_wrong(&mut self) {
        if let Some(every) = self.plan.fault_every {
            self.faults = true;
            let first = self.rng.random_range(0..2 * every);
            self.at(self.now + first, Event::Fault);
        }
    }

    /// Something goes wrong, and the next thing later.
    pub(crate) fn fault(&mut self) {
        if !self.faults {
            return;
        }
        if self.plan.kind == Kind::Losses {
            return self.lose_one();
        }
        let every = self.plan.fault_every.unwrap_or(u64::MAX);
        let next = self.rng.random_range(every / 2..2 * every);
        self.at(self.now + next, Event::Fault);
        match self.plan.fault(&mut self.rng) {
            Fault::Program => self.kill_program(),
            Fault::Intruder => self.intrude(),
            Fault::Manager => {
                let e = self.rng.random_range(0..self.managers.len());
                if self.rng.random_bool(0.4) {
                    self.lose_power(e);
                } else {
                    self.kill_and_restart(Pid::Emp(e));
                }
            }
            Fault::Stop => {
                let pid = self.any();
                self.stop_for_a_while(pid);
            }
            // The first loss is what replicas are for.
            Fault::Cut if !self.is_kept() => self.cut(),
            Fault::Memory | Fault::Cut => {
                let pid = self.any_memory();
                self.kill_and_restart(pid);
            }
            Fault::Disk => self.fill_disk(),
            Fault::Machine => self.lose_power_of_a_machine(),
        }
    }

    /// Whether variables have replicas of which none may have been lost.
    fn is_kept(&self) -> bool {
        self.plan.kind == Kind::Replicated && !self.common.history().is_shaken()
    }

    /// If all are there and had time to catch up, a memory process is lost for a while.
    fn lose_one(&mut self) {
        let memories = (0..self.memories.len()).map(Pid::Mp);
        let mut all = memories.chain((0..self.managers.len()).map(Pid::Emp));
        let whole = all.all(|pid| self.is_up(pid) && !self.is_stopped(pid));
        if !whole || self.now < self.calm_from + CALM {
            return self.at(self.now + 500 * MS, Event::Fault);
        }
        let mut history = self.common.history();
        history.caught_up();
        history.disturb();
        drop(history);
        let first = match self.rng.random_bool(0.5) {
            true => self.any_owner(),
            false => self.any_memory(),
        };
        self.lose(first);
        // Two of five may be lost: at once, or the second while the first is taken for lost or another takes its place.
        let group = self.group_of(first);
        let all = self.plan.topology.memory_processes().iter();
        if all.filter(|p| Some(p.group) == group).count() >= 5 && self.rng.random_bool(0.6) {
            let second = self.any_memory();
            if second != first && self.group_of(second) == group {
                let most = [MS, 1_000 * MS, 5_000 * MS][self.rng.random_range(0..3)];
                let later = self.rng.random_range(0..most);
                self.at(self.now + later, Event::Lose(second));
            }
        }
        let every = self.plan.fault_every.unwrap_or(0);
        let next = self.calm_from + CALM + self.rng.random_range(0..=every);
        self.at(next, Event::Fault);
    }

    fn group_of(&self, pid: Pid) -> Option<GroupId> {
        match pid {
            Pid::Mp(m) => Some(self.plan.topology.memory_processes()[m].group),
            _ => None,
        }
    }

    /// A memory process is lost for a while.
    pub(crate) fn lose(&mut self, pid: Pid) {
        if !self.faults {
            return;
        }
        // Others take its place after more than two seconds.
        let most = [20 * MS, 500 * MS, 6_000 * MS, 12_000 * MS][self.rng.random_range(0..4)];
        let time = self.rng.random_range(MS..most);
        self.calm_from = self.calm_from.max(self.now + time);
        match self.plan.loss(&mut self.rng) {
            Loss::Machine => self.lose_machine_of(pid, time),
            Loss::Isolated => self.isolate(pid, time),
            Loss::Stopped => {
                self.seems_lost(pid);
                self.stop(pid, time);
            }
        }
    }

    /// Others may take a memory process for lost, and it its application processes.
    fn seems_lost(&mut self, pid: Pid) {
        let group = self.group_of(pid);
        let programs = self.plan.topology.application_processes().len();
        let mut history = self.common.history();
        history.seems_lost(group);
        (0..programs).for_each(|a| history.silent(a));
    }

    /// A memory process is killed with its application processes, and some of what they sent does not arrive. They are started again.
    fn lose_machine_of(&mut self, pid: Pid, time: u64) {
        let programs = self.plan.topology.application_processes().iter();
        let its = (0..)
            .zip(programs)
            .filter(|(_, ap)| Pid::Mp(ap.memory_process.index()) == pid);
        let programs: Vec<Pid> = its.map(|(a, _)| Pid::Ap(a)).collect();
        let until = self.now + self.rng.random_range(0..=self.plan.delay_ns);
        for lost in programs.iter().copied().chain([pid]) {
            if !self.is_up(lost) {
                continue;
            }
            self.network.lose_from(lost, until);
            self.kill(lost);
            let after = match lost {
                Pid::Ap(_) => self.rng.random_range(100 * MS..1_000 * MS),
                _ => 0,
            };
            self.at(self.now + time + after, Event::Restart(lost));
        }
    }

    /// Nothing passes between a memory process and all others, or some of them, in a direction or both.
    fn isolate(&mut self, a: Pid, time: u64) {
        let all = self.rng.random_bool(0.5);
        if !all {
            // It may lose all that keep its objects, and not be lost itself.
            self.common.history().shaken();
        }
        self.seems_lost(a);
        let directions = self.rng.random_range(0..3);
        for b in (0..self.memories.len()).map(Pid::Mp) {
            if b != a && (all || self.rng.random_bool(0.6)) {
                self.block(a, b, directions, (self.now + time, time * 2));
            }
        }
    }

    /// Nothing passes between two processes until a time, in a direction (0, 1) or both (2); each end of their connections may notice within
    /// the other time.
    fn block(&mut self, a: Pid, b: Pid, directions: usize, (until, notice): (u64, u64)) {
        self.say(|| {
            let how = ["from", "to", "both ways at"][directions];
            format!(
                "nothing passes {how} {a:?} and {b:?} until {} ms",
                until / MS
            )
        });
        if directions != 1 {
            self.network.block(a, b, until);
        }
        if directions != 0 {
            self.network.block(b, a, until);
        }
        for (conn, end) in self.network.between(a, b) {
            // Either end notices, both, or none; soon or late.
            for end in [end, 1 - end] {
                if self.rng.random_bool(0.4) {
                    let at = self.now + self.rng.random_range(MS..notice.max(2 * MS));
                    self.at(at, Event::Notice(conn, end));
                }
            }
        }
    }

    fn any_memory(&mut self) -> Pid {
        Pid::Mp(self.rng.random_range(0..self.memories.len()))
    }

    /// A memory process that owns something when a run begins.
    fn any_owner(&mut self) -> Pid {
        let variables = &self.plan.variables;
        let owners = &variables[self.rng.random_range(0..variables.len())].owners;
        let name = &owners[self.rng.random_range(0..owners.len())];
        let found = self.plan.topology.find_mp(name);
        found.map_or(Pid::Mp(0), |mp| Pid::Mp(mp.index()))
    }

    fn any_program(&mut self) -> usize {
        let all = self.plan.topology.application_processes().len();
        self.rng.random_range(0..all)
    }

    fn any(&mut self) -> Pid {
        match self.rng.random_range(0..5) {
            0..2 => Pid::Ap(self.any_program()),
            2..4 => self.any_memory(),
            _ => Pid::Emp(self.rng.random_range(0..self.managers.len())),
        }
    }

    fn restart_soon(&mut self, pid: Pid) {
        let most = [20 * MS, 500 * MS, 5_000 * MS][self.rng.random_range(0..3)];
        let pause = self.rng.random_range(MS..most);
        self.at(self.now + pause, Event::Restart(pid));
    }

    fn kill_program(&mut self) {
        let pid = Pid::Ap(self.any_program());
        if !self.is_up(pid) {
            return;
        }
        self.common.history().disturb();
        self.kill(pid);
        if self.rng.random_bool(0.8) {
            self.restart_soon(pid);
        }
    }

    fn intrude(&mut self) {
        let a = self.any_program();
        let running = self.is_up(Pid::Ap(a)) && !self.is_stopped(Pid::Ap(a));
        if running && !self.is_up(Pid::Intruder(a)) {
            self.common.history().disturb();
            self.start(Pid::Intruder(a));
        }
    }

    fn kill_and_restart(&mut self, pid: Pid) {
        if !self.is_up(pid) {
            return;
        }
        self.common.history().disturb();
        self.kill(pid);
        self.restart_soon(pid);
    }

    fn lose_power(&mut self, e: usize) {
        let pid = Pid::Emp(e);
        self.common.history().disturb();
        if self.is_up(pid) {
            self.kill(pid);
            self.restart_soon(pid);
        }
        let seed = self.rng.random();
        self.say(|| format!("the disk of {pid:?} loses power"));
        if let Err(error) = self.disks[e].lose_power(seed) {
            self.trouble = Some(format!("the simulated disk: {error}"));
        }
    }

    /// All that reports to one event manager is on one machine.
    fn lose_power_of_a_machine(&mut self) {
        let e = self.rng.random_range(0..self.managers.len());
        let topology = std::sync::Arc::clone(&self.plan.topology);
        for (a, ap) in topology.application_processes().iter().enumerate() {
            let home = topology.mp(ap.memory_process);
            if home.is_some_and(|m| m.event_manager.index() == e) && self.is_up(Pid::Ap(a)) {
                self.common.history().disturb();
                self.kill(Pid::Ap(a));
                self.restart_soon(Pid::Ap(a));
            }
        }
        for (m, mp) in topology.memory_processes().iter().enumerate() {
            if mp.event_manager.index() == e {
                self.kill_and_restart(Pid::Mp(m));
            }
        }
        self.lose_power(e);
    }

    fn stop_for_a_while(&mut self, pid: Pid) {
        if !self.is_up(pid) || self.is_stopped(pid) {
            return;
        }
        let most = [50 * MS, 1_500 * MS, 6_000 * MS][self.rng.random_range(0..3)];
        let time = self.rng.random_range(MS..most);
        let mut history = self.common.history();
        history.disturb();
        // Its memory process may take from it what nobody else knows.
        match pid {
            Pid::Ap(a) => history.silent(a),
            Pid::Mp(_) => {
                if time > 1_000 * MS {
                    history.shaken();
                }
                let all = self.plan.topology.application_processes().len();
                (0..all).for_each(|a| history.silent(a));
            }
            _ => {}
        }
        drop(history);
        self.stop(pid, time);
    }

    /// A direction, or both, between two processes, or between one and all others.
    fn cut(&mut self) {
        self.common.history().cut();
        let most = [200 * MS, 2_000 * MS, 8_000 * MS][self.rng.random_range(0..3)];
        let until = self.now + self.rng.random_range(MS..most);
        let a = self.any_memory();
        let others: Vec<Pid> = match self.rng.random_range(0..3) {
            0 => {
                let memories = (0..self.memories.len()).map(Pid::Mp);
                let managers = (0..self.managers.len()).map(Pid::Emp);
                memories.chain(managers).filter(|p| *p != a).collect()
            }
            1 => vec![Pid::Emp(self.rng.random_range(0..self.managers.len()))],
            _ => vec![self.any_memory()],
        };
        let directions = self.rng.random_range(0..3);
        if others.iter().any(|b| matches!(b, Pid::Mp(_)) && *b != a) {
            self.common.history().shaken();
        }
        for b in others.into_iter().filter(|b| *b != a) {
            self.block(a, b, directions, (until, most * 2));
        }
    }

    fn fill_disk(&mut self) {
        let e = self.rng.random_range(0..self.disks.len());
        self.say(|| format!("the disk of emp{e} is full"));
        self.disks[e].set_full(true);
        let pause = self.rng.random_range(50 * MS..5_000 * MS);
        self.at(self.now + pause, Event::Room(e));
    }

    /// From now on nothing goes wrong, and what did is mended.
    pub(crate) fn heal(&mut self) {
        self.faults = false;
        self.say(|| "all is well".to_owned());
        self.network.unblock();
        self.disks.iter_mut().for_each(|d| d.set_full(false));
        let all: Vec<Pid> = self.processes.keys().copied().collect();
        for pid in all {
            self.go_on(pid);
            let wanted = matches!(pid, Pid::Mp(_) | Pid::Emp(_));
            if wanted && !self.is_up(pid) {
                self.start(pid);
            }
        }
    }
}
