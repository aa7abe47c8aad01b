//! The sources of a query: stores, read chunk by chunk in this process, and running event managers, asked for their records.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use dosmos_proto::Nanos;
use dosmos_trace::query::{Filter, TraceSource};
use dosmos_trace::store::{StoreView, StoredChunk};

use crate::names::Names;

/// One source of the table `records`.
#[derive(Clone)]
pub(crate) struct Source {
    names: Arc<Names>,
    reading: Reading,
}

/// How its records are had.
#[derive(Clone)]
pub(crate) enum Reading {
    /// From its chunks.
    Chunks(StoreView),
    /// By asking it, for what it had recorded until then.
    Asking(Arc<dyn TraceSource>, Nanos),
}

impl Source {
    pub(crate) fn store(view: StoreView, names: Names) -> Self {
        Self {
            names: Arc::new(names),
            reading: Reading::Chunks(view),
        }
    }

    /// A source to be asked for records that begin before `until`.
    pub(crate) fn asked(source: Arc<dyn TraceSource>, until: Nanos, names: Names) -> Self {
        Self {
            names: Arc::new(names),
            reading: Reading::Asking(source, until),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.reading, Reading::Asking(..))
    }

    pub(crate) fn names(&self) -> &Arc<Names> {
        &self.names
    }

    pub(crate) fn reading(&self) -> &Reading {
        &self.reading
    }
}

/// The chunks that may hold what `filter` matches. Those whose summary counts nothing of it are left out.
pub(crate) fn chunks(view: &StoreView, filter: &Filter) -> Vec<StoredChunk> {
    let mut chunks = view.chunks(filter);
    chunks.retain(|chunk| {
        let summary = chunk.summary();
        let mut counts = !summary.can_count(filter);
        if !counts {
            summary.tallies(filter, |_| counts = true);
        }
        counts
    });
    chunks
}

/// Sources that did not answer during a query, or not to their end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silent(Arc<Mutex<BTreeSet<String>>>);

impl Silent {
    pub(crate) fn add(&self, name: String) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().cloned().collect()
    }
}
