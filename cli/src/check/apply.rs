//! `dosmos check --apply N`: the cluster file with the patch of a finding applied.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, bail};
use dosmos_analysis::Finding;
use dosmos_client::Launch;

use crate::config::apply_patch;
use crate::output;

/// What to apply, to what, and where to.
pub(super) struct Apply<'a> {
    /// Which finding, counted from 1 as they are shown.
    pub(super) number: usize,
    /// The cluster file, instead of that of the run.
    pub(super) cluster: Option<&'a Path>,
    /// The file to write, instead of standard output.
    pub(super) output: Option<&'a Path>,
}

impl Apply<'_> {
    /// Writes the cluster file with the patch applied.
    pub(super) fn run(&self, findings: &[Finding], launch: &Launch) -> anyhow::Result<()> {
        let finding = self.finding(findings)?;
        let what = format!(
            "finding {}, {} of {}",
            self.number,
            finding.kind,
            finding.target()
        );
        let Some(patch) = &finding.patch else {
            bail!(
                "{what}, has no patch for the cluster file: the cure is in the program; {}",
                finding.advice
            );
        };
        let (file, text) = self.cluster_file(launch)?;
        let text = apply_patch(&text, patch).with_context(|| format!("{what}, {file}"))?;
        match self.output.filter(|path| *path != Path::new("-")) {
            None => output::text(&text),
            Some(path) => {
                write_new(path, &text)?;
                let program = launch.metadata().map_or(&[][..], |m| &m.application);
                output::note(&format!(
                    "{what}: written to {path}; run it: dosmos up --cluster {path}{program}",
                    path = path.display(),
                    program = match program.is_empty() {
                        true => String::new(),
                        false => format!(" -- {}", program.join(" ")),
                    }
                ));
            }
        }
        Ok(())
    }

    fn finding<'f>(&self, findings: &'f [Finding]) -> anyhow::Result<&'f Finding> {
        let found = self.number.checked_sub(1).and_then(|i| findings.get(i));
        found.with_context(|| match findings.len() {
            0 => "there is no finding to apply".to_owned(),
            1 => format!(
                "there is no finding {}; there is one, number 1",
                self.number
            ),
            n => format!(
                "there is no finding {}; choose one from 1 to {n}",
                self.number
            ),
        })
    }

    /// The cluster file: what it is called, and its text.
    fn cluster_file(&self, launch: &Launch) -> anyhow::Result<(String, String)> {
        if let Some(path) = self.cluster {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            return Ok((path.display().to_string(), text));
        }
        let known = launch.metadata().map(|m| &m.cluster_file);
        let text = known
            .filter(|text| !text.is_empty())
            .context("nobody wrote the cluster file of this run; give it with --cluster FILE")?;
        Ok(("the cluster file of the run".to_owned(), text.clone()))
    }
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = File::create_new(path);
    if file
        .as_ref()
        .is_err_and(|e| e.kind() == ErrorKind::AlreadyExists)
    {
        bail!(
            "{} exists already; choose another name for --output, or remove it",
            path.display()
        );
    }
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}
