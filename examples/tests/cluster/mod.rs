//! Clusters for the tests of the programs, and an event manager that stores what they do.

use std::sync::OnceLock;

use dosmos_examples::Error;
use dosmos_proto::{AddressBook, EmpId, Topology};
use dosmos_trace::run::RunId;
use dosmos_trace::selection::Mode;
use dsm_lib::testing::{self, Process, topology};
use dsm_lib::{Dsm, Settings};
use tempfile::TempDir;

/// A running cluster; it ends when dropped.
pub(crate) struct Cluster {
    /// One for each application process, whatever programs it runs: one that leaves is gone.
    sessions: OnceLock<Vec<Dsm>>,
    /// Its memory processes end before the event manager that their last records go to.
    cluster: testing::Cluster,
    _event_manager: Process,
    /// It is gone after the event manager that writes there.
    _store: TempDir,
}

/// One memory process serves all.
pub(crate) fn single(aps: u32) -> Cluster {
    let aps = vec![0; aps as usize];
    start(topology(&["/all"], &[("mp0", 0)], &aps).unwrap())
}

/// The shape of `dosmos demo`.
pub(crate) fn demo() -> Cluster {
    let mps = [
        ("mp0", 0),
        ("mp1", 0),
        ("mp2", 1),
        ("mp3", 1),
        ("lp0", 0),
        ("lp1", 1),
    ];
    start(topology(&["/north", "/south"], &mps, &[0, 1, 2, 3]).unwrap())
}

/// Groups within groups.
pub(crate) fn nested() -> Cluster {
    let groups = ["/sea", "/sea/north", "/sea/south", "/land"];
    let mps = [
        ("mp0", 0),
        ("mp1", 1),
        ("mp2", 2),
        ("mp3", 3),
        ("lp0", 0),
        ("lp1", 1),
        ("lp2", 2),
        ("lp3", 3),
    ];
    start(topology(&groups, &mps, &[0, 1, 1, 2, 3]).unwrap())
}

fn start(topology: Topology) -> Cluster {
    let mut event_manager = None;
    let directory = dosmos_testseeds::scratch();
    let cluster = testing::Cluster::recording(topology, Mode::Events, |cluster| {
        let store = directory.path().join("store");
        let (topology, book) = (cluster.topology().clone(), cluster.book().clone());
        event_manager = Some(start_event_manager(topology, store, book)?);
        Ok(())
    });
    Cluster {
        sessions: OnceLock::new(),
        cluster: cluster.unwrap(),
        _event_manager: event_manager.unwrap(),
        _store: directory,
    }
}

fn start_event_manager(
    topology: Topology,
    store: std::path::PathBuf,
    book: AddressBook,
) -> std::io::Result<Process> {
    let config = dosmos_emp::Config {
        run: RunId::from_bits(1),
        topology,
        me: EmpId(0),
        store,
        metrics: None,
        retention: Default::default(),
        selection: Default::default(),
        companion: None,
    };
    Process::start("emp0", async move |listener, stop| {
        dosmos_emp::run(config, listener, book, stop).await.unwrap();
    })
}

impl Cluster {
    /// The session of an application process.
    pub(crate) fn join(&self, ap: usize) -> Dsm {
        self.cluster.join(ap).unwrap()
    }

    /// Number of application processes.
    pub(crate) fn processes(&self) -> usize {
        self.cluster.ranks()
    }

    /// What an application process is started with.
    pub(crate) fn settings(&self, ap: usize) -> Settings {
        self.cluster.settings(ap).unwrap()
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
        let sessions = self
            .sessions
            .get_or_init(|| (0..self.processes()).map(|ap| self.join(ap)).collect());
        let program = |dsm: &Dsm| dosmos_examples::run_on(dsm, name, &args);
        self.cluster.run_on(sessions, program)
    }
}
