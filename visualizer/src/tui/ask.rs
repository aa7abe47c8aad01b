//! One round of asking: what does not change is asked once, what grows without bound only in part.

use std::collections::BTreeMap;
use std::time::Duration;

use dosmos_client::{Error, Launch, Run, Variables};
use dosmos_proto::{ApId, Topology, Variable};
use dosmos_trace::Op;
use dosmos_trace::meta::OpCounts;
use dosmos_trace::query::table::{NamePattern, TableQuery};
use dosmos_trace::query::{
    Breakdown, Catalog, Filter, Histogram, HistogramQuery, MetaQuery, OriginCounts, QueryError,
    TraceSource,
};
use futures::future::join_all;
use tokio::time::Instant;

use super::event::Inspector;
use crate::state::{Answer, ApFigures, Question, Reply, Request, Update};

/// Processes whose accesses are counted from the records, where no status tells them.
const COUNTED: usize = 256;
/// Where the time went grows with every barrier passed: it is asked for so often at most.
const BREAKDOWNS: Duration = Duration::from_secs(2);

/// Asks, and remembers what does not change.
pub(super) struct Asker {
    run: Run,
    topology: Option<Topology>,
    /// What the first catalog said against the sources; later ones are told less.
    notes: Vec<String>,
    known: Variables,
    /// Accesses of a finished run by process, counted once.
    aps: Option<BTreeMap<ApId, ApFigures>>,
    breakdown: Option<(Instant, bool)>,
    inspector: Inspector,
    /// How the run was started, and whether it was live when that was read.
    launch: Option<(Launch, bool)>,
}

impl Asker {
    pub(super) fn new(run: Run) -> Self {
        Self {
            run,
            topology: None,
            notes: Vec::new(),
            known: Variables::default(),
            aps: None,
            breakdown: None,
            inspector: Inspector::default(),
            launch: None,
        }
    }

    pub(super) fn source(&self) -> &dyn TraceSource {
        self.run.source()
    }

    pub(super) async fn round(&mut self, request: Request) -> Update {
        let result = self.ask(&request).await;
        let result = result.map(Box::new).map_err(|e| e.to_string());
        Update { request, result }
    }

    async fn ask(&mut self, request: &Request) -> Result<Reply, Error> {
        let run = self.run.clone();
        let source = run.source();
        let first = self.topology.is_none();
        let base = async { futures::try_join!(source.outline(first), source.status()) };
        let table = async {
            match &request.page {
                Some(page) => source.table(page).await.map(Some),
                None => Ok(None),
            }
        };
        let question = &request.question;
        let answer = answer(source, question);
        let ((base, table), answer) =
            futures::future::join(futures::future::join(base, table), answer).await;
        let (mut catalog, status) = base?;
        self.complete(&mut catalog);
        let live = catalog.live;
        let (mut answer, table) = (answer?, table?);
        if *question == Question::Overview && status.event_managers.is_empty() {
            answer = Answer::Overview(self.count_accesses(&catalog).await?);
        }
        if let Some(table) = &table {
            let rows = table.rows.iter();
            self.known.remember(rows.map(|r| r.variable.clone()));
        }
        let variables = self.spoken_of(&answer).await?;
        let found = match &request.find {
            Some(name) => self.find(name).await?,
            None => None,
        };
        let event = match &request.event {
            Some(query) => Some(self.inspector.look(run.source(), query).await?),
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
            event,
            breakdown,
            launch: self.launch(live),
            received: self.run.source().received_bytes(),
        })
    }

    /// How the run was started and how it ended: read once while it is live, and once when it has ended.
    fn launch(&mut self, live: bool) -> Launch {
        match &self.launch {
            Some((known, of_live)) if *of_live == live => known.clone(),
            _ => {
                let launch = self.run.launch();
                self.launch = Some((launch.clone(), live));
                launch
            }
        }
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

    async fn spoken_of(&mut self, answer: &Answer) -> Result<Vec<Variable>, QueryError> {
        match answer {
            Answer::History(history) => {
                let ids = history.points.iter().map(|p| p.object.var).collect();
                self.known.get(self.run.source(), &ids).await
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
        let table = self.run.source().table(&query).await?;
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
        self.run.source().breakdown().await.map(Some)
    }

    /// Every process's accesses, from the records: what the status of a running event manager tells
    /// without extra cost.
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
        let source = self.run.source();
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
}

fn total(histogram: &Histogram) -> OriginCounts {
    let mut sum = OriginCounts::default();
    histogram.buckets.iter().for_each(|b| sum.add(b));
    sum
}

async fn answer(source: &dyn TraceSource, question: &Question) -> Result<Answer, QueryError> {
    Ok(match question {
        // What these need besides is known only with the catalog.
        Question::Nothing | Question::Overview => Answer::None,
        Question::Histogram(query) => Answer::Histogram(source.histogram(query).await?),
        Question::History(query) => Answer::History(source.history(query).await?),
    })
}
