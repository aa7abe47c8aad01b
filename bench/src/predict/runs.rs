//! Runs that are predicted, and predicted from: made, or kept from another time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use dosmos_cli::args::Format;
use dosmos_client::{Run, Target};
use dosmos_model::inputs::NetworkRecord;
use dosmos_replay::Script;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::sizes::{self, Work};
use crate::args::{Case, NetworkArgs, PredictArgs};
use crate::network;
use crate::run::{Ran, run_in};

/// By how much a slowed link is longer, in each direction.
pub(super) const DELAY: Duration = Duration::from_micros(250);

/// What messages cost over each kind of link, and how much more work programs have on more data.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Records {
    pub(super) unix: NetworkRecord,
    pub(super) tcp: NetworkRecord,
    pub(super) slow: NetworkRecord,
    pub(super) work: Work,
}

/// The file with them in a directory of kept runs.
const RECORDS: &str = "network.json";

/// Where runs come from.
pub(super) enum Runs {
    /// They are made, and kept here if anywhere.
    New(Option<PathBuf>),
    /// They were.
    Kept(PathBuf),
}

/// The place of a run among those that are kept.
pub(super) struct Place<'a> {
    pub(super) program: &'a str,
    pub(super) case: Case,
    pub(super) round: usize,
    pub(super) after: bool,
}

impl Place<'_> {
    fn within(&self, dir: &Path) -> PathBuf {
        let time = if self.after { "after" } else { "before" };
        let program = self.program.replace(|c: char| !c.is_alphanumeric(), "_");
        dir.join(format!(
            "{program}.{}.{}.{time}",
            self.case.name(),
            self.round
        ))
    }
}

impl Runs {
    pub(super) fn of(args: &PredictArgs) -> anyhow::Result<Self> {
        if let Some(dir) = &args.keep {
            std::fs::create_dir(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        Ok(match &args.kept {
            Some(dir) => Self::Kept(dir.clone()),
            None => Self::New(args.keep.clone()),
        })
    }

    /// What messages cost, and what these programs do on more data: measured, or as it was when the runs were made.
    pub(super) async fn records(&self, on_more: &[String]) -> anyhow::Result<Records> {
        let dir = match self {
            Self::Kept(dir) => {
                let file = dir.join(RECORDS);
                let cannot = || format!("no runs were kept here: cannot read {}", file.display());
                let text = std::fs::read_to_string(&file).with_context(cannot)?;
                let older = || {
                    format!(
                        "{} is of another version of this program: keep runs again, with --keep",
                        file.display()
                    )
                };
                return serde_json::from_str(&text).with_context(older);
            }
            Self::New(dir) => dir,
        };
        let records = Records {
            unix: network::measure(&quick(true), None).await?.0,
            tcp: network::measure(&quick(false), None).await?.0,
            slow: network::measure(&quick(true), Some(DELAY)).await?.0,
            work: sizes::work(on_more)?,
        };
        if let Some(dir) = dir {
            let file = dir.join(RECORDS);
            std::fs::write(&file, serde_json::to_string_pretty(&records)?)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(records)
    }

    /// A run of the program in this cluster, on that many processors.
    pub(super) async fn run(
        &self,
        place: Place<'_>,
        cluster: &str,
        processors: Option<usize>,
    ) -> anyhow::Result<Script> {
        let program = place.program;
        match self {
            Self::New(None) => {
                let ran = ran(&std::env::temp_dir(), cluster, program, processors).await?;
                script(ran.dir.path()).await
            }
            Self::New(Some(dir)) => {
                let ran = ran(dir, cluster, program, processors).await?;
                let (from, to) = (ran.dir.keep(), place.within(dir));
                std::fs::rename(&from, &to)
                    .with_context(|| format!("cannot rename {}", from.display()))?;
                script(&to).await
            }
            Self::Kept(dir) => script(&place.within(dir)).await,
        }
    }
}

fn quick(unix: bool) -> NetworkArgs {
    NetworkArgs {
        messages: 2000,
        runs: 3,
        unix,
        output: None,
        format: Format::Table,
        answer: None,
    }
}

/// Runs a program, on that many processors.
async fn ran(
    place: &Path,
    cluster: &str,
    program: &str,
    processors: Option<usize>,
) -> anyhow::Result<Ran> {
    let words: Vec<&str> = program.split_whitespace().collect();
    let all = sched_getaffinity(Pid::from_raw(0))?;
    if let Some(processors) = processors {
        let mut few = CpuSet::new();
        let usable = (0..CpuSet::count()).filter(|i| all.is_set(*i).unwrap_or(false));
        for processor in usable.take(processors) {
            few.set(processor)?;
        }
        sched_setaffinity(Pid::from_raw(0), &few)?;
    }
    let ran = run_in(place, cluster, &words, |_| Ok(())).await;
    sched_setaffinity(Pid::from_raw(0), &all)?;
    ran.with_context(|| program.to_owned())
}

/// What the processes of a run did.
async fn script(dir: &Path) -> anyhow::Result<Script> {
    let run = Run::open(&Target::run(dir)).await?;
    let script = run.script().await?;
    script.context("the processes did not say where their time went")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_directory_of_its_own_in_the_one_for_all() {
        let place = |program, after| Place {
            program,
            case: Case::Half,
            round: 1,
            after,
        };
        let all = Path::new("/kept");
        let run = place("sor --rows 20", false).within(all);
        assert_eq!(run, all.join("sor___rows_20.half.1.before"));
        assert_ne!(run, place("sor --rows 20", true).within(all));
        let elsewhere = place("edge --picture ../a.pgm", true).within(all);
        assert_eq!(elsewhere.parent(), Some(all));
    }
}
