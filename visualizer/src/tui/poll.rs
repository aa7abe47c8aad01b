//! Asking the source, on a thread of its own: at once when something else is wanted, else at a slow
//! beat while the run is live. One round at a time; a slow source is asked less often.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::MpId;
use dosmos_trace::query::{
    Catalog, Filter, HistogramQuery, MetaQuery, OriginCounts, QueryError, Status, TraceSource,
};
use futures::future::join_all;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::{Error, FASTEST};
use crate::state::{Answer, Question, Request, Update};

/// Time between two rounds where nothing is expected to change: a finished run, or no answer.
const SELDOM: Duration = Duration::from_secs(2);
/// A source is left alone at least this many times as long as its last round took.
const RESPITE: u32 = 2;
/// Processes whose accesses are counted from the records, where no status tells them.
const COUNTED: usize = 256;

/// The thread that asks, seen from the loop. It ends when this is dropped, at the latest when the
/// call it is in returns.
pub(super) struct Poller {
    wanted: watch::Sender<Request>,
    updates: mpsc::Receiver<Update>,
}

impl Poller {
    /// Starts asking `source` for what is in `request`.
    pub(super) fn start(
        source: Arc<dyn TraceSource>,
        request: Request,
        refresh: Duration,
    ) -> Result<Self, Error> {
        let (wanted, wanted_there) = watch::channel(request);
        // One answer waits at most: the thread asks again only when the last one was taken.
        let (updates_there, updates) = mpsc::channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::Thread)?;
        let refresh = refresh.max(FASTEST);
        let ask = async move {
            ask_until_dropped(source, wanted_there, updates_there, refresh).await;
        };
        spawn(move || runtime.block_on(ask)).map_err(Error::Thread)?;
        Ok(Self { wanted, updates })
    }

    /// Says what is wanted now.
    pub(super) fn want(&self, request: Request) {
        self.wanted.send_if_modified(|old| {
            let differs = *old != request;
            *old = request;
            differs
        });
    }

    /// The next answer.
    pub(super) async fn next(&mut self) -> Option<Update> {
        self.updates.recv().await
    }
}

fn spawn(f: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name("ask".into());
    builder.spawn(f).map(drop)
}

async fn ask_until_dropped(
    source: Arc<dyn TraceSource>,
    mut wanted: watch::Receiver<Request>,
    updates: mpsc::Sender<Update>,
    refresh: Duration,
) {
    let mut asker = Asker {
        source,
        origins: None,
    };
    loop {
        let request = wanted.borrow_and_update().clone();
        let repeat = request.repeat;
        let begun = Instant::now();
        let round = asker.round(request);
        let update = tokio::select! {
            update = round => update,
            () = updates.closed() => return,
        };
        let live = update.result.as_ref().is_ok_and(|(c, _, _)| c.live);
        let took = begun.elapsed();
        if updates.send(update).await.is_err() {
            return;
        }
        let pause = if live { refresh } else { SELDOM.max(refresh) };
        let pause = pause.max(took * RESPITE);
        let changed = if repeat {
            timeout(pause, wanted.changed()).await.unwrap_or(Ok(()))
        } else {
            wanted.changed().await
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Answers one request: a round of asking, as the thread does it.
pub async fn answer_once(source: Arc<dyn TraceSource>, request: Request) -> Update {
    let mut asker = Asker {
        source,
        origins: None,
    };
    asker.round(request).await
}

struct Asker {
    source: Arc<dyn TraceSource>,
    /// Accesses of a finished run by process, counted once.
    origins: Option<BTreeMap<MpId, [u64; 3]>>,
}

impl Asker {
    async fn round(&mut self, request: Request) -> Update {
        let result = self.ask(&request.question).await;
        let result = result.map_err(|e| e.to_string());
        Update { request, result }
    }

    async fn ask(&mut self, question: &Question) -> Result<(Catalog, Status, Answer), QueryError> {
        let source = self.source.clone();
        let base = async { futures::try_join!(source.catalog(), source.status()) };
        let (base, answer) = futures::future::join(base, self.answer(question)).await;
        let (catalog, status) = base?;
        let mut answer = answer?;
        if let Answer::Overview(_, origins) = &mut answer
            && status.event_managers.is_empty()
        {
            *origins = self.count_origins(&catalog).await?;
        }
        Ok((catalog, status, answer))
    }

    async fn answer(&self, question: &Question) -> Result<Answer, QueryError> {
        let all = MetaQuery::default();
        Ok(match question {
            Question::Nothing => Answer::None,
            Question::Overview => {
                let metas = self.source.meta_objects(&all).await?;
                Answer::Overview(metas, BTreeMap::new())
            }
            Question::Variables => Answer::Variables(self.source.meta_objects(&all).await?),
            Question::Histogram(query) => Answer::Histogram(self.source.histogram(query).await?),
            Question::History(query) => Answer::History(self.source.history(query).await?),
        })
    }

    /// Accesses by origin of every memory process's applications, from the records: what the status
    /// of a running event manager tells for nothing.
    async fn count_origins(
        &mut self,
        catalog: &Catalog,
    ) -> Result<BTreeMap<MpId, [u64; 3]>, QueryError> {
        if let Some(known) = &self.origins {
            return Ok(known.clone());
        }
        let mut queries: BTreeMap<MpId, HistogramQuery> = BTreeMap::new();
        let aps = &catalog.topology.application_processes;
        for (i, ap) in (0u32..).zip(aps) {
            let query = queries
                .entry(ap.memory_process)
                .or_insert_with(|| HistogramQuery {
                    filter: Filter {
                        range: catalog.extent,
                        ops: dosmos_trace::Op::ALL[..4].to_vec(),
                        ..Filter::default()
                    },
                    buckets: 1,
                });
            query.filter.aps.push(dosmos_proto::ApId(i));
        }
        let asked = queries.iter().take(COUNTED).map(|(mp, query)| async {
            let histogram = self.source.histogram(query).await?;
            let mut sum = OriginCounts::default();
            for bucket in &histogram.buckets {
                sum.add(bucket);
            }
            Ok((*mp, [sum.local, sum.intra, sum.inter]))
        });
        let counted: Result<BTreeMap<_, _>, QueryError> =
            join_all(asked).await.into_iter().collect();
        let counted = counted?;
        if !catalog.live {
            self.origins = Some(counted.clone());
        }
        Ok(counted)
    }
}
