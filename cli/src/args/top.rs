//! The grammar of the terminal and its benchmark.

use clap::Args;
use dosmos_visualizer::state::Palette;

use super::{Format, SourceArgs};

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

#[derive(Debug, Args)]
pub(crate) struct BenchTopArgs {
    /// Variables of the system watched
    #[arg(long, default_value_t = 100_000)]
    pub(crate) variables: u32,
    /// Its event managers, each with a memory process
    #[arg(long, default_value_t = 64)]
    pub(crate) emps: u32,
    /// Records a second that it makes
    #[arg(long, default_value_t = 20_000)]
    pub(crate) rate: u32,
    /// Runs; medians and spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Seconds on each screen in a run
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Milliseconds between two looks at the system
    #[arg(long, default_value_t = 500)]
    pub(crate) refresh: u64,
    /// Columns of the terminal
    #[arg(long, default_value_t = 200)]
    pub(crate) columns: u16,
    /// Rows of the terminal
    #[arg(long, default_value_t = 60)]
    pub(crate) rows: u16,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
