//! An event manager of a run directory: asked while it runs, its store once the run is over.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use dosmos_proto::AddressBook;
use dosmos_trace::query::{QueryError, TraceSource};
use dosmos_trace::store::StoreSource;

use crate::RemoteSource;
use crate::chosen::{Choice, Chosen};

/// One event manager of a run.
pub(crate) struct Member {
    run_dir: PathBuf,
    name: String,
    running: Arc<RemoteSource>,
    /// Its store, once the run was over.
    store: OnceLock<Arc<StoreSource>>,
}

impl Member {
    /// Event manager `name` of the run in `run_dir`, whose store is there.
    pub(crate) fn source(
        run_dir: PathBuf,
        name: String,
        book: AddressBook,
    ) -> Arc<dyn TraceSource> {
        Arc::new(Chosen(Self {
            running: Arc::new(RemoteSource::named(name.clone(), book)),
            run_dir,
            name,
            store: OnceLock::new(),
        }))
    }
}

#[async_trait]
impl Choice for Member {
    fn name(&self) -> String {
        match self.store.get() {
            Some(store) => store.name(),
            None => self.running.name(),
        }
    }

    async fn source(&self) -> Result<Arc<dyn TraceSource>, QueryError> {
        Ok(match self.store.get() {
            Some(store) => store.clone(),
            None => self.running.clone(),
        })
    }

    async fn instead(&self, failure: QueryError) -> Result<Arc<dyn TraceSource>, QueryError> {
        if !is_over(&self.run_dir, &self.name) {
            return Err(failure);
        }
        let dir = self.run_dir.join("store").join(&self.name);
        let store = StoreSource::open(&dir).map_err(|e| QueryError::Unavailable {
            source_name: dir.display().to_string(),
            why: e.to_string(),
        })?;
        Ok(self.store.get_or_init(|| Arc::new(store)).clone())
    }

    fn received_bytes(&self) -> u64 {
        self.running.received_bytes()
    }
}

/// Whether nobody runs event manager `name` of the run in `run_dir` any more: neither who launched the run, and would start
/// it again, nor itself.
pub(crate) fn is_over(run_dir: &Path, name: &str) -> bool {
    let locks = [run_dir.join("lock"), run_dir.join("lock.d").join(name)];
    locks.iter().all(|lock| is_free(lock))
}

/// Whether nobody holds the lock file. Where the file system has no locks, nobody can tell: it is not free.
fn is_free(lock: &Path) -> bool {
    match File::open(lock) {
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        },
        Err(_) => true,
    }
}
