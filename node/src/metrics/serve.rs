//! `GET /metrics`, and nothing else. Where a process has certificates, over TLS, for observers and operators.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dosmos_proto::AddressBook;
use dosmos_proto::access::Credentials;
use dosmos_proto::guard::{self, Peer};
use dosmos_proto::transport::{Accepted, Address};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tonic::transport::server::Connected;

use super::Page;
use crate::address::{PublishError, Published};

/// Connections served at the same time.
const MOST_CONNECTIONS: usize = 16;
/// How long a request may take to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may stay.
const MOST_CONNECTION_TIME: Duration = Duration::from_secs(300);
/// After an error of the system (no more files), before the next attempt.
const PAUSE: Duration = Duration::from_millis(100);
const TEXT: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// A bound socket.
#[derive(Debug)]
pub struct MetricsListener {
    socket: TcpListener,
    address: SocketAddr,
    credentials: Option<Credentials>,
    /// Where it is published, as long as this lives.
    published: Option<Published>,
}

/// Metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The address cannot be bound.
    #[error("cannot serve metrics at {address}: {source}")]
    Bind {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The address cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl MetricsListener {
    /// Binds `address`, `host:port`; port 0 lets the system choose.
    ///
    /// # Errors
    /// If the system says no.
    pub async fn bind(address: &str) -> Result<Self, MetricsError> {
        let failed = |source| MetricsError::Bind {
            address: address.to_owned(),
            source,
        };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self {
            socket,
            address,
            credentials: None,
            published: None,
        })
    }

    /// The same; it takes TLS only, if there are credentials.
    #[must_use]
    pub fn secured(self, credentials: Option<Credentials>) -> Self {
        Self {
            credentials,
            ..self
        }
    }

    /// Binds `address` and publishes where that is as `NAME.metrics` of process `name`, until this is
    /// dropped.
    ///
    /// # Errors
    /// If the system says no.
    pub async fn publish(
        name: &str,
        address: &str,
        book: &AddressBook,
    ) -> Result<Self, MetricsError> {
        let credentials = book.credentials().cloned();
        let scheme = if credentials.is_some() {
            "https"
        } else {
            "http"
        };
        let mut listener = Self::bind(address).await?.secured(credentials);
        let at = listener.address();
        let entry = Address::Tcp(at.to_string());
        listener.published = Some(Published::new(book, &format!("{name}.metrics"), &entry)?);
        tracing::info!("{name} serves metrics at {scheme}://{at}/metrics");
        Ok(listener)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers scrapes with what `page` makes, until dropped. When all places are taken the oldest connection
/// makes room: a scrape takes milliseconds, so whoever has been there longest says nothing.
pub async fn serve(listener: MetricsListener, page: impl Fn() -> Page + Send + Sync + 'static) {
    let page = Arc::new(page);
    let mut connections = JoinSet::new();
    let mut places: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = match listener.socket.accept().await {
            Ok((stream, _)) => stream,
            Err(e) => {
                tracing::warn!("metrics: cannot accept a connection: {e}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        places.retain(|place| !place.is_finished());
        if places.len() >= MOST_CONNECTIONS
            && let Some(oldest) = places.pop_front()
        {
            oldest.abort();
        }
        let page = Arc::clone(&page);
        let accepted = Accepted::over_tcp(stream, listener.credentials.as_ref());
        places.push_back(connections.spawn(async move {
            let peer = accepted.connect_info();
            let answer = service_fn(move |request| {
                let response = answer(&request, &peer, &*page);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_TIMEOUT)
                .serve_connection(TokioIo::new(accepted), answer);
            // A scraper that goes away, or sends something else than HTTP, is its own trouble.
            let _ = tokio::time::timeout(MOST_CONNECTION_TIME, connection).await;
        }));
    }
}

fn answer(
    request: &Request<Incoming>,
    peer: &Peer,
    page: &impl Fn() -> Page,
) -> Response<Full<Bytes>> {
    let say = |status, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response
    };
    let plain = |status, text: &str| say(status, text.to_owned());
    if let Err(denied) = guard::may_look(peer, "read metrics") {
        return say(StatusCode::FORBIDDEN, format!("{denied}\n"));
    }
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "ask with GET\n");
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match page().text() {
        Ok(text) => {
            let mut response = Response::new(Full::new(Bytes::from(text)));
            response.headers_mut().insert(CONTENT_TYPE, TEXT);
            response
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "no text could be made\n"),
    }
}
