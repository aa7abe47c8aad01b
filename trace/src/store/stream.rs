//! Reading a whole store, or what a filter matches of it, with one chunk in memory at a time.

use std::ops::ControlFlow;

use super::completed::CompletedFold;
use super::error::StoreError;
use super::imported::Imported;
use super::replay::Item;
use super::source::StoreSource;
use crate::query::{Catalog, Completeness, Filter};

impl StoreSource {
    /// Hands out what `filter` matches, in the order of the log, until `each` breaks off. A filter that
    /// lets every record pass also lets the events pass. Chunks that cannot be read are skipped and
    /// noted: ask for [`StoreSource::completeness`] afterwards.
    ///
    /// # Errors
    /// If the engine cannot be read.
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
    pub(super) fn completed_fold(&self) -> Option<CompletedFold> {
        let imported = self.imported()?;
        (!imported.owner_records).then(CompletedFold::default)
    }
}
