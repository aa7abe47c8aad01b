//! The handshake of TLS, over any socket: what either end shows, and who it has to be.

use std::io;

use rustls::pki_types::ServerName;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{LazyConfigAcceptor, TlsConnector, TlsStream};

use crate::credentials::{Credentials, ONE_CALL};
use crate::error::explain;
use crate::identity::Identities;
use crate::peer::Certified;

/// What a handshake goes over.
pub(crate) trait Below: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Below for S {}

/// Shows who this is, for one call or for anything; whoever is at the other end.
pub(crate) async fn connect<S: Below>(
    socket: S,
    credentials: &Credentials,
    one_call: bool,
) -> io::Result<TlsStream<S>> {
    let connector = TlsConnector::from(credentials.current().client.clone());
    // Another server than ours takes the second.
    let offered = [ONE_CALL, b"h2"].into_iter().filter(|_| one_call);
    let protocols = offered.map(<[u8]>::to_vec).collect();
    // Not sent, and not compared: identities are.
    let nobody = ServerName::try_from("dosmos.invalid").map_err(io::Error::other)?;
    let connected = connector.with_alpn(protocols).connect(nobody, socket);
    Ok(TlsStream::from(connected.await.map_err(explain)?))
}

/// The same; the other end has to be `expected`, if that is known, or who serves sessions or reports.
pub(crate) async fn dial<S: Below>(
    socket: S,
    credentials: &Credentials,
    expected: Option<&str>,
    one_call: bool,
) -> io::Result<TlsStream<S>> {
    let stream = connect(socket, credentials, one_call).await?;
    let shown = identities(&stream)?;
    if !shown.serves(expected) {
        let expected = expected.unwrap_or("a memory process or event manager");
        return Err(io::Error::other(format!(
            "this is not {expected}: its certificate is of {shown}"
        )));
    }
    Ok(stream)
}

/// Answers who dialled; what it showed is in `certified` from then on.
pub(crate) async fn accept<S: Below>(
    socket: S,
    credentials: &Credentials,
    certified: &Certified,
) -> io::Result<TlsStream<S>> {
    let greeted = LazyConfigAcceptor::new(Acceptor::default(), socket);
    let greeted = greeted.await.map_err(explain)?;
    let offered = greeted.client_hello().alpn();
    let one_call = offered.is_some_and(|mut offered| offered.any(|p| p == ONE_CALL));
    let current = credentials.current();
    let server = match one_call {
        true => current.server_of_call.clone(),
        false => current.server.clone(),
    };
    let stream = TlsStream::from(greeted.into_stream(server).await.map_err(explain)?);
    certified.shown(identities(&stream)?);
    Ok(stream)
}

fn identities<S>(stream: &TlsStream<S>) -> io::Result<Identities> {
    let (_, connection) = stream.get_ref();
    let shown = connection.peer_certificates().and_then(<[_]>::first);
    let shown = shown.ok_or_else(|| io::Error::other("the other end shows no certificate"))?;
    Identities::of(shown).map_err(io::Error::other)
}
