//! Manual pages, from the grammar of the command line.

use std::io;
use std::path::Path;

use anyhow::Context;
use chrono::{DateTime, Utc};
use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Cli;

/// The time that a page is to have instead of that of its making, in seconds since 1970: packages are to be the same bytes
/// whenever they are built (docs/bibliography.md#reproducible-builds).
const TIME: &str = "SOURCE_DATE_EPOCH";
/// What stands at the foot of every page, and at its head.
const SOURCE: &str = concat!("dosmos ", env!("CARGO_PKG_VERSION"));
const MANUAL: &str = "User Commands";

/// Writes the pages of all commands to `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write to {}", folder.display());
    let time = match std::env::var(TIME) {
        Ok(seconds) => time(&seconds)?,
        Err(_) => Utc::now(),
    };
    std::fs::create_dir_all(folder).with_context(cannot)?;
    write_at(time, folder).with_context(cannot)
}

fn time(seconds: &str) -> anyhow::Result<DateTime<Utc>> {
    let parsed = seconds.parse().ok();
    let time = parsed.and_then(|s| DateTime::from_timestamp(s, 0));
    time.with_context(|| format!("{TIME} is not a number of seconds since 1970: {seconds:?}"))
}

fn write_at(time: DateTime<Utc>, folder: &Path) -> io::Result<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    pages(&command, &time.format("%Y-%m-%d").to_string(), folder)
}

/// `clap_mangen::generate_to` gives no date, and the program that shows a page then takes the next word for it.
fn pages(command: &clap::Command, date: &str, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        pages(below, date, folder)?;
    }
    let page = Man::new(command.clone());
    let page = page.date(date).source(SOURCE).manual(MANUAL);
    page.generate_to(folder).map(drop)
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

    #[test]
    fn every_page_has_the_date_that_is_asked_for_and_the_version() {
        let folder = tempfile::tempdir().unwrap();
        write_at(time("1000000000").unwrap(), folder.path()).unwrap();
        let pages = std::fs::read_dir(folder.path()).unwrap();
        for page in pages {
            let path = page.unwrap().path();
            let title = path.file_stem().unwrap().to_string_lossy();
            let text = std::fs::read_to_string(&path).unwrap();
            let head = format!(".TH {title} 1 2001-09-09 \"{SOURCE}\" \"{MANUAL}\"\n");
            assert!(text.contains(&head), "{text}");
        }
        assert!(time("yesterday").is_err());
    }
}
