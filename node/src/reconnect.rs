//! The one loop that keeps a connection to another process: dial, talk, and dial again with a pause that
//! grows, until the talk is finished.

use std::time::Duration;

use dosmos_proto::transport::{self, Channel, ConnectError};
use dosmos_proto::{AddressBook, Refusal};
use tokio::time::{Instant, sleep};
use tonic::Status;

use crate::backoff::Backoff;

/// Why a connection did not come up, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The process has not published where it listens.
    #[error("its address is not known yet")]
    AddressUnknown,
    /// Nobody answers at its address.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It accepted the connection and said nothing.
    #[error("it did not answer within {0:?}")]
    Timeout(Duration),
    /// The stream ended.
    #[error("it closed the stream")]
    Closed,
    /// It has another connection to this process now.
    #[error("it dialled again")]
    Replaced,
    /// The stream broke, or the call failed.
    #[error("{}", said(.0))]
    Status(#[from] Status),
    /// It does not want this process.
    #[error("{0}")]
    Refused(#[source] Refusal),
    /// It sent something that the protocol does not allow here.
    #[error("it sent something else than {0}")]
    Unexpected(&'static str),
    /// A message of it cannot be right.
    #[error("{0}")]
    Impossible(#[source] Box<dyn std::error::Error + Send + Sync>),
}

fn said(status: &Status) -> &str {
    match status.message() {
        "" => status.code().description(),
        text => text,
    }
}

/// How to connect to one process, and what to do with the connection.
pub trait Link {
    /// What stands once the other side has greeted.
    type Connection: Send;

    /// Dials and greets.
    fn connect(&mut self) -> impl Future<Output = Result<Self::Connection, LinkError>> + Send;

    /// Uses the connection until it ends; `Ok` if no other is wanted.
    fn converse(
        &mut self,
        connection: Self::Connection,
    ) -> impl Future<Output = Result<(), LinkError>> + Send;

    /// The connection is down for another reason than before.
    fn down(&mut self, why: &LinkError);
}

/// Keeps a connection until [`Link::converse`] says that no other is wanted.
pub async fn keep_connected(mut link: impl Link, mut backoff: Backoff) {
    let mut told = String::new();
    loop {
        let why = match link.connect().await {
            Ok(connection) => {
                let since = Instant::now();
                match link.converse(connection).await {
                    Ok(()) => return,
                    Err(why) => {
                        if since.elapsed() >= backoff.proof() {
                            backoff.reset();
                            told.clear();
                        }
                        why
                    }
                }
            }
            Err(why) => why,
        };
        let text = why.to_string();
        if text != told {
            link.down(&why);
            told = text;
        }
        sleep(backoff.pause()).await;
    }
}

/// Dials the process that publishes itself as `name`.
///
/// # Errors
/// If its address is not known or nobody answers there within `timeout`.
pub async fn dial(book: &AddressBook, name: &str, timeout: Duration) -> Result<Channel, LinkError> {
    let address = book.resolve(name).ok_or(LinkError::AddressUnknown)?;
    Ok(transport::connect(&address, book.access().expecting(name), timeout).await?)
}

/// The result of a step of a greeting, if it comes within `limit`.
///
/// # Errors
/// [`LinkError::Timeout`] if it does not; otherwise what the step failed of.
pub async fn within<T, E>(
    limit: Duration,
    step: impl Future<Output = Result<T, E>>,
) -> Result<T, LinkError>
where
    LinkError: From<E>,
{
    let done = tokio::time::timeout(limit, step).await;
    Ok(done.map_err(|_| LinkError::Timeout(limit))??)
}

/// What a stream of replies says next.
///
/// # Errors
/// If it ended or broke.
pub async fn next<T>(replies: &mut tonic::Streaming<T>) -> Result<T, LinkError> {
    replies.message().await?.ok_or(LinkError::Closed)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::backoff::Pauses;

    const PAUSES: Pauses = Pauses {
        first: Duration::from_millis(10),
        most: Duration::from_secs(1),
    };

    /// Attempts (when) and what was said of them.
    #[derive(Default)]
    struct Seen {
        attempts: Vec<Instant>,
        downs: Vec<String>,
    }

    /// Is accepted and broken off at once, `n` times.
    struct Flapping {
        seen: Arc<Mutex<Seen>>,
        left: u32,
    }

    impl Link for Flapping {
        type Connection = ();
        async fn connect(&mut self) -> Result<(), LinkError> {
            self.seen.lock().unwrap().attempts.push(Instant::now());
            Ok(())
        }
        async fn converse(&mut self, (): ()) -> Result<(), LinkError> {
            match self.left.checked_sub(1) {
                None => Ok(()),
                Some(left) => {
                    self.left = left;
                    Err(LinkError::Closed)
                }
            }
        }
        fn down(&mut self, why: &LinkError) {
            self.seen.lock().unwrap().downs.push(why.to_string());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_accepted_and_broken_off_at_once_is_dialled_ever_more_rarely() {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let link = Flapping {
            seen: Arc::clone(&seen),
            left: 12,
        };
        keep_connected(link, Backoff::new(PAUSES, 3)).await;
        let seen = seen.lock().unwrap();
        assert_eq!(seen.attempts.len(), 13);
        let last = seen.attempts[12] - seen.attempts[11];
        assert!(last >= PAUSES.most / 2, "{last:?}");
        assert_eq!(seen.downs.len(), 1, "the same reason is said once");
    }
}
