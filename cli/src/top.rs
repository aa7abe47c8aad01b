//! `dosmos top`: the terminal, live or post-mortem.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use dosmos_client::Run;
use dosmos_visualizer::state::settings::Settings;
use dosmos_visualizer::tui::{self, Options};

use crate::args::{ScreenArgs, TopArgs};

/// Milliseconds between two updates unless told otherwise.
const REFRESH: u64 = 500;

pub(crate) async fn run(args: TopArgs) -> anyhow::Result<()> {
    let run = Run::open(&args.sources.target()).await?;
    let options = Options {
        title: run.title().to_owned(),
        started_by: "dosmos top".to_owned(),
        ..options(&args.screen)?
    };
    tui::run(run, options).await?;
    Ok(())
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
