//! `dosmos-bench instructions`: how many instructions an operation takes on the paths that every access, record and
//! query goes through. Times differ by a factor of three between machines; these do not, so they are compared with
//! committed ones (`.ci/instructions`).
//!
//! Each path runs twice in a process of its own under callgrind, the second time with twice as many operations: the
//! difference is what the operations take, without what is around them.

mod paths;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use dosmos_cli::output;
use serde::{Deserialize, Serialize};

use crate::args::InstructionsArgs;

/// Instructions per operation may be so much more or less than the committed ones, in per cent.
const TOLERANCE: f64 = 3.0;

/// What is committed.
#[derive(Debug, Serialize, Deserialize)]
struct Counted {
    /// The compiler, as it names itself. Another one makes other code.
    compiler: String,
    /// Instructions per operation, by path.
    paths: BTreeMap<String, f64>,
}

pub(super) fn run(args: &InstructionsArgs) -> anyhow::Result<()> {
    if let (Some(path), Some(operations)) = (&args.path, args.operations) {
        return paths::find(path)?.run(operations);
    }
    let mut now = Counted {
        compiler: compiler()?,
        paths: BTreeMap::new(),
    };
    for path in &paths::PATHS {
        let once = collected(path.name, path.operations)?;
        let twice = collected(path.name, 2 * path.operations)?;
        let more = twice
            .checked_sub(once)
            .context("more operations took fewer instructions")?;
        now.paths.insert(
            path.name.to_owned(),
            round(more as f64 / path.operations as f64),
        );
    }
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&now)? + "\n";
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    match &args.check {
        Some(file) => check(&now, &read(file)?),
        None => {
            let line = |(name, count): (&String, &f64)| format!("{name:24} {count:>12}\n");
            output::text(&now.paths.iter().map(line).collect::<String>());
            Ok(())
        }
    }
}

fn read(file: &Path) -> anyhow::Result<Counted> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not a file that --json writes", file.display()))
}

/// Prints both, and fails if they differ by more than the tolerance.
fn check(now: &Counted, before: &Counted) -> anyhow::Result<()> {
    if now.compiler != before.compiler {
        output::note(&format!(
            "NOT COMPARED: the committed counts are of {}, this program of {}; write new ones with --json",
            before.compiler, now.compiler
        ));
        return Ok(());
    }
    let mut differ = Vec::new();
    for (name, count) in &now.paths {
        let Some(was) = before.paths.get(name) else {
            differ.push(format!("{name} is not among the committed paths"));
            continue;
        };
        let change = (count / was - 1.0) * 100.0;
        output::text(&format!(
            "{name:24} {was:>12} {count:>12} {change:>+7.2} %\n"
        ));
        if change.abs() > TOLERANCE {
            differ.push(format!("{name}: {was} became {count}, {change:+.1} %"));
        }
    }
    let gone = before
        .paths
        .keys()
        .filter(|name| !now.paths.contains_key(*name));
    differ.extend(gone.map(|name| format!("{name} is committed and not counted")));
    if differ.is_empty() {
        return Ok(());
    }
    bail!(
        "instructions per operation differ by more than {TOLERANCE} %; if that is meant, commit what --json writes\n{}",
        differ.join("\n")
    )
}

/// To four digits, or a whole number: more do not mean anything.
fn round(count: f64) -> f64 {
    let digits = 3 - count.abs().max(1.0).log10().floor() as i32;
    let scale = 10f64.powi(digits.max(0));
    (count * scale).round() / scale
}

/// Instructions of a whole process that runs a number of operations of a path.
fn collected(path: &str, operations: u64) -> anyhow::Result<u64> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["instructions", "--path", path, "--operations"])
        .arg(operations.to_string())
        // The same copying functions of the C library on every processor.
        .env(
            "GLIBC_TUNABLES",
            "glibc.cpu.hwcaps=-AVX512F,-AVX2,-ERMS,-FSRM",
        );
    let said = command
        .output()
        .context("cannot start valgrind; install it (Debian: valgrind)")?;
    let text = String::from_utf8_lossy(&said.stderr);
    ensure!(
        said.status.success(),
        "{path} failed under valgrind:\n{text}"
    );
    let line = text.lines().find_map(|l| l.split_once("Collected :"));
    let count = line.and_then(|(_, count)| count.trim().parse().ok());
    count.with_context(|| format!("valgrind did not say what it collected:\n{text}"))
}

fn compiler() -> anyhow::Result<String> {
    let said = Command::new("rustc").arg("--version").output();
    let said = said.context("cannot ask rustc for its version")?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(paths: &[(&str, f64)]) -> Counted {
        Counted {
            compiler: "rustc 1".into(),
            paths: paths
                .iter()
                .map(|(name, n)| ((*name).to_owned(), *n))
                .collect(),
        }
    }

    #[test]
    fn what_differs_is_named() {
        let before = counted(&[("read", 1000.0), ("write", 500.0)]);
        assert!(check(&counted(&[("read", 1029.0), ("write", 486.0)]), &before).is_ok());
        for (now, says) in [
            (
                counted(&[("read", 1031.0), ("write", 500.0)]),
                "read: 1000 became 1031",
            ),
            (
                counted(&[("read", 1000.0), ("write", 480.0)]),
                "write: 500 became 480",
            ),
            (
                counted(&[("read", 1000.0)]),
                "write is committed and not counted",
            ),
            (
                counted(&[("read", 1000.0), ("write", 500.0), ("acquire", 1.0)]),
                "acquire is not among",
            ),
        ] {
            let error = check(&now, &before).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let mut other = counted(&[("read", 2000.0)]);
        other.compiler = "rustc 2".into();
        assert!(
            check(&other, &before).is_ok(),
            "another compiler makes other code"
        );
    }

    #[test]
    fn every_path_does_what_it_says() {
        for path in &paths::PATHS {
            path.run(3).unwrap();
        }
    }

    #[test]
    fn counts_have_four_digits_or_are_whole() {
        assert_eq!(round(0.0), 0.0);
        assert_eq!(round(12.346), 12.35);
        assert_eq!(round(12345.6), 12346.0);
    }
}
