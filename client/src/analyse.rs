//! Analyse: one pass over the records of a run, for whatever needs them.

use std::path::Path;

use dosmos_analysis::compare::PhasedRun;
use dosmos_analysis::{Analysis, ProfileBuilder, Thresholds, conclude};
use dosmos_model::inputs::{Builder, Measured, NetworkRecord};
use dosmos_replay::{Calibrated, Costs, Script, ScriptBuilder};
use dosmos_trace::query::{Breakdown, Catalog, Completeness, TimeRange};

use crate::races::RaceFinder;
use crate::{Error, Run, records};

/// Why a run has no execution-time breakdown.
pub const NO_BREAKDOWN: &str = "no execution-time breakdown: the processes did not say where their time went (recording was \
    off, or the run was imported, and JSONL has no breakdown)";

/// What an analysis found, and what its records lacked.
#[derive(Debug)]
pub struct Analysed {
    /// The findings.
    pub analysis: Analysis,
    /// What the records lacked.
    pub completeness: Completeness,
    /// Number of records read.
    pub records: u64,
}

/// A run to compare with another.
pub struct Phased {
    /// What was done in each phase.
    pub phases: PhasedRun,
    /// The findings.
    pub analysed: Analysed,
}

impl Run {
    /// The findings in `range`, or in all of the run. Over all of it a replay of the run predicts what
    /// following each advice would save, with messages that cost what `network` says.
    ///
    /// # Errors
    /// If no source answers, or `network` is not valid.
    pub async fn analyse(
        &self,
        range: Option<TimeRange>,
        thresholds: &Thresholds,
        network: NetworkRecord,
    ) -> Result<Analysed, Error> {
        let source = self.source();
        let catalog = source.catalog().await?;
        let mut profile = ProfileBuilder::new(catalog.clone());
        // The times of processes are those of the whole run.
        network.validate().map_err(not_valid)?;
        let mut run = range.is_none().then(|| ScriptBuilder::new(catalog.clone()));
        // A part of a run does not tell what orders its accesses.
        let whole = range.is_none();
        let mut races = whole.then(|| RaceFinder::new(catalog.clone()));
        let mut read = 0;
        let completeness = records::each(source, &catalog, range, &mut |record| {
            read += 1;
            profile.add(record);
            run.iter_mut().for_each(|run| run.add(record));
            races.iter_mut().for_each(|races| races.add(record));
        })
        .await?;
        let times = source.breakdown().await?;
        let mut analysis = concluded(profile, times.clone(), range, thresholds);
        let sharing = self.sharing(&catalog);
        predicted(&mut analysis, run, &times, (&network, sharing), thresholds);
        if let Some(races) = races {
            races.finish(&completeness, &mut analysis);
        }
        Ok(Analysed {
            analysis,
            completeness,
            records: read,
        })
    }

    /// The run phase by phase, with its findings: one side of a comparison.
    ///
    /// # Errors
    /// If no source answers.
    pub async fn phases(&self, thresholds: &Thresholds) -> Result<Phased, Error> {
        let source = self.source();
        let catalog = source.catalog().await?;
        let mut phases = PhasedRun::new(catalog.clone());
        let mut profile = ProfileBuilder::new(catalog.clone());
        let mut read = 0;
        let completeness = records::each(source, &catalog, None, &mut |record| {
            read += 1;
            phases.add(record);
            profile.add(record);
        })
        .await?;
        let times = source.breakdown().await?;
        phases.times(&times);
        let analysis = concluded(profile, times, None, thresholds);
        let analysed = Analysed {
            analysis,
            completeness,
            records: read,
        };
        Ok(Phased { phases, analysed })
    }

    /// What the processes of the run did, to be replayed; none if they did not say where their time went.
    ///
    /// # Errors
    /// If no source answers.
    pub async fn script(&self) -> Result<Option<Script>, Error> {
        let source = self.source();
        let catalog = source.catalog().await?;
        let mut script = ScriptBuilder::new(catalog.clone());
        records::each(source, &catalog, None, &mut |record| script.add(record)).await?;
        Ok(script.finish(&source.breakdown().await?))
    }

    /// Application processes that share the processors of the one host of the run; none if it has several.
    pub(crate) fn sharing(&self, catalog: &Catalog) -> usize {
        let launch = self.launch();
        match launch.metadata() {
            Some(run) if run.hosts.len() > 1 => 0,
            _ => catalog.topology.application_processes().len(),
        }
    }

    /// The run as the models read it, with messages that cost what `network` says.
    ///
    /// # Errors
    /// If no source answers, `network` is not valid, or the run has no execution-time breakdown.
    pub async fn measure(&self, network: NetworkRecord) -> Result<Measured, Error> {
        let source = self.source();
        let catalog = source.catalog().await?;
        let breakdown = source.breakdown().await?;
        let mut run = builder(&catalog, network)?;
        let completeness =
            records::each(source, &catalog, None, &mut |record| run.add(record)).await?;
        run.lacked(completeness);
        run.finish(&breakdown).map_err(|source| Error::Model {
            why: "the run has no execution-time breakdown; was recording off, or was its program built with an older version?",
            source,
        })
    }
}

/// The findings of a profile.
pub(crate) fn concluded(
    mut profile: ProfileBuilder,
    times: Breakdown,
    range: Option<TimeRange>,
    thresholds: &Thresholds,
) -> Analysis {
    profile.times(times);
    conclude(&profile.finish(range), thresholds)
}

/// Puts what a replay of the run says into `analysis`: gains, and whether the processes that are `sharing` the processors of one host lack
/// some. Where nothing can be replayed the estimates stay.
pub(crate) fn predicted(
    analysis: &mut Analysis,
    run: Option<ScriptBuilder>,
    times: &Breakdown,
    (network, sharing): (&NetworkRecord, usize),
    thresholds: &Thresholds,
) {
    let crowded = sharing > network.processors;
    if !analysis.has_cures() && !crowded {
        return;
    }
    let script = run.and_then(|run| run.finish(times));
    let replay = script.and_then(|script| Calibrated::new(script, &Costs::of(network)));
    if let Some(replay) = replay {
        analysis.predict_gains(&replay, thresholds);
        if crowded {
            analysis.look_at_processors(&replay, thresholds);
        }
    }
}

fn builder(catalog: &Catalog, network: NetworkRecord) -> Result<Builder, Error> {
    Builder::new(catalog.clone(), network).map_err(not_valid)
}

fn not_valid(source: dosmos_model::ModelError) -> Error {
    Error::Model {
        why: "the costs of messages are not valid",
        source,
    }
}

/// What messages cost where a run was: as `file` says, or those of a typical machine with the processors of this one.
///
/// # Errors
/// If the file cannot be read or is not valid.
pub fn network_here(file: Option<&Path>) -> Result<NetworkRecord, Error> {
    match file {
        Some(path) => read_network(path),
        None => Ok(NetworkRecord {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            ..NetworkRecord::typical()
        }),
    }
}

/// Reads a network record (`bench network -o FILE`).
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn read_network(path: &Path) -> Result<NetworkRecord, Error> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
    let record: NetworkRecord = serde_json::from_str(&text).map_err(|e| Error::file(path, e))?;
    record.validate().map_err(|e| Error::file(path, e))?;
    Ok(record)
}

/// Thresholds of the detectors from a TOML file; the defaults without one.
///
/// # Errors
/// Names the file, and in it the line and the key.
pub fn read_thresholds(file: Option<&Path>) -> Result<Thresholds, Error> {
    let Some(file) = file else {
        return Ok(Thresholds::default());
    };
    let text = std::fs::read_to_string(file).map_err(|e| Error::file(file, e))?;
    let thresholds: Thresholds = toml::from_str(&text).map_err(|e| Error::file(file, e))?;
    thresholds.check().map_err(|e| Error::file(file, e))?;
    Ok(thresholds)
}
