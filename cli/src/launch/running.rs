//! A cluster that runs on this machine: starting it, running a program on it, ending it.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use dosmos_proto::wire::FlushRequest;
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::{AddressBook, ApId, MpId, large, transport};
use futures::future::join_all;

use super::binding::Binding;
use super::child::{Child, ClusterFile, Joining};
use super::event_managers::EventManagers;
use super::failures::{self, Failure};
use super::metadata::Metadata;
use super::run_dir::RunDir;
use crate::config::{Cluster, OPERATOR};
use crate::output;
use crate::process::Within;

/// How long processes may take to be there.
const START: Duration = Duration::from_secs(20);
/// How long they may say nothing while they end before they are killed: one that waits for its records to be stored says how
/// far it is.
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
    emps: EventManagers,
    mps: Vec<Child>,
    apps: Vec<Child>,
    metadata: Metadata,
    binding: Binding,
}

/// How a program's processes ended.
#[derive(Debug)]
pub struct AppOutcome {
    /// What went wrong: the processes that failed by themselves first, then those that failed because of them.
    pub failures: Vec<String>,
    /// What happened to event managers, none of which fails a program.
    pub incidents: Vec<String>,
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
        let book = book.secured(cluster.credentials_of(OPERATOR)?);
        let started_with = ClusterFile {
            path: cluster_file.to_owned(),
            insecure: cluster.insecure,
        };
        let mut running = Self {
            metadata: Metadata::new(&cluster, cluster_file, run_dir.path())?,
            emps: EventManagers::none(started_with.clone(), run_dir.clone(), book.clone()),
            binding: Binding::of(cluster.bind, &cluster.topology)?,
            book,
            mps: Vec::new(),
            apps: Vec::new(),
            run_dir,
            cluster,
        };
        let topology = running.cluster.topology.clone();
        for emp in topology.event_managers() {
            running.emps.start(&emp.name)?;
        }
        for (mp, me) in topology.memory_processes().iter().zip((0..).map(MpId)) {
            if running.cluster.in_application.contains(&me) {
                continue;
            }
            let environment = running.binding.environment(&mp.name);
            let start = || Child::node(&mp.name, &started_with, &running.run_dir, environment);
            let child = running.binding.around(&mp.name, start)?;
            running.mps.push(child);
        }
        let answered = tokio::time::timeout(START, running.wait_until_all_answer()).await;
        let trouble = match answered {
            Ok(Ok(())) => {
                running.metadata.cluster_is_ready();
                return Ok(running);
            }
            Ok(Err(e)) => e,
            Err(_) => {
                let silent = running.first_silent().await;
                let log = running.run_dir.tail(&silent);
                anyhow!("{silent} does not respond within {START:?}; end of its log:\n{log}")
            }
        };
        running.metadata.ended();
        Err(trouble)
    }

    async fn wait_until_all_answer(&mut self) -> anyhow::Result<()> {
        let names: Vec<String> = self.children().map(|c| c.name.clone()).collect();
        for name in names {
            while !answers(&self.book, &name).await {
                self.check_all()?;
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
        self.emps.children().chain(&self.mps)
    }

    /// Operating-system numbers of the event managers.
    pub fn emp_pids(&self) -> impl Iterator<Item = u32> {
        self.emps.children().filter_map(Child::id)
    }

    /// Those of the memory and link processes.
    pub fn mp_pids(&self) -> impl Iterator<Item = u32> {
        self.mps.iter().filter_map(Child::id)
    }

    /// An error if one of the cluster's processes has ended.
    fn check_all(&mut self) -> anyhow::Result<()> {
        let all = self.emps.children_mut().chain(&mut self.mps);
        none_ended(all, &self.run_dir)
    }

    /// An error if a memory or link process has ended; event managers are started again. Says what happened.
    fn look_after(&mut self) -> anyhow::Result<Vec<String>> {
        none_ended(self.mps.iter_mut(), &self.run_dir)?;
        self.emps.look_after()
    }

    /// Runs `command` once per application process until all have ended. With `echo`, what they print
    /// appears here as well as in their logs.
    ///
    /// # Errors
    /// A program that cannot be started; a process of the cluster that ended.
    pub async fn run_app(&mut self, command: &[String], echo: bool) -> anyhow::Result<AppOutcome> {
        self.metadata.program_is(command);
        if let Err(e) = self.start_app(command, echo) {
            self.metadata.program_could_not_start(&e);
            return Err(e);
        }
        self.metadata.program_runs();
        let (mut failures, mut stopped, mut incidents) = (Vec::new(), Vec::new(), Vec::new());
        let mut failed_at: Option<tokio::time::Instant> = None;
        while !self.apps.is_empty() {
            for said in self.look_after()? {
                if echo {
                    output::note(&said);
                }
                incidents.push(said);
            }
            let mut left = Vec::new();
            for mut app in std::mem::take(&mut self.apps) {
                let ended = app.ended()?;
                if let Some(status) = ended {
                    self.metadata.rank_ended(&app.name, status);
                    if !self.cluster.in_application.is_empty() {
                        // It may never have been heard of. Whoever does not hear it here either is ended with the others.
                        let _ = self.book.give_up(&app.name);
                    }
                }
                match ended {
                    None => left.push(app),
                    Some(status) if status.success() => app.finish().await,
                    Some(status) => {
                        app.finish().await;
                        let words = self.run_dir.last_words(&app.name);
                        failures.push(Failure {
                            name: app.name.clone(),
                            status: status.to_string(),
                            words: words.unwrap_or_else(|| "it printed nothing".to_owned()),
                        });
                        failed_at.get_or_insert_with(tokio::time::Instant::now);
                    }
                }
            }
            self.apps = left;
            if failed_at.is_some_and(|t| t.elapsed() > AFTER_FAILURE) {
                stopped.extend(self.apps.iter().map(|app| app.name.clone()));
                self.end_app().await;
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.metadata.ended();
        Ok(AppOutcome {
            failures: failures::lines(&failures, &stopped),
            incidents,
        })
    }

    /// Starts `command` once per application process.
    fn start_app(&mut self, command: &[String], echo: bool) -> anyhow::Result<()> {
        // It is there before a program reads it.
        self.book.require_token()?;
        let run_dir = self.run_dir.path();
        let aps = self.cluster.topology.application_processes();
        for (ap, me) in aps.iter().zip((0..).map(ApId)) {
            let mp = self.cluster.topology.mp_name(ap.memory_process);
            let within = Within::of(&self.cluster, me, run_dir)?;
            let within = within
                .map(|w| w.write(&self.cluster, run_dir))
                .transpose()?;
            let address = match &within {
                Some((address, _)) => Some(address.clone()),
                None => self.book.resolve(&mp),
            };
            let address = address.with_context(|| format!("the address of {mp} is not known"))?;
            let files = self.cluster.files_of(&ap.name)?;
            let joining = Joining {
                memory_process: &address,
                within: within.map(|(_, file)| file),
                certificates: files.as_ref(),
                deadline: self.cluster.deadline,
            };
            let name = ap.name.as_str();
            let environment = self.binding.environment(name);
            let start = || Child::app(name, command, &joining, &self.run_dir, echo, environment);
            self.apps.push(self.binding.around(name, start)?);
        }
        Ok(())
    }

    /// Ends what still runs of the program.
    async fn end_app(&mut self) {
        let ended = end_all(&mut self.apps, &self.run_dir).await;
        for (name, status) in ended {
            self.metadata.rank_ended(&name, status);
        }
    }

    /// Ends the program if it still runs, then the memory and link processes, which report everything they still hold, and has the event
    /// managers put it on disk. Event managers that have ended are there again first: the others' records would be
    /// lost.
    pub async fn stop_memory(&mut self) {
        self.end_app().await;
        self.metadata.ended();
        // Whoever does not come back in time has its loss counted by its memory processes.
        let _ = tokio::time::timeout(GRACE, self.wait_for_event_managers()).await;
        let emps = &mut self.emps;
        let ending = end_all(&mut self.mps, &self.run_dir);
        tokio::pin!(ending);
        loop {
            tokio::select! {
                _ = &mut ending => break,
                () = tokio::time::sleep(LOOK_AGAIN) => note_all(emps.look_after()),
            }
        }
        let names: Vec<String> = self.emps.names().map(str::to_owned).collect();
        for name in names {
            let Some(address) = self.book.resolve(&name) else {
                continue;
            };
            if let Ok(channel) = transport::connect(&address, self.book.access(), START).await {
                let flush = EventManagerClient::new(channel)
                    .flush(FlushRequest {})
                    .await;
                if let Err(e) = flush {
                    output::note(&format!("{name}: {}", e.message()));
                }
            }
        }
    }

    async fn wait_for_event_managers(&mut self) {
        let names: Vec<String> = self.emps.names().map(str::to_owned).collect();
        for name in names {
            while self.emps.names().any(|n| n == name) && !answers(&self.book, &name).await {
                note_all(self.emps.look_after());
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }

    /// Ends everything that still runs.
    pub async fn stop(mut self) {
        self.stop_memory().await;
        end_all(&mut self.emps.into_children(), &self.run_dir).await;
        // Processes that were killed have left what they had in shared memory.
        large::sweep();
    }
}

fn note_all(said: anyhow::Result<Vec<String>>) {
    match said {
        Ok(said) => said.iter().for_each(|s| output::note(s)),
        Err(e) => output::note(&dosmos_client::text::with_causes(e.as_ref())),
    }
}

/// An error if one of these processes has ended.
fn none_ended<'a>(
    children: impl Iterator<Item = &'a mut Child>,
    run_dir: &RunDir,
) -> anyhow::Result<()> {
    for child in children {
        if let Some(status) = child.ended()? {
            let (name, log) = (&child.name, run_dir.tail(&child.name));
            bail!("{name} ended unexpectedly ({status}); end of its log:\n{log}");
        }
    }
    Ok(())
}

async fn answers(book: &AddressBook, name: &str) -> bool {
    match book.resolve(name) {
        Some(address) => transport::connect(&address, book.access(), START)
            .await
            .is_ok(),
        None => false,
    }
}

/// Waits until it has ended, or has said nothing for too long.
async fn finish_unless_silent(child: &mut Child, log: PathBuf) {
    let said = || log.metadata().map_or(0, |m| m.len());
    let mut before = said();
    while tokio::time::timeout(GRACE, child.finish()).await.is_err() {
        let now = said();
        if now == before {
            return;
        }
        before = now;
    }
}

/// Asks all to end, waits, and kills what has not ended. How those ended that did so in time.
async fn end_all(children: &mut Vec<Child>, run_dir: &RunDir) -> Vec<(String, ExitStatus)> {
    for child in children.iter() {
        child.terminate();
    }
    // Whoever is still there then is killed as its handle is dropped.
    join_all(children.iter_mut().map(|child| {
        let log = run_dir.log_path(&child.name);
        finish_unless_silent(child, log)
    }))
    .await;
    let ended = children.iter_mut().filter_map(|child| {
        let status = child.ended().ok().flatten()?;
        Some((child.name.clone(), status))
    });
    let ended = ended.collect();
    children.clear();
    ended
}
