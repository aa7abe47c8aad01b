//! Every event manager a worker over its own store: a part of a distributed query, carried out in the event manager's process on
//! threads of its own. The engine is `datafusion-distributed`; here is what it does not know: how a scan of `records` is sent, which
//! store it reads there, and how workers are reached.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion_distributed::{DistributedExt, Worker, WorkerQueryContext, WorkerSessionBuilder};
use dosmos_emp::{Beside, Companion};
use dosmos_node::address::Published;
use dosmos_node::serving::Serving;
use dosmos_proto::transport::{self, Address, Listener};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::channels::Channels;
use crate::codec::Codec;

/// How long connections may take to close at the end.
const CLOSE: Duration = Duration::from_millis(500);

/// Bytes of the longest path that a socket can have.
const LONGEST_SOCKET: usize = 107;

/// The name under which the address of a worker is published.
pub(crate) fn published_name(event_manager: &str) -> String {
    format!("{event_manager}.sql")
}

/// Starts a worker beside each event manager.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StartWorker;

impl Companion for StartWorker {
    fn start(&self, beside: Beside) -> io::Result<Box<dyn Send>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("sql")
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name("sql-worker".into());
        thread.spawn(move || serve(runtime, &beside, stopped, &tell))?;
        let gone = || io::Error::other("the thread of the worker ended at once");
        told.recv().map_err(|_| gone())??;
        Ok(Box::new(stop))
    }
}

/// Serves until `stopped`, or until whoever holds the other end drops it.
fn serve(
    runtime: Runtime,
    beside: &Beside,
    stopped: oneshot::Receiver<()>,
    tell: &mpsc::Sender<io::Result<()>>,
) {
    runtime.block_on(async {
        let begun = begin(beside).await;
        let (server, _published) = match begun {
            Ok(begun) => begun,
            Err(e) => {
                let _ = tell.send(Err(e));
                return;
            }
        };
        let _ = tell.send(Ok(()));
        let _ = stopped.await;
        server.close(CLOSE).await;
    });
    runtime.shutdown_background();
}

async fn begin(beside: &Beside) -> io::Result<(Serving, Published)> {
    let listener = Listener::bind(&own_address(&beside.address)).await?;
    let listener = listener.secured(beside.book.credentials().cloned());
    let name = published_name(&beside.name);
    let published = Published::new(&beside.book, &name, listener.address());
    let published = published.map_err(io::Error::other)?;
    let session = Session {
        codec: Codec::of_store(beside.view.clone()),
        channels: Channels::new(beside.book.clone()),
    };
    let worker = Worker::from_session_builder(session).with_version(env!("CARGO_PKG_VERSION"));
    let router = transport::server(beside.token.clone()).add_service(worker.into_worker_server());
    Ok((Serving::start(router, listener), published))
}

/// Beside the event manager's own: on the same host, or in the same directory.
fn own_address(event_manager: &Address) -> Address {
    match event_manager {
        Address::Tcp(text) => {
            let host = text
                .rsplit_once(':')
                .map_or(text.as_str(), |(host, _)| host);
            Address::Tcp(format!("{host}:0"))
        }
        Address::Unix(path) => {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(".sql");
            let path = path.with_file_name(name);
            match path.as_os_str().len() <= LONGEST_SOCKET {
                true => Address::Unix(path),
                false => Address::Tcp("127.0.0.1:0".to_owned()),
            }
        }
    }
}

/// What a worker knows beyond the engine: its store, and how it reaches the others.
struct Session {
    codec: Codec,
    channels: Channels,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

#[async_trait::async_trait]
impl WorkerSessionBuilder for Session {
    async fn build_session_state(&self, query: WorkerQueryContext) -> Result<SessionState> {
        Ok(query
            .builder
            .with_distributed_user_codec_arc(Arc::new(self.codec.clone()))
            .with_distributed_channel_resolver(self.channels.clone())
            .build())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests may
mod tests {
    use super::*;

    #[test]
    fn a_worker_listens_beside_its_event_manager() {
        let beside = |text: &str| own_address(&text.parse().unwrap()).to_string();
        assert_eq!(beside("10.0.0.1:7000"), "10.0.0.1:0");
        assert_eq!(beside("[::1]:7000"), "[::1]:0");
        assert_eq!(beside("unix:/run/emp0.sock"), "unix:/run/emp0.sock.sql");
        let longest = format!("unix:/{}", "d".repeat(LONGEST_SOCKET - 1));
        assert_eq!(beside(&longest), "127.0.0.1:0");
    }
}
