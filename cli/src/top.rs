//! `dosmos top`: the terminal, live or post-mortem.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use dosmos_client::{Error, RUNS, Run, Target, runs};
use dosmos_visualizer::state::settings::Settings;
use dosmos_visualizer::tui::{self, Options};

use crate::args::{ScreenArgs, TopArgs};

/// Milliseconds between two updates unless told otherwise.
const REFRESH: u64 = 500;

pub(crate) async fn run(args: TopArgs) -> anyhow::Result<()> {
    let run = open(&args.sources.target(), Path::new(RUNS)).await?;
    let title = run.as_ref().map_or("", Run::title);
    let options = Options {
        title: title.to_owned(),
        started_by: "dosmos top".to_owned(),
        ..options(&args.screen)?
    };
    tui::run(run, options).await?;
    Ok(())
}

/// The run to show; none where no run is named and there is no latest one, but others are in `folder` to choose from.
async fn open(target: &Target, folder: &Path) -> anyhow::Result<Option<Run>> {
    match Run::open(target).await {
        Ok(run) => Ok(Some(run)),
        Err(Error::NoLatestRun(_)) if runs(folder).is_ok_and(|runs| !runs.is_empty()) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// What the settings and the command line say of the screen.
pub(crate) fn options(args: &ScreenArgs) -> anyhow::Result<Options> {
    let mut options = Options {
        refresh: Duration::from_millis(args.refresh.unwrap_or(REFRESH)),
        ..Options::default()
    };
    if let Some((file, text)) = settings(args.settings.as_deref())? {
        let settings = Settings::parse(&text);
        let settings = settings.map_err(|why| anyhow::anyhow!("{}: {why}", file.display()))?;
        options = options.with(settings);
    }
    options.mouse &= !args.no_mouse;
    options.look.ascii |= args.ascii;
    if let Some(palette) = &args.palette {
        let found = options.palettes.find(palette);
        options.look.palette = found.map_err(|why| anyhow::anyhow!("--palette: {why}"))?;
    }
    Ok(options)
}

/// The file with the settings, and what is in it. The one in the home directory need not exist.
fn settings(chosen: Option<&Path>) -> anyhow::Result<Option<(PathBuf, String)>> {
    let (file, must_be) = match chosen {
        Some(file) => (file.to_owned(), true),
        None => {
            let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
            let home = || set("HOME").map(|home| Path::new(&home).join(".config"));
            let Some(dir) = set("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home) else {
                return Ok(None);
            };
            (dir.join("dosmos/terminal.toml"), false)
        }
    };
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(Some((file, text))),
        Err(e) if e.kind() == io::ErrorKind::NotFound && !must_be => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot read {}", file.display())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests may
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_latest_run_one_is_chosen_if_there_are_others() {
        let folder = tempfile::tempdir().unwrap();
        // Tests run in the folder of this crate, where there is no run.
        let nothing = Target::default();
        let error = open(&nothing, folder.path()).await.err().unwrap();
        assert!(error.to_string().contains("name the run"), "{error}");
        std::fs::create_dir_all(folder.path().join("other/store/emp0")).unwrap();
        assert!(open(&nothing, folder.path()).await.unwrap().is_none());
        let gone = Target::run(folder.path().join("gone"));
        assert!(open(&gone, folder.path()).await.is_err(), "a run is named");
    }
}
