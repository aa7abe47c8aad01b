//! The grammar of the terminal.

use clap::Args;
use dosmos_visualizer::state::Palette;

use super::common::SourceArgs;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) screen: ScreenArgs,
}

/// How the terminal shows it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ScreenArgs {
    /// Milliseconds between two updates of a running system; at least 100
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub(crate) refresh: u64,
    /// Colours: classic, safe (for colour-blind people), mono [default: classic; mono if NO_COLOR is set]
    #[arg(long, value_name = "NAME")]
    pub(crate) palette: Option<Palette>,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Do not use the mouse, so that the terminal's own text selection works
    #[arg(long)]
    pub(crate) no_mouse: bool,
}
