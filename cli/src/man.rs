//! Manual pages, from the grammar of the command line.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::Cli;

/// Writes the pages of all commands to `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options_and_examples() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        for command in Cli::command().get_subcommands() {
            if !command.is_hide_set() {
                page(&format!("dosmos-{}.1", command.get_name()));
            }
        }
        let query = page("dosmos-query.1");
        assert!(
            query.contains("buckets") && query.contains("Exit status"),
            "{query}"
        );
        assert!(!folder.path().join("dosmos-supervise.1").exists());
    }
}
