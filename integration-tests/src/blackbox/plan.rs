//! What goes wrong in a run, and when: a function of the seed and of what the system allows.

use std::fmt;
use std::time::Duration;

use dosmos_testseeds::Random;

/// Groups, each on a network of its own if they are on any.
pub(super) const GROUPS: usize = 2;
/// Memory processes, an application process each, dealt out to the groups in turn.
pub(super) const MEMBERS: usize = 4;

/// A process of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// An application process.
    Application(usize),
    /// A memory process.
    Memory(usize),
    /// The link process of a group.
    Link(usize),
    /// The event manager of a group.
    EventManager(usize),
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Application(i) => write!(f, "ap{i}"),
            Self::Memory(i) => write!(f, "mp{i}"),
            Self::Link(i) => write!(f, "lp{i}"),
            Self::EventManager(i) => write!(f, "emp{i}"),
        }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL. Unless it is an application process it is started again after this time, if at all.
    Kill(Process, Option<Duration>),
    /// SIGSTOP, and SIGCONT after this time.
    Stop(Process, Duration),
    /// The two groups do not reach each other for this time.
    Cut(Duration),
    /// What the first group sends does not reach the second for this time.
    HalfCut(Duration),
    /// The disk of the event managers is full for this time.
    FullDisk(Duration),
}

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// It is a function of this, and of what is allowed.
    pub seed: u64,
    /// Each group has a network of its own, between them is a wire.
    pub network: bool,
    /// The event managers have a disk of their own.
    pub disk: bool,
    /// Memory processes are within application processes: what kills or stops one of the two does so to both.
    pub within: bool,
    /// How long after the one before something goes wrong, and what.
    pub faults: Vec<(Duration, Fault)>,
    /// Operations of each application process.
    pub operations: u64,
    /// The program counts on one variable with this number of replicas, and goes on after what failed; else it does random operations
    /// on variables without.
    pub replicas: Option<u32>,
    /// The first fault waits until each process of that program has counted so often.
    pub counted: usize,
    /// Timeout of an operation.
    pub timeout: Duration,
}

impl Plan {
    /// What is not `allowed` (networks, disks) is left out.
    pub fn of(seed: u64, (networks, disks): (bool, bool)) -> Self {
        let random = &mut Random::new(seed);
        // The first numbers of near seeds are near each other.
        for _ in 0..8 {
            random.below(2);
        }
        let kind = random.below(4);
        let (network, disk) = (kind == 0 && networks, kind == 1 && disks);
        let faults = (0..1 + random.below(3)).map(|_| {
            let after = millis(random, 200, 1_200);
            (after, fault(random, network, disk))
        });
        let faults = faults.collect();
        let operations = 200 + random.below(1_500);
        let replicas = (random.below(3) == 0).then_some(1);
        Self {
            seed,
            network,
            disk,
            within: random.below(3) == 0,
            faults,
            operations,
            replicas,
            counted: 0,
            timeout: Duration::from_secs(3),
        }
    }
}

fn millis(random: &mut Random, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + random.below(to - from))
}

fn fault(random: &mut Random, network: bool, disk: bool) -> Fault {
    let time = millis(random, 30, 4_000);
    match random.below(8) {
        0 | 1 if network => Fault::Cut(time),
        2 | 3 if network => Fault::HalfCut(time),
        0..=3 if disk => Fault::FullDisk(time),
        0..=4 => Fault::Stop(process(random), time),
        _ => {
            let process = process(random);
            let again = match process {
                Process::Application(_) => None,
                // A run without its event manager tells nothing.
                Process::EventManager(_) => Some(time / 4),
                _ => (random.below(2) == 0).then_some(time / 4),
            };
            Fault::Kill(process, again)
        }
    }
}

fn process(random: &mut Random) -> Process {
    let (kind, number) = (random.below(8), random.below(1 << 20) as usize);
    match kind {
        // Without one of them the program ends.
        0 => Process::Application(number % MEMBERS),
        1..=3 => Process::Memory(number % MEMBERS),
        4 | 5 => Process::Link(number % GROUPS),
        _ => Process::EventManager(number % GROUPS),
    }
}
