//! Fusion: many sources asked in parallel and answered for as one (docs/design/monitoring.md#fusion).
//!
//! Guarantees: an answer is the one a single source with all records would give; a source that fails
//! is named in the answer's `missing`, and only if all fail is there an error. How long a source may
//! take is the source's own affair ([`crate::RemoteSource`] has a deadline).

use std::sync::Arc;

use async_trait::async_trait;
use dosmos_proto::VarId;
use dosmos_trace::query::table::{
    RankQuery, Ranked, Ranking, Table, TableQuery, VariableFigures, VariableTable,
};
use dosmos_trace::query::{
    Breakdown, Catalog, Completeness, Filter, Histogram, HistogramQuery, History, HistoryQuery,
    MetaObjects, MetaQuery, QueryError, Records, Status, TimeRange, TraceSource,
};
use dosmos_trace::selection::Selection;
use futures::future::join_all;

use super::identity::Membership;
use super::{merge, table};

/// Many sources as one.
pub struct Fused {
    sources: Vec<Arc<dyn TraceSource>>,
    /// Which event managers there should be, if that was asked.
    membership: Option<Arc<Membership>>,
}

/// The answers of those that answered, by name, and the names of the others.
struct Gathered<T> {
    answers: Vec<(String, T)>,
    missing: Vec<String>,
    missing_stores: Vec<String>,
}

impl<T> Gathered<T> {
    /// The merged answer, with the missing ones named in it.
    fn merged<U>(
        self,
        merge: impl FnOnce(Vec<(String, T)>) -> U,
        completeness: impl FnOnce(&mut U) -> &mut Completeness,
    ) -> U {
        let mut merged = merge(self.answers);
        add_missing(completeness(&mut merged), self.missing, self.missing_stores);
        merged
    }
}

fn add_missing(completeness: &mut Completeness, silent: Vec<String>, stores: Vec<String>) {
    for (names, more) in [
        (&mut completeness.missing, silent),
        (&mut completeness.missing_stores, stores),
    ] {
        names.extend(more);
        names.sort();
        names.dedup();
    }
}

impl Fused {
    /// Asks `sources` as one.
    pub fn new(sources: Vec<Arc<dyn TraceSource>>) -> Self {
        Self {
            sources,
            membership: None,
        }
    }

    /// The same, of a run of which it is known who belongs to it: every answer says who is missing.
    #[must_use]
    pub(crate) fn of(mut self, membership: Arc<Membership>) -> Self {
        self.membership = Some(membership);
        self
    }

    fn missing_stores(&self) -> Vec<String> {
        let missing = self.membership.as_ref().map(|m| m.missing());
        missing.unwrap_or_default()
    }

    async fn ask<'a, T, F>(
        &'a self,
        question: impl Fn(&'a dyn TraceSource) -> F,
    ) -> Result<Gathered<T>, QueryError>
    where
        F: Future<Output = Result<T, QueryError>> + 'a,
    {
        let asked = self.sources.iter().map(|s| question(s.as_ref()));
        let results = join_all(asked).await;
        let mut gathered = Gathered {
            answers: Vec::new(),
            missing: Vec::new(),
            missing_stores: self.missing_stores(),
        };
        let mut errors = Vec::new();
        for (source, result) in self.sources.iter().zip(results) {
            let name = source.name();
            match result {
                Ok(answer) => gathered.answers.push((name, answer)),
                Err(error) => {
                    tracing::debug!(source = name, %error, "does not answer");
                    errors.push(error);
                    gathered.missing.push(name);
                }
            }
        }
        if gathered.answers.is_empty() {
            return Err(self.none_answered(errors));
        }
        Ok(gathered)
    }

    /// A question that is bad for one is bad for all; otherwise all reasons are told.
    fn none_answered(&self, errors: Vec<QueryError>) -> QueryError {
        if errors.is_empty() {
            return QueryError::Unavailable {
                source_name: self.name(),
                why: "there is no event manager to ask".into(),
            };
        }
        let reasons: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let mut errors = errors;
        if let Some(bad) = errors
            .iter()
            .position(|e| matches!(e, QueryError::BadQuery(_)))
        {
            return errors.swap_remove(bad);
        }
        if errors.len() == 1 {
            return errors.swap_remove(0);
        }
        QueryError::Unavailable {
            source_name: format!("none of {} event managers answers", errors.len()),
            why: reasons.join("; "),
        }
    }

    /// The range of a filter that names none: the extent of all sources together.
    async fn resolve(&self, filter: &Filter) -> Result<(Filter, TimeRange), QueryError> {
        let mut filter = filter.clone();
        let range = match filter.range {
            Some(range) => range,
            None => self.catalog().await?.extent.unwrap_or(TimeRange::NOTHING),
        };
        filter.range = Some(range);
        Ok((filter, range))
    }
}

#[async_trait]
impl TraceSource for Fused {
    fn name(&self) -> String {
        match self.sources.as_slice() {
            [] => "nobody".into(),
            [one] => one.name(),
            many => {
                let names: Vec<String> = many.iter().map(|s| s.name()).collect();
                names.join(", ")
            }
        }
    }

    async fn catalog(&self) -> Result<Catalog, QueryError> {
        let gathered = self.ask(TraceSource::catalog).await?;
        Ok(gathered.merged(merge::catalogs, |c| &mut c.completeness))
    }

    async fn meta_objects(&self, query: &MetaQuery) -> Result<MetaObjects, QueryError> {
        let gathered = self.ask(|s| s.meta_objects(query)).await?;
        Ok(gathered.merged(merge::meta_objects, |m| &mut m.completeness))
    }

    async fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError> {
        query.check()?;
        let (filter, range) = self.resolve(&query.filter).await?;
        let buckets = query.buckets;
        let query = HistogramQuery { filter, buckets };
        let gathered = self.ask(|s| s.histogram(&query)).await?;
        let merge = |parts| merge::histograms(parts, range, buckets);
        Ok(gathered.merged(merge, |h| &mut h.completeness))
    }

    async fn history(&self, query: &HistoryQuery) -> Result<History, QueryError> {
        let (filter, range) = self.resolve(&query.filter).await?;
        let query = HistoryQuery {
            filter,
            max_points: query.max_points,
        };
        let gathered = self.ask(|s| s.history(&query)).await?;
        let merge = |parts| merge::histories(parts, range, &query);
        Ok(gathered.merged(merge, |h| &mut h.completeness))
    }

    async fn records(&self, filter: &Filter, limit: u64) -> Result<Records, QueryError> {
        let gathered = self.ask(|s| s.records(filter, limit)).await?;
        let merge = |parts: Vec<(String, Records)>| {
            let mut all = Records::default();
            for (_, part) in parts {
                all.completeness.merge(&part.completeness);
                all.records.extend(part.records);
            }
            all.records.sort_by_key(|r| r.start);
            if limit > 0 {
                let most = usize::try_from(limit).unwrap_or(usize::MAX);
                all.records.truncate(most);
            }
            all
        };
        Ok(gathered.merged(merge, |r| &mut r.completeness))
    }

    async fn breakdown(&self) -> Result<Breakdown, QueryError> {
        let gathered = self.ask(TraceSource::breakdown).await?;
        let merge = |parts: Vec<(String, Breakdown)>| {
            let mut all = Breakdown::default();
            parts.iter().for_each(|(_, part)| all.merge(part));
            all
        };
        Ok(gathered.merged(merge, |b| &mut b.completeness))
    }

    async fn outline(&self, topology: bool) -> Result<Catalog, QueryError> {
        let gathered = self.ask(|s| s.outline(topology)).await?;
        Ok(gathered.merged(merge::catalogs, |c| &mut c.completeness))
    }

    /// Rankings of many sources cannot be paged one after another without an order of all of them; so
    /// this is the page of the merged table, without its figures.
    async fn rank(&self, query: &RankQuery) -> Result<Ranking, QueryError> {
        if !query.among.is_empty() {
            // As a source of its own would, of everything.
            let its = MetaQuery {
                variables: query.among.clone(),
                objects: Vec::new(),
            };
            let (catalog, metas) = (self.catalog().await?, self.meta_objects(&its).await?);
            return dosmos_trace::query::table::rank(&catalog, &metas, query);
        }
        let page = TableQuery {
            pattern: query.pattern.clone(),
            sort: query.sort,
            reverse: query.reverse,
            offset: query.skip,
            limit: query.take,
        };
        let table = self.table(&page).await?;
        let end = u64::from(query.skip) + table.rows.len() as u64;
        let entry = |row: &VariableFigures| Ranked {
            variable: row.variable.id(),
            name: row.variable.spec().name().to_owned(),
            key: row
                .sums
                .key(query.sort, row.variable.spec().layout().objects()),
            split: false,
        };
        Ok(Ranking {
            entries: table.rows.iter().map(entry).collect(),
            more: end < table.matched,
            next_split: None,
            known: table.known,
            matched: table.matched,
            completeness: table.completeness,
        })
    }

    async fn describe(&self, variables: &[VarId]) -> Result<VariableTable, QueryError> {
        let gathered = self.ask(|s| s.describe(variables)).await?;
        Ok(gathered.merged(merge::described, |t| &mut t.completeness))
    }

    async fn table(&self, query: &TableQuery) -> Result<Table, QueryError> {
        let mut merged = match self.sources.as_slice() {
            [one] => one.table(query).await?,
            many => table::merged(many, query).await?,
        };
        add_missing(&mut merged.completeness, Vec::new(), self.missing_stores());
        Ok(merged)
    }

    /// Everybody is told, or it is an error that says who was not.
    async fn select(&self, selection: &Selection) -> Result<u32, QueryError> {
        let gathered = self.ask(|s| s.select(selection)).await?;
        if !gathered.missing.is_empty() {
            return Err(QueryError::Unavailable {
                source_name: gathered.missing.join(", "),
                why: "could not be told what to record; the others were".into(),
            });
        }
        Ok(gathered.answers.iter().map(|(_, told)| told).sum())
    }

    fn received_bytes(&self) -> u64 {
        self.sources.iter().map(|s| s.received_bytes()).sum()
    }

    async fn status(&self) -> Result<Status, QueryError> {
        let gathered = self.ask(TraceSource::status).await?;
        Ok(gathered.merged(merge::statuses, |s| &mut s.completeness))
    }
}
