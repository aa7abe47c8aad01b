//! How two processes get a connection: addresses, listening and dialling.
//!
//! TCP, with TLS or without, or on one host Unix sockets, also in place of TCP (`proto/src/same_host.rs`). Accepted and dialled
//! TCP sockets have `TCP_NODELAY` set: without it, replies of 4 KiB and more stall for 40 ms.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use dosmos_secure::{Credentials, SecureSocket};
use hyper_util::rt::TokioIo;
use prost::Message;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Type};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_stream::Stream;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::service::InterceptorLayer;
use tonic::service::interceptor::{InterceptedService, ResponseBody};
use tonic::transport::server::Router as AnyRouter;
use tonic::transport::{Endpoint, Uri};
use tower::layer::util::{Identity, Stack};
use tower::util::{MapRequestLayer, MapResponse};

pub use crate::access::Access;
use crate::connection::Transport;
pub use crate::connection::{Accepted, Connection};
use crate::direct::{Direct, KEEP_ALIVE, PING_TIMEOUT, Pipe};
use crate::guard::{Guard, note_method};
use crate::same_host;
use crate::token::{RequireToken, ShowToken, Token};
use crate::unix::UnixSocket;
use crate::watched::Watched;
pub use crate::whole::whole;

/// A connection to another process, which shows the token of the run with every call.
pub type Channel = MapResponse<InterceptedService<tonic::transport::Channel, ShowToken>, Received>;

type Received = fn(Response<ResponseBody<Body>>) -> Response<Body>;
type Arrived = fn(Request<Body>) -> Request<Body>;
type Layers = Stack<
    MapRequestLayer<Arrived>,
    Stack<InterceptorLayer<Guard>, Stack<MapRequestLayer<Arrived>, Identity>>,
>;
/// A gRPC server that requires the token of the run and, over TLS, the role that a method takes.
pub type Server = tonic::transport::Server<Layers>;
/// The services of a [`Server`].
pub type Router = AnyRouter<Layers>;

/// Where a process listens: `host:port` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Address {
    /// `host:port`; port 0 lets the system choose.
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
}

/// A text that is not an address.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address; write host:port or unix:PATH")]
pub struct InvalidAddress(String);

impl fmt::Debug for InvalidAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;
    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.to_owned());
        match text.strip_prefix("unix:") {
            Some("") => return Err(invalid()),
            Some(path) => return Ok(Self::Unix(path.into())),
            None => {}
        }
        let text = text.strip_prefix("http://").unwrap_or(text);
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(Self::Tcp(text.to_owned()))
            }
            _ => Err(invalid()),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = InvalidAddress;
    fn try_from(text: String) -> Result<Self, InvalidAddress> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(text) => f.write_str(text),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// Whether only this host can reach it: a Unix socket or a loopback address.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(text) => {
                let host = text.rsplit_once(':').map_or(text.as_str(), |(h, _)| h);
                let host = host.trim_start_matches('[').trim_end_matches(']');
                host == "localhost"
                    || host
                        .parse::<std::net::IpAddr>()
                        .is_ok_and(|ip| ip.is_loopback())
            }
        }
    }

    async fn dial(&self, access: &Access, one_call: bool) -> io::Result<Connection> {
        let transport = match self {
            Self::Tcp(text) => {
                let credentials = access.credentials.as_ref();
                if one_call && let Some(socket) = same_host::dial(text, credentials.is_some()).await
                {
                    let socket = match credentials {
                        None => socket,
                        Some(credentials) => {
                            let expected = access.expected.as_deref();
                            dosmos_secure::same_host::dial(socket, credentials, expected).await?
                        }
                    };
                    return Ok(Transport::Unix(UnixSocket::new(socket)?).into());
                }
                let socket = TcpStream::connect(text.as_str()).await?;
                socket.set_nodelay(true)?;
                match credentials {
                    None => Transport::Tcp(socket),
                    Some(credentials) => {
                        let expected = access.expected.as_deref();
                        let dialled = SecureSocket::dial(socket, credentials, expected, one_call);
                        Transport::Tls(dialled.await?)
                    }
                }
            }
            Self::Unix(path) => Transport::Unix(UnixSocket::new(UnixStream::connect(path).await?)?),
        };
        Ok(transport.into())
    }
}

/// A bound socket, ready to accept.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    /// Where processes of this host connect in place of TCP.
    same_host: Option<UnixListener>,
    address: Address,
    credentials: Option<Credentials>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Binds `address`. A Unix socket left over by a process that ended is replaced.
    ///
    /// # Errors
    /// What the system says, with the address.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        let named =
            |e: io::Error| io::Error::new(e.kind(), format!("cannot listen on {address}: {e}"));
        match address {
            Address::Tcp(text) => {
                let socket = TcpListener::bind(text.as_str()).await.map_err(named)?;
                let bound: SocketAddr = socket.local_addr().map_err(named)?;
                Ok(Self {
                    socket: Socket::Tcp(socket),
                    same_host: None,
                    address: Address::Tcp(bound.to_string()),
                    credentials: None,
                })
            }
            Address::Unix(path) => {
                if is_stale(path).await {
                    std::fs::remove_file(path).map_err(named)?;
                }
                Ok(Self {
                    socket: Socket::Unix(UnixListener::bind(path).map_err(named)?),
                    same_host: None,
                    address: address.clone(),
                    credentials: None,
                })
            }
        }
    }

    /// The same; over TCP it takes TLS only, if there are credentials.
    #[must_use]
    pub fn secured(self, credentials: Option<Credentials>) -> Self {
        Self {
            credentials,
            ..self
        }
    }

    /// Takes calls that have a connection of their own over a Unix socket as well, if it listens over TCP: processes of the same
    /// user on this host that dial its address find that ([`dial`]). With the certificates that it has now, or without.
    ///
    /// # Errors
    /// What the system says. It listens as before then.
    pub fn open_to_same_host(&mut self) -> io::Result<()> {
        if let Address::Tcp(text) = &self.address {
            let secured = self.credentials.is_some();
            self.same_host = Some(same_host::listen(text, secured)?);
        }
        Ok(())
    }

    /// Whether other machines can reach it without encryption.
    pub fn is_exposed(&self) -> bool {
        self.credentials.is_none() && !self.address.is_local()
    }

    /// The address bound, with the port the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Stops listening, and keeps the port for another process of this host that binds the same address: until what is returned is
    /// dropped, nobody else is given it who does not ask for it. A Unix socket is kept by its path.
    ///
    /// # Errors
    /// If somebody took it this moment, with the address.
    pub fn keep_address(self) -> io::Result<KeptAddress> {
        let Self {
            socket, address, ..
        } = self;
        let Socket::Tcp(socket) = socket else {
            return Ok(KeptAddress { _bound: None });
        };
        let at = socket.local_addr()?;
        drop(socket);
        let keep = || {
            let bound = socket2::Socket::new(Domain::for_address(at), Type::STREAM, None)?;
            // With this option two sockets may have an address, as long as neither listens when the other is bound.
            bound.set_reuse_address(true)?;
            bound.bind(&at.into())?;
            Ok(bound)
        };
        match keep() {
            Ok(bound) => Ok(KeptAddress {
                _bound: Some(bound),
            }),
            Err(e) => {
                let e: io::Error = e;
                Err(io::Error::new(
                    e.kind(),
                    format!("cannot keep {address}: {e}"),
                ))
            }
        }
    }
}

/// An address at which nobody listens yet, kept for a process that will ([`Listener::keep_address`]).
#[derive(Debug)]
pub struct KeptAddress {
    _bound: Option<socket2::Socket>,
}

/// A socket file that nobody listens on any more.
async fn is_stale(path: &Path) -> bool {
    path.exists()
        && matches!(UnixStream::connect(path).await,
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused)
}

impl Stream for Listener {
    type Item = io::Result<Accepted>;
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(l) = &self.same_host
            && let Poll::Ready(accepted) = same_host::poll_accept(l, cx)
        {
            let credentials = self.credentials.as_ref();
            let accepted = accepted.and_then(|socket| Accepted::over_unix(socket, credentials));
            return Poll::Ready(Some(accepted));
        }
        let accepted = match &self.socket {
            Socket::Tcp(l) => l.poll_accept(cx).map_ok(|(socket, _)| {
                // A socket that refuses the option is slow, not wrong.
                let _ = socket.set_nodelay(true);
                Accepted::over_tcp(socket, self.credentials.as_ref())
            }),
            Socket::Unix(l) => l.poll_accept(cx).map(|accepted| {
                let (socket, _) = accepted?;
                Accepted::over_unix(socket, None)
            }),
        };
        accepted.map(Some)
    }
}

const WINDOW_BYTES: u32 = 16 << 20;
const FRAME_BYTES: u32 = 1 << 20;
/// Streams and calls open at the same time on one connection.
const MOST_STREAMS: u32 = 256;

/// A gRPC server with the settings every dosmos process uses. Whoever does not show `token` is refused.
pub fn server(token: Token) -> Server {
    tonic::transport::Server::builder()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(2 * WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(MOST_STREAMS)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
        .layer(MapRequestLayer::new(note_method as Arrived))
        .layer(InterceptorLayer::new(guard(token)))
        .layer(MapRequestLayer::new(
            (|request| request.map(whole)) as Arrived,
        ))
}

/// Who is served by [`server`], and may call what.
pub fn guard(token: Token) -> Guard {
    Guard::new(RequireToken::new(token))
}

/// A connection on which nothing was said yet.
pub struct Dialled {
    socket: Box<dyn Pipe>,
    token: Option<Token>,
    is_on_this_host: bool,
}

impl fmt::Debug for Dialled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialled")
    }
}

impl Dialled {
    /// One that was made in another way.
    pub fn over(socket: impl Pipe + 'static, token: Option<Token>) -> Self {
        Self {
            socket: Box::new(socket),
            token,
            is_on_this_host: false,
        }
    }

    /// Whether the other end is known to be on this host: it was reached over a Unix socket.
    pub fn is_on_this_host(&self) -> bool {
        self.is_on_this_host
    }

    /// Makes the one call of this connection ([`direct`](crate::direct)): of `path`, a method of streams. What comes from `source` goes to
    /// the other end. The token of the run is shown as with every call.
    pub fn call<S, Out, In>(self, path: &str, source: S) -> Direct<S, In>
    where
        S: Stream<Item = Result<Out, Status>> + Unpin,
        Out: Message,
        In: Message + Default,
    {
        Direct::call(self.socket, path, self.token.as_ref(), source)
    }
}

/// Dials `address` once, for one call. `watched` gets to know the socket. A process of this host is reached over a Unix socket if
/// it [takes that](Listener::open_to_same_host).
///
/// # Errors
/// As [`connect`].
pub async fn dial(
    address: &Address,
    access: impl Into<Access>,
    timeout: Duration,
    watched: Option<&Arc<Watched>>,
) -> Result<Dialled, ConnectError> {
    let access = access.into();
    let dialled = tokio::time::timeout(timeout, address.dial(&access, true)).await;
    let late = |_| {
        let why = format!("it did not answer within {timeout:?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    };
    let dialled = dialled.unwrap_or_else(late).and_then(|mut connection| {
        if let Some(all) = watched {
            connection.watch(all)?;
        }
        Ok(Dialled {
            is_on_this_host: connection.is_on_this_host(),
            token: access.token,
            socket: Box::new(connection),
        })
    });
    dialled.map_err(|e| ConnectError {
        address: address.clone(),
        source: Arc::new(e),
    })
}

/// Dials `address` once. Calls over the connection show the token of the run; over TCP it is one over TLS if there are
/// credentials.
///
/// # Errors
/// What the system says, with the address.
pub async fn connect(
    address: &Address,
    access: impl Into<Access>,
    timeout: Duration,
) -> Result<Channel, ConnectError> {
    let access = access.into();
    let uri = match address {
        Address::Tcp(text) => format!("http://{text}"),
        Address::Unix(_) => "http://unix.invalid".to_owned(),
    };
    let failed = |e: tonic::transport::Error| ConnectError {
        address: address.clone(),
        source: Arc::new(e),
    };
    let endpoint = Endpoint::from_shared(uri)
        .map_err(failed)?
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(2 * WINDOW_BYTES)
        .connect_timeout(timeout)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true);
    let to = address.clone();
    let token = ShowToken::new(access.token.as_ref());
    let dial = tower::service_fn(move |_: Uri| {
        let (to, access) = (to.clone(), access.clone());
        async move { to.dial(&access, false).await.map(TokioIo::new) }
    });
    let channel = endpoint.connect_with_connector(dial).await;
    let channel = channel.map_err(failed)?;
    let channel = InterceptedService::new(channel, token);
    Ok(MapResponse::new(channel, |response| response.map(whole)))
}

/// A process that could not be reached.
#[derive(Clone, thiserror::Error)]
#[error("cannot reach {address}: {}", self.reason())]
pub struct ConnectError {
    address: Address,
    source: Arc<dyn std::error::Error + Send + Sync>,
}

impl fmt::Debug for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ConnectError {
    /// Where it should be.
    pub fn address(&self) -> &Address {
        &self.address
    }
    /// What the system said.
    pub fn reason(&self) -> String {
        innermost(&*self.source)
    }
}

/// The last error of a chain: the one that says what happened.
pub fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back() {
        for text in ["127.0.0.1:0", "[::1]:80", "localhost:1", "unix:/tmp/x"] {
            let a: Address = text.parse().unwrap();
            assert_eq!(a.to_string(), text);
            assert!(a.is_local(), "{text}");
        }
        assert!(!"10.0.0.1:80".parse::<Address>().unwrap().is_local());
        for bad in ["", "localhost", ":80", "host:port", "unix:", "h:99999"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
