//! The report of a run: one page with what is wrong, what to change, and the diagrams of DOSMOS-Trace (figures 8 to 11) that
//! show it.
//!
//! [`report`] asks a source and lays out a [`Page`]; it reads each diagram's records, never the whole run.
//! Invariant: what the data lack stands at the top of the page.

mod figures;
mod findings;
mod groups;
mod lanes;
mod phases;
mod summary;
mod time;

use std::collections::BTreeMap;

use dosmos_analysis::Analysis;
use dosmos_plot::{Block, Page};
use dosmos_proto::{ApId, Nanos, ObjectId, VarId, Variable};
use dosmos_trace::Record;
use dosmos_trace::query::{
    Catalog, Filter, Histogram, HistogramQuery, MetaObjects, MetaQuery, QueryError, TimeRange,
    TraceSource,
};

pub use time::breakdown;

/// What to put on the page.
#[derive(Clone, Debug)]
pub struct Options {
    /// What was run, as the page's title.
    pub title: String,
    /// Show diagrams of this many variables: those of findings first, then the most accessed.
    pub variables: usize,
    /// Show the history of this many processes: those of findings first.
    pub processes: usize,
    /// Accesses in one history diagram; more cannot be told apart.
    pub accesses: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: "A run".to_owned(),
            variables: 4,
            processes: 2,
            accesses: 120,
        }
    }
}

/// A source with what all parts of the page need of it.
struct Asked<'a> {
    source: &'a dyn TraceSource,
    catalog: Catalog,
    meta: MetaObjects,
    extent: TimeRange,
    /// In one history diagram.
    accesses: u64,
}

/// Lays out the report of what `source` holds, with the findings of `analysis`.
///
/// # Errors
/// If the source has no answer at all. A source that lacks something makes the page say so.
pub async fn report(
    source: &dyn TraceSource,
    analysis: &Analysis,
    options: &Options,
) -> Result<Page, QueryError> {
    let asked = Asked::of(source, options.accesses).await?;
    let mut page = Page::new(&options.title, summary::subtitle(&asked));
    page.section("Summary", summary::blocks(&asked, analysis).await?);
    if asked.catalog.extent.is_some() {
        page.section("Findings", findings::blocks(analysis));
        page.section("Where the time goes", time::blocks(&asked).await?);
        page.section("Accesses over time", over_time(&asked).await?);
        page.section("Variables", variables(&asked, analysis, options).await?);
        page.section("Processes", processes(&asked, analysis, options).await?);
        page.section("Groups", groups::blocks(&analysis.groups));
        page.section("Phases", phases::blocks(&asked, analysis));
    }
    Ok(page)
}

/// The diagrams of one variable: accesses over time by origin (DOSMOS-Trace, figures 8 and 9), and a closer look from the
/// middle of the run (DOSMOS-Trace, figure 10). None if there is no such variable.
///
/// # Errors
/// If the source has no answer.
pub async fn of_variable(source: &dyn TraceSource, name: &str) -> Result<Vec<Block>, QueryError> {
    let asked = Asked::of(source, Options::default().accesses).await?;
    match asked.catalog.variable(name).map(Variable::id) {
        Some(var) => variable(&asked, var, asked.middle()).await,
        None => Ok(Vec::new()),
    }
}

/// The diagram of one process: a closer look from the middle of the run (DOSMOS-Trace, figure 11).
///
/// # Errors
/// If the source has no answer.
pub async fn of_process(source: &dyn TraceSource, ap: ApId) -> Result<Option<Block>, QueryError> {
    let asked = Asked::of(source, Options::default().accesses).await?;
    process(&asked, ap).await
}

async fn over_time(asked: &Asked<'_>) -> Result<Vec<Block>, QueryError> {
    figures::histograms(asked, &Filter::default(), "All variables").await
}

async fn variables(
    asked: &Asked<'_>,
    analysis: &Analysis,
    options: &Options,
) -> Result<Vec<Block>, QueryError> {
    let mut blocks = vec![figures::table(asked), Block::text(lanes::LEGEND)];
    for var in asked.interesting_variables(analysis, options.variables) {
        let name = asked.catalog.name_of(var);
        let moment = asked.moment_of(&name, analysis);
        let inside = variable(asked, var, moment).await?;
        blocks.push(card(name, asked.layout_of(var), inside));
    }
    Ok(blocks)
}

async fn variable(asked: &Asked<'_>, var: VarId, at: Nanos) -> Result<Vec<Block>, QueryError> {
    let filter = Filter {
        variables: vec![var],
        ..Filter::default()
    };
    let name = asked.catalog.name_of(var);
    let mut blocks = figures::histograms(asked, &filter, &name).await?;
    let records = asked.closer_look(&filter, at).await?;
    blocks.extend(lanes::of_variable(asked, &name, &records));
    Ok(blocks)
}

async fn processes(
    asked: &Asked<'_>,
    analysis: &Analysis,
    options: &Options,
) -> Result<Vec<Block>, QueryError> {
    let mut blocks = vec![Block::text(lanes::LEGEND)];
    for ap in asked.interesting_processes(analysis, options.processes) {
        blocks.extend(process(asked, ap).await?);
    }
    Ok(blocks)
}

async fn process(asked: &Asked<'_>, ap: ApId) -> Result<Option<Block>, QueryError> {
    let filter = Filter {
        aps: vec![ap],
        ..Filter::default()
    };
    let records = asked.closer_look(&filter, asked.middle()).await?;
    let name = asked.catalog.topology.ap_name(ap);
    Ok(lanes::of_process(asked, &name, &records))
}

fn card(heading: String, badge: String, blocks: Vec<Block>) -> Block {
    Block::Card {
        heading,
        badge,
        color: dosmos_plot::Color::Faint,
        blocks,
    }
}

impl<'a> Asked<'a> {
    async fn of(source: &'a dyn TraceSource, accesses: u64) -> Result<Self, QueryError> {
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

    fn middle(&self) -> Nanos {
        Nanos(self.extent.from.0 / 2 + self.extent.to.0 / 2)
    }

    /// Where to look at a variable: in the middle of its worst finding, else of the run.
    fn moment_of(&self, variable: &str, analysis: &Analysis) -> Nanos {
        let about = |f: &&dosmos_analysis::Finding| f.variable.as_deref() == Some(variable);
        match analysis.findings.iter().find(about) {
            Some(f) => Nanos(f.from_ns / 2 + f.to_ns / 2),
            None => self.middle(),
        }
    }

    /// Accesses that matter, from `moment` on; from earlier on if there are too few after it.
    async fn closer_look(&self, filter: &Filter, moment: Nanos) -> Result<Vec<Record>, QueryError> {
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

    async fn histogram(&self, filter: &Filter, buckets: u32) -> Result<Histogram, QueryError> {
        let query = HistogramQuery {
            filter: filter.clone(),
            buckets,
        };
        self.source.histogram(&query).await
    }

    /// Accesses by variable, those on copies included.
    fn accesses(&self) -> BTreeMap<VarId, u64> {
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

    fn interesting_variables(&self, analysis: &Analysis, most: usize) -> Vec<VarId> {
        let named = analysis.findings.iter().filter_map(|f| {
            let name = f.variable.as_deref()?;
            Some(self.catalog.variable(name)?.id())
        });
        let mut busiest: Vec<(u64, VarId)> =
            self.accesses().into_iter().map(|(v, n)| (n, v)).collect();
        busiest.sort_by_key(|&(n, v)| (std::cmp::Reverse(n), v));
        first_distinct(named.chain(busiest.into_iter().map(|m| m.1)), most)
    }

    fn interesting_processes(&self, analysis: &Analysis, most: usize) -> Vec<ApId> {
        let topology = &self.catalog.topology;
        let named = analysis.findings.iter().flat_map(|f| &f.aps);
        let named = named.filter_map(|n| topology.find_ap(n));
        first_distinct(named.chain(topology.aps_in(None)), most)
    }

    fn layout_of(&self, var: VarId) -> String {
        let variable = self.catalog.variables.iter().find(|v| v.id() == var);
        variable.map_or_else(String::new, |v| v.spec().layout().to_string())
    }

    fn object_name(&self, object: ObjectId) -> String {
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
