//! Post-mortem: a store directory that answers as an event manager would.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, OnceLock, RwLock};

use super::completed::CompletedFold;
use super::entry::Item;
use super::error::StoreError;
use super::imported::Imported;
use super::ledger;
use super::load;
use super::lock::DirLock;
use super::manifest::{Identity, Manifest};
use super::replay::Recovered;
use super::snapshot::Snapshot;
use super::upkeep::Verified;
use super::view::StoreView;
use crate::meta::MetaState;
use crate::query::{
    Breakdown, Catalog, Completeness, Filter, Histogram, HistogramQuery, History, HistoryQuery,
    MetaObjects, MetaQuery, QueryError, Records, Status, TraceSource,
};
use async_trait::async_trait;

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
}

impl StoreSource {
    /// Opens the store in `dir`, as it is: closed, or left by a crash. Nothing is written, so it may be on a medium that
    /// cannot be written, and open in any number of readers. What is damaged is left out, and every answer says so.
    ///
    /// # Errors
    /// If there is no store, an event manager is writing it, or nothing says whose it is.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        load::manifest(dir)?;
        let lock = DirLock::shared(dir)?;
        let (manifest, damage) = load::manifest(dir)?;
        let lock = lock.ok_or_else(|| manifest.in_use(dir))?;
        let expected = manifest.closed.or_else(|| ledger::read(dir));
        let mut loaded = load::load(dir, &manifest, expected)?;
        if let Some(damage) = damage {
            loaded.index.damaged_log(damage.to_string());
        }
        let snapshot = Snapshot::read(dir, &manifest).unwrap_or_else(|e| {
            loaded.index.lost_state(&e);
            None
        });
        let index = Arc::new(RwLock::new(loaded.index));
        Ok(Self {
            name: dir.display().to_string(),
            view: StoreView::new(index.clone(), manifest.identity.clone(), false),
            recovered: Recovered::new(index, loaded.marks, snapshot),
            manifest,
            metas: OnceLock::new(),
            _lock: lock,
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

    /// Hands out what `filter` matches, in the order of the log, until `each` breaks off. A filter that
    /// lets every record pass also lets the events pass. Chunks that cannot be read are skipped and
    /// noted: ask for [`StoreSource::completeness`] afterwards.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn scan(
        &self,
        filter: &Filter,
        mut each: impl FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let all = Filter {
            everything: true,
            ..Filter::default()
        };
        if *filter == all {
            let _ = self.recovered.replay_while(each);
            return Ok(());
        }
        for chunk in self.view.candidates(filter) {
            let mut flow = ControlFlow::Continue(());
            self.view.each_match(&chunk, filter, |record| {
                if flow.is_continue() {
                    flow = each(Item::Record(record));
                }
            });
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Processes, variables, extent: what a [`crate::query::TraceSource`] answers, at once.
    pub fn describe(&self) -> Catalog {
        self.view.catalog()
    }

    /// What is missing, as far as it has been read.
    pub fn completeness(&self) -> Completeness {
        self.view.completeness()
    }

    /// What the file said that its records come from, if they do.
    pub fn imported(&self) -> Option<Imported> {
        self.view.read(|index| index.imported.clone())
    }

    /// How to fold records of a file that has only what applications did.
    fn completed_fold(&self) -> Option<CompletedFold> {
        let imported = self.imported()?;
        (!imported.owner_records).then(CompletedFold::default)
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
