//! `dosmos runs --prune`: removes runs by a rule, after a question.

use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use dosmos_client::{RunEntry, duration, text};
use dosmos_proto::Nanos;

use crate::args::{Format, RunsArgs};
use crate::output;

pub(super) fn prune(
    folder: &Path,
    args: &RunsArgs,
    found: &[RunEntry],
) -> anyhow::Result<ExitCode> {
    if args.format != Format::Table {
        bail!("--format has no effect with --prune; leave one of them out");
    }
    let older = args.older_than.as_deref().map(duration).transpose()?;
    if args.keep.is_none() && older.is_none() {
        bail!("--prune needs a rule: --keep N, --older-than AGE (such as 7d), or both");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let now = Nanos(u64::try_from(now)?);
    let chosen = chosen(found, args.keep, older, now);
    if chosen.is_empty() {
        output::note("nothing to remove");
        return Ok(ExitCode::SUCCESS);
    }
    let bytes: u64 = chosen.iter().map(|r| r.bytes()).sum();
    for run in &chosen {
        output::text(&format!("{}\n", run.path.display()));
    }
    let what = format!(
        "{}, {}",
        text::plural(chosen.len() as u64, "run"),
        text::bytes(bytes)
    );
    if !args.yes && !confirmed(&format!("remove {what}? [y/N]")) {
        output::note("nothing was removed; --yes removes without a question");
        return Ok(ExitCode::FAILURE);
    }
    for run in &chosen {
        run.remove()?;
    }
    let latest = folder.join("latest");
    if latest.is_symlink() && !latest.exists() {
        std::fs::remove_file(&latest)?;
    }
    output::note(&format!("removed {what}"));
    Ok(ExitCode::SUCCESS)
}

/// Of `found`, the latest first, those that no rule keeps.
fn chosen(
    found: &[RunEntry],
    keep: Option<usize>,
    older: Option<Nanos>,
    now: Nanos,
) -> Vec<&RunEntry> {
    let late = found.iter().skip(keep.unwrap_or(0));
    let old = |r: &&RunEntry| older.is_none_or(|age| now - r.started >= age);
    late.filter(|r| !r.running).filter(old).collect()
}

fn confirmed(question: &str) -> bool {
    output::note(question);
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    let answer = answer.trim().to_lowercase();
    read.is_ok() && ["y", "yes"].contains(&answer.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_client::Launch;

    fn entry(name: &str, started: u64, running: bool) -> RunEntry {
        RunEntry {
            path: name.into(),
            name: name.to_owned(),
            launch: Launch::default(),
            running,
            started: Nanos(started),
            length: None,
        }
    }

    #[test]
    fn every_rule_keeps_what_it_names_and_nothing_that_runs_is_chosen() {
        let found = [
            entry("d", 90, true),
            entry("c", 80, false),
            entry("b", 50, false),
            entry("a", 10, false),
        ];
        let names = |keep, older| -> String {
            let chosen = chosen(&found, keep, older, Nanos(100));
            chosen.iter().map(|r| r.name.as_str()).collect()
        };
        assert_eq!(names(Some(0), None), "cba");
        assert_eq!(names(Some(2), None), "ba");
        assert_eq!(names(None, Some(Nanos(50))), "ba");
        assert_eq!(names(Some(3), Some(Nanos(20))), "a");
        assert_eq!(names(Some(9), None), "");
    }
}
