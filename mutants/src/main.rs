//! Which changes of the sources no test notices.
//!
//! All changes that cargo-mutants would make in a package are put into one copy of its sources, compiled once, and one is
//! chosen when a test is run. So a change takes as long as the tests that reach it, not as long as a build. What cannot be chosen that
//! way (in constants, conditions that bind names, functions with a hidden type, or what does not compile) is left out, and counted.

mod list;
mod rewrite;
mod run;
mod sites;
mod switch;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result, bail};

use list::Mutant;
use run::{Tests, Verdict};
use tree::Tree;

/// What is changed, and by which tests.
struct Part {
    package: &'static str,
    folder: &'static str,
    /// Programs with tests in other packages that are about it as well.
    others: &'static [(&'static str, &'static str)],
}

const PARTS: [Part; 4] = [
    Part {
        package: "dosmos-memproc",
        folder: "memproc/src/core",
        others: &[CLUSTERS],
    },
    Part {
        package: "dosmos-emp",
        folder: "emp/src/core",
        others: &[CLUSTERS],
    },
    Part {
        package: "dosmos-trace",
        folder: "trace/src/meta",
        others: &[("dosmos-emp", "service"), CLUSTERS],
    },
    Part {
        package: "dosmos-verify",
        folder: "verify/src",
        others: &[("dosmos-memproc", "simulation"), CLUSTERS],
    },
];

/// Whole clusters in simulated time.
const CLUSTERS: (&str, &str) = ("dosmos-simulation", "clusters");

/// What is said of a change that no test would notice.
const UNREACHED: &str = " (no test gets there)";

const USAGE: &str = "usage: mutants [--sample N --seed N] [--least PERCENT] [--only FILE] [--without TESTS] [--jobs N] [PACKAGE...]";

#[derive(Default)]
struct Options {
    sample: Option<usize>,
    seed: usize,
    without: Vec<String>,
    least: f64,
    /// The names of those that are tried.
    only: Option<BTreeSet<String>>,
    jobs: Option<usize>,
    packages: Vec<String>,
}

fn options() -> Result<Options> {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("{argument} needs a value; {USAGE}"))
        };
        match argument.as_str() {
            "--sample" => options.sample = Some(value()?.parse().context("--sample")?),
            "--seed" => options.seed = value()?.parse().context("--seed")?,
            "--only" => {
                let path = value()?;
                let text = fs::read_to_string(&path).context(path)?;
                let names = text
                    .lines()
                    .map(|l| l.trim_end_matches(UNREACHED).to_owned());
                options.only = Some(names.collect());
            }
            "--least" => options.least = value()?.parse().context("--least")?,
            "--without" => options.without.push(value()?),
            "--jobs" => options.jobs = Some(value()?.parse().context("--jobs")?),
            _ if argument.starts_with('-') => bail!("{argument} is not known; {USAGE}"),
            _ => options.packages.push(argument),
        }
    }
    for package in &options.packages {
        if PARTS.iter().all(|p| p.package != package) {
            bail!(
                "nothing is changed in {package}, but in {}",
                PARTS.map(|p| p.package).join(", ")
            );
        }
    }
    Ok(options)
}

fn main() -> Result<()> {
    let options = options()?;
    let (mut judged, mut missed) = (0, Vec::new());
    for part in &PARTS {
        if options.packages.is_empty() || options.packages.iter().any(|p| p == part.package) {
            judged += try_all(part, &options, &mut missed)?;
        }
    }
    let work = work()?;
    fs::write(work.join("missed.txt"), missed.join("\n") + "\n")?;
    let share = percent(judged - missed.len(), judged);
    println!(
        "all: {} of {judged} noticed, {share:.1} %; the others are in {}",
        judged - missed.len(),
        work.join("missed.txt").display()
    );
    if share < options.least {
        bail!(
            "less than {} % are noticed:\n{}",
            options.least,
            missed.join("\n")
        );
    }
    Ok(())
}

/// Where everything is made.
fn work() -> Result<PathBuf> {
    let work = std::env::current_dir()?.join("target/mutants");
    fs::create_dir_all(&work)?;
    Ok(work)
}

/// Tries the changes of a package; how many, and which nobody noticed.
fn try_all(part: &Part, options: &Options, missed: &mut Vec<String>) -> Result<usize> {
    let Part {
        package,
        folder,
        others,
    } = part;
    let (root, work) = (std::env::current_dir()?, work()?);
    let jobs = options
        .jobs
        .unwrap_or(std::thread::available_parallelism()?.get());
    let mut mutants = list::of(&root, package, folder)?;
    mutants.sort_by(|a, b| a.place().cmp(&b.place()));
    let tree = Tree::copy(&root, &work)?;
    let possible = tree.change(&root, package, &mutants)?;
    let programs = tree.programs(package, others, &options.without)?;
    let tests = Tests::of(&programs, &work, jobs)?;
    let wanted = |n: &&usize| {
        let only = options.only.as_ref();
        only.is_none_or(|only| only.contains(&mutants[*n - 1].name))
    };
    let chosen = draw(possible.iter().filter(wanted).copied().collect(), options);
    println!(
        "{package}: {} changes, {} of them can be chosen, {} are tried; {} tests",
        mutants.len(),
        possible.len(),
        chosen.len(),
        tests.len()
    );
    let verdicts = judge(&work, package, &mutants, &tests, &chosen, jobs)?;
    let before = missed.len();
    for (n, verdict) in chosen.iter().zip(&verdicts) {
        let name = &mutants[n - 1].name;
        match verdict {
            Verdict::Noticed(_) => {}
            Verdict::NotReached => missed.push(format!("{name}{UNREACHED}")),
            Verdict::Survived(_) => missed.push(name.clone()),
        }
    }
    let caught = chosen.len() + before - missed.len();
    println!(
        "{package}: {caught} of {} noticed, {:.1} %",
        chosen.len(),
        percent(caught, chosen.len())
    );
    Ok(chosen.len())
}

fn percent(of: usize, all: usize) -> f64 {
    100.0 * of as f64 / all.max(1) as f64
}

/// All, or as many as asked for, spread over all, beginning where the seed says.
fn draw(all: Vec<usize>, options: &Options) -> Vec<usize> {
    match options.sample {
        Some(sample) if sample < all.len() => {
            let start = options.seed % all.len();
            let places = (0..sample).map(|i| (start + i * all.len() / sample) % all.len());
            places.map(|at| all[at]).collect()
        }
        _ => all,
    }
}

fn judge(
    work: &Path,
    package: &str,
    mutants: &[Mutant],
    tests: &Tests<'_>,
    chosen: &[usize],
    jobs: usize,
) -> Result<Vec<Verdict>> {
    let path: PathBuf = work.join(format!("{package}.txt"));
    let file = Mutex::new(fs::File::create(path)?);
    let done = AtomicUsize::new(0);
    tests.judge_all(chosen, jobs, |n, verdict| {
        if let Ok(mut file) = file.lock() {
            _ = writeln!(file, "{verdict:?}\t{}", mutants[n - 1].name);
        }
        let done = done.fetch_add(1, Relaxed) + 1;
        if done.is_multiple_of(100) {
            eprintln!("{package}: {done} of {}", chosen.len());
        }
    })
}
