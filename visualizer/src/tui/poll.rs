//! Asking the source, on a thread of its own (findings are searched for on another, `analyst`): at once when something else is wanted, otherwise
//! periodically while the run is live. One round at a time; a slow source is asked less often, and so is one
//! whose answers are large: traffic stays below [`TRAFFIC`].

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use dosmos_client::Run;
use dosmos_trace::selection::Selection;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::analyst::{self, Analyst};
use super::ask::Asker;
use super::news::{News, TRAFFIC};
use super::options::{Error, FASTEST};
use crate::state::{Found, Request, Update};

/// Time between two rounds where nothing is expected to change: a finished run, or no answer.
const SELDOM: Duration = Duration::from_secs(2);
/// A source is left alone at least as long as its last round took.
const RESPITE: u32 = 1;

/// The thread that asks, seen from the loop. It ends when this is dropped, at the latest when the
/// call it is in returns.
pub(super) struct Poller {
    wanted: watch::Sender<Request>,
    orders: mpsc::UnboundedSender<Selection>,
    news: mpsc::Receiver<News>,
}

impl Poller {
    /// Starts asking the sources of `run` for what is in `request`.
    pub(super) fn start(run: Run, request: Request, refresh: Duration) -> Result<Self, Error> {
        let (wanted, wanted_there) = watch::channel(request);
        let (orders, orders_there) = mpsc::unbounded_channel();
        // One answer waits at most: the thread asks again only when the last one was taken.
        let (news_there, news) = mpsc::channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::Thread)?;
        let found = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::Thread)?;
        let mut analyst = analyst::Thread {
            analyst: Analyst::new(run.clone()),
            wanted: wanted_there.clone(),
            news: news_there.clone(),
        };
        let mut thread = Thread {
            asker: Asker::new(run),
            wanted: wanted_there,
            orders: orders_there,
            ordered: VecDeque::new(),
            news: news_there,
            refresh: refresh.max(FASTEST),
        };
        spawn("ask", move || runtime.block_on(thread.run())).map_err(Error::Thread)?;
        spawn("findings", move || found.block_on(analyst.run())).map_err(Error::Thread)?;
        Ok(Self {
            wanted,
            orders,
            news,
        })
    }

    /// Says what is wanted now.
    pub(super) fn want(&self, request: Request) {
        self.wanted.send_if_modified(|old| {
            let at_once = *old != request && !request.only_moved(old);
            *old = request;
            at_once
        });
    }

    /// Has the memory processes record this from now on.
    pub(super) fn order(&self, selection: Selection) {
        // The thread ends only with this.
        let _ = self.orders.send(selection);
    }

    /// What the thread reports next.
    pub(super) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }
}

fn spawn(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name(name.into());
    builder.spawn(f).map(drop)
}

struct Thread {
    asker: Asker,
    wanted: watch::Receiver<Request>,
    orders: mpsc::UnboundedReceiver<Selection>,
    /// Taken, and not carried out yet.
    ordered: VecDeque<Selection>,
    news: mpsc::Sender<News>,
    refresh: Duration,
}

impl Thread {
    /// Ends when the loop has gone.
    async fn run(&mut self) {
        loop {
            if !self.pass_on_orders().await {
                return;
            }
            let request = self.wanted.borrow_and_update().clone();
            let repeat = request.repeat;
            let begun = Instant::now();
            let before = self.asker.source().received_bytes();
            let update = tokio::select! {
                update = self.asker.round(request) => update,
                () = self.news.closed() => return,
            };
            let live = update.result.as_ref().is_ok_and(|r| r.catalog.live);
            let took = begun.elapsed();
            let bytes = self.asker.source().received_bytes() - before;
            if self
                .news
                .send(News::Update(Box::new(update)))
                .await
                .is_err()
            {
                return;
            }
            let beat = if live {
                self.refresh
            } else {
                SELDOM.max(self.refresh)
            };
            let paid = Duration::from_secs_f64(bytes as f64 / TRAFFIC);
            // From the beginning of one round to that of the next.
            let until = begun + beat.max(took + took * RESPITE).max(paid);
            if !self.rest(repeat.then_some(until)).await {
                return;
            }
        }
    }

    /// Tells the memory processes what to record. Whether the loop is still there.
    async fn pass_on_orders(&mut self) -> bool {
        while let Ok(selection) = self.orders.try_recv() {
            self.ordered.push_back(selection);
        }
        while let Some(selection) = self.ordered.pop_front() {
            let told = self.asker.source().select(&selection).await;
            let told = News::Told(told.map_err(|e| e.to_string()));
            if self.news.send(told).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Until it is time, or something else is wanted. Whether the loop is still there.
    async fn rest(&mut self, until: Option<Instant>) -> bool {
        // Only waiting may be cut short by the clock; an order, once taken, is carried out.
        let wakes = async {
            tokio::select! {
                changed = self.wanted.changed() => changed.is_ok(),
                order = self.orders.recv() => {
                    let is_there = order.is_some();
                    self.ordered.extend(order);
                    is_there
                }
            }
        };
        match until {
            None => wakes.await,
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                timeout(left, wakes).await.unwrap_or(true)
            }
        }
    }
}

/// Answers one request: a round of asking and a search for findings, as the threads do them.
pub async fn answer_once(run: Run, request: Request) -> (Update, Found) {
    let scope = request.analysis;
    let found = Analyst::new(run.clone()).round(scope).await;
    (Asker::new(run).round(request).await, found)
}
