//! What all parts of the page need of a run, asked once.

use std::collections::BTreeMap;

use dosmos_analysis::Analysis;
use dosmos_proto::{ApId, Nanos, ObjectId, VarId};
use dosmos_trace::Record;
use dosmos_trace::query::{
    Catalog, Filter, Histogram, HistogramQuery, MetaObjects, MetaQuery, QueryError, TimeRange,
    TraceSource,
};

/// A source with what all parts of the page need of it.
pub(crate) struct Asked<'a> {
    pub(crate) source: &'a dyn TraceSource,
    pub(crate) catalog: Catalog,
    pub(crate) meta: MetaObjects,
    pub(crate) extent: TimeRange,
    /// In one history diagram.
    accesses: u64,
}

impl<'a> Asked<'a> {
    pub(crate) async fn of(source: &'a dyn TraceSource, accesses: u64) -> Result<Self, QueryError> {
        let catalog = source.catalog().await?;
        let nothing = TimeRange {
            from: Nanos::ZERO,
            to: Nanos::ZERO,
        };
        Ok(Self {
            source,
            meta: source.meta_objects(&MetaQuery::default()).await?,
            extent: catalog.extent.unwrap_or(nothing),
            catalog,
            accesses,
        })
    }

    pub(crate) fn middle(&self) -> Nanos {
        Nanos(self.extent.from.0 / 2 + self.extent.to.0 / 2)
    }

    /// Where to look at a variable: in the middle of its worst finding, otherwise of the run.
    pub(crate) fn moment_of(&self, variable: &str, analysis: &Analysis) -> Nanos {
        let about = |f: &&dosmos_analysis::Finding| f.variable.as_deref() == Some(variable);
        match analysis.findings.iter().find(about) {
            Some(f) => Nanos(f.from_ns / 2 + f.to_ns / 2),
            None => self.middle(),
        }
    }

    /// Accesses that matter, from `moment` on; from earlier on if there are too few after it.
    pub(crate) async fn closer_look(
        &self,
        filter: &Filter,
        moment: Nanos,
    ) -> Result<Vec<Record>, QueryError> {
        for from in [moment, self.extent.from] {
            let range = TimeRange {
                from,
                to: self.extent.to,
            };
            let filter = Filter {
                range: Some(range),
                ..filter.clone()
            };
            let limit = self.accesses;
            let records = self.source.records(&filter, limit).await?;
            if records.len() as u64 >= limit / 2 || from == self.extent.from {
                return Ok(records.records);
            }
        }
        Ok(Vec::new())
    }

    pub(crate) async fn histogram(
        &self,
        filter: &Filter,
        buckets: u32,
    ) -> Result<Histogram, QueryError> {
        let query = HistogramQuery {
            filter: filter.clone(),
            buckets,
        };
        self.source.histogram(&query).await
    }

    /// Accesses by variable, cached reads included.
    pub(crate) fn accesses(&self) -> BTreeMap<VarId, u64> {
        let mut sums = BTreeMap::new();
        for p in &self.meta.primaries {
            let c = &p.counts;
            *sums.entry(p.object.var).or_default() +=
                c.reads + c.writes + c.acquires + c.releases + p.reads_on_copies;
        }
        for s in &self.meta.secondaries {
            *sums.entry(s.object.var).or_default() += s.reads;
        }
        sums
    }

    pub(crate) fn interesting_variables(&self, analysis: &Analysis, most: usize) -> Vec<VarId> {
        let named = analysis.findings.iter().filter_map(|f| {
            let name = f.variable.as_deref()?;
            Some(self.catalog.variable(name)?.id())
        });
        let mut busiest: Vec<(u64, VarId)> =
            self.accesses().into_iter().map(|(v, n)| (n, v)).collect();
        busiest.sort_by_key(|&(n, v)| (std::cmp::Reverse(n), v));
        first_distinct(named.chain(busiest.into_iter().map(|m| m.1)), most)
    }

    pub(crate) fn interesting_processes(&self, analysis: &Analysis, most: usize) -> Vec<ApId> {
        let topology = &self.catalog.topology;
        let named = analysis.findings.iter().flat_map(|f| &f.aps);
        let named = named.filter_map(|n| topology.find_ap(n));
        first_distinct(named.chain(topology.aps_in(None)), most)
    }

    pub(crate) fn layout_of(&self, var: VarId) -> String {
        let variable = self.catalog.variables.iter().find(|v| v.id() == var);
        variable.map_or_else(String::new, |v| v.spec().layout().to_string())
    }

    pub(crate) fn object_name(&self, object: ObjectId) -> String {
        let name = self.catalog.name_of(object.var);
        match self.catalog.variables.iter().find(|v| v.id() == object.var) {
            Some(v) if v.spec().layout().objects() > 1 => format!("{name}[{}]", object.index),
            _ => name,
        }
    }
}

fn first_distinct<T: PartialEq>(all: impl Iterator<Item = T>, most: usize) -> Vec<T> {
    let mut kept = Vec::new();
    for item in all {
        if kept.len() >= most {
            break;
        }
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

pub(crate) fn seconds(t: Nanos) -> f64 {
    t.0 as f64 / 1e9
}
