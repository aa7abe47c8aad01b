//! What the launcher knows of a run, written beside each of its stores: how the run was started, and how each
//! application process ended.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use dosmos_proto::{Nanos, Topology};
use dosmos_trace::run::RunId;
use dosmos_trace::store::{Exit, Manifest, RankOutcome, RunMetadata};

use crate::config::Cluster;
use crate::output;

/// The metadata of a run that is being launched.
#[derive(Debug)]
pub(crate) struct Metadata {
    known: RunMetadata,
    stores: Vec<PathBuf>,
}

impl Metadata {
    /// What is known before the program starts.
    pub(super) fn new(cluster: &Cluster, file: &Path, run_dir: &Path) -> anyhow::Result<Self> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let run = RunId::of_directory(run_dir)
            .with_context(|| format!("{} has no identity", run_dir.display()))?;
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let host = host.trim().to_owned();
        let mut metadata = Self::of_ranks(&cluster.topology, run, &text, vec![host.clone()])?;
        let ranks = cluster.topology.application_processes().iter();
        let ranks = ranks.map(|ap| RankOutcome {
            name: ap.name.clone(),
            host: host.clone(),
            exit: Exit::NotStarted("the cluster was not ready".to_owned()),
        });
        metadata.known.ranks = ranks.collect();
        let emps = cluster.topology.event_managers().iter();
        let stores = emps.map(|emp| cluster.store_of(&emp.name, run_dir));
        metadata.stores = stores.collect();
        Ok(metadata)
    }

    /// What is known of a run on several hosts, each of which writes to its own stores.
    pub(crate) fn of_ranks(
        topology: &Topology,
        run: RunId,
        cluster_text: &str,
        hosts: Vec<String>,
    ) -> anyhow::Result<Self> {
        let known = RunMetadata {
            run,
            name: topology.name().to_owned(),
            command: std::env::args().collect(),
            application: Vec::new(),
            directory: std::env::current_dir()?.display().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hosts,
            cluster_file: cluster_text.to_owned(),
            started: now(),
            ended: None,
            ranks: Vec::new(),
        };
        Ok(Self {
            known,
            stores: Vec::new(),
        })
    }

    /// All of it as JSON, for an event manager elsewhere, with how each application process ended.
    pub(crate) fn json(&mut self, ranks: Vec<RankOutcome>, has_ended: bool) -> String {
        self.known.ranks = ranks;
        if has_ended {
            self.known.ended.get_or_insert_with(now);
        }
        // Text and numbers alone: nothing that JSON could not hold.
        serde_json::to_string(&self.known).unwrap_or_default()
    }

    /// All processes of the cluster answer: their stores are there.
    pub(super) fn cluster_is_ready(&mut self) {
        for rank in &mut self.known.ranks {
            rank.exit = Exit::NotStarted("no program was started".to_owned());
        }
        self.write();
    }

    /// The program `command` is to be started.
    pub(crate) fn program_is(&mut self, command: &[String]) {
        self.known.application = command.to_vec();
    }

    /// All of the program is started.
    pub(super) fn program_runs(&mut self) {
        for rank in &mut self.known.ranks {
            rank.exit = Exit::Unknown;
        }
        self.write();
    }

    /// The program, or a part of it, could not be started.
    pub(super) fn program_could_not_start(&mut self, why: &anyhow::Error) {
        for rank in &mut self.known.ranks {
            rank.exit = Exit::NotStarted(format!("{why:#}"));
        }
        self.ended();
    }

    /// Application process `name` has ended.
    pub(super) fn rank_ended(&mut self, name: &str, status: ExitStatus) {
        let exit = match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Unknown,
        };
        if let Some(rank) = self.known.ranks.iter_mut().find(|r| r.name == name) {
            rank.exit = exit;
        }
    }

    /// The program has ended, or was ended; or it will not be started any more.
    pub(super) fn ended(&mut self) {
        if self.known.ended.is_none() {
            self.known.ended = Some(now());
            self.write();
        }
    }

    fn write(&self) {
        // A directory without a manifest still belongs to its event manager.
        let there = self.stores.iter().filter(|s| Manifest::read(s).is_ok());
        for store in there {
            // The run goes on without: then it counts as one whose end nobody saw.
            if let Err(e) = self.known.write(store) {
                output::note(&format!(
                    "cannot write the outcome of the run to {}: {e}",
                    store.display()
                ));
            }
        }
    }
}

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().into()
}
