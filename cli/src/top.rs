//! `dosmos top`: the terminal, live or post-mortem.

use std::sync::Arc;
use std::time::Duration;

use dosmos_visualizer::source::Fused;
use dosmos_visualizer::tui::{self, Options};

use crate::args::SourceArgs;
use crate::sources;

/// Time between two looks at a running system.
pub(crate) const REFRESH: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: SourceArgs) -> anyhow::Result<()> {
    let opened = sources::open(&args).await?;
    let options = Options {
        refresh: REFRESH,
        no_color: no_color(),
        title: opened.title,
        started_by: "dosmos top".to_owned(),
        finished: None,
        cancel: None,
    };
    tui::run(Arc::new(Fused::new(opened.sources)), options).await?;
    Ok(())
}

/// <https://no-color.org>: set and not empty.
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
}
