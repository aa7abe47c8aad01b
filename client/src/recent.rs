//! Analyse the end of a range: as much of it as may be read, for who asks again while the program runs.

use std::collections::BTreeSet;

use dosmos_analysis::{Analysis, ProfileBuilder, Thresholds};
use dosmos_proto::{Nanos, VarId};
use dosmos_replay::ScriptBuilder;
use dosmos_trace::query::{
    Breakdown, Catalog, Filter, HistogramQuery, QueryError, TimeRange, TraceSource,
};

use crate::analyse::{concluded, network_here, predicted};
use crate::races::RaceFinder;
use crate::{Error, Run, Variables};

/// A live run: this much time before its end, and at most this many accesses of it.
const RECENT: Nanos = Nanos(10_000_000_000);
const ACCESSES_LIVE: u64 = 20_000;
/// A finished run: at most this many accesses.
const ACCESSES_FINISHED: u64 = 2_000_000;
/// Time slices from which the part that is read is chosen.
const SLICES: u32 = 50;

/// What was found in a part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Findings and groups.
    pub analysis: Analysis,
    /// The part.
    pub range: TimeRange,
    /// Number of records read.
    pub records: u64,
    /// The range asked for was longer, and too much to read.
    pub cut: bool,
}

impl Run {
    /// The findings in `range` (none: the last 10 s of a live run, all of a finished one), or in as much of its end as
    /// may be read. Over all of a finished run they are those of [`Run::analyse`]. `catalog` needs no variables: those
    /// that records name are taken from `variables`.
    ///
    /// # Errors
    /// If no source answers.
    pub async fn analyse_end(
        &self,
        mut catalog: Catalog,
        variables: &mut Variables,
        times: Breakdown,
        range: Option<TimeRange>,
        thresholds: &Thresholds,
    ) -> Result<Part, Error> {
        let source = self.source();
        let Some(extent) = catalog.extent else {
            return Ok(Part {
                analysis: concluded(ProfileBuilder::new(catalog), times, None, thresholds),
                range: TimeRange {
                    from: Nanos::ZERO,
                    to: Nanos::ZERO,
                },
                records: 0,
                cut: false,
            });
        };
        let recent = TimeRange {
            from: (extent.to - RECENT).max(extent.from),
            to: extent.to,
        };
        let (usual, most) = match catalog.live {
            true => (recent, ACCESSES_LIVE),
            false => (extent, ACCESSES_FINISHED),
        };
        let wanted = range.unwrap_or(usual);
        let read = affordable(source, wanted, most).await?;
        let filter = Filter {
            range: Some(read),
            everything: true,
            ..Filter::default()
        };
        let records = source.records(&filter, 0).await?;
        let ids: BTreeSet<VarId> = records.iter().map(|r| r.object.var).collect();
        let whole = !catalog.live && read == extent;
        catalog.variables = variables.get(source, &ids).await?;
        let mut run = whole.then(|| ScriptBuilder::new(catalog.clone()));
        let completeness = catalog.completeness.clone();
        let mut races = whole.then(|| RaceFinder::new(catalog.clone()));
        let sharing = self.sharing(&catalog);
        let mut profile = ProfileBuilder::new(catalog);
        let count = records.len() as u64;
        for record in records.iter() {
            profile.add(record);
            run.iter_mut().for_each(|run| run.add(record));
            races.iter_mut().for_each(|races| races.add(record));
        }
        let part = if whole { None } else { Some(read) };
        let mut analysis = concluded(profile, times.clone(), part, thresholds);
        let network = network_here(None)?;
        predicted(&mut analysis, run, &times, (&network, sharing), thresholds);
        if let Some(races) = races {
            races.finish(&completeness, &mut analysis);
        }
        Ok(Part {
            analysis,
            range: read,
            records: count,
            cut: read != wanted,
        })
    }
}

/// The end of `range` with at most `most` accesses, by whole slices; at least one slice.
async fn affordable(
    source: &dyn TraceSource,
    range: TimeRange,
    most: u64,
) -> Result<TimeRange, QueryError> {
    let query = HistogramQuery {
        filter: Filter {
            range: Some(range),
            ..Filter::default()
        },
        buckets: SLICES,
    };
    let histogram = source.histogram(&query).await?;
    let mut left = most;
    let mut slices = 0;
    for bucket in histogram.buckets.iter().rev() {
        let n = bucket.total();
        if n > left && slices > 0 {
            break;
        }
        left = left.saturating_sub(n);
        slices += 1;
    }
    if slices >= u64::from(SLICES) {
        return Ok(range);
    }
    let length = u128::from(range.length().0) * u128::from(slices) / u128::from(SLICES);
    let from = range.to - Nanos(u64::try_from(length).unwrap_or(u64::MAX));
    Ok(TimeRange { from, ..range })
}
