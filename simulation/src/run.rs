//! One run, from its seed to its end.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::history::History;
use crate::memory::Memory;
use crate::plan::{Kind, Plan};
use crate::program::{Common, Part};
use crate::trail::Trail;
use crate::world::World;

const SECOND: u64 = 1_000_000_000;

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Of all that happened.
    pub hash: u64,
    /// Events.
    pub events: u64,
    /// Simulated time, in ns.
    pub time: u64,
    /// Operations of programs that succeeded.
    pub operations: u64,
    /// And that were refused or failed.
    pub refusals: u64,
    /// Clocks of event managers that were far apart and that the records relate, to a tenth of that or better.
    pub related: u32,
}

/// What does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What.
    pub what: String,
    /// What happened last.
    pub last: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {}\n--- what happened last ---\n{}",
            self.seed, self.what, self.last
        )
    }
}

impl std::error::Error for Failure {}

/// How many of the last events are told of a run that failed, if nobody says how many.
pub const TOLD: usize = 200;

/// Runs a seed, with these faults, to its end.
///
/// # Errors
/// If something does not hold; then the run is repeated, to tell its last `told` events.
pub fn run(seed: u64, kind: Kind, told: usize) -> Result<Outcome, Failure> {
    attempt(seed, kind, 0).map_err(|first| match attempt(seed, kind, told) {
        Err(failure) => failure,
        Ok(_) => Failure {
            what: format!("{} (not when it was repeated)", first.what),
            ..first
        },
    })
}

/// Where the files of simulated disks are: in memory, if the system has such a place.
fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    }
}

fn attempt(seed: u64, kind: Kind, told: usize) -> Result<Outcome, Failure> {
    let failed = |what: String| Failure {
        seed,
        what,
        last: String::new(),
    };
    let dir = tempfile::Builder::new()
        .prefix("dosmos-simulation")
        .tempdir_in(place());
    let dir = dir.map_err(|e| failed(format!("no place for disks: {e}")))?;
    let mut rng = StdRng::seed_from_u64(seed);
    let plan = Plan::new(&mut rng, kind);
    let processes = plan.topology.application_processes().len();
    let common = Arc::new(Common {
        plan: plan.clone(),
        history: Mutex::new(History::new(processes)),
        counts: Mutex::default(),
        end: Mutex::default(),
    });
    if common.plan.short_deadlines || kind == Kind::Losses {
        // They pass without a fault, too, and so do others where programs compute for long.
        common.history().disturb();
    }
    let trail = Trail::new(told);
    let mut world = World::new(plan, Arc::clone(&common), rng, trail, dir.path());
    let ended = world.live();
    let ended = ended.and_then(|()| world.judge());
    let history = common.history();
    match ended {
        Ok(related) => Ok(Outcome {
            hash: world.trail.hash(),
            events: world.trail.events(),
            time: world.now,
            operations: history.operations(),
            refusals: history.refusals(),
            related,
        }),
        Err(what) => Err(Failure {
            seed,
            what,
            last: world.trail.last(),
        }),
    }
}

impl World {
    /// The whole life of a cluster.
    fn live(&mut self) -> Result<(), String> {
        self.begin(Part::Rounds);
        // Whoever is killed before all have come does not show much.
        self.pass(SECOND / 4)?;
        self.let_things_go_wrong();
        self.until("programs end", 4_000 * SECOND, World::programs_are_over)?;
        self.heal();
        // What broke is known everywhere, and leases are over.
        self.pass(20 * SECOND)?;
        self.begin(Part::Last);
        self.until("the last programs end", 1_000 * SECOND, |w| {
            w.programs_are_over()
        })?;
        let mut history = self.common.history();
        history.check_sections();
        let end = self.common.end.lock();
        let end: BTreeMap<_, _> = end.map(|e| e.clone()).unwrap_or_default();
        history.check_end(&end);
        drop(history);
        self.check()?;
        self.finish()
    }

    /// Ends all processes, in order.
    fn finish(&mut self) -> Result<(), String> {
        for m in 0..self.memories.len() {
            self.on_memory(m, Memory::shut_down);
            self.on_memory(m, |memory, _, sent| memory.pack(false, sent));
            self.on_memory(m, |memory, _, sent| memory.pack_last(sent));
        }
        let drained = |w: &Self| {
            let mut all = w.memories.iter().flatten();
            all.all(Memory::is_drained)
        };
        self.until("records are stored", 60 * SECOND, drained)?;
        for m in 0..self.memories.len() {
            self.on_memory(m, |memory, _, sent| memory.say_bye(sent));
        }
        self.pass(2 * SECOND)?;
        for m in 0..self.memories.len() {
            if let Some(memory) = self.memories[m].take() {
                self.account(m, &memory, true);
            }
        }
        let settled = |w: &Self| {
            w.managers
                .iter()
                .flatten()
                .all(super::manager::EventManager::is_settled)
        };
        self.until("event managers have handed over", 60 * SECOND, settled)?;
        for (manager, disk) in self.managers.iter_mut().zip(&mut self.disks) {
            if let Some(manager) = manager {
                let closed = manager.close(disk);
                closed.map_err(|e| format!("a store cannot be closed: {e}"))?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if let Some(trouble) = &self.trouble {
            return Err(trouble.clone());
        }
        match self.common.history().violation() {
            Some(violation) => Err(violation.to_owned()),
            None => Ok(()),
        }
    }

    /// Lets time pass.
    fn pass(&mut self, time: u64) -> Result<(), String> {
        let until = self.now + time;
        while self.next_at().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = until;
        self.check()
    }

    /// Lets time pass until something holds.
    fn until(
        &mut self,
        what: &str,
        most: u64,
        holds: impl Fn(&Self) -> bool,
    ) -> Result<(), String> {
        let until = self.now + most;
        let mut steps = 0u64;
        while !holds(self) {
            if self.next_at().is_none_or(|at| at > until) {
                return Err(format!("it does not happen that {what}"));
            }
            self.step();
            steps += 1;
            if steps.is_multiple_of(64) {
                self.check()?;
            }
        }
        self.check()
    }
}
