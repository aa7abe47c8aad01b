//! One round of asking: what does not change is asked once, what grows without bound only in part.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use dosmos_analysis::{Input, ProfileBuilder, Thresholds, analyse, conclude};
use dosmos_proto::{ApId, Nanos, Topology, VarId, Variable};
use dosmos_trace::Op;
use dosmos_trace::meta::OpCounts;
use dosmos_trace::query::table::{NamePattern, TableQuery};
use dosmos_trace::query::{
    Breakdown, Catalog, Filter, Histogram, HistogramQuery, MetaQuery, OriginCounts, QueryError,
    TimeRange, TraceSource,
};
use futures::future::join_all;
use tokio::time::Instant;

use crate::state::{Analysed, Answer, ApFigures, Question, Reply, Request, Update};

/// Processes whose accesses are counted from the records, where no status tells them.
const COUNTED: usize = 256;
/// What an analysis looks at of a live run: this much time, and at most this many accesses of it.
const LATELY: Nanos = Nanos(10_000_000_000);
const ACCESSES_LIVE: u64 = 20_000;
/// Of a finished run.
const ACCESSES_FINISHED: u64 = 2_000_000;
/// Time slices from which the part that is read is chosen.
const SLICES: u32 = 50;
/// Where the time went grows with every barrier passed: it is asked for so often at most.
const BREAKDOWNS: Duration = Duration::from_secs(2);
/// Variables remembered.
const REMEMBERED: usize = 20_000;

/// Asks, and remembers what does not change.
pub(super) struct Asker {
    source: Arc<dyn TraceSource>,
    topology: Option<Topology>,
    /// What the first catalog said against the sources; later ones are told less.
    notes: Vec<String>,
    known: HashMap<VarId, Variable>,
    /// Accesses of a finished run by process, counted once.
    aps: Option<BTreeMap<ApId, ApFigures>>,
    breakdown: Option<(Instant, bool)>,
    /// What the last analysis knew of it.
    times: Option<(Instant, Breakdown)>,
    thresholds: Thresholds,
}

impl Asker {
    pub(super) fn new(source: Arc<dyn TraceSource>) -> Self {
        Self {
            source,
            topology: None,
            notes: Vec::new(),
            known: HashMap::new(),
            aps: None,
            breakdown: None,
            times: None,
            thresholds: Thresholds::default(),
        }
    }

    pub(super) fn source(&self) -> &dyn TraceSource {
        self.source.as_ref()
    }

    pub(super) async fn round(&mut self, request: Request) -> Update {
        let result = self.ask(&request).await;
        let result = result.map(Box::new).map_err(|e| e.to_string());
        Update { request, result }
    }

    async fn ask(&mut self, request: &Request) -> Result<Reply, QueryError> {
        let source = self.source.clone();
        let first = self.topology.is_none();
        let base = async { futures::try_join!(source.outline(first), source.status()) };
        let table = async {
            match &request.page {
                Some(page) => source.table(page).await.map(Some),
                None => Ok(None),
            }
        };
        let question = &request.question;
        let answer = answer(source.as_ref(), question);
        let ((base, table), answer) =
            futures::future::join(futures::future::join(base, table), answer).await;
        let (mut catalog, status) = base?;
        self.complete(&mut catalog);
        let (mut answer, table) = (answer?, table?);
        match question {
            Question::Overview if status.event_managers.is_empty() => {
                answer = Answer::Overview(self.count_accesses(&catalog).await?);
            }
            Question::Analysis(range) => {
                answer = Answer::Analysis(Box::new(self.analyse(&catalog, *range).await?));
            }
            _ => {}
        }
        if let Some(table) = &table {
            let rows = table.rows.iter();
            self.remember(rows.map(|r| r.variable.clone()).collect());
        }
        let variables = self.spoken_of(&answer).await?;
        let found = match &request.find {
            Some(name) => self.find(name).await?,
            None => None,
        };
        let breakdown = self.breakdown(request, &catalog).await?;
        Ok(Reply {
            catalog,
            status,
            answer,
            table,
            variables,
            found,
            breakdown,
            received: self.source.received_bytes(),
        })
    }

    /// Puts back what was told once.
    fn complete(&mut self, catalog: &mut Catalog) {
        match &self.topology {
            Some(topology) => catalog.topology = topology.clone(),
            None => {
                self.topology = Some(catalog.topology.clone());
                self.notes.clone_from(&catalog.completeness.notes);
            }
        }
        for note in &self.notes {
            if !catalog.completeness.notes.contains(note) {
                catalog.completeness.notes.push(note.clone());
            }
        }
    }

    fn remember(&mut self, variables: Vec<Variable>) {
        if self.known.len() > REMEMBERED {
            self.known.clear();
        }
        let numbered = variables.into_iter().map(|v| (v.id(), v));
        self.known.extend(numbered);
    }

    /// The variables of these numbers, asked for where they are not known.
    async fn variables(&mut self, ids: BTreeSet<VarId>) -> Result<Vec<Variable>, QueryError> {
        let unknown = ids.iter().filter(|id| !self.known.contains_key(id));
        // A barrier's number names no variable.
        let unknown: Vec<VarId> = unknown.filter(|id| id.0 >> 31 == 0).copied().collect();
        if !unknown.is_empty() {
            let described = self.source.describe(&unknown).await?;
            self.remember(described.rows.into_iter().map(|r| r.variable).collect());
        }
        let known = ids.iter().filter_map(|id| self.known.get(id));
        Ok(known.cloned().collect())
    }

    async fn spoken_of(&mut self, answer: &Answer) -> Result<Vec<Variable>, QueryError> {
        match answer {
            Answer::History(history) => {
                let ids = history.points.iter().map(|p| p.object.var).collect();
                self.variables(ids).await
            }
            Answer::Analysis(analysed) => {
                let findings = analysed.analysis.findings.iter();
                let named: BTreeSet<&str> =
                    findings.filter_map(|f| f.variable.as_deref()).collect();
                let all = self.known.values();
                let all = all.filter(|v| named.contains(v.spec().name()));
                Ok(all.cloned().collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    async fn find(&mut self, name: &str) -> Result<Option<Variable>, QueryError> {
        let query = TableQuery {
            pattern: Some(NamePattern::exactly(name)),
            limit: 1,
            ..TableQuery::default()
        };
        let table = self.source.table(&query).await?;
        Ok(table.rows.into_iter().next().map(|row| row.variable))
    }

    async fn breakdown(
        &mut self,
        request: &Request,
        catalog: &Catalog,
    ) -> Result<Option<Breakdown>, QueryError> {
        if request.question != Question::Overview {
            return Ok(None);
        }
        let due = match self.breakdown {
            None => true,
            // Of a finished run it stays what it is.
            Some((_, live)) if !live && !catalog.live => false,
            Some((at, _)) => at.elapsed() >= BREAKDOWNS,
        };
        if !due {
            return Ok(None);
        }
        self.breakdown = Some((Instant::now(), catalog.live));
        self.source.breakdown().await.map(Some)
    }

    /// Every process's accesses, from the records: what the status of a running event manager tells
    /// for nothing.
    async fn count_accesses(
        &mut self,
        catalog: &Catalog,
    ) -> Result<BTreeMap<ApId, ApFigures>, QueryError> {
        if let Some(known) = &self.aps {
            return Ok(known.clone());
        }
        let aps = (0u32..)
            .map(ApId)
            .zip(catalog.topology.application_processes());
        let source = self.source.as_ref();
        let asked = aps.take(COUNTED).map(|(ap, _)| async move {
            let query = HistogramQuery {
                filter: Filter {
                    range: catalog.extent,
                    ops: Op::ALL[..4].to_vec(),
                    aps: vec![ap],
                    ..Filter::default()
                },
                buckets: 1,
            };
            let sum = total(&source.histogram(&query).await?);
            Ok((ap, [sum.local, sum.intra, sum.inter]))
        });
        let origins: Result<BTreeMap<_, _>, QueryError> =
            join_all(asked).await.into_iter().collect();
        let mut counts: BTreeMap<ApId, OpCounts> = BTreeMap::new();
        let metas = source.meta_objects(&MetaQuery::default()).await?;
        for (ap, its) in metas.primaries.iter().flat_map(|p| &p.by_ap) {
            counts.entry(*ap).or_default().add(its);
        }
        for (ap, reads) in metas.secondaries.iter().flat_map(|s| &s.by_ap) {
            counts.entry(*ap).or_default().reads += reads;
        }
        let figures = |(ap, origins)| {
            let counts = counts.get(&ap).copied().unwrap_or_default();
            (ap, ApFigures { counts, origins })
        };
        let counted: BTreeMap<ApId, ApFigures> = origins?.into_iter().map(figures).collect();
        if !catalog.live {
            self.aps = Some(counted.clone());
        }
        Ok(counted)
    }

    /// Findings and groups of `range`, of as much of its end as may be read.
    async fn analyse(
        &mut self,
        catalog: &Catalog,
        range: Option<TimeRange>,
    ) -> Result<Analysed, QueryError> {
        let Some(extent) = catalog.extent else {
            return Ok(Analysed {
                analysis: analyse(
                    Input {
                        catalog: catalog.clone(),
                        records: &mut std::iter::empty(),
                        window: None,
                    },
                    &self.thresholds,
                ),
                range: TimeRange {
                    from: Nanos::ZERO,
                    to: Nanos::ZERO,
                },
                records: 0,
                cut: false,
            });
        };
        let wanted = range.unwrap_or(match catalog.live {
            true => TimeRange {
                from: (extent.to - LATELY).max(extent.from),
                to: extent.to,
            },
            false => extent,
        });
        let most = match catalog.live {
            true => ACCESSES_LIVE,
            false => ACCESSES_FINISHED,
        };
        let read = self.affordable(wanted, most).await?;
        let filter = Filter {
            range: Some(read),
            everything: true,
            ..Filter::default()
        };
        let records = self.source.records(&filter, 0).await?;
        let mut catalog = catalog.clone();
        let ids = records.iter().map(|r| r.object.var).collect();
        catalog.variables = self.variables(ids).await?;
        let count = records.len() as u64;
        let mut builder = ProfileBuilder::new(catalog);
        builder.times(self.times().await?);
        records.iter().for_each(|record| builder.add(record));
        let analysis = conclude(&builder.finish(Some(read)), &self.thresholds);
        Ok(Analysed {
            analysis,
            range: read,
            records: count,
            cut: read != wanted,
        })
    }

    /// Where the time went, as it was lately.
    async fn times(&mut self) -> Result<Breakdown, QueryError> {
        if let Some((at, known)) = &self.times
            && at.elapsed() < BREAKDOWNS
        {
            return Ok(known.clone());
        }
        let times = self.source.breakdown().await?;
        self.times = Some((Instant::now(), times.clone()));
        Ok(times)
    }

    /// The end of `range` with at most this many accesses, by whole slices; one slice at least.
    async fn affordable(&self, range: TimeRange, most: u64) -> Result<TimeRange, QueryError> {
        let query = HistogramQuery {
            filter: Filter {
                range: Some(range),
                ..Filter::default()
            },
            buckets: SLICES,
        };
        let histogram = self.source.histogram(&query).await?;
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
}

fn total(histogram: &Histogram) -> OriginCounts {
    let mut sum = OriginCounts::default();
    histogram.buckets.iter().for_each(|b| sum.add(b));
    sum
}

async fn answer(source: &dyn TraceSource, question: &Question) -> Result<Answer, QueryError> {
    Ok(match question {
        // What these need besides is known only with the catalog.
        Question::Nothing | Question::Overview | Question::Analysis(_) => Answer::None,
        Question::Histogram(query) => Answer::Histogram(source.histogram(query).await?),
        Question::History(query) => Answer::History(source.history(query).await?),
    })
}
