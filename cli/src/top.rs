//! `dosmos top`: the terminal, live or post-mortem.

use std::sync::Arc;
use std::time::Duration;

use dosmos_visualizer::source::Fused;
use dosmos_visualizer::tui::{self, Options};

use crate::args::{ScreenArgs, TopArgs};
use crate::sources;

pub(crate) async fn run(args: TopArgs) -> anyhow::Result<()> {
    let opened = sources::open(&args.sources).await?;
    let options = Options {
        title: opened.title,
        started_by: "dosmos top".to_owned(),
        ..options(&args.screen)
    };
    tui::run(Arc::new(Fused::new(opened.sources)), options).await?;
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
