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
use crate::run::{Ran, run_prepared};

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

/// A cure, what it changes, and the runs with it.
struct Way {
    cure: OfCure,
    /// The cluster file and the program with it; none if it is not tried.
    changed: Option<(String, Vec<String>)>,
    /// Length of each run, µs.
    us: Vec<f64>,
}

impl Way {
    fn new(cure: OfCure, changed: Option<(String, Vec<String>)>) -> Self {
        Self {
            cure,
            changed,
            us: Vec::new(),
        }
    }

    /// Runs the program with the cure, if it is tried. It is not tried again once it has failed.
    async fn run(&mut self) {
        let Some((cluster, words)) = &self.changed else {
            return;
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match length(cluster, &words).await {
            Ok(us) => self.us.push(us),
            Err(e) => {
                output::note(&format!("the cure of {} fails: {e:#}", self.cure.kind));
                self.cure.failed = Some(format!("{e:#}"));
                self.changed = None;
            }
        }
    }
}

impl Trial {
    /// What is found in a program, and what its cures gain. What fails is said in the answer.
    pub(super) async fn of(&self, program: &Program) -> OfProgram {
        let mut measured = OfProgram {
            program: program.name.clone(),
            command: program.to_string(),
            checked_us: None,
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
        let (us, findings) = self.check(program).await?;
        measured.checked_us = Some(us);
        measured.findings = findings.len();
        measured.patches = findings.iter().filter(|f| f.patch.is_some()).count();
        let mut ways = self.ways(program, &findings);
        let rounds = self.rounds(program, &mut ways, &mut measured.run_us).await;
        measured.cures = ways.into_iter().map(|way| way.cure).collect();
        rounds
    }

    /// The length of one run, µs, and the findings in it as `dosmos check` has them.
    async fn check(&self, program: &Program) -> anyhow::Result<(f64, Vec<Finding>)> {
        let ran = run_prepared(&program.cluster(), &program.words(), |_| Ok(())).await?;
        let us = length_of(&ran).await?;
        let run = Run::open(&Target::run(ran.dir.path())).await?;
        let analysed = run.analyse(None, &self.thresholds, self.network.clone());
        Ok((us, analysed.await?.analysis.findings))
    }

    /// The cures to try, and the first findings whose cures cannot be tried.
    fn ways(&self, program: &Program, findings: &[Finding]) -> Vec<Way> {
        let mut ways: Vec<Way> = Vec::new();
        let mut patches = 0;
        let mut healthy = program.healthy();
        for (rank, finding) in (1..).zip(findings) {
            if let Some(patch) = &finding.patch {
                patches += 1;
                if patches <= self.patches {
                    ways.push(patched(program, rank, finding, patch));
                }
            } else if let Some(words) = healthy.take_if(|_| program.pathology == Some(finding.kind))
            {
                let cure = OfCure::of(rank, finding, How::Healthy);
                ways.push(Way::new(cure, Some((program.cluster(), words))));
            } else if rank <= self.patches {
                ways.push(Way::new(OfCure::of(rank, finding, How::None), None));
            }
        }
        let tried = |way: &Way| way.changed.is_some() && Some(way.cure.kind) == program.pathology;
        let is_tried = ways.iter().any(tried);
        if let (Some(kind), Some(words), false) = (program.pathology, healthy, is_tried) {
            let cure = OfCure::to_be_found(kind);
            ways.push(Way::new(cure, Some((program.cluster(), words))));
        }
        ways
    }

    /// The program without and with each cure in turn, as often as asked: forth and back, so that a machine that becomes
    /// slower concerns all alike.
    async fn rounds(
        &self,
        program: &Program,
        ways: &mut [Way],
        without: &mut Vec<f64>,
    ) -> anyhow::Result<()> {
        if ways.iter().all(|way| way.changed.is_none()) {
            return Ok(());
        }
        let (cluster, words) = (program.cluster(), program.words());
        for round in 1..=self.pairs {
            output::note(&format!("{program}: round {round} of {}", self.pairs));
            let forth = round % 2 == 1;
            if forth {
                without.push(length(&cluster, &words).await?);
            } else {
                ways.reverse();
            }
            for way in &mut *ways {
                way.run().await;
            }
            if !forth {
                ways.reverse();
                without.push(length(&cluster, &words).await?);
            }
        }
        for way in ways.iter_mut().filter(|way| way.changed.is_some()) {
            way.cure.ran(without, &way.us);
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
    Way::new(cure, changed)
}

/// Length of a run, µs.
async fn length(cluster: &str, words: &[&str]) -> anyhow::Result<f64> {
    length_of(&run_prepared(cluster, words, |_| Ok(())).await?).await
}

/// The same of a run that has ended.
async fn length_of(ran: &Ran) -> anyhow::Result<f64> {
    length_us(&breakdown_of(ran).await?).context("no process said where its time went")
}
