//! Runs of built-in programs on clusters of real processes.

use std::path::Path;

use anyhow::{Context, bail};
use dosmos_cli::config::Cluster;
use dosmos_cli::launch::{RunDir, Running};
use dosmos_proto::ApId;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

/// What is left of a run: what its first process printed, and its directory until this is dropped.
pub(crate) struct Ran {
    pub(crate) said: String,
    pub(crate) dir: TempDir,
}

/// Runs a built-in program on a cluster of its own; returns what its first process printed.
pub(crate) async fn run_on(cluster: &str, app: &[&str]) -> anyhow::Result<String> {
    Ok(run_prepared(cluster, app, |_| Ok(())).await?.said)
}

/// The same, `prepare` having been called when the cluster was up; its directory is kept.
pub(crate) async fn run_prepared(
    cluster: &str,
    app: &[&str],
    prepare: impl FnOnce(&Running) -> anyhow::Result<()>,
) -> anyhow::Result<Ran> {
    run_in(&std::env::temp_dir(), cluster, app, prepare).await
}

/// The same, with its directory in `place`.
pub(crate) async fn run_in(
    place: &Path,
    cluster: &str,
    app: &[&str],
    prepare: impl FnOnce(&Running) -> anyhow::Result<()>,
) -> anyhow::Result<Ran> {
    run_watched(place, cluster, app, prepare, |_| Ok(())).await
}

/// The same, `ended` having been called when the program had ended.
pub(crate) async fn run_watched(
    place: &Path,
    cluster: &str,
    app: &[&str],
    prepare: impl FnOnce(&Running) -> anyhow::Result<()>,
    ended: impl FnOnce(&Running) -> anyhow::Result<()>,
) -> anyhow::Result<Ran> {
    let text = cluster;
    let cluster = Cluster::parse(text).map_err(|e| anyhow::anyhow!(e.join("\n")))?;
    let first = cluster.topology.ap_name(ApId(0));
    let dir = tempfile::Builder::new()
        .prefix("dosmos-bench")
        .tempdir_in(place)?;
    let run_dir = RunDir::create(Some(dir.path().to_owned()), "bench")?;
    let file = run_dir.path().join("cluster.toml");
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let mut running = Running::start(cluster, &file, run_dir).await?;
    prepare(&running)?;
    let program = std::env::current_exe()?.display().to_string();
    let mut command = vec![program, "app".to_owned()];
    command.extend(app.iter().map(ToString::to_string));
    let outcome = running.run_app(&command, false).await?;
    ended(&running)?;
    let said = std::fs::read_to_string(running.run_dir.log_path(&first))?;
    running.stop().await;
    if !outcome.failures.is_empty() {
        let kept = dir.keep();
        bail!(
            "{}\nits logs: {}",
            outcome.failures.join("\n"),
            kept.display()
        );
    }
    Ok(Ran { said, dir })
}

/// The JSON objects in what a program printed.
pub(crate) fn json_lines<T: DeserializeOwned>(said: &str) -> anyhow::Result<Vec<T>> {
    let lines = said.lines().filter(|l| l.starts_with('{'));
    lines
        .map(|l| serde_json::from_str(l).with_context(|| format!("the program said {l:?}")))
        .collect()
}

/// One group, an application process at each memory process.
pub(crate) fn one_group(processes: usize, monitored: bool) -> String {
    let mode = if monitored { "events" } else { "off" };
    let mut text = format!(
        "name = \"bench\"\n[defaults]\nlisten = \"unix\"\n[recording]\nmode = \"{mode}\"\n[[group]]\nname = \"all\"\n\
         [[emp]]\nname = \"emp0\"\n"
    );
    for i in 0..processes {
        text += &format!(
            "[[mp]]\nname = \"mp{i}\"\ngroup = \"all\"\nemp = \"emp0\"\n\
             [[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n"
        );
    }
    text
}
