//! `dosmos sql` and `dosmos archive`.

use std::process::ExitCode;
use std::sync::Arc;

use dosmos_cli::args::{ArchiveArgs, SqlArgs};
use dosmos_cli::output;
use dosmos_cli::sql::Sql;
use dosmos_client::Run;
use dosmos_emp::Companion;
use dosmos_trace::query::TraceSource;
use dosmos_trace::store::StoreSource;

use crate::archive::archive;
use crate::database::{Database, Settings};
use crate::show;
use crate::worker::StartWorker;

/// What this build adds to the program.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithSql;

impl Sql for WithSql {
    fn query(&self, args: &SqlArgs) -> anyhow::Result<ExitCode> {
        runtime()?.block_on(async {
            let run = Run::open(&args.sources.target()).await?;
            let database = Database::open(run, Settings::default()).await?;
            let answer = database.query(&args.query).await?;
            show::print(&database, answer, args.format).await?;
            Ok(ExitCode::SUCCESS)
        })
    }

    fn archive(&self, args: &ArchiveArgs) -> anyhow::Result<ExitCode> {
        let stores = dosmos_client::stores(&args.store, args.run_dir.as_deref())?;
        let sources = stores.into_iter().map(Arc::new);
        let sources: Vec<Arc<StoreSource>> = sources.collect();
        let shared = sources
            .iter()
            .map(|s| Arc::clone(s) as Arc<dyn TraceSource>);
        // As one run: stores of different runs are refused, and one that is missing is named.
        let whole = runtime()?.block_on(async {
            let run = Run::together(shared.collect(), "").await?;
            let outline = run.source().outline(false).await;
            anyhow::Ok(outline?.completeness)
        })?;
        let done = archive(&sources, &whole, &args.output, args.by)?;
        let (records, files, path) = (done.records, done.files, done.path.display());
        output::note(&format!("{records} records in {files} files: {path}"));
        for line in done.completeness.reasons() {
            output::note(&format!("incomplete: {line}"));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn companion(&self) -> Option<Arc<dyn Companion>> {
        Some(Arc::new(StartWorker))
    }
}

/// As many threads as there are processors.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.enable_all().build()?)
}
