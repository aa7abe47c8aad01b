//! A gRPC server as a task: until it fails, or is closed within a grace period.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dosmos_proto::direct::{Call, First, first};
use dosmos_proto::guard::{Guard, Peer};
use dosmos_proto::transport::{Listener, Router};
use dosmos_proto::watched::Watched;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Sleep, sleep, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::Connected;

use crate::places::{Placed, most_connections};

/// Why a server ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Its listener ended.
    #[error("its listener ended")]
    Ended,
    /// Its sockets failed.
    #[error("{}", dosmos_proto::transport::innermost(.0))]
    Transport(#[from] tonic::transport::Error),
    /// A service could not be made.
    #[error("{0}")]
    Service(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Its task failed.
    #[error("{0}")]
    Task(#[from] JoinError),
}

/// A server that runs.
#[derive(Debug)]
pub struct Serving {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Serving {
    /// Serves `services` at `listener`.
    pub fn start(services: Router, listener: Listener) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            // Used or dropped, either means stop.
            let _ = stopped.await;
        };
        let incoming = Incoming::new(listener, most_connections());
        let task = tokio::spawn(services.serve_with_incoming_shutdown(incoming, stopped));
        Self { stop, task }
    }

    /// The same; `calls` serves what `guard` admits of the calls that have a connection of their own. All connections are among
    /// those that are `watched`.
    pub fn start_with(
        services: Router,
        listener: Listener,
        guard: Guard,
        calls: Arc<impl Calls>,
        watched: Option<Arc<Watched>>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let incoming = Incoming::new(listener, most_connections());
        let task = tokio::spawn(async move {
            let (others, queue) = unbounded_channel();
            let (stop_others, others_stopped) = oneshot::channel::<()>();
            let served =
                services.serve_with_incoming_shutdown(UnboundedReceiverStream::new(queue), async {
                    let _ = others_stopped.await;
                });
            let direct = async {
                let mut open = sort(incoming, stopped, &guard, (&calls, &watched), others).await;
                drop(stop_others);
                while open.join_next().await.is_some() {}
            };
            tokio::join!(served, direct).0
        });
        Self { stop, task }
    }

    /// Waits until the server ends by itself, which it should not.
    pub async fn failed(&mut self) -> ServeError {
        match (&mut self.task).await {
            Ok(Ok(())) => ServeError::Ended,
            Ok(Err(e)) => e.into(),
            Err(e) => e.into(),
        }
    }

    /// Accepts nothing more, and ends what is open after `grace`.
    pub async fn close(mut self, grace: Duration) {
        drop(self.stop);
        if timeout(grace, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

/// Serves calls that have a connection of their own.
pub trait Calls: Send + Sync + 'static {
    /// Serves one until it is over.
    fn serve(&self, call: Call, peer: Peer) -> impl Future<Output = ()> + Send;
}

/// Who connects says within this time what for.
const BEGINNING: Duration = Duration::from_secs(10);

/// Looks what each connection begins with: serves calls, and hands the others on; until it is `stopped`. What is open then.
async fn sort<C>(
    mut incoming: Incoming<Listener>,
    mut stopped: oneshot::Receiver<()>,
    guard: &Guard,
    (calls, watched): (&Arc<C>, &Option<Arc<Watched>>),
    others: UnboundedSender<io::Result<Other>>,
) -> JoinSet<()>
where
    C: Calls,
{
    let mut open = JoinSet::new();
    loop {
        let connection = tokio::select! {
            connection = incoming.next() => connection,
            Some(_) = open.join_next() => continue,
            // Used or dropped, either means stop.
            _ = &mut stopped => break,
        };
        match connection {
            Some(Ok(connection)) => {
                let (guard, calls, others) = (guard.clone(), Arc::clone(calls), others.clone());
                let watched = watched.clone();
                open.spawn(begin(connection, guard, (calls, watched), others));
            }
            // It makes a pause of these itself.
            Some(Err(_)) => {}
            None => break,
        }
    }
    open
}

type Other = dosmos_proto::direct::Replayed<Placed<dosmos_proto::transport::Accepted>>;

async fn begin(
    mut connection: Placed<dosmos_proto::transport::Accepted>,
    mut guard: Guard,
    (calls, watched): (Arc<impl Calls>, Option<Arc<Watched>>),
    others: UnboundedSender<io::Result<Other>>,
) {
    let peer = connection.connect_info();
    let beginning = async {
        let known = connection.connection().has_one_call().await?;
        if let Some(all) = &watched {
            connection.connection().watch(all)?;
        }
        first(connection, known).await
    };
    let call = match timeout(BEGINNING, beginning).await {
        Ok(Ok(First::Call(call))) => call,
        Ok(Ok(First::Other(connection))) => {
            // If the server has ended, so has the connection.
            let _ = others.send(Ok(connection));
            return;
        }
        Ok(Err(why)) => {
            tracing::debug!("a connection ended before its call: {}", why.message());
            return;
        }
        Err(_) => return,
    };
    drop(others);
    match guard.admit(call.path(), call.headers().clone(), peer.clone()) {
        Ok(()) => calls.serve(*call, peer).await,
        Err(status) => call.refuse(&status).await,
    }
}

/// After an error of the system (no more file descriptors), before the next attempt to accept.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepted connections. An error of the system is logged and followed by a pause: what it lacks does not
/// come back by asking again at once.
/// The number of open connections is bounded: one more is closed at once.
struct Incoming<L> {
    listener: L,
    pause: Option<Pin<Box<Sleep>>>,
    places: Arc<Semaphore>,
    most: usize,
}

impl<L> Incoming<L> {
    fn new(listener: L, most: usize) -> Self {
        Self {
            listener,
            pause: None,
            places: Arc::new(Semaphore::new(most)),
            most,
        }
    }
}

impl<C, L: Stream<Item = io::Result<C>> + Unpin> Stream for Incoming<L> {
    type Item = io::Result<Placed<C>>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match ready!(Pin::new(&mut self.listener).poll_next(cx)) {
                Some(Err(e)) => {
                    tracing::warn!("cannot accept a connection: {e}");
                    self.pause = Some(Box::pin(sleep(PAUSE)));
                }
                Some(Ok(connection)) => match Arc::clone(&self.places).try_acquire_owned() {
                    Ok(place) => return Poll::Ready(Some(Ok(Placed::new(connection, place)))),
                    Err(_) => tracing::warn!("a connection is refused: {} are open", self.most),
                },
                None => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::time::Instant;
    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn accepting_pauses_after_an_error_of_the_system() {
        let full = || Err(io::Error::other("too many open files"));
        let attempts = [Ok(1), full(), full(), full(), Ok(2)];
        let mut incoming = Incoming::new(tokio_stream::iter(attempts), 8);
        assert!(incoming.next().await.unwrap().is_ok());
        let before = Instant::now();
        assert!(incoming.next().await.unwrap().is_ok());
        assert!(
            before.elapsed() >= 3 * PAUSE,
            "time stands still but for pauses"
        );
        assert!(incoming.next().await.is_none());
    }

    #[tokio::test]
    async fn connections_beyond_the_bound_are_closed_until_one_ends() {
        let (send, connections) = tokio::sync::mpsc::unbounded_channel();
        let connections = tokio_stream::wrappers::UnboundedReceiverStream::new(connections);
        let mut incoming = Incoming::new(connections, 2);
        let connect = || {
            let (client, server) = tokio::io::duplex(8);
            send.send(Ok(server)).unwrap();
            client
        };
        let mut open = Vec::new();
        let mut clients = vec![connect(), connect()];
        for _ in 0..2 {
            open.push(incoming.next().await.unwrap().unwrap());
        }
        let mut refused = [connect(), connect()];
        let pending = nothing_comes(&mut incoming).await;
        assert!(pending, "nobody is let in");
        for client in &mut refused {
            assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "closed");
        }
        open.pop();
        clients.push(connect());
        assert!(incoming.next().await.unwrap().is_ok());
    }

    /// Whether nothing comes now.
    async fn nothing_comes<S: Stream + Unpin>(stream: &mut S) -> bool {
        std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_next(cx).is_pending()))
            .await
    }
}
