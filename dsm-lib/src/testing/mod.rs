//! For the unit tests of a program: its ranks run as threads of the test, each with a session of its own, over real memory
//! processes and their real protocol. No `dosmos up`, no recording.
//!
//! ```no_run
//! use dsm_lib::testing;
//!
//! fn counts(dsm: &dsm_lib::Dsm) -> dsm_lib::Result<i64> {
//!     let sum = dsm.scalar::<i64>("sum").declare()?;
//!     let mut section = sum.acquire()?;
//!     section.update(|n| n + 1)?;
//!     section.release()?;
//!     dsm.barrier()?;
//!     sum.read()
//! }
//!
//! # fn main() -> dsm_lib::Result<()> {
//! assert_eq!(testing::run(4, counts)?, [4, 4, 4, 4]);
//! # Ok(()) }
//! ```

mod process;

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use dosmos_memproc::{Config, Recording};
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    AddressBook, ApId, EmpId, GroupId, GroupPath, MpId, Nanos, Topology, TopologyBuilder, blame,
};
use dosmos_trace::selection::{Mode, Selection};

use crate::{Dsm, Error, Result, Settings};
pub use process::{Process, Stopped};

/// Time limit of operations: short, so that a test that deadlocks says so soon.
const DEADLINE: Duration = Duration::from_secs(20);
/// Who would record, if anybody did.
const EVENT_MANAGER: &str = "emp0";

/// Runs `program` in `ranks` application processes, each with a memory process of its own; returns what each returned, by
/// rank.
///
/// # Errors
/// That of the rank that failed first; its failure makes others fail, which is not reported. A rank that panics makes
/// this panic.
///
/// # Panics
/// If a rank does.
pub fn run<R, E>(ranks: usize, program: impl Fn(&Dsm) -> Result<R, E> + Sync) -> Result<Vec<R>, E>
where
    R: Send,
    E: From<Error> + Display + Send,
{
    Cluster::start(ranks)?.run(program)
}

/// A cluster in this process, each memory process on a thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    topology: Topology,
    book: AddressBook,
    memory_processes: Vec<Process>,
    deadline: Duration,
    /// Holds what the processes keep beyond their end; removed after them.
    _run_dir: tempfile::TempDir,
}

impl Cluster {
    /// Of `ranks` application processes, each with a memory process of its own, in one group.
    ///
    /// # Errors
    /// [`Error::Cluster`] if there is no rank, or the system gives no thread or port.
    pub fn start(ranks: usize) -> Result<Self> {
        let names: Vec<String> = (0..ranks).map(|rank| format!("mp{rank}")).collect();
        let mps: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 0)).collect();
        let aps: Vec<u32> = (0u32..).take(ranks).collect();
        Self::of(topology(&["/all"], &mps, &aps)?)
    }

    /// Of any [`topology`].
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn of(topology: Topology) -> Result<Self> {
        Self::recording(topology, Mode::Off, |cluster| {
            // Nobody waits for it.
            cluster.book.give_up(EVENT_MANAGER)
        })
    }

    /// As [`of`](Self::of), with memory processes that record; `before` may start event managers, before them.
    ///
    /// # Errors
    /// As [`start`](Self::start), and those of `before`.
    pub fn recording(
        topology: Topology,
        mode: Mode,
        before: impl FnOnce(&Self) -> std::io::Result<()>,
    ) -> Result<Self> {
        if topology.application_processes().is_empty() {
            let why = "it has no rank; give it at least one".to_owned();
            return Err(Error::Cluster { why });
        }
        let failed = |e: std::io::Error| Error::Cluster { why: e.to_string() };
        let run_dir = tempfile::tempdir().map_err(failed)?;
        let mut cluster = Self {
            book: AddressBook::new(Default::default(), Some(run_dir.path())),
            memory_processes: Vec::new(),
            deadline: DEADLINE,
            topology,
            _run_dir: run_dir,
        };
        before(&cluster).map_err(failed)?;
        for number in (0u32..).take(cluster.topology.memory_processes().len()) {
            let process = cluster.memory_process(MpId(number), mode);
            cluster.memory_processes.push(process.map_err(failed)?);
        }
        Ok(cluster)
    }

    fn memory_process(&self, me: MpId, mode: Mode) -> std::io::Result<Process> {
        let config = Config {
            topology: self.topology.clone(),
            me,
            recording: Recording {
                selection: Selection {
                    mode,
                    ..Selection::default()
                },
                ..Recording::default()
            },
            overrides: Vec::new(),
            default_deadline: Nanos::ZERO,
            in_application: false,
            metrics: None,
        };
        let book = self.book.clone();
        let name = self.topology.mp_name(me);
        Process::start(&name, async move |listener, stop| {
            if let Err(error) = dosmos_memproc::run(config, listener, book, stop).await {
                panic!("a memory process of the test failed: {error}");
            }
        })
    }

    /// The same cluster, with another time limit of operations (default: 20 s).
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The processes.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
    /// Number of application processes.
    pub fn ranks(&self) -> usize {
        self.topology.application_processes().len()
    }
    /// Where its processes find each other.
    pub fn book(&self) -> &AddressBook {
        &self.book
    }

    /// What the application process of a rank is started with.
    ///
    /// # Errors
    /// [`Error::Cluster`] if there is no such rank.
    pub fn settings(&self, rank: usize) -> Result<Settings> {
        let none = || Error::Cluster {
            why: format!("there is no rank {rank}: the cluster has {}", self.ranks()),
        };
        let number = u32::try_from(rank).map_err(|_| none())?;
        let ap = self.topology.ap(ApId(number)).ok_or_else(none)?;
        let process = &self.memory_processes[ap.memory_process.index()];
        let mut settings = Settings::new(process.address().clone(), &ap.name);
        let token = self.book.require_token();
        settings.token = Some(token.map_err(|e| Error::Cluster { why: e.to_string() })?);
        settings.deadline = self.deadline;
        Ok(settings)
    }

    /// The session of a rank, for a test that does not run one program in all ranks.
    ///
    /// # Errors
    /// Those of [`Dsm::connect`] and [`settings`](Self::settings).
    pub fn join(&self, rank: usize) -> Result<Dsm> {
        Dsm::connect(self.settings(rank)?)
    }

    /// Runs `program` in all ranks, each with a new session; see [`run`].
    ///
    /// # Errors
    /// See [`run`].
    ///
    /// # Panics
    /// If a rank does.
    pub fn run<R, E>(&self, program: impl Fn(&Dsm) -> Result<R, E> + Sync) -> Result<Vec<R>, E>
    where
        R: Send,
        E: From<Error> + Display + Send,
    {
        let sessions: Result<Vec<Dsm>> = (0..self.ranks()).map(|rank| self.join(rank)).collect();
        let outcomes = self.run_on(&sessions?, program);
        if outcomes.iter().all(Result::is_ok) {
            return outcomes.into_iter().collect();
        }
        let because_of_another = |e: &E| blame::blamed(&e.to_string()).is_some();
        let mut errors: Vec<E> = outcomes.into_iter().filter_map(Result::err).collect();
        let first = errors.iter().position(|e| !because_of_another(e));
        Err(errors.swap_remove(first.unwrap_or(0)))
    }

    /// Runs `program` on these sessions, one of each rank; what each returned. A session whose program fails is closed, as
    /// a process would end, so that it does not keep the others waiting.
    ///
    /// # Panics
    /// If a program does.
    pub fn run_on<R, E>(
        &self,
        sessions: &[Dsm],
        program: impl Fn(&Dsm) -> Result<R, E> + Sync,
    ) -> Vec<Result<R, E>>
    where
        R: Send,
        E: Send,
    {
        let one = |dsm: &Dsm| {
            let outcome = catch_unwind(AssertUnwindSafe(|| program(dsm)));
            if !matches!(outcome, Ok(Ok(_))) {
                drop(dsm.clone().close());
            }
            outcome
        };
        let one = &one;
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let all = sessions.iter().map(|dsm| scope.spawn(move || one(dsm)));
            let all: Vec<_> = all.collect();
            let ended = all.into_iter().map(ScopedJoinHandle::join);
            ended.map(|outcome| outcome.and_then(|o| o)).collect()
        });
        let (mut done, mut panics) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            match outcome {
                Ok(outcome) => done.push(outcome),
                Err(panic) => panics.push(panic),
            }
        }
        if panics.is_empty() {
            return done;
        }
        // Who could not go on without a rank that panicked may have panicked for that.
        let first = panics
            .iter()
            .position(|p| blame::blamed(words(p)).is_none());
        resume_unwind(panics.swap_remove(first.unwrap_or(0)))
    }
}

/// The message of a panic, if it has one.
fn words(panic: &Box<dyn Any + Send>) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // They end side by side.
        self.memory_processes.iter_mut().for_each(Process::stop);
        self.memory_processes.clear();
    }
}

/// A topology of `groups` by path (parents first), memory processes with their groups' positions (the names of link
/// processes, one per group if there are several groups, begin with `lp`), and application processes, called `ap0` and so on, by the positions of
/// their memory processes.
///
/// # Errors
/// [`Error::Cluster`] if it makes no sense.
pub fn topology(groups: &[&str], mps: &[(&str, u32)], aps: &[u32]) -> Result<Topology> {
    let parent = |path: &str| {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let at = (0u32..).zip(groups).find(|(_, group)| **group == above);
        at.map(|(at, _)| GroupId(at))
    };
    let groups = groups.iter().map(|path| Group {
        path: GroupPath::from(*path),
        parent: parent(path),
    });
    let memory_processes = mps.iter().map(|(name, group)| MemoryProcess {
        name: (*name).into(),
        group: GroupId(*group),
        event_manager: EmpId(0),
        link: name.starts_with("lp"),
    });
    let application_processes = aps.iter().enumerate().map(|(i, mp)| ApplicationProcess {
        name: format!("ap{i}"),
        memory_process: MpId(*mp),
    });
    let builder = TopologyBuilder {
        name: "test".into(),
        groups: groups.collect(),
        memory_processes: memory_processes.collect(),
        application_processes: application_processes.collect(),
        event_managers: vec![EventManager {
            name: EVENT_MANAGER.into(),
        }],
    };
    builder
        .build()
        .map_err(|e| Error::Cluster { why: e.to_string() })
}
