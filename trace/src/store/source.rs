//! Post-mortem: a store directory that answers as an event manager would.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock, RwLock};

use async_trait::async_trait;
use tempfile::TempDir;

use super::engine::Engine;
use super::error::StoreError;
use super::lock::DirLock;
use super::manifest::{Identity, Manifest};
use super::replay::{self, Item, Recovered};
use super::snapshot::Snapshot;
use super::upkeep::Verified;
use super::view::StoreView;
use crate::meta::MetaState;
use crate::query::{
    Breakdown, Catalog, Filter, Histogram, HistogramQuery, History, HistoryQuery, MetaObjects,
    MetaQuery, QueryError, Records, Status, TraceSource,
};

/// A store directory, open for reading. Its answers are worked out on the thread that asks; the first
/// question for meta-objects takes the longest, as it replays the log.
#[derive(Debug)]
pub struct StoreSource {
    name: String,
    pub(super) view: StoreView,
    manifest: Manifest,
    pub(super) recovered: Recovered,
    metas: OnceLock<MetaState>,
    _lock: Option<DirLock>,
    /// Where the databases really are, if the directory itself could not be opened.
    _copy: Option<TempDir>,
}

impl StoreSource {
    /// Opens the store in `dir`, also one left by a crash. The engine writes to what it opens, and lets
    /// one process at a time; so a private copy is opened of a store that was left by a crash (it stays
    /// as it is for whoever looks into that), that is open in another reader, or that cannot be written.
    ///
    /// # Errors
    /// If there is no store, an event manager is writing it, or none of it can be read.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Manifest::read(dir)?;
        let lock = DirLock::shared(dir)?;
        let manifest = Manifest::read(dir)?;
        let lock = lock.ok_or_else(|| manifest.in_use(dir))?;
        let in_place = if manifest.pid.is_some() || !is_writable(dir) {
            None
        } else {
            match open_databases(dir, &manifest) {
                Err(StoreError::Busy(_)) => None,
                opened => Some(opened?),
            }
        };
        let (opened, copy) = match in_place {
            Some(opened) => (opened, None),
            None => {
                let copy = copy_of(dir)?;
                (open_databases(copy.path(), &manifest)?, Some(copy))
            }
        };
        let mut loaded = replay::load(opened.databases, &opened.unopened, &manifest);
        loaded.errors.extend(opened.errors);
        loaded.errors.iter().for_each(|e| loaded.index.lost(e));
        let snapshot = Snapshot::read(dir, &manifest).unwrap_or_else(|e| {
            tracing::warn!("{e}; the whole log is read instead");
            None
        });
        let index = Arc::new(RwLock::new(loaded.index));
        Ok(Self {
            name: dir.display().to_string(),
            view: StoreView::new(index.clone(), manifest.identity.clone(), false),
            recovered: Recovered::new(index, loaded.marks, snapshot),
            manifest,
            metas: OnceLock::new(),
            // A copy is independent of what becomes of the original.
            _lock: lock.filter(|_| copy.is_none()),
            _copy: copy,
        })
    }

    /// Whose trace it is.
    pub fn identity(&self) -> &Identity {
        self.view.identity()
    }

    /// Its records, for whoever reads them on its own thread.
    pub fn view(&self) -> &StoreView {
        &self.view
    }

    /// Reads everything there is and compares it with its checksums and summaries.
    pub fn verify(&self) -> Verified {
        self.view.check_chunks();
        let mut events = 0;
        self.recovered.replay(|item| {
            events += u64::from(matches!(item, Item::Event(_)));
        });
        let usage = self.view.usage();
        let lacking = self.view.completeness();
        Verified {
            chunks: usage.chunks,
            records: usage.records,
            events,
            damaged: lacking.corrupt_chunks,
            notes: lacking.notes,
        }
    }

    fn metas(&self) -> &MetaState {
        self.metas.get_or_init(|| {
            let mut recovered = self.recovered.clone();
            let saved = recovered.take_snapshot();
            let mut state = saved.unwrap_or_else(|| Snapshot::new(&self.manifest));
            let mut alone = self.completed_fold();
            recovered.replay(|item| match &mut alone {
                Some(fold) => fold.take(&mut state, item),
                None => state.take(item),
            });
            state.metas
        })
    }
}

/// The databases of a store that can be opened, and what is wrong with the others.
struct Opened {
    databases: BTreeMap<u32, Engine>,
    unopened: Vec<u32>,
    errors: Vec<StoreError>,
}

fn open_databases(dir: &Path, manifest: &Manifest) -> Result<Opened, StoreError> {
    let mut opened = Opened {
        databases: BTreeMap::new(),
        unopened: Vec::new(),
        errors: Vec::new(),
    };
    for (number, path) in replay::databases(dir, manifest)? {
        match Engine::open(&path) {
            Ok(engine) => {
                opened.databases.insert(number, engine);
            }
            Err(StoreError::Busy(path)) => return Err(StoreError::Busy(path)),
            Err(e) => {
                opened.unopened.push(number);
                opened.errors.push(e);
            }
        }
    }
    match opened.errors.pop() {
        Some(e) if opened.databases.is_empty() => Err(e),
        e => {
            opened.errors.extend(e);
            Ok(opened)
        }
    }
}

fn is_writable(dir: &Path) -> bool {
    tempfile::tempfile_in(dir).is_ok()
}

fn copy_of(dir: &Path) -> Result<TempDir, StoreError> {
    let copy = TempDir::new().map_err(|e| StoreError::io(std::env::temp_dir(), e))?;
    copy_tree(dir, copy.path()).map_err(|e| StoreError::io(dir.to_owned(), e))?;
    Ok(copy)
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            // Content only: permissions may be what makes the original unusable.
            std::io::copy(
                &mut std::fs::File::open(entry.path())?,
                &mut std::fs::File::create(target)?,
            )?;
        }
    }
    Ok(())
}

#[async_trait]
impl TraceSource for StoreSource {
    fn name(&self) -> String {
        self.name.clone()
    }
    async fn catalog(&self) -> Result<Catalog, QueryError> {
        Ok(self.view.catalog())
    }
    async fn meta_objects(&self, query: &MetaQuery) -> Result<MetaObjects, QueryError> {
        Ok(self.metas().query(query, self.view.completeness()))
    }
    async fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError> {
        self.view.histogram(query)
    }
    async fn history(&self, query: &HistoryQuery) -> Result<History, QueryError> {
        self.view.history(query)
    }
    async fn records(&self, filter: &Filter, limit: u64) -> Result<Records, QueryError> {
        Ok(self.view.records(filter, limit))
    }
    async fn breakdown(&self) -> Result<Breakdown, QueryError> {
        Ok(self.view.breakdown())
    }
    async fn status(&self) -> Result<Status, QueryError> {
        Ok(Status {
            event_managers: Vec::new(),
            completeness: self.view.completeness(),
        })
    }
}
