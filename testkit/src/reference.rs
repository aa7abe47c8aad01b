//! The reference workload: the records behind every published figure of the trace store.
//!
//! Two groups of four memory processes, one application process each, 64 variables of one to four objects.
//! A process works step after step: it chooses a variable (Zipf, exponent 1; three times in four one
//! of its own group instead of the other's), accesses it, and computes for a jittered time (2 to 10 µs,
//! uniform). One step in ten is an exclusive section: acquire, one to three accesses, release. Durations are
//! log-normal (σ = 0.6) about a median that depends on how far the access goes: 1.5 µs local, 15 µs
//! within the group, 45 µs across groups; so are the waits of one acquire in five. The records come in order of
//! their start, processes mixed as they ran.
//!
//! Guarantees: the same seed gives the same records everywhere; memory does not grow with their number.

use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess};
use dosmos_proto::{
    ApId, ElementType, EmpId, GroupId, Layout, MpId, Nanos, ObjectId, Topology, TopologyBuilder,
    VarId, Variable, VariableSpec,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

/// Number of variables.
pub const VARIABLES: u32 = 64;
/// Number of application processes, and of memory processes.
pub const PROCESSES: u32 = 8;
/// When the run begins: 2026-01-01T00:00:00Z.
pub const BEGIN: Nanos = Nanos(1_767_225_600_000_000_000);

/// Spread of the logarithm of durations and waits.
const SIGMA: f64 = 0.6;
/// Median durations by origin, in nanoseconds.
const MEDIAN_NS: [f64; 3] = [1_500.0, 15_000.0, 45_000.0];
/// Median of the waits for a lock, in nanoseconds.
const WAIT_NS: f64 = 30_000.0;
/// Median of the time at the owner, in nanoseconds.
const SERVICE_NS: f64 = 800.0;

/// The processes of the reference workload, all reporting to one event manager, `emp0`.
pub fn topology() -> Topology {
    let group = |name| Group {
        path: GroupPath::top(name),
        parent: None,
    };
    let memory = |i: u32| MemoryProcess {
        name: format!("mp{i}"),
        group: GroupId(i / 4),
        event_manager: EmpId(0),
        link: false,
    };
    let application = |i: u32| ApplicationProcess {
        name: format!("ap{i}"),
        memory_process: MpId(i),
    };
    TopologyBuilder {
        name: "reference".to_owned(),
        groups: vec![group("a"), group("b")],
        event_managers: vec![EventManager {
            name: "emp0".to_owned(),
        }],
        memory_processes: (0..PROCESSES).map(memory).collect(),
        application_processes: (0..PROCESSES).map(application).collect(),
    }
    .build()
    // Its numbers all name something: a test looks.
    .unwrap_or_default()
}

/// The variables of the reference workload: `v00`, the most used, to `v63`.
pub fn variables() -> Vec<Variable> {
    let variable = |rank: u32| {
        let parts = objects(rank);
        let shape = (u64::from(parts), u64::from(elements(rank)));
        let layout = Layout::new(ElementType::F64, shape, (parts, 1)).ok()?;
        let owner = owner(rank);
        let spec = VariableSpec::new(format!("v{rank:02}"), layout).ok()?;
        Variable::new(id(rank), spec, vec![owner], GroupId(owner.0 / 4)).ok()
    };
    (0..VARIABLES).filter_map(variable).collect()
}

fn id(rank: u32) -> VarId {
    VarId(owner(rank).0 << 20 | rank)
}

/// Neighbours in rank are owned in different groups.
fn owner(rank: u32) -> MpId {
    MpId(rank % 2 * 4 + rank / 2 % 4)
}

fn objects(rank: u32) -> u32 {
    1 + rank % 4
}

/// Elements of each of its objects.
fn elements(rank: u32) -> u32 {
    1 << (rank % 8)
}

/// What a process does next.
#[derive(Clone, Copy, Debug)]
struct Process {
    ready: Nanos,
    /// The section it is in: rank, object, accesses left before the release.
    section: Option<(u32, u32, u32)>,
}

/// The records, one after another, without end.
#[derive(Clone, Debug)]
pub struct Workload {
    random: ChaCha8Rng,
    /// Running sums of the Zipf weights, in 1/2^32.
    popularity: Vec<u32>,
    processes: [Process; PROCESSES as usize],
    /// Releases of each object so far.
    versions: Vec<[u64; 4]>,
}

impl Workload {
    /// The workload of this seed.
    pub fn new(seed: u64) -> Self {
        let weights = (1..=VARIABLES).map(|rank| 1.0 / f64::from(rank));
        let total: f64 = weights.clone().sum();
        let mut sum = 0.0;
        let popularity = weights.map(|w| {
            sum += w;
            (sum / total * f64::from(u32::MAX)) as u32
        });
        let process = |i: usize| Process {
            ready: BEGIN + Nanos(i as u64 * 1_000),
            section: None,
        };
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            popularity: popularity.collect(),
            processes: std::array::from_fn(process),
            versions: vec![[0; 4]; VARIABLES as usize],
        }
    }

    /// The next `count` records.
    pub fn take_records(&mut self, count: usize) -> Vec<Record> {
        self.take(count).collect()
    }

    fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.random.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    /// Log-normal about `median`: the sum of four uniforms stands for the normal (within 4.9 σ).
    fn log_normal(&mut self, median: f64) -> Nanos {
        let mut uniform = || f64::from(self.random.next_u32()) / f64::from(u32::MAX);
        let sum = uniform() + uniform() + uniform() + uniform();
        let normal = (sum - 2.0) * 3f64.sqrt();
        Nanos((median * (SIGMA * normal).exp()) as u64)
    }

    fn choose(&mut self, group: u32) -> (u32, u32) {
        let draw = self.random.next_u32();
        let rank = self.popularity.partition_point(|&p| p < draw) as u32;
        let mut rank = rank.min(VARIABLES - 1);
        if owner(rank).0 / 4 != group && self.below(4) < 3 {
            rank ^= 1;
        }
        let object = self.below(objects(rank));
        (rank, object)
    }

    /// What process `at` does, and the section it is in afterwards.
    fn step(&mut self, at: usize) -> (Op, u32, u32) {
        let access = |draw| if draw < 3 { Op::Read } else { Op::Write };
        match self.processes[at].section {
            Some((rank, object, 0)) => {
                self.processes[at].section = None;
                (Op::Release, rank, object)
            }
            Some((rank, object, left)) => {
                self.processes[at].section = Some((rank, object, left - 1));
                (access(self.below(4)), rank, object)
            }
            None => {
                let (rank, object) = self.choose(at as u32 / 4);
                if self.below(10) == 0 {
                    let accesses = 1 + self.below(3);
                    self.processes[at].section = Some((rank, object, accesses));
                    (Op::Acquire, rank, object)
                } else {
                    (access(self.below(4)), rank, object)
                }
            }
        }
    }
}

impl Iterator for Workload {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let at = (0..PROCESSES as usize).min_by_key(|&i| self.processes[i].ready)?;
        let start = self.processes[at].ready;
        let (op, rank, object) = self.step(at);
        let (me, owner) = (MpId(at as u32), owner(rank));
        let mut origin = match () {
            () if owner == me => Origin::Local,
            () if owner.0 / 4 == me.0 / 4 => Origin::Intra,
            () => Origin::Inter,
        };
        // Six reads in ten of the group's other objects find a copy.
        let optimized = op == Op::Read && origin == Origin::Intra && self.below(10) < 6;
        if optimized {
            origin = Origin::Local;
        }
        let service = match origin {
            Origin::Local => Nanos::ZERO,
            _ => self.log_normal(SERVICE_NS),
        };
        let waits = op == Op::Acquire && self.below(5) == 0;
        let wait = if waits {
            self.log_normal(WAIT_NS)
        } else {
            Nanos::ZERO
        };
        let travel = self.log_normal(MEDIAN_NS[origin as usize - 1]);
        let duration = travel + service + wait;
        let version = &mut self.versions[rank as usize][object as usize];
        *version += u64::from(op == Op::Release);
        let version = *version;
        let touches = matches!(op, Op::Read | Op::Write);
        let elements = if touches { elements(rank) } else { 0 };
        let think = 2_000 + self.below(8_000);
        self.processes[at].ready = start + duration + Nanos(think.into());
        Some(Record {
            start,
            duration,
            wait,
            service,
            op,
            side: Side::Requester,
            origin,
            flags: Flags {
                optimized,
                ..Flags::default()
            },
            object: ObjectId::new(id(rank), object),
            ap: ApId(at as u32),
            mp: me,
            peer: owner,
            count: 1,
            bytes: u64::from(elements) * 8,
            version,
            range: (0, elements),
        })
    }
}

/// The record reduced to the six fields of the papers: time, operation, origin, variable, application
/// process and duration; and how many accesses these stand for.
#[must_use]
pub fn six_fields(record: &Record) -> Record {
    Record {
        wait: Nanos::ZERO,
        service: Nanos::ZERO,
        flags: Flags::default(),
        object: ObjectId::new(record.object.var, 0),
        mp: MpId(0),
        peer: MpId(0),
        bytes: 0,
        version: 0,
        range: (0, 0),
        ..*record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workload_is_what_it_says() {
        let records = Workload::new(1).take_records(50_000);
        assert_eq!(records, Workload::new(1).take_records(50_000));
        assert_ne!(records, Workload::new(2).take_records(50_000));
        assert!(records.is_sorted_by_key(|r| r.start));
        assert!(records.iter().all(|r| r.wait + r.service <= r.duration));
        let share = |test: fn(&Record) -> bool| {
            records.iter().filter(|r| test(r)).count() as f64 / records.len() as f64
        };
        let first = share(|r| r.object.var == id(0) || r.object.var == id(1));
        assert!((0.25..0.4).contains(&first), "{first}");
        let inter = share(|r| r.origin == Origin::Inter);
        assert!((0.05..0.25).contains(&inter), "{inter}");
        let acquires = share(|r| r.op == Op::Acquire);
        assert!((share(|r| r.op == Op::Release) - acquires).abs() < 0.001);
        assert_eq!(variables().len(), VARIABLES as usize);
        assert_eq!(topology().name(), "reference");
        for r in &records {
            let declared = variables().into_iter().find(|v| v.id() == r.object.var);
            let declared = declared.unwrap();
            assert_eq!(declared.owner(r.object.index), r.peer);
            assert!(r.object.index < declared.spec().layout().objects());
            if r.start > BEGIN + Nanos(200_000) {
                break;
            }
        }
    }
}
