//! Which run the sources belong to: one run, each event manager once, and which ones are missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use dosmos_trace::query::{Catalog, TraceSource};
use futures::future::join_all;

use crate::Error;

/// Sources of one run.
pub(crate) struct Together {
    /// One for each event manager.
    pub(crate) sources: Vec<Arc<dyn TraceSource>>,
    /// Event managers of the run that none of them speaks for.
    pub(crate) missing: Vec<String>,
}

/// Asks all sources which run they belong to. A source that does not answer now stays: it is named as missing in the
/// answers that lack it.
///
/// # Errors
/// [`Error::DifferentRuns`] if two belong to different runs.
pub(crate) async fn together(sources: Vec<Arc<dyn TraceSource>>) -> Result<Together, Error> {
    let outlines = join_all(sources.iter().map(|s| s.outline(true))).await;
    let mut first: Option<(String, Catalog)> = None;
    let mut known: BTreeSet<String> = BTreeSet::new();
    let (mut kept, mut silent) = (Vec::new(), false);
    for (source, outline) in sources.into_iter().zip(outlines) {
        let Ok(outline) = outline else {
            silent = true;
            kept.push(source);
            continue;
        };
        match &first {
            Some((name, other)) if other.run != outline.run => {
                return Err(Error::DifferentRuns {
                    first: name.clone(),
                    second: source.name(),
                });
            }
            Some(_) => {}
            None => first = Some((source.name(), outline.clone())),
        }
        // The same event manager again, live or as another copy of its store, adds nothing.
        let names = &outline.event_managers;
        let seen = !names.is_empty() && names.iter().all(|name| known.contains(name));
        if !(seen && outline.run.is_some()) {
            known.extend(names.iter().cloned());
            kept.push(source);
        }
    }
    let expected = first.filter(|_| !silent).map(|(_, catalog)| catalog);
    let expected = expected.iter().flat_map(|c| c.topology.event_managers());
    let names = expected.map(|e| e.name.clone());
    Ok(Together {
        sources: kept,
        missing: names.filter(|name| !known.contains(name)).collect(),
    })
}
