//! The event managers of a run. One that ends is started again: its store has everything that it acknowledged, and
//! its memory processes send the rest again. One that ends again and again is given up, and its memory processes are told;
//! then the run goes on without it, and is incomplete.

use std::time::{Duration, Instant};

use dosmos_proto::AddressBook;

use super::child::{Child, ClusterFile};
use super::run_dir::RunDir;

/// How often one is started again before it is given up.
const RESTARTS: u32 = 5;
/// One that ran for this long counts as started successfully.
const STEADY: Duration = Duration::from_secs(30);
/// Time before the first restart; doubled for each further one.
const PAUSE: Duration = Duration::from_millis(50);

/// The event managers of a run.
#[derive(Debug)]
pub(super) struct EventManagers {
    cluster_file: ClusterFile,
    run_dir: RunDir,
    book: AddressBook,
    all: Vec<EventManager>,
}

#[derive(Debug)]
struct EventManager {
    name: String,
    state: State,
    /// Ends without a steady run in between.
    ends: u32,
}

#[derive(Debug)]
enum State {
    Running { child: Box<Child>, since: Instant },
    Restarting { at: Instant },
    GivenUp,
}

impl EventManagers {
    pub(super) fn none(cluster_file: ClusterFile, run_dir: RunDir, book: AddressBook) -> Self {
        Self {
            cluster_file,
            run_dir,
            book,
            all: Vec::new(),
        }
    }

    /// Starts one more.
    pub(super) fn start(&mut self, name: &str) -> anyhow::Result<()> {
        let child = Child::node(name, &self.cluster_file, &self.run_dir, None)?;
        self.all.push(EventManager {
            name: name.to_owned(),
            state: State::Running {
                child: Box::new(child),
                since: Instant::now(),
            },
            ends: 0,
        });
        Ok(())
    }

    /// The processes that run.
    pub(super) fn children(&self) -> impl Iterator<Item = &Child> {
        self.all.iter().filter_map(|emp| match &emp.state {
            State::Running { child, .. } => Some(&**child),
            State::Restarting { .. } | State::GivenUp => None,
        })
    }

    /// The same, to be ended.
    pub(super) fn into_children(self) -> Vec<Child> {
        let states = self.all.into_iter().map(|emp| emp.state);
        states
            .filter_map(|state| match state {
                State::Running { child, .. } => Some(*child),
                State::Restarting { .. } | State::GivenUp => None,
            })
            .collect()
    }

    /// The same, to be looked after.
    pub(super) fn children_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        self.all.iter_mut().filter_map(|emp| match &mut emp.state {
            State::Running { child, .. } => Some(&mut **child),
            State::Restarting { .. } | State::GivenUp => None,
        })
    }

    /// Names of those that run or will.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let expected = |emp: &&EventManager| !matches!(emp.state, State::GivenUp);
        self.all.iter().filter(expected).map(|e| e.name.as_str())
    }

    /// Starts again what has ended; says what happened.
    pub(super) fn look_after(&mut self) -> anyhow::Result<Vec<String>> {
        let mut said = Vec::new();
        for emp in &mut self.all {
            said.extend(emp.look_after(&self.cluster_file, &self.run_dir)?);
            if matches!(emp.state, State::GivenUp) && !self.book.is_given_up(&emp.name) {
                // Who is not told waits longer.
                let _ = self.book.give_up(&emp.name);
            }
        }
        Ok(said)
    }
}

impl EventManager {
    fn look_after(
        &mut self,
        cluster_file: &ClusterFile,
        run_dir: &RunDir,
    ) -> anyhow::Result<Option<String>> {
        match &mut self.state {
            State::GivenUp => Ok(None),
            State::Running { child, since } => {
                let Some(status) = child.ended()? else {
                    return Ok(None);
                };
                if since.elapsed() >= STEADY {
                    self.ends = 0;
                }
                self.ends += 1;
                let name = &self.name;
                if self.ends > RESTARTS {
                    self.state = State::GivenUp;
                    let log = run_dir.tail(name);
                    return Ok(Some(format!(
                        "event manager {name} ended {} times ({status}) and is not restarted: the run continues, and its trace will be \
                         incomplete; end of its log:\n{log}",
                        self.ends
                    )));
                }
                let said =
                    format!("event manager {name} ended ({status}); restarting it on its store");
                let pause = PAUSE * 2u32.pow(self.ends - 1);
                self.state = State::Restarting {
                    at: Instant::now() + pause,
                };
                Ok(Some(said))
            }
            State::Restarting { at } => {
                if Instant::now() >= *at {
                    self.state = State::Running {
                        child: Box::new(Child::node(&self.name, cluster_file, run_dir, None)?),
                        since: Instant::now(),
                    };
                }
                Ok(None)
            }
        }
    }
}
