//! Which run the sources belong to: one run, each event manager once, and which ones are missing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use dosmos_trace::query::{Catalog, QueryError, TraceSource};
use dosmos_trace::run::RunId;
use futures::future::join_all;

use crate::Error;
use crate::chosen::{Choice, Chosen};

/// Sources of one run.
pub(crate) struct Together {
    /// One for each event manager.
    pub(crate) sources: Vec<Arc<dyn TraceSource>>,
    /// Who belongs to the run.
    pub(crate) membership: Arc<Membership>,
}

/// Who belongs to a run, and who of them has spoken.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The first source that answered, and its run.
    first: Option<(String, Option<RunId>)>,
    /// Names of the event managers of the run.
    expected: Vec<String>,
    /// Those that some source speaks for.
    spoken_for: BTreeSet<String>,
}

/// Whether a source adds anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admitted {
    New,
    /// The same event manager again, live or as another copy of its store.
    Again,
}

impl Membership {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a source called `name` with this `outline` into the run; or the name of a source of another run.
    fn admit(&self, name: &str, outline: &Catalog) -> Result<Admitted, String> {
        let mut known = self.lock();
        match &known.first {
            Some((first, run)) if *run != outline.run => return Err(first.clone()),
            Some(_) => {}
            None => {
                known.first = Some((name.to_owned(), outline.run));
                let expected = outline.topology.event_managers().iter();
                known.expected = expected.map(|e| e.name.clone()).collect();
            }
        }
        let names = &outline.event_managers;
        let seen = !names.is_empty() && names.iter().all(|name| known.spoken_for.contains(name));
        if seen && outline.run.is_some() {
            return Ok(Admitted::Again);
        }
        known.spoken_for.extend(names.iter().cloned());
        Ok(Admitted::New)
    }

    /// Event managers of the run that no source has spoken for.
    pub(crate) fn missing(&self) -> Vec<String> {
        let known = self.lock();
        let missing = known.expected.iter();
        missing
            .filter(|name| !known.spoken_for.contains(*name))
            .cloned()
            .collect()
    }
}

impl Together {
    /// A source that is not there yet: it is asked at every question, and is missing until it answers.
    pub(crate) fn expect(&mut self, source: Arc<dyn TraceSource>) {
        self.sources.push(late(source, &self.membership));
    }
}

fn late(source: Arc<dyn TraceSource>, membership: &Arc<Membership>) -> Arc<dyn TraceSource> {
    Arc::new(Chosen(Late {
        source,
        membership: membership.clone(),
        admitted: OnceLock::new(),
    }))
}

/// Asks all sources which run they belong to. One that does not answer now is asked again at every question, and is missing
/// until then.
///
/// # Errors
/// [`Error::DifferentRuns`] if two belong to different runs.
pub(crate) async fn together(sources: Vec<Arc<dyn TraceSource>>) -> Result<Together, Error> {
    let outlines = join_all(sources.iter().map(|s| s.outline(true))).await;
    let membership = Arc::new(Membership::default());
    let (mut kept, mut silent) = (Vec::new(), Vec::new());
    for (source, outline) in sources.into_iter().zip(outlines) {
        let Ok(outline) = outline else {
            silent.push(source);
            continue;
        };
        let name = source.name();
        let admitted = membership.admit(&name, &outline);
        let admitted = admitted.map_err(|first| Error::DifferentRuns {
            first,
            second: name,
        })?;
        if admitted == Admitted::New {
            kept.push(source);
        }
    }
    kept.extend(silent.into_iter().map(|source| late(source, &membership)));
    Ok(Together {
        sources: kept,
        membership,
    })
}

/// A source that did not answer when the run was opened: nothing it says counts before it is known to belong to the run.
struct Late {
    source: Arc<dyn TraceSource>,
    membership: Arc<Membership>,
    admitted: OnceLock<Result<Admitted, String>>,
}

impl Late {
    fn refused(&self, why: String) -> QueryError {
        QueryError::Unavailable {
            source_name: self.source.name(),
            why,
        }
    }
}

#[async_trait]
impl Choice for Late {
    fn name(&self) -> String {
        self.source.name()
    }

    async fn source(&self) -> Result<Arc<dyn TraceSource>, QueryError> {
        if self.admitted.get().is_none() {
            let outline = self.source.outline(true).await?;
            self.admitted
                .get_or_init(|| self.membership.admit(&self.source.name(), &outline));
        }
        match self.admitted.get() {
            Some(Err(first)) => Err(self.refused(format!("does not belong to the run of {first}"))),
            Some(Ok(Admitted::Again)) => {
                Err(self.refused("is an event manager that is asked already".to_owned()))
            }
            Some(Ok(Admitted::New)) | None => Ok(self.source.clone()),
        }
    }

    async fn instead(&self, failure: QueryError) -> Result<Arc<dyn TraceSource>, QueryError> {
        Err(failure)
    }

    fn received_bytes(&self) -> u64 {
        self.source.received_bytes()
    }
}
