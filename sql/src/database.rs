//! A run as a database: its tables, and the answers to queries over them.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use dosmos_client::{RUNS, Run};
use dosmos_proto::Nanos;
use dosmos_trace::query::{Completeness, TraceSource};
use dosmos_trace::store::StoreSource;
use futures::{TryStreamExt, stream};

use crate::Error;
use crate::cluster::{Cluster, Failure, only_records};
use crate::exec::Workers;
use crate::names::Names;
use crate::records::RecordsTable;
use crate::rule::AggregateInScan;
use crate::sheet::{Rows, Sheet};
use crate::source::{Silent, Source};
use crate::tables::{Findings, Objects, Phases, Processes, Runs, Variables};

/// Completed accesses, each once.
const ACCESSES: &str = "CREATE VIEW accesses AS \
     SELECT * FROM records WHERE side = 'requester' AND NOT failed AND NOT waiting";

/// How queries are carried out.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Conditions and aggregates are worked out on chunks; otherwise by the engine, on all rows.
    pub pushdown: bool,
    /// How many processors a query may use.
    pub parallel: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pushdown: true,
            parallel: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// A run as a database.
pub struct Database {
    run: Run,
    settings: Settings,
    context: SessionContext,
    sources: Vec<Source>,
    /// Running event managers that carry queries out themselves.
    cluster: Option<Cluster>,
    zero: Nanos,
    silent: Silent,
}

impl Database {
    /// The tables of a run.
    ///
    /// # Errors
    /// If no source of the run answers.
    pub async fn open(run: Run, settings: Settings) -> Result<Self, Error> {
        let silent = Silent::default();
        let catalog = run
            .source()
            .catalog()
            .await
            .map_err(dosmos_client::Error::from)?;
        let zero = catalog.extent.map_or(Nanos::ZERO, |extent| extent.from);
        let mut sources = Vec::new();
        for member in run.members() {
            match source(member, zero).await {
                Some(source) => sources.push(source),
                None => silent.add(member.name()),
            }
        }
        let cluster = match sources.iter().any(Source::is_running) {
            true => Cluster::of(&run).await,
            false => None,
        };
        let state = SessionStateBuilder::new()
            .with_config(settings.session())
            .with_default_features();
        let state = settings.planner(state).build();
        let database = Self {
            context: SessionContext::new_with_state(state),
            settings,
            sources,
            cluster,
            zero,
            silent,
            run,
        };
        let run = &database.run;
        database
            .register(&database.context, database.records())
            .await?;
        database.sheet("objects", Objects(run.clone()))?;
        database.sheet("variables", Variables(run.clone()))?;
        database.sheet("processes", Processes(run.clone()))?;
        database.sheet("phases", Phases(run.clone()))?;
        database.sheet("findings", Findings(run.clone()))?;
        database.sheet("runs", Runs(folder(run)))?;
        Ok(database)
    }

    fn records(&self) -> RecordsTable {
        let records = RecordsTable::new(self.sources.clone(), self.silent.clone());
        match self.settings.pushdown {
            true => records,
            false => records.without_pushdown(),
        }
    }

    /// The tables of single records.
    async fn register(&self, context: &SessionContext, records: RecordsTable) -> Result<(), Error> {
        let registered = context.register_table("records", Arc::new(records));
        registered.map_err(|e| self.explained(e))?;
        let made = context.sql(ACCESSES).await;
        made.map(|_| ()).map_err(|e| self.explained(e))
    }

    fn sheet(&self, name: &str, rows: impl Rows) -> Result<(), Error> {
        let table = Arc::new(Sheet::new(rows));
        let registered = self.context.register_table(name, table);
        registered.map(|_| ()).map_err(|e| self.explained(e))
    }

    fn explained(&self, error: datafusion::error::DataFusionError) -> Error {
        let catalogs = self.context.catalog_names().into_iter();
        let catalogs = catalogs.filter_map(|name| self.context.catalog(&name));
        let schemas = catalogs.flat_map(|c| {
            let names = c.schema_names().into_iter();
            names.filter_map(|name| c.schema(&name)).collect::<Vec<_>>()
        });
        let tables: Vec<String> = schemas.flat_map(|s| s.table_names()).collect();
        Error::of_engine(error, &tables)
    }

    /// Carries a query out. Rows come while they are read; ask for [`Database::completeness`] after the last one.
    ///
    /// # Errors
    /// If it is not a query, or names what is not there.
    pub async fn query(&self, sql: &str) -> Result<Answer<'_>, Error> {
        let planned = self.context.sql_with_options(sql, only_reads()).await;
        let frame = planned.map_err(|e| self.explained(e))?;
        let rows = match &self.cluster {
            Some(cluster) if only_records(frame.logical_plan()) => {
                self.divided(cluster.clone(), sql).await?
            }
            _ => None,
        };
        if let Some(rows) = rows {
            return Ok(Answer {
                database: self,
                rows,
                divided: true,
            });
        }
        let stream = frame
            .execute_stream()
            .await
            .map_err(|e| self.explained(e))?;
        Ok(Answer {
            database: self,
            rows: stream,
            divided: false,
        })
    }

    /// The rows of a query that the workers carry out, as many of them as answer to the end; none if the engine cannot divide it:
    /// then it is answered here.
    async fn divided(
        &self,
        mut cluster: Cluster,
        sql: &str,
    ) -> Result<Option<SendableRecordBatchStream>, Error> {
        while !cluster.members().is_empty() {
            let context = cluster.session(self.settings.session());
            let context = self.settings.planner(context).build();
            let context = SessionContext::new_with_state(context);
            let workers = Workers {
                number: cluster.members().len(),
                zero: self.zero,
            };
            let records = self.records().of_workers(workers);
            self.register(&context, records).await?;
            let planned = context.sql_with_options(sql, only_reads()).await;
            let frame = planned.map_err(|e| self.explained(e))?;
            match cluster.rows(frame).await {
                Ok((schema, rows)) => {
                    let rows = stream::iter(rows.into_iter().map(Ok));
                    return Ok(Some(Box::pin(RecordBatchStreamAdapter::new(schema, rows))));
                }
                Err(Failure::Engine(error)) => {
                    tracing::debug!(%error, "the query is not divided");
                    return Ok(None);
                }
                Err(Failure::Gone(gone)) => {
                    gone.iter().for_each(|m| self.silent.add(m.source.name()));
                    cluster = cluster.without(&gone);
                }
            }
        }
        Err(Error::NobodyAnswers(self.silent.names()))
    }

    /// What the rows read so far lack.
    pub async fn completeness(&self) -> Completeness {
        let silent = self.silent.names();
        let mut lacking = match self.run.source().outline(false).await {
            Ok(outline) => outline.completeness,
            // Nobody answers any more.
            Err(_) => Completeness {
                missing: self.run.members().iter().map(|m| m.name()).collect(),
                ..Completeness::default()
            },
        };
        lacking.missing.extend(silent);
        lacking.missing.sort();
        lacking.missing.dedup();
        lacking
    }

    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }
}

/// The rows of an answer, batch by batch.
pub struct Answer<'d> {
    database: &'d Database,
    rows: SendableRecordBatchStream,
    divided: bool,
}

impl Answer<'_> {
    /// Whether the event managers carried the query out, each over its own store.
    pub fn is_divided(&self) -> bool {
        self.divided
    }

    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    /// The next rows; none after the last.
    ///
    /// # Errors
    /// If the query cannot be carried on.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        let next = self.rows.try_next().await;
        next.map_err(|e| self.database.explained(e))
    }

    /// All rows that are left.
    ///
    /// # Errors
    /// As [`Answer::next`].
    pub async fn all(mut self) -> Result<Vec<RecordBatch>, Error> {
        let mut all = Vec::new();
        while let Some(batch) = self.next().await? {
            all.push(batch);
        }
        Ok(all)
    }
}

impl Settings {
    fn session(&self) -> SessionConfig {
        SessionConfig::new()
            .with_information_schema(true)
            .with_target_partitions(self.parallel.max(1))
    }

    fn planner(&self, builder: SessionStateBuilder) -> SessionStateBuilder {
        match self.pushdown {
            true => builder.with_physical_optimizer_rule(Arc::new(AggregateInScan)),
            false => builder,
        }
    }
}

/// Nothing is changed, in no table and no file.
fn only_reads() -> SQLOptions {
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
}

/// A source of records; none if it does not answer.
async fn source(member: &Arc<dyn TraceSource>, zero: Nanos) -> Option<Source> {
    let any: &dyn Any = member.as_ref();
    if let Some(store) = any.downcast_ref::<StoreSource>() {
        let names = Names::of(&store.describe(), zero);
        return Some(Source::store(store.view().clone(), names));
    }
    let catalog = member.catalog().await.ok()?;
    let until = catalog.extent.map_or(Nanos::ZERO, |extent| extent.to);
    let names = Names::of(&catalog, zero);
    Some(Source::asked(member.clone(), until, names))
}

/// The folder that the run is kept in, among others.
fn folder(run: &Run) -> PathBuf {
    let beside = run
        .directory()
        .and_then(|dir| Some(dir.parent()?.to_owned()));
    beside.unwrap_or_else(|| PathBuf::from(RUNS))
}
