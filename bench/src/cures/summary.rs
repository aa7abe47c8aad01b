//! What all programs together say of the findings.

use serde::Serialize;

use super::measured::{How, OfCure, OfProgram};

/// Points by which a predicted gain may miss.
const POINTS: f64 = 0.10;
/// Ranks that people look at.
const FIRST: usize = 3;

/// The number of cases in which something holds, of the number of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Share {
    pub(super) are: usize,
    pub(super) of: usize,
}

impl Share {
    fn count(holds: impl Iterator<Item = bool>) -> Self {
        holds.fold(Self::default(), |sum, holds| Self {
            are: sum.are + usize::from(holds),
            of: sum.of + 1,
        })
    }
}

/// What the goals of the findings are about. A cure is *best* in a program if it saves time by more than noise, and no
/// other one measured there saves more by more than noise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    /// The first finding is best; of programs with a measured cure.
    pub(super) first_is_best: Share,
    /// The same, but it must have the greatest mean gain, however little the difference.
    pub(super) first_has_greatest_mean: Share,
    /// One of the first three findings is best.
    pub(super) best_among_three: Share,
    /// Predicted and measured gain differ by at most ten points; of measured cures with a predicted gain.
    pub(super) within_ten_points: Share,
    /// Measured cures of findings without a predicted gain.
    pub(super) without_prediction: usize,
    /// Patches that made a run slower by more than noise; of those measured.
    pub(super) slower: Share,
    /// Patches that were shown and not measured: behind the first ones.
    pub(super) patches_not_tried: usize,
    /// Findings whose cure is a change of the program that nobody made.
    pub(super) findings_without_patch: usize,
    /// Patches that do not fit the cluster file, and cures with which the program failed.
    pub(super) failed_cures: usize,
    /// Programs without a finding.
    pub(super) nothing_found: Vec<String>,
    /// Programs with findings, of which none has a cure that could be measured.
    pub(super) nothing_measured: Vec<String>,
    /// Programs that failed.
    pub(super) failed: Vec<String>,
}

impl Summary {
    pub(super) fn of(programs: &[OfProgram]) -> Self {
        let decided: Vec<&OfProgram> = programs.iter().filter(|p| has_measured(p)).collect();
        let best = |last: usize| Share::count(decided.iter().map(|p| has_best(p, last)));
        let mut found: Vec<&OfCure> = programs.iter().flat_map(|p| &p.cures).collect();
        found.retain(|cure| cure.rank.is_some());
        let differences = found.iter().filter_map(|cure| cure.difference());
        let measured = || found.iter().filter(|cure| cure.measured.is_some());
        let patches = || found.iter().filter(|cure| cure.how == How::Patch);
        let shown: usize = programs.iter().map(|p| p.patches).sum();
        let without_patch: usize = programs.iter().map(|p| p.findings - p.patches).sum();
        let cured_by_program = found.iter().filter(|cure| cure.how == How::Healthy).count();
        let names = |chosen: &dyn Fn(&OfProgram) -> bool| -> Vec<String> {
            let chosen = programs.iter().filter(|p| chosen(p));
            chosen.map(|p| p.program.clone()).collect()
        };
        let ran = |p: &OfProgram| p.failed.is_none();
        Self {
            first_is_best: best(1),
            first_has_greatest_mean: Share::count(decided.iter().map(|p| has_greatest(p))),
            best_among_three: best(FIRST),
            within_ten_points: Share::count(differences.map(|d| d.abs() <= POINTS)),
            without_prediction: measured().filter(|c| c.predicted_gain.is_none()).count(),
            slower: Share::count(
                patches()
                    .filter(|c| c.measured.is_some())
                    .map(|c| c.is_slower()),
            ),
            patches_not_tried: shown - patches().count(),
            findings_without_patch: without_patch - cured_by_program,
            failed_cures: programs
                .iter()
                .flat_map(|p| &p.cures)
                .filter(|c| c.failed.is_some())
                .count(),
            nothing_found: names(&|p| ran(p) && p.findings == 0),
            nothing_measured: names(&|p| ran(p) && p.findings > 0 && !has_measured(p)),
            failed: names(&|p| !ran(p)),
        }
    }

    /// As sentences.
    pub(super) fn lines(&self) -> Vec<String> {
        let of = |share: Share| format!("{} of {}", share.are, share.of);
        let list = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => format!("{} ({})", names.len(), names.join(", ")),
        };
        vec![
            format!(
                "the first finding is the best measured cure in {} programs ({} by the mean alone)",
                of(self.first_is_best),
                of(self.first_has_greatest_mean)
            ),
            format!(
                "the best measured cure is among the first three findings in {} programs",
                of(self.best_among_three)
            ),
            format!(
                "|predicted − measured| ≤ 10 points in {} cures; measured cures of findings without a predicted gain: {}",
                of(self.within_ten_points),
                self.without_prediction
            ),
            format!(
                "patches shown that made a run slower by more than noise: {} measured; patches shown but not tried: {}",
                of(self.slower),
                self.patches_not_tried
            ),
            format!("cures that do not fit or failed: {}", self.failed_cures),
            format!(
                "findings whose cure is a change of the program, not tried: {}",
                self.findings_without_patch
            ),
            format!("programs without a finding: {}", list(&self.nothing_found)),
            format!(
                "programs with findings, but no cure that could be measured: {}",
                list(&self.nothing_measured)
            ),
            format!("programs that failed: {}", list(&self.failed)),
        ]
    }
}

fn measured(program: &OfProgram) -> impl Iterator<Item = &OfCure> {
    program.cures.iter().filter(|cure| cure.measured.is_some())
}

fn has_measured(program: &OfProgram) -> bool {
    measured(program).next().is_some()
}

/// Whether the best cure is that of one of the first findings, up to number `last`.
fn has_best(program: &OfProgram, last: usize) -> bool {
    let best = |cure: &OfCure| {
        cure.is_faster() && !measured(program).any(|other| other.is_better_than(cure))
    };
    let first = |cure: &&OfCure| cure.rank.is_some_and(|rank| rank <= last);
    measured(program).filter(first).any(best)
}

/// Whether the first finding saves time by more than noise, and the most of all by the mean.
fn has_greatest(program: &OfProgram) -> bool {
    let mean = |cure: &OfCure| cure.measured.map_or(f64::NEG_INFINITY, |gain| gain.mean);
    let most = measured(program)
        .map(mean)
        .fold(f64::NEG_INFINITY, f64::max);
    measured(program).any(|c| c.rank == Some(1) && c.is_faster() && mean(c) >= most)
}

#[cfg(test)]
mod tests {
    use dosmos_analysis::{Finding, Kind};
    use dosmos_trace::query::TimeRange;

    use super::*;

    /// Times without a cure, which vary more from round to round than by most cures.
    const WITHOUT: [f64; 4] = [100.0, 140.0, 110.0, 150.0];

    /// A cure of a finding with this rank that takes this fraction of the time.
    fn cure(rank: usize, takes: f64, predicted: Option<f64>) -> OfCure {
        let mut finding = Finding::new(Kind::MisplacedOwner, TimeRange::ALL);
        finding.predicted_gain = predicted;
        let mut cure = OfCure::of(rank, &finding, How::Patch);
        // A little noise, of each its own.
        let noise = match rank {
            1 => [0.01, -0.01, 0.01, -0.01],
            2 => [0.01, 0.01, -0.01, -0.01],
            _ => [0.01, -0.01, -0.01, 0.01],
        };
        let with: Vec<f64> = WITHOUT
            .iter()
            .zip(noise)
            .map(|(w, n)| w * (takes + n))
            .collect();
        cure.ran(&WITHOUT, &with);
        cure
    }

    fn program(name: &str, findings: usize, cures: Vec<OfCure>) -> OfProgram {
        let patches = cures.iter().filter(|c| c.how == How::Patch).count();
        OfProgram {
            program: name.to_owned(),
            command: name.to_owned(),
            checked_us: None,
            run_us: WITHOUT.to_vec(),
            findings,
            patches,
            cures,
            failed: None,
        }
    }

    fn shares(programs: &[OfProgram]) -> [(usize, usize); 3] {
        let summary = Summary::of(programs);
        let all = [
            summary.first_is_best,
            summary.first_has_greatest_mean,
            summary.best_among_three,
        ];
        all.map(|share| (share.are, share.of))
    }

    #[test]
    fn the_best_cure_saves_more_than_noise_and_no_other_saves_more() {
        for (cures, expected) in [
            // The first saves most.
            (vec![cure(1, 0.5, None), cure(2, 0.8, None)], [1, 1, 1]),
            // The third does.
            (
                vec![cure(1, 0.9, None), cure(2, 0.8, None), cure(3, 0.5, None)],
                [0, 0, 1],
            ),
            // One behind the first three does.
            (vec![cure(1, 0.9, None), cure(4, 0.5, None)], [0, 0, 0]),
            // The second is better by no more than noise.
            (vec![cure(1, 0.502, None), cure(2, 0.5, None)], [1, 0, 1]),
            // Nothing helps: then the first finding is no cure either.
            (vec![cure(1, 1.0, None)], [0, 0, 0]),
            (vec![cure(1, 1.3, None)], [0, 0, 0]),
        ] {
            let programs = [program("p", 4, cures)];
            assert_eq!(
                shares(&programs),
                expected.map(|are| (are, 1)),
                "{programs:?}"
            );
        }
    }

    #[test]
    fn what_should_have_been_found_counts_against_what_was() {
        let mut missed = OfCure::to_be_found(Kind::Bottleneck);
        missed.ran(&WITHOUT, &WITHOUT.map(|w| w * 0.4));
        let found = program("p", 1, vec![cure(1, 0.8, None), missed.clone()]);
        let nothing = program("q", 0, vec![missed]);
        assert_eq!(shares(&[found, nothing.clone()]), [(0, 2); 3]);
        assert_eq!(Summary::of(&[nothing]).nothing_found, ["q"]);
    }

    #[test]
    fn nothing_is_left_out() {
        let mut broken = cure(2, 1.0, Some(0.3));
        (broken.measured, broken.failed) = (None, Some("it hangs".to_owned()));
        let mut advice = cure(1, 1.0, Some(0.3));
        (advice.measured, advice.how) = (None, How::None);
        let mut failed = program("failed", 0, Vec::new());
        failed.failed = Some("it hangs".to_owned());
        let mut many = program(
            "many",
            9,
            vec![cure(1, 0.5, Some(0.45)), cure(2, 1.2, Some(0.1)), broken],
        );
        many.patches = 5;
        let summary = Summary::of(&[
            many,
            program("advice", 1, vec![advice]),
            program("nothing", 0, Vec::new()),
            program("unpredicted", 1, vec![cure(1, 0.5, None)]),
            failed,
        ]);
        assert_eq!(summary.within_ten_points, Share { are: 1, of: 2 });
        assert_eq!(summary.without_prediction, 1);
        assert_eq!(summary.slower, Share { are: 1, of: 3 });
        assert_eq!((summary.patches_not_tried, summary.failed_cures), (2, 1));
        assert_eq!(summary.findings_without_patch, 5);
        assert_eq!(summary.nothing_found, ["nothing"]);
        assert_eq!(summary.nothing_measured, ["advice"]);
        assert_eq!(summary.failed, ["failed"]);
        let said = summary.lines().join("\n");
        assert!(said.contains("more than noise: 1 of 3 measured"), "{said}");
        assert!(said.contains("without a finding: 1 (nothing)"), "{said}");
    }
}
