//! A gRPC server as a task: until it fails, or is closed within a grace period.

use std::time::Duration;

use dosmos_proto::transport::Listener;
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;
use tonic::transport::server::Router;

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
        let task = tokio::spawn(services.serve_with_incoming_shutdown(listener, stopped));
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
