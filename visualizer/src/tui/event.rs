//! Asking for what is known of one access. What has passed does not change: the last answer is kept.

use dosmos_client::Error;
use dosmos_trace::query::TraceSource;

use crate::state::{EventDetail, EventQuery};

/// The last access asked for.
#[derive(Default)]
pub(super) struct Inspector {
    last: Option<(EventQuery, EventDetail)>,
}

impl Inspector {
    /// What is known of the access of `query`.
    pub(super) async fn look(
        &mut self,
        source: &dyn TraceSource,
        query: &EventQuery,
    ) -> Result<EventDetail, Error> {
        if let Some((of, detail)) = &self.last
            && of == query
        {
            return Ok(*detail);
        }
        let own = source.records(&query.record(), 0).await?.records;
        let others = match query.others() {
            Some(filter) => source.records(&filter, 0).await?.records,
            None => Vec::new(),
        };
        let detail = query.detail(&own, &others);
        self.last = Some((*query, detail));
        Ok(detail)
    }
}
