//! `dosmos top`: the terminal, live or post-mortem.

use std::time::Duration;

use dosmos_client::Run;
use dosmos_visualizer::tui::{self, Options};

use crate::args::{ScreenArgs, TopArgs};

pub(crate) async fn run(args: TopArgs) -> anyhow::Result<()> {
    let run = Run::open(&args.sources.target()).await?;
    let options = Options {
        title: run.title().to_owned(),
        started_by: "dosmos top".to_owned(),
        ..options(&args.screen)
    };
    tui::run(run, options).await?;
    Ok(())
}

/// What the command line says of the screen.
pub(crate) fn options(args: &ScreenArgs) -> Options {
    let mut options = Options {
        refresh: Duration::from_millis(args.refresh),
        mouse: !args.no_mouse,
        ..Options::default()
    };
    options.look.ascii = args.ascii;
    if let Some(palette) = args.palette {
        options.look.palette = palette;
    }
    options
}
