//! The grammar of the terminal.

use std::path::PathBuf;

use clap::Args;

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
    /// Milliseconds between two updates of a running system; at least 100 [default: 500]
    #[arg(long, value_name = "MS")]
    pub(crate) refresh: Option<u64>,
    /// Colours: classic, safe (for colour-blind people), light (for a light background), mono, or one of the settings
    /// [default: classic; mono if NO_COLOR is set]
    #[arg(long, value_name = "NAME")]
    pub(crate) palette: Option<String>,
    /// Read colours and keys from this file [default: ~/.config/dosmos/terminal.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Draw with ASCII characters only [default: if the locale is not UTF-8]
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Do not use the mouse, so that the terminal's own text selection works
    #[arg(long)]
    pub(crate) no_mouse: bool,
}

impl ScreenArgs {
    /// The first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--refresh", self.refresh.is_some()),
            ("--palette", self.palette.is_some()),
            ("--settings", self.settings.is_some()),
            ("--ascii", self.ascii),
            ("--no-mouse", self.no_mouse),
        ];
        let mut given = given.into_iter().filter(|(_, given)| *given);
        given.next().map(|(option, _)| option)
    }
}
