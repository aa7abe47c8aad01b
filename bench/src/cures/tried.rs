//! Finding, applying and measuring the cures of a program.

use anyhow::Context;
use dosmos_analysis::{Finding, Thresholds};
use dosmos_cli::config::apply_patch;
use dosmos_cli::output;
use dosmos_client::{Run, Target};
use dosmos_model::inputs::NetworkRecord;

use super::measured::{How, OfCure, OfProgram};
use super::programs::Program;
use crate::breakdown::{breakdown_of, length_us};
use crate::run::run_prepared;

/// How cures are tried.
pub(super) struct Trial {
    /// Rounds, each with a run without a cure and one with each cure.
    pub(super) pairs: usize,
    /// Patches tried for each program.
    pub(super) patches: usize,
    /// What messages cost, for predicted gains.
    pub(super) network: NetworkRecord,
    /// Those of the detectors.
    pub(super) thresholds: Thresholds,
}

/// A cure and what it changes.
struct Way {
    cure: OfCure,
    /// The cluster file and the program with it; none if it is not tried.
    changed: Option<(String, Vec<String>)>,
}

impl Trial {
    /// What is found in a program, and what its cures gain. What fails is said in the answer.
    pub(super) async fn of(&self, program: &Program) -> OfProgram {
        let mut measured = OfProgram {
            program: program.name.clone(),
            command: program.to_string(),
            run_us: Vec::new(),
            findings: 0,
            patches: 0,
            cures: Vec::new(),
            failed: None,
        };
        if let Err(e) = self.measure(program, &mut measured).await {
            output::note(&format!("{program} failed: {e:#}"));
            measured.failed = Some(format!("{e:#}"));
        }
        measured
    }

    async fn measure(&self, program: &Program, measured: &mut OfProgram) -> anyhow::Result<()> {
        output::note(&format!("{program}: what is wrong with it?"));
        let findings = self.check(program).await?;
        measured.findings = findings.len();
        measured.patches = findings.iter().filter(|f| f.patch.is_some()).count();
        let mut ways = self.ways(program, &findings);
        let rounds = self.rounds(program, &mut ways, &mut measured.run_us).await;
        measured.cures = ways.into_iter().map(|way| way.cure).collect();
        rounds
    }

    /// The findings in one run, as `dosmos check` has them.
    async fn check(&self, program: &Program) -> anyhow::Result<Vec<Finding>> {
        let ran = run_prepared(&program.cluster(), &program.words(), |_| Ok(())).await?;
        let run = Run::open(&Target::run(ran.dir.path())).await?;
        let analysed = run.analyse(None, &self.thresholds, self.network.clone());
        Ok(analysed.await?.analysis.findings)
    }

    /// The cures to try, and the first findings whose cures cannot be tried.
    fn ways(&self, program: &Program, findings: &[Finding]) -> Vec<Way> {
        let (mut ways, mut patches) = (Vec::new(), 0);
        let mut healthy = program.healthy();
        for (rank, finding) in (1..).zip(findings) {
            let way = match &finding.patch {
                Some(patch) if patches < self.patches => {
                    patches += 1;
                    Some(patched(program, rank, finding, patch))
                }
                Some(_) => None,
                None if program.pathology == Some(finding.kind) && healthy.is_some() => {
                    healthy.take().map(|words| Way {
                        cure: OfCure::of(rank, finding, How::Healthy),
                        changed: Some((program.cluster(), words)),
                    })
                }
                None if rank <= self.patches => Some(Way {
                    cure: OfCure::of(rank, finding, How::None),
                    changed: None,
                }),
                None => None,
            };
            ways.extend(way);
        }
        let tried = |way: &Way| way.changed.is_some() && Some(way.cure.kind) == program.pathology;
        if let (Some(kind), Some(words), false) =
            (program.pathology, healthy, ways.iter().any(tried))
        {
            ways.push(Way {
                cure: OfCure::to_be_found(kind),
                changed: Some((program.cluster(), words)),
            });
        }
        ways
    }

    /// The program without and with each cure in turn, as often as asked.
    async fn rounds(
        &self,
        program: &Program,
        ways: &mut [Way],
        without: &mut Vec<f64>,
    ) -> anyhow::Result<()> {
        if ways.iter().all(|way| way.changed.is_none()) {
            return Ok(());
        }
        let as_it_is = (program.cluster(), program.words());
        let mut with: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
        for round in 0..self.pairs {
            output::note(&format!("{program}: round {} of {}", round + 1, self.pairs));
            // Forth and back, so that a machine that becomes slower concerns all alike.
            let mut order: Vec<Option<usize>> = std::iter::once(None)
                .chain((0..ways.len()).map(Some))
                .collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let Some(at) = at else {
                    without.push(length(&as_it_is.0, &as_it_is.1).await?);
                    continue;
                };
                let way = &mut ways[at];
                let Some((cluster, words)) = &way.changed else {
                    continue;
                };
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                match length(cluster, &words).await {
                    Ok(us) => with[at].push(us),
                    Err(e) => {
                        output::note(&format!("{program} with {} fails: {e:#}", way.cure.kind));
                        way.cure.failed = Some(format!("{e:#}"));
                        way.changed = None;
                    }
                }
            }
        }
        for (way, with) in ways.iter_mut().zip(&with) {
            if way.changed.is_some() {
                way.cure.ran(without, with);
            }
        }
        Ok(())
    }
}

/// A finding with its patch applied.
fn patched(program: &Program, rank: usize, finding: &Finding, patch: &str) -> Way {
    let mut cure = OfCure::of(rank, finding, How::Patch);
    let words = program.words().into_iter().map(str::to_owned).collect();
    let changed = match apply_patch(&program.cluster(), patch) {
        Ok(cluster) => Some((cluster, words)),
        Err(e) => {
            cure.failed = Some(e.to_string());
            None
        }
    };
    Way { cure, changed }
}

/// Length of a run, µs.
async fn length(cluster: &str, words: &[&str]) -> anyhow::Result<f64> {
    let ran = run_prepared(cluster, words, |_| Ok(())).await?;
    length_us(&breakdown_of(&ran).await?).context("no process said where its time went")
}
