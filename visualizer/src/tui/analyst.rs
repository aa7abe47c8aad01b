//! The search for findings, on a thread of its own: however long it takes, keys and charts stay quick.

use std::collections::BTreeSet;
use std::time::Duration;

use dosmos_analysis::Thresholds;
use dosmos_client::{Error, Part, Run, Variables};
use dosmos_proto::Topology;
use dosmos_trace::query::{Breakdown, QueryError, TimeRange};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::news::{News, TRAFFIC};
use crate::state::{Found, Request, variables_named};

/// Time between two searches of a live run whose findings are looked at.
const SHOWN: Duration = Duration::from_secs(3);
/// The same where they are only counted in the header: the first ones come sooner.
const COUNTED: Duration = Duration::from_secs(10);
/// Time until the next try where no source answered.
const RETRY: Duration = Duration::from_secs(3);
/// Where the time went is asked for so often at most.
const BREAKDOWNS: Duration = Duration::from_secs(2);

/// Searches, and remembers what does not change.
pub(super) struct Analyst {
    run: Run,
    topology: Option<Topology>,
    known: Variables,
    thresholds: Thresholds,
    times: Option<(Instant, Breakdown)>,
    /// The last result for a finished run.
    last: Option<(Option<TimeRange>, Part)>,
    /// Whether the run went on when it was last looked at.
    live: bool,
}

impl Analyst {
    pub(super) fn new(run: Run) -> Self {
        Self {
            run,
            topology: None,
            known: Variables::default(),
            thresholds: Thresholds::default(),
            times: None,
            last: None,
            live: true,
        }
    }

    /// One search of `scope`.
    pub(super) async fn round(&mut self, scope: Option<TimeRange>) -> Found {
        let found = self.analyse(scope).await;
        let variables = match &found {
            Ok(part) => {
                let on_path: BTreeSet<String> = variables_named(&part.analysis).collect();
                let findings = part.analysis.findings.iter();
                let named = findings.filter_map(|f| f.variable.as_deref());
                let named = named.chain(on_path.iter().map(String::as_str)).collect();
                self.known.named(&named)
            }
            Err(_) => Vec::new(),
        };
        Found {
            scope,
            result: found.map(Box::new).map_err(|e| e.to_string()),
            variables,
        }
    }

    async fn analyse(&mut self, scope: Option<TimeRange>) -> Result<Part, Error> {
        let run = self.run.clone();
        let mut catalog = run.source().outline(self.topology.is_none()).await?;
        match &self.topology {
            Some(topology) => catalog.topology = topology.clone(),
            None => self.topology = Some(catalog.topology.clone()),
        }
        self.live = catalog.live;
        if let Some((of, part)) = &self.last
            && !catalog.live
            && *of == scope
        {
            return Ok(part.clone());
        }
        let times = self.times().await?;
        let live = catalog.live;
        let part = run.analyse_end(catalog, &mut self.known, times, scope, &self.thresholds);
        let part = part.await?;
        self.last = (!live).then(|| (scope, part.clone()));
        Ok(part)
    }

    /// Where the time went, at most two seconds ago.
    async fn times(&mut self) -> Result<Breakdown, QueryError> {
        if let Some((at, known)) = &self.times
            && at.elapsed() < BREAKDOWNS
        {
            return Ok(known.clone());
        }
        let times = self.run.source().breakdown().await?;
        self.times = Some((Instant::now(), times.clone()));
        Ok(times)
    }
}

/// The thread.
pub(super) struct Thread {
    pub(super) analyst: Analyst,
    pub(super) wanted: watch::Receiver<Request>,
    pub(super) news: mpsc::Sender<News>,
}

impl Thread {
    /// Ends when the loop has gone.
    pub(super) async fn run(&mut self) {
        for rounds in 1u32.. {
            let (scope, shown) = {
                let request = self.wanted.borrow_and_update();
                (request.analysis, request.findings_shown)
            };
            let begun = Instant::now();
            let before = self.analyst.run.source().received_bytes();
            let found = tokio::select! {
                found = self.analyst.round(scope) => found,
                () = self.news.closed() => return,
            };
            let bytes = self.analyst.run.source().received_bytes() - before;
            let failed = found.result.is_err();
            if self.news.send(News::Found(found)).await.is_err() {
                return;
            }
            let beat = match (failed, self.analyst.live, shown) {
                (true, ..) => Some(RETRY),
                (false, false, _) => None,
                (false, true, true) => Some(SHOWN),
                (false, true, false) => Some(COUNTED.min(Duration::from_secs(1) * rounds)),
            };
            let took = begun.elapsed();
            let paid = Duration::from_secs_f64(bytes as f64 / TRAFFIC);
            let until = beat.map(|beat| begun + beat.max(took * 2).max(paid));
            if !self.rest(until, scope, shown).await {
                return;
            }
        }
    }

    /// Until it is time, or another part is wanted, or findings are looked at again. Whether the loop is still there.
    async fn rest(
        &mut self,
        until: Option<Instant>,
        scope: Option<TimeRange>,
        shown: bool,
    ) -> bool {
        loop {
            let changed = self.wanted.changed();
            let changed = match until {
                None => changed.await,
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    match timeout(left, changed).await {
                        Ok(changed) => changed,
                        // Not while the display is paused.
                        Err(_) if self.wanted.borrow().repeat => return true,
                        Err(_) => self.wanted.changed().await,
                    }
                }
            };
            if changed.is_err() {
                return false;
            }
            let request = self.wanted.borrow_and_update();
            let opened = request.findings_shown && !shown && until.is_some();
            if request.analysis != scope || opened {
                return true;
            }
        }
    }
}
