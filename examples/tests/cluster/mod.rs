//! A cluster in the test's own process: each memory and link process on a thread, each application
//! process on another, real connections between them, and an event manager that stores what they do.

use std::sync::{OnceLock, mpsc};
use std::thread::JoinHandle;

use dosmos_examples::Error;
use dosmos_memproc::{Config, Recording};
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::transport::{Address, Listener};
use dosmos_proto::{
    AddressBook, EmpId, GroupId, GroupPath, MpId, Nanos, Topology, TopologyBuilder,
};
use dosmos_trace::run::RunId;
use dsm_lib::{Dsm, Settings};
use tokio::sync::oneshot;

/// A running cluster; it ends when dropped.
pub(crate) struct Cluster {
    topology: Topology,
    book: AddressBook,
    addresses: Vec<Address>,
    /// One for each application process, whatever programs it runs: one that leaves is gone.
    sessions: OnceLock<Vec<Dsm>>,
    memory_processes: Vec<Process>,
    event_manager: Option<Process>,
    run_dir: tempfile::TempDir,
}

/// Groups by path (parents first), memory processes by group (the name starts with `lp` for link
/// processes), application processes by memory process.
pub(crate) fn topology(groups: &[&str], mps: &[(&str, u32)], aps: &[u32]) -> Topology {
    let parent = |path: &str| {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let at = groups.iter().position(|g| *g == above);
        at.map(|at| GroupId(at as u32))
    };
    let topology = TopologyBuilder {
        name: "test".into(),
        groups: groups
            .iter()
            .map(|path| Group {
                path: GroupPath::from(*path),
                parent: parent(path),
            })
            .collect(),
        memory_processes: mps
            .iter()
            .map(|(name, group)| MemoryProcess {
                name: (*name).into(),
                group: GroupId(*group),
                event_manager: EmpId(0),
                link: name.starts_with("lp"),
            })
            .collect(),
        application_processes: aps
            .iter()
            .enumerate()
            .map(|(i, mp)| ApplicationProcess {
                name: format!("ap{i}"),
                memory_process: MpId(*mp),
            })
            .collect(),
        event_managers: vec![EventManager {
            name: "emp0".into(),
        }],
    };
    topology.build().unwrap()
}

/// One memory process serves all.
pub(crate) fn single(aps: u32) -> Cluster {
    let aps = vec![0; aps as usize];
    Cluster::start(topology(&["/all"], &[("mp0", 0)], &aps))
}

/// The shape of `dosmos demo`.
pub(crate) fn demo() -> Cluster {
    Cluster::start(topology(
        &["/north", "/south"],
        &[
            ("mp0", 0),
            ("mp1", 0),
            ("mp2", 1),
            ("mp3", 1),
            ("lp0", 0),
            ("lp1", 1),
        ],
        &[0, 1, 2, 3],
    ))
}

/// Groups within groups.
pub(crate) fn nested() -> Cluster {
    Cluster::start(topology(
        &["/sea", "/sea/north", "/sea/south", "/land"],
        &[
            ("mp0", 0),
            ("mp1", 1),
            ("mp2", 2),
            ("mp3", 3),
            ("lp0", 0),
            ("lp1", 1),
            ("lp2", 2),
            ("lp3", 3),
        ],
        &[0, 1, 1, 2, 3],
    ))
}

impl Cluster {
    fn start(topology: Topology) -> Self {
        let run_dir = tempfile::tempdir().unwrap();
        let book = AddressBook::new(Default::default(), Some(run_dir.path()));
        let mut cluster = Self {
            addresses: Vec::new(),
            sessions: OnceLock::new(),
            memory_processes: Vec::new(),
            event_manager: None,
            book,
            run_dir,
            topology,
        };
        cluster.start_event_manager();
        for number in 0..cluster.topology.memory_processes().len() {
            cluster.start_mp(MpId(number as u32));
        }
        cluster
    }

    fn start_event_manager(&mut self) {
        let config = dosmos_emp::Config {
            run: RunId::from_bits(1),
            topology: self.topology.clone(),
            me: EmpId(0),
            store: self.run_dir.path().join("store"),
            metrics: None,
            retention: Default::default(),
            selection: Default::default(),
        };
        let book = self.book.clone();
        let (process, _) = Process::start(async move |listener, stop| {
            dosmos_emp::run(config, listener, book, stop).await.unwrap();
        });
        self.event_manager = Some(process);
    }

    fn start_mp(&mut self, me: MpId) {
        let config = Config {
            topology: self.topology.clone(),
            me,
            recording: Recording::default(),
            overrides: Vec::new(),
            default_deadline: Nanos::ZERO,
            metrics: None,
        };
        let book = self.book.clone();
        let (process, address) = Process::start(async move |listener, stop| {
            // Whether all records are stored before it gives up depends on how fast the machine is.
            dosmos_memproc::run(config, listener, book, stop)
                .await
                .unwrap();
        });
        self.memory_processes.push(process);
        self.addresses.push(address);
    }

    /// The session of an application process.
    pub(crate) fn join(&self, ap: usize) -> Dsm {
        Dsm::connect(self.settings(ap)).unwrap()
    }

    /// Number of application processes.
    pub(crate) fn processes(&self) -> usize {
        self.topology.application_processes().len()
    }

    /// What an application process is started with.
    pub(crate) fn settings(&self, ap: usize) -> Settings {
        let ap = &self.topology.application_processes()[ap];
        let address = self.addresses[ap.memory_process.index()].clone();
        let mut settings = Settings::new(address, &ap.name);
        settings.token = Some(self.book.require_token().unwrap());
        settings
    }

    /// Runs a program in all application processes; returns what each said.
    pub(crate) fn run(&self, name: &str, args: &str) -> Vec<String> {
        let said = self.try_run(name, args);
        let errors = said.iter().filter_map(|s| s.as_ref().err());
        let errors: Vec<String> = errors.map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{name} {args}: {errors:#?}");
        said.into_iter().flatten().collect()
    }

    /// As [`run`](Self::run), for programs that may fail.
    pub(crate) fn try_run(&self, name: &str, args: &str) -> Vec<Result<String, Error>> {
        let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        let sessions = self.sessions.get_or_init(|| {
            let all = 0..self.topology.application_processes().len();
            all.map(|ap| self.join(ap)).collect()
        });
        std::thread::scope(|scope| {
            let all: Vec<_> = sessions
                .iter()
                .map(|dsm| {
                    scope.spawn(|| {
                        let said = dosmos_examples::run_on(dsm, name, &args);
                        // Whoever fails leaves, as a process would, and does not keep the others waiting.
                        said.inspect_err(|_| drop(dsm.clone().close()))
                    })
                })
                .collect();
            all.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.sessions.take();
        // They end side by side, before the event manager that their last records go to.
        for process in &mut self.memory_processes {
            process.stop.take();
        }
        self.memory_processes.clear();
    }
}

/// A process of the cluster, on a thread of its own; it ends when dropped.
struct Process {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Stopped = std::pin::Pin<Box<dyn Future<Output = ()>>>;

impl Process {
    fn start<M>(main: M) -> (Self, Address)
    where
        M: AsyncFnOnce(Listener, Stopped) + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let (up, is_up) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(async {
                let any: Address = "127.0.0.1:0".parse().unwrap();
                let listener = Listener::bind(&any).await.unwrap();
                up.send(listener.address().clone()).unwrap();
                main(listener, Box::pin(async { drop(stopped.await) })).await;
            });
        });
        let process = Self {
            stop: Some(stop),
            thread: Some(thread),
        };
        (process, is_up.recv().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.take();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}
