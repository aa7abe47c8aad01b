//! Whom to ask: addresses of event managers, store directories, or a whole run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use dosmos_proto::AddressBook;
use dosmos_proto::transport::{self, Address};
use dosmos_trace::query::TraceSource;
use dosmos_trace::store::{StoreError, StoreSource};
use dosmos_visualizer::source::RemoteSource;

use crate::args::SourceArgs;

const CONNECT: Duration = Duration::from_secs(2);

/// Sources that exist; whether they answer shows when they are asked.
pub struct Opened {
    /// One for each event manager or store.
    pub sources: Vec<Arc<dyn TraceSource>>,
    /// What was named, for headings.
    pub title: String,
}

/// Opens what the command line names, else the latest run.
///
/// # Errors
/// An address that is not one, a directory that holds no run, a store that cannot be read.
pub async fn open(args: &SourceArgs) -> anyhow::Result<Opened> {
    let mut sources: Vec<Arc<dyn TraceSource>> = Vec::new();
    let mut titles = Vec::new();
    for text in &args.emp {
        let address: Address = text.parse().map_err(anyhow::Error::msg)?;
        sources.push(Arc::new(RemoteSource::connect(address)));
        titles.push(text.clone());
    }
    for dir in &args.store {
        sources.push(store_or_its_writer(dir).await?);
        titles.push(dir.display().to_string());
    }
    let run = match &args.run_dir {
        Some(dir) => Some(dir.clone()),
        None if sources.is_empty() => Some(latest()?),
        None => None,
    };
    if let Some(dir) = run {
        sources.extend(of_run(&dir).await?);
        titles.push(dir.display().to_string());
    }
    Ok(Opened {
        sources,
        title: titles.join(" "),
    })
}

/// Store directories, of runs that have ended: those named, else all of a run, else of the latest.
pub(crate) fn stores(
    named: &[PathBuf],
    run_dir: Option<&Path>,
) -> anyhow::Result<Vec<StoreSource>> {
    let dirs = match run_dir {
        Some(dir) => store_dirs(dir)?,
        None if named.is_empty() => store_dirs(&latest()?)?,
        None => named.to_vec(),
    };
    let open = |dir: &PathBuf| StoreSource::open(dir).map_err(anyhow::Error::from);
    dirs.iter().map(open).collect()
}

/// The store directories of a run.
fn store_dirs(run: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let stores = run.join("store");
    let entries = std::fs::read_dir(&stores)
        .with_context(|| format!("{} is not a run directory", run.display()))?;
    let mut dirs: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    if dirs.is_empty() {
        bail!("{} has no trace store", stores.display());
    }
    dirs.sort();
    Ok(dirs)
}

fn latest() -> anyhow::Result<PathBuf> {
    let latest = Path::new(crate::launch::RUNS).join("latest");
    if !latest.exists() {
        bail!(
            "there is no {} here; name what to look at: --run-dir DIR, --store DIR or --emp ADDR",
            latest.display()
        );
    }
    Ok(latest)
}

/// All event managers of a run: live where they answer, else their stores.
async fn of_run(dir: &Path) -> anyhow::Result<Vec<Arc<dyn TraceSource>>> {
    let book = AddressBook::new(Default::default(), Some(dir));
    let mut sources: Vec<Arc<dyn TraceSource>> = Vec::new();
    for store in store_dirs(dir)? {
        let name = store
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match book.resolve(&name) {
            Some(address) if transport::connect(&address, CONNECT).await.is_ok() => {
                sources.push(Arc::new(RemoteSource::named(name, book.clone())));
            }
            _ => sources.push(store_or_its_writer(&store).await?),
        }
    }
    Ok(sources)
}

/// A store directory; if an event manager is writing it and answers, that one.
async fn store_or_its_writer(dir: &Path) -> anyhow::Result<Arc<dyn TraceSource>> {
    match StoreSource::open(dir) {
        Ok(store) => Ok(Arc::new(store)),
        Err(StoreError::InUse { path, address }) => {
            let parsed: Address = address.parse().map_err(anyhow::Error::msg)?;
            if transport::connect(&parsed, CONNECT).await.is_err() {
                return Err(StoreError::InUse { path, address }.into());
            }
            Ok(Arc::new(RemoteSource::connect(parsed)))
        }
        Err(e) => Err(e.into()),
    }
}
