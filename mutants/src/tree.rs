//! A copy of the sources with all changes of one package in them, without those that do not compile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::list::{Genre, Mutant};
use crate::rewrite;
use crate::switch;

/// A copy of the sources.
pub struct Tree {
    pub root: PathBuf,
    build: PathBuf,
}

/// A program with tests.
pub struct Program {
    /// Of the target: the library or a file of `tests/`.
    pub name: String,
    pub path: PathBuf,
    /// Where its tests expect to be.
    pub folder: PathBuf,
}

impl Tree {
    /// Copies what git knows of.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn copy(from: &Path, work: &Path) -> Result<Self> {
        let root = work.join("tree");
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let files = Command::new("git")
            .current_dir(from)
            .args(["ls-files", "-z"])
            .output()?;
        for file in String::from_utf8(files.stdout)?.split_terminator('\0') {
            let to = root.join(file);
            fs::create_dir_all(to.parent().context("a file without a folder")?)?;
            fs::copy(from.join(file), to).with_context(|| file.to_owned())?;
        }
        Ok(Self {
            root,
            build: work.join("build"),
        })
    }

    /// Puts all changes of a package into it and gives those that are in it, by number from 1.
    ///
    /// # Errors
    /// If it does not compile whatever is left out.
    pub fn change(
        &self,
        from: &Path,
        package: &str,
        mutants: &[Mutant],
    ) -> Result<BTreeSet<usize>> {
        let folder = from.join(crate_folder(mutants)?);
        let there = self.root.join(crate_folder(mutants)?);
        fs::write(there.join("src/mutant.rs"), switch::module(mutants.len()))?;
        let lib = fs::read_to_string(folder.join("src/lib.rs"))?;
        fs::write(
            there.join("src/lib.rs"),
            lib + "\n#[doc(hidden)]\npub mod mutant;\n",
        )?;

        let hidden = |i: &usize| mutants[i - 1].hides_its_type();
        let mut left_out: BTreeSet<usize> = (1..=mutants.len()).filter(hidden).collect();
        loop {
            let mut by_file: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
            for (i, m) in mutants.iter().enumerate() {
                let list = by_file.entry(&m.file).or_default();
                if !left_out.contains(&(i + 1)) {
                    list.push((i + 1, m));
                }
            }
            for (file, list) in &by_file {
                let text = fs::read_to_string(from.join(file))?;
                let (changed, impossible) =
                    rewrite::with(&text, list).with_context(|| (*file).to_owned())?;
                left_out.extend(impossible);
                fs::write(self.root.join(file), changed)?;
            }
            let wrong = self.wrong(package, mutants)?;
            eprintln!(
                "{package}: {} changes do not compile in this round",
                wrong.len()
            );
            if wrong.is_empty() {
                break;
            }
            left_out.extend(wrong);
        }
        Ok((1..=mutants.len())
            .filter(|n| !left_out.contains(n))
            .collect())
    }

    fn cargo(&self, arguments: &[&str], package: &str) -> Result<Vec<Value>> {
        let mut command = Command::new("cargo");
        command
            .current_dir(&self.root)
            .args(arguments)
            .args(["--package", package]);
        command
            .args(["--message-format", "json"])
            .stderr(Stdio::null());
        command.env("CARGO_TARGET_DIR", &self.build);
        let output = command.output().context("cargo")?;
        let lines = String::from_utf8_lossy(&output.stdout);
        lines
            .lines()
            .map(|l| serde_json::from_str(l).context("a message of cargo"))
            .collect()
    }

    /// The changes that the compiler does not like.
    fn wrong(&self, package: &str, mutants: &[Mutant]) -> Result<BTreeSet<usize>> {
        let mut wrong = BTreeSet::new();
        let mut unknown = Vec::new();
        for message in self.cargo(&["check", "--lib"], package)? {
            let message = &message["message"];
            if message["level"] != "error" {
                continue;
            }
            let mut spans: Vec<&Value> = spans(message).collect();
            spans.sort_by_key(|s| s["is_primary"] != true);
            let mut numbers = Vec::new();
            for span in &spans {
                if numbers.is_empty() {
                    let text = self.text(span)?;
                    numbers = marked(&text, byte(span, "byte_start")).unwrap_or_default();
                }
            }
            // Arms of a `match` that lacks some now: those up to where the compiler wants another one.
            if let (true, Some(first)) = (numbers.is_empty(), spans.first()) {
                let children = message["children"].as_array().into_iter().flatten();
                let end = children
                    .flat_map(self::spans)
                    .map(|s| byte(s, "byte_end"))
                    .max();
                let text = self.text(first)?;
                let part = byte(first, "byte_start")..end.unwrap_or_default().min(text.len());
                let arm = |n: &usize| mutants[n - 1].genre == Genre::MatchArm;
                numbers.extend(text.get(part).into_iter().flat_map(marks).filter(arm));
            }
            if numbers.is_empty() && !spans.is_empty() {
                unknown.push(message["rendered"].as_str().unwrap_or_default().to_owned());
            }
            wrong.extend(numbers);
        }
        if wrong.is_empty() && !unknown.is_empty() {
            bail!(
                "{package} does not compile, and that is not a change's doing:\n{}",
                unknown.join("\n")
            );
        }
        Ok(wrong)
    }

    /// The text of the file that the compiler speaks of.
    fn text(&self, span: &Value) -> Result<String> {
        let path = self
            .root
            .join(span["file_name"].as_str().unwrap_or_default());
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    /// Compiles the tests of a package and these of others, but for those that are left out.
    ///
    /// # Errors
    /// If they do not compile.
    pub fn programs(
        &self,
        package: &str,
        others: &[(&str, &str)],
        without: &[String],
    ) -> Result<Vec<Program>> {
        let mut programs = Vec::new();
        let mut messages = self.cargo(&["test", "--no-run", "--lib", "--tests"], package)?;
        for (other, test) in others.iter().filter(|o| !without.iter().any(|w| w == o.1)) {
            messages.extend(self.cargo(&["test", "--no-run", "--test", test], other)?);
        }
        for message in messages {
            if let Some(rendered) = message["message"]["rendered"].as_str()
                && message["message"]["level"] == "error"
            {
                bail!("{rendered}");
            }
            let name = message["target"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let manifest = message["manifest_path"]
                .as_str()
                .map(Path::new)
                .and_then(Path::parent);
            if let (Some(path), Some(folder), true) = (
                message["executable"].as_str(),
                manifest,
                message["profile"]["test"] == true,
            ) && !without.contains(&name)
            {
                programs.push(Program {
                    name,
                    path: path.into(),
                    folder: folder.into(),
                });
            }
        }
        Ok(programs)
    }
}

/// The folder of the crate that these changes are in.
fn crate_folder(mutants: &[Mutant]) -> Result<&str> {
    let file = &mutants.first().context("no changes")?.file;
    Ok(file.split("/src/").next().unwrap_or_default())
}

fn spans(message: &Value) -> impl Iterator<Item = &Value> {
    message["spans"].as_array().into_iter().flatten()
}

fn byte(span: &Value, what: &str) -> usize {
    span[what].as_u64().unwrap_or_default() as usize
}

/// The numbers of all marks in a text.
fn marks(text: &str) -> impl Iterator<Item = usize> {
    let marks = text
        .split("/*m")
        .skip(1)
        .filter_map(|t| t.split("*/").next());
    marks.flat_map(|numbers| numbers.split(',').filter_map(|n| n.parse().ok()))
}

/// The numbers of the innermost mark around a byte.
fn marked(text: &str, at: usize) -> Option<Vec<usize>> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = 0;
    while let Some(next) = text[rest..].find("/*m").map(|i| rest + i) {
        if next > at {
            break;
        }
        let end = next + text[next..].find("*/")?;
        let numbers = &text[next + 3..end];
        match numbers.is_empty() {
            true => _ = open.pop(),
            false => open.push(numbers),
        }
        rest = end;
    }
    let numbers = open.last()?;
    numbers.split(',').map(|n| n.parse().ok()).collect()
}
