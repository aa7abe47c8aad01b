//! The grammar of the terminal and its benchmark.

use clap::Args;
use dosmos_visualizer::state::Palette;

use super::SourceArgs;

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
    /// Milliseconds between two looks at a running system; 100 at least
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub(crate) refresh: u64,
    /// Colours: classic, safe (also for colour-blind people), mono [default: classic; mono if NO_COLOR is set]
    #[arg(long, value_name = "NAME")]
    pub(crate) palette: Option<Palette>,
    /// Only ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Leave the mouse to the terminal
    #[arg(long)]
    pub(crate) no_mouse: bool,
}
