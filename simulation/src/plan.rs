//! What a seed determines before the run: the cluster, the variables, the programs, and what goes wrong.

use std::sync::Arc;

use dosmos_proto::topology::{
    ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess, TopologyBuilder,
};
use dosmos_proto::{EmpId, GroupId, MpId, Topology};
use dsm_lib::{Cache, CopyPolicy, LockKind};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::history::Use;

/// Elements of an object.
pub(crate) const ELEMENTS: usize = 4;

/// A variable.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) usage: Use,
    /// Of each part.
    pub(crate) owners: Vec<String>,
    pub(crate) policy: CopyPolicy,
    pub(crate) cache: Cache,
    pub(crate) lock: LockKind,
    pub(crate) replicas: u32,
}

/// What may go wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing; and only what `verify` can decide.
    Plain,
    /// Nothing.
    Healthy,
    /// Everything.
    Faulty,
    /// Everything, and variables have replicas.
    Replicated,
    /// One memory process after the other is lost with its machine, stopped or cut off, the next when all are back and have had time to
    /// catch up. Variables have replicas: nothing of theirs is lost, and no name.
    Losses,
}

impl Kind {
    /// Whether something goes wrong.
    pub(crate) fn has_faults(self) -> bool {
        matches!(self, Self::Faulty | Self::Replicated | Self::Losses)
    }

    /// The kind of run that a seed is, unless another is asked for.
    pub fn of(seed: u64) -> Self {
        match seed % 16 {
            0 | 8 => Self::Plain,
            1 | 9 => Self::Healthy,
            7 => Self::Replicated,
            15 => Self::Losses,
            _ => Self::Faulty,
        }
    }

    /// Whether variables have replicas.
    fn has_replicas(self) -> bool {
        matches!(self, Self::Replicated | Self::Losses)
    }
}

/// How often programs do what. Each run has habits of its own: one that does much of one thing and little or nothing of another
/// comes to states that a run with some of everything does not (swarm testing).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Of accesses, those that change something.
    pub(crate) writes: f64,
    /// Of other accesses, calls that publish.
    pub(crate) publishes: f64,
    /// Barriers at which a program goes on with other calls.
    pub(crate) overlaps: f64,
    /// Rounds after which it passes on what it knows.
    pub(crate) passes_on: f64,
    /// Accesses to what its own memory process owns, if that owns something.
    pub(crate) at_home: f64,
}

impl Habits {
    fn new(rng: &mut StdRng) -> Self {
        Self {
            writes: one_of(rng, [0.2, 0.5, 0.5, 0.9]),
            publishes: one_of(rng, [0.0, 0.08, 0.3]),
            overlaps: one_of(rng, [0.0, 0.3, 0.9]),
            passes_on: one_of(rng, [0.0, 0.3, 0.9]),
            at_home: one_of(rng, [0.0, 0.0, 0.5, 0.95]),
        }
    }
}

/// How a variable is used; as [`Use`] says, but by whom.
#[derive(Clone, Copy, Debug)]
enum Sort {
    Queue,
    Owned,
    Counter,
}

/// How many variables of a run are of which sort.
#[derive(Clone, Copy, Debug)]
struct Mix {
    usage: Weighted<Sort, 3>,
    /// Owned ones near their writer, who may have them to itself.
    near: f64,
    invalidated: f64,
    in_processes: f64,
}

impl Mix {
    fn new(rng: &mut StdRng) -> Self {
        Self {
            usage: weighted(
                rng,
                [(Sort::Queue, 5), (Sort::Owned, 3), (Sort::Counter, 2)],
            ),
            near: one_of(rng, [0.0, 0.5, 1.0]),
            invalidated: one_of(rng, [0.0, 0.6, 1.0]),
            in_processes: one_of(rng, [0.0, 0.5, 1.0]),
        }
    }
}

/// One of several.
fn one_of<T: Copy, const N: usize>(rng: &mut StdRng, choices: [T; N]) -> T {
    choices[rng.random_range(0..N)]
}

/// What may happen, and how often beside the others.
type Weighted<T, const N: usize> = [(T, u32); N];

/// The same for a run: some happens more often than usual, some never.
fn weighted<T: Copy, const N: usize>(rng: &mut StdRng, usual: Weighted<T, N>) -> Weighted<T, N> {
    let its = usual.map(|(what, weight)| (what, weight * one_of(rng, [0, 1, 1, 4])));
    match its.iter().any(|(_, weight)| *weight > 0) {
        true => its,
        false => usual,
    }
}

/// What happens now.
fn drawn<T: Copy, const N: usize>(rng: &mut StdRng, of: &Weighted<T, N>) -> T {
    // One of the weights is not 0.
    of.choose_weighted(rng, |(_, weight)| *weight)
        .map_or(of[0].0, |(what, _)| *what)
}

/// What goes wrong, as [`Plan::faults`] weighs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A program is killed.
    Program,
    /// A second process of one name comes.
    Intruder,
    /// A memory process is killed.
    Memory,
    /// An event manager is killed, or its machine loses power.
    Manager,
    /// A process is stopped for a while.
    Stop,
    /// A network is cut.
    Cut,
    /// A disk is full.
    Disk,
    /// A machine with all its processes loses power.
    Machine,
}

impl Fault {
    const USUAL: Weighted<Self, 8> = [
        (Self::Program, 3),
        (Self::Intruder, 1),
        (Self::Memory, 2),
        (Self::Manager, 2),
        (Self::Stop, 3),
        (Self::Cut, 7),
        (Self::Disk, 1),
        (Self::Machine, 1),
    ];
}

/// How a memory process is lost, as [`Plan::losses`] weighs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// With its machine.
    Machine,
    /// It is cut off.
    Isolated,
    /// It is stopped.
    Stopped,
}

impl Loss {
    const USUAL: Weighted<Self, 3> = [(Self::Machine, 5), (Self::Isolated, 2), (Self::Stopped, 1)];
}

/// What a seed determines.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) topology: Arc<Topology>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) rounds: u32,
    pub(crate) actions: u32,
    pub(crate) deadline_ms: u64,
    pub(crate) short_deadlines: bool,
    /// A pause of all programs.
    pub(crate) quiet_ms: Option<u64>,
    /// Messages take up to so long, mostly.
    pub(crate) delay_ns: u64,
    /// What the first of two memory processes sends to the second takes longer: news then comes faster by a third one.
    pub(crate) slow: Option<(usize, usize)>,
    /// A program computes for up to so long between operations.
    pub(crate) pace_ns: u64,
    /// Faults so often, in ns; none: never.
    pub(crate) fault_every: Option<u64>,
    faults: Weighted<Fault, 8>,
    losses: Weighted<Loss, 3>,
    pub(crate) habits: Habits,
    pub(crate) kind: Kind,
}

impl Plan {
    pub(crate) fn new(rng: &mut StdRng, kind: Kind) -> Self {
        let shapes: [(&[&str], u32, u32); 7] = [
            (&["/a"], 1, 1),
            (&["/a"], 2, 1),
            (&["/a"], 3, 2),
            (&["/a", "/b"], 2, 1),
            (&["/a", "/a/x", "/b"], 2, 1),
            (&["/a", "/b"], 1, 2),
            // Of five any two may be lost.
            (&["/a"], 5, 1),
        ];
        let some = match kind {
            Kind::Plain | Kind::Healthy => 0..6,
            Kind::Faulty => 1..6,
            // Groups of three memory and link processes or more: two of three are a majority.
            Kind::Replicated => 2..5,
            Kind::Losses => 2..7,
        };
        let shape = match rng.random_range(some) {
            // A group of two processes cannot lose one.
            5 if kind == Kind::Losses => 6,
            shape => shape,
        };
        let (groups, mps, aps) = shapes[shape];
        let topology = topology(groups, mps, aps);
        let count = rng.random_range(1..6);
        let mix = Mix::new(rng);
        let variables = (0..count)
            .map(|i| variable(rng, &topology, (kind, mix), i))
            .collect();
        let losses = kind == Kind::Losses;
        let mps = topology.memory_processes().len();
        let slow = (mps > 1 && rng.random_bool(0.3)).then(|| {
            // Often the one that coordinates the barriers.
            let from = rng.random_range(0..2 * mps).saturating_sub(mps);
            (from, (from + rng.random_range(1..mps)) % mps)
        });
        Self {
            slow,
            variables,
            rounds: rng.random_range(1..5),
            actions: match losses {
                true => rng.random_range(5..60),
                false => rng.random_range(3..14),
            },
            pace_ns: match losses {
                true => one_of(rng, [2_000_000, 200_000_000, 1_000_000_000]),
                false => one_of(rng, [50_000, 2_000_000]),
            },
            deadline_ms: if kind.has_faults() { 8_000 } else { 60_000 },
            short_deadlines: kind.has_faults() && rng.random_bool(0.3),
            // As many of each magnitude: most of a long pause is like the rest of it.
            quiet_ms: rng.random_bool(0.5).then(|| {
                let most: f64 = if losses { 60.0 } else { 1_200.0 };
                (1_000.0 * most.powf(rng.random())) as u64
            }),
            // Slow ways make decisions overlap.
            delay_ns: match kind.has_replicas() {
                true => one_of(rng, [20_000, 200_000, 3_000_000, 30_000_000]),
                false => one_of(rng, [20_000, 200_000, 3_000_000]),
            },
            fault_every: kind
                .has_faults()
                .then(|| one_of(rng, [20_000_000, 300_000_000, 2_000_000_000])),
            faults: weighted(rng, Fault::USUAL),
            losses: weighted(rng, Loss::USUAL),
            habits: Habits::new(rng),
            topology: Arc::new(topology),
            kind,
        }
    }
}

impl Plan {
    /// What goes wrong next.
    pub(crate) fn fault(&self, rng: &mut StdRng) -> Fault {
        drawn(rng, &self.faults)
    }

    /// How the next memory process is lost.
    pub(crate) fn loss(&self, rng: &mut StdRng) -> Loss {
        drawn(rng, &self.losses)
    }

    /// How many memory and link processes of the group of one may be lost, so that the others are a majority.
    pub(crate) fn minority_of(&self, name: &str) -> u32 {
        let group = self.group_of(name);
        let all = self.topology.memory_processes().iter();
        let voters = all.filter(|p| Some(p.group) == group).count() as u32;
        voters.saturating_sub(1) / 2
    }

    /// The group of a memory process.
    pub(crate) fn group_of(&self, name: &str) -> Option<GroupId> {
        let all = self.topology.memory_processes();
        all.iter().find(|p| p.name == name).map(|p| p.group)
    }
}

fn variable(rng: &mut StdRng, topology: &Topology, (kind, mix): (Kind, Mix), i: usize) -> Variable {
    let owners: Vec<String> = topology
        .owners_in(None)
        .map(|mp| topology.mp_name(mp))
        .collect();
    let aps = topology.application_processes().len();
    let parts = one_of(rng, [1, 1, 2, 3]);
    let plain = kind == Kind::Plain;
    let usage = match drawn(rng, &mix.usage) {
        Sort::Queue => Use::Queue,
        Sort::Owned => Use::Owned(rng.random_range(0..aps)),
        Sort::Counter => Use::Counter,
    };
    let smallest = (0..topology.groups().len() as u32)
        .map(|group| topology.owners_in(Some(GroupId(group))).count())
        .min();
    let replicas = match (kind, smallest) {
        (kind, Some(3..)) if kind.has_replicas() => one_of(rng, [0, 1, 1, 2]),
        (kind, _) if kind.has_replicas() => one_of(rng, [0, 1, 1, 1]),
        _ => 0,
    };
    let lock = match (usage, rng.random_range(0..8)) {
        // Their words have no replicas.
        _ if replicas > 0 => LockKind::Queue,
        (Use::Queue, 0) if !plain => LockKind::Spin,
        (Use::Queue, 1) if !plain => LockKind::Mcs,
        _ => LockKind::Queue,
    };
    let owners: Vec<String> = (0..parts)
        .map(|_| match usage {
            Use::Owned(writer) if rng.random_bool(mix.near) => {
                let ap = &topology.application_processes()[writer];
                topology.mp_name(ap.memory_process)
            }
            _ => owners[rng.random_range(0..owners.len())].clone(),
        })
        .collect();
    Variable {
        name: format!("v{i}"),
        usage,
        owners,
        policy: match rng.random_bool(mix.invalidated) {
            true => CopyPolicy::Invalidate,
            false => CopyPolicy::Update,
        },
        cache: match rng.random_bool(mix.in_processes) {
            true => Cache::Ap,
            false => Cache::Mp,
        },
        lock,
        replicas,
    }
}

/// Groups of these paths (parents first), with memory processes, application processes at each, an event manager per group,
/// and link processes if there are several groups.
fn topology(groups: &[&str], mps: u32, aps: u32) -> Topology {
    let mut t = TopologyBuilder {
        name: "simulated".into(),
        ..TopologyBuilder::default()
    };
    for path in groups {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let parent = (0u32..).zip(groups).find(|(_, group)| **group == above);
        t.groups.push(Group {
            path: GroupPath::from(*path),
            parent: parent.map(|(at, _)| GroupId(at)),
        });
        t.event_managers.push(EventManager {
            name: format!("emp{}", t.event_managers.len()),
        });
    }
    for g in 0..groups.len() as u32 {
        for _ in 0..mps {
            let mp = t.memory_processes.len() as u32;
            t.memory_processes.push(MemoryProcess {
                name: format!("mp{mp}"),
                group: GroupId(g),
                event_manager: EmpId(g),
                link: false,
            });
            for _ in 0..aps {
                t.application_processes.push(ApplicationProcess {
                    name: format!("ap{}", t.application_processes.len()),
                    memory_process: MpId(mp),
                });
            }
        }
    }
    if groups.len() > 1 {
        for (g, path) in (0u32..).zip(groups) {
            t.memory_processes.push(MemoryProcess {
                name: format!("lp{}", path.replace('/', ".")),
                group: GroupId(g),
                event_manager: EmpId(g),
                link: true,
            });
        }
    }
    match t.build() {
        Ok(topology) => topology,
        Err(e) => unreachable!("the simulation's own cluster makes no sense: {e}"),
    }
}
