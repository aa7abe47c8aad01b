//! A whole cluster on this machine: every memory, link and event manager process as an operating-system
//! process of its own, and a program run once per application process.
//!
//! Guarantees: children die with this process, however it ends (they watch their standard input, whose
//! other end is here, and are killed when the handle is dropped); they end in the order in
//! which nothing recorded is lost: applications, memory and link processes, event managers.

mod child;
mod run_dir;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use dosmos_proto::wire::FlushRequest;
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::{AddressBook, transport};

use crate::config::Cluster;
use child::Child;
pub use run_dir::RunDir;

/// How long processes may take to be there.
const START: Duration = Duration::from_secs(20);
/// How long they may take to end before they are killed.
const GRACE: Duration = Duration::from_secs(10);
/// How long the others may go on after one application process failed: they usually fail of that.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A cluster that runs on this machine.
#[derive(Debug)]
pub struct Running {
    /// What it was started from.
    pub cluster: Cluster,
    /// Where its logs, addresses and stores are.
    pub run_dir: RunDir,
    /// Where its processes answer.
    pub book: AddressBook,
    emps: Vec<Child>,
    mps: Vec<Child>,
}

/// How a program's processes ended.
#[derive(Debug)]
pub struct AppOutcome {
    /// What went wrong, one line per process that failed.
    pub failures: Vec<String>,
}

impl Running {
    /// Starts every event manager, memory and link process and waits until all answer.
    ///
    /// # Errors
    /// A process that cannot be started, ends, or does not answer in time, with the end of its log.
    pub async fn start(
        cluster: Cluster,
        cluster_file: &Path,
        run_dir: RunDir,
    ) -> anyhow::Result<Self> {
        let book = cluster.address_book(Some(run_dir.path()));
        let mut running = Self {
            book,
            emps: Vec::new(),
            mps: Vec::new(),
            run_dir,
            cluster,
        };
        let topology = running.cluster.topology.clone();
        let node = |name: &str, run_dir: &RunDir| Child::node(name, cluster_file, run_dir);
        for emp in topology.event_managers() {
            running.emps.push(node(&emp.name, &running.run_dir)?);
        }
        for mp in topology.memory_processes() {
            running.mps.push(node(&mp.name, &running.run_dir)?);
        }
        let answered = tokio::time::timeout(START, running.wait_until_all_answer()).await;
        match answered {
            Ok(Ok(())) => Ok(running),
            Ok(Err(e)) => Err(e),
            Err(_) => {
                let silent = running.first_silent().await;
                let log = running.run_dir.tail(&silent);
                bail!("{silent} does not answer after {START:?}; the end of its log:\n{log}");
            }
        }
    }

    async fn wait_until_all_answer(&mut self) -> anyhow::Result<()> {
        let names: Vec<String> = self.children().map(|c| c.name.clone()).collect();
        for name in names {
            while !answers(&self.book, &name).await {
                self.check_children()?;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        Ok(())
    }

    async fn first_silent(&self) -> String {
        for child in self.children() {
            if !answers(&self.book, &child.name).await {
                return child.name.clone();
            }
        }
        "a process".to_owned()
    }

    fn children(&self) -> impl Iterator<Item = &Child> {
        self.emps.iter().chain(&self.mps)
    }

    /// Operating-system numbers of the event managers.
    pub fn emp_pids(&self) -> impl Iterator<Item = u32> {
        self.emps.iter().filter_map(Child::id)
    }

    /// An error if one of the cluster's processes has ended.
    fn check_children(&mut self) -> anyhow::Result<()> {
        for child in self.emps.iter_mut().chain(&mut self.mps) {
            if let Some(status) = child.ended()? {
                let (name, log) = (&child.name, self.run_dir.tail(&child.name));
                bail!("{name} ended unexpectedly ({status}); the end of its log:\n{log}");
            }
        }
        Ok(())
    }

    /// Runs `command` once per application process until all have ended. With `echo`, what they print
    /// appears here as well as in their logs.
    ///
    /// # Errors
    /// A program that cannot be started; a process of the cluster that ended.
    pub async fn run_app(&mut self, command: &[String], echo: bool) -> anyhow::Result<AppOutcome> {
        let mut apps = Vec::new();
        for ap in self.cluster.topology.application_processes() {
            let mp = self.cluster.topology.mp_name(ap.memory_process);
            let address = self
                .book
                .resolve(&mp)
                .with_context(|| format!("the address of {mp} is not known"))?;
            let deadline = self.cluster.deadline;
            apps.push(Child::app(
                &ap.name,
                command,
                &address,
                deadline,
                &self.run_dir,
                echo,
            )?);
        }
        let mut failures = Vec::new();
        let mut failed_at: Option<tokio::time::Instant> = None;
        while !apps.is_empty() {
            self.check_children()?;
            let mut left = Vec::new();
            for mut app in apps {
                match app.ended()? {
                    None => left.push(app),
                    Some(status) if status.success() => app.finish().await,
                    Some(status) => {
                        app.finish().await;
                        let words = self.run_dir.last_words(&app.name);
                        let words = words.as_deref().unwrap_or("it printed nothing");
                        let words = words.strip_prefix("dosmos: ").unwrap_or(words);
                        failures.push(format!("{} failed ({status}): {words}", app.name));
                        failed_at.get_or_insert_with(tokio::time::Instant::now);
                    }
                }
            }
            apps = left;
            if failed_at.is_some_and(|t| t.elapsed() > AFTER_FAILURE) {
                for app in &mut apps {
                    failures.push(format!("{} was ended", app.name));
                }
                end_all(&mut apps).await;
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(AppOutcome { failures })
    }

    /// Ends the memory and link processes, which report everything they still hold, and has the event
    /// managers put it on disk.
    pub async fn stop_memory(&mut self) {
        end_all(&mut self.mps).await;
        for emp in &self.emps {
            let Some(address) = self.book.resolve(&emp.name) else {
                continue;
            };
            if let Ok(channel) = transport::connect(&address, START).await {
                let flush = EventManagerClient::new(channel)
                    .flush(FlushRequest {})
                    .await;
                if let Err(e) = flush {
                    crate::output::note(&format!("{}: {}", emp.name, e.message()));
                }
            }
        }
    }

    /// Ends everything that still runs.
    pub async fn stop(mut self) {
        self.stop_memory().await;
        end_all(&mut self.emps).await;
    }
}

async fn answers(book: &AddressBook, name: &str) -> bool {
    match book.resolve(name) {
        Some(address) => transport::connect(&address, START).await.is_ok(),
        None => false,
    }
}

/// Asks all to end, waits, and kills what has not ended.
async fn end_all(children: &mut Vec<Child>) {
    for child in children.iter() {
        child.terminate();
    }
    let all = async {
        for child in children.iter_mut() {
            child.finish().await;
        }
    };
    // Whoever is still there is killed as its handle is dropped.
    let _ = tokio::time::timeout(GRACE, all).await;
    children.clear();
}
