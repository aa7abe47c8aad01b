//! Variables by number, remembered by who asks again and again: a run may have millions, of which few matter at a time.

use std::collections::{BTreeSet, HashMap};

use dosmos_proto::{VarId, Variable};
use dosmos_trace::query::{QueryError, TraceSource};

/// Variables remembered at most.
const MOST: usize = 20_000;

/// Variables met so far.
#[derive(Debug, Default)]
pub struct Variables {
    known: HashMap<VarId, Variable>,
}

impl Variables {
    /// Remembers `variables`; forgets the others when they have become too many.
    pub fn remember(&mut self, variables: impl IntoIterator<Item = Variable>) {
        if self.known.len() > MOST {
            self.known.clear();
        }
        let numbered = variables.into_iter().map(|v| (v.id(), v));
        self.known.extend(numbered);
    }

    /// The variables with these numbers; those that are not known are requested from `source`.
    ///
    /// # Errors
    /// As [`TraceSource::describe`].
    pub async fn get(
        &mut self,
        source: &dyn TraceSource,
        ids: &BTreeSet<VarId>,
    ) -> Result<Vec<Variable>, QueryError> {
        // The number of a barrier names no variable.
        let unknown = ids.iter().filter(|id| !self.known.contains_key(id));
        let unknown: Vec<VarId> = unknown.filter(|id| id.0 >> 31 == 0).copied().collect();
        if !unknown.is_empty() {
            let described = source.describe(&unknown).await?;
            self.remember(described.rows.into_iter().map(|row| row.variable));
        }
        let known = ids.iter().filter_map(|id| self.known.get(id));
        Ok(known.cloned().collect())
    }

    /// Those of these names, as far as they are known.
    pub fn named(&self, names: &BTreeSet<&str>) -> Vec<Variable> {
        let all = self.known.values();
        let named = all.filter(|v| names.contains(v.spec().name()));
        named.cloned().collect()
    }
}
