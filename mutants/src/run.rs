//! Which tests reach a change, and whether one of them notices it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail};

use crate::switch;
use crate::tree::Program;

/// Tests that are shorter are run together.
const SHORT: Duration = Duration::from_millis(1_500);
/// A test may take this much longer than before, and ten times as long.
const GRACE: Duration = Duration::from_secs(20);
/// A change must not take all memory of the machine.
const MEMORY: &str = "--as=12884901888";

/// A test.
struct Test<'a> {
    program: &'a Program,
    name: String,
    took: Duration,
    reaches: BTreeSet<usize>,
}

/// All tests of a package.
pub struct Tests<'a>(Vec<Test<'a>>);

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// By this test.
    Noticed(String),
    /// No test gets there.
    NotReached,
    /// The number of tests that get there.
    Survived(usize),
}

fn command(program: &Program, names: &[&str], limit: Duration) -> Command {
    let mut command = Command::new("timeout");
    command.args([
        "--kill-after=5",
        &limit.as_secs().to_string(),
        "prlimit",
        MEMORY,
    ]);
    command
        .arg(&program.path)
        .args(["--exact", "--test-threads=4"])
        .args(names);
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Does this for every number on `jobs` threads.
fn each<T: Send>(count: usize, jobs: usize, what: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Relaxed);
                    if i >= count {
                        return;
                    }
                    let result = what(i);
                    if let Ok(mut done) = done.lock() {
                        done.insert(i, result);
                    }
                }
            });
        }
    });
    done.into_inner()
        .unwrap_or_default()
        .into_values()
        .collect()
}

impl<'a> Tests<'a> {
    /// Runs each test by itself without a change.
    ///
    /// # Errors
    /// If one fails.
    pub fn of(programs: &'a [Program], work: &Path, jobs: usize) -> Result<Self> {
        let mut all = Vec::new();
        for program in programs {
            let list = Command::new(&program.path)
                .args(["--list", "--format", "terse"])
                .output()?;
            let list = String::from_utf8(list.stdout)?;
            let names = list.lines().filter_map(|l| l.strip_suffix(": test"));
            all.extend(names.map(|name| (program, name.to_owned())));
        }
        let tests = each(all.len(), jobs, |i| {
            let (program, name) = &all[i];
            let log = work.join(format!("reached-{i}"));
            _ = fs::remove_file(&log);
            let began = Instant::now();
            let run = || {
                let mut command = command(program, &[name], Duration::from_secs(1_200));
                let status = command.env(switch::REACHED, &log).status();
                Ok::<_, anyhow::Error>(status.context("timeout")?.success())
            };
            // What waits for real processes may fail once on a machine that does everything at a time.
            if !run()? && !run()? {
                bail!("{} of {} fails without a change", name, program.name);
            }
            let reached = fs::read_to_string(&log).unwrap_or_default();
            _ = fs::remove_file(&log);
            Ok(Test {
                program,
                name: name.clone(),
                took: began.elapsed(),
                reaches: reached.lines().filter_map(|l| l.parse().ok()).collect(),
            })
        });
        let mut tests = tests.into_iter().collect::<Result<Vec<_>>>()?;
        tests.sort_by_key(|t| t.took);
        Ok(Self(tests))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// What becomes of a change.
    fn judge(&self, mutant: usize) -> Result<Verdict> {
        let reaching: Vec<&Test> = self
            .0
            .iter()
            .filter(|t| t.reaches.contains(&mutant))
            .collect();
        if reaching.is_empty() {
            return Ok(Verdict::NotReached);
        }
        let fails = |program: &Program, tests: &[&Test]| -> Result<bool> {
            let names: Vec<&str> = tests.iter().map(|t| t.name.as_str()).collect();
            let took: Duration = tests.iter().map(|t| t.took).sum();
            let mut command = command(program, &names, GRACE + 10 * took);
            let status = command.env(switch::CHOSEN, mutant.to_string()).status()?;
            Ok(!status.success())
        };
        let (short, long): (Vec<&Test>, Vec<&Test>) = reaching.iter().partition(|t| t.took < SHORT);
        let mut by_program: BTreeMap<&Path, Vec<&Test>> = BTreeMap::new();
        for test in short {
            by_program.entry(&test.program.path).or_default().push(test);
        }
        for tests in by_program.values() {
            if fails(tests[0].program, tests)? {
                return Ok(Verdict::Noticed(tests[0].program.name.clone()));
            }
        }
        for test in long {
            if fails(test.program, &[test])? {
                return Ok(Verdict::Noticed(format!(
                    "{}::{}",
                    test.program.name, test.name
                )));
            }
        }
        Ok(Verdict::Survived(reaching.len()))
    }

    /// What becomes of each of these changes; `tell` hears of each as it is known.
    ///
    /// # Errors
    /// If tests cannot be run.
    pub fn judge_all(
        &self,
        mutants: &[usize],
        jobs: usize,
        tell: impl Fn(usize, &Verdict) + Sync,
    ) -> Result<Vec<Verdict>> {
        let verdicts = each(mutants.len(), jobs, |i| {
            let verdict = self.judge(mutants[i])?;
            tell(mutants[i], &verdict);
            Ok(verdict)
        });
        verdicts.into_iter().collect()
    }
}
