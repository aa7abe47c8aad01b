//! Who is at the other end of a Unix socket.
//!
//! What goes through it, the kernel keeps from everybody else, so it needs no encryption; but certificates are asked for as over
//! TCP. The connection begins with a handshake of TLS, after which bytes go as they are:
//!
//! ```text
//! dials                             accepts
//!   ├──────── handshake ───────────────┤
//!   │◄─────── YES, encrypted ──────────┤   the certificate was accepted
//!   ├──────── YES, encrypted ─────────►│   nothing follows until the next one:
//!   │◄─────── YES ─────────────────────┤   what came together would be taken for encrypted
//!   ├──────── as it is, both ways ─────┤
//! ```

use std::io::{self, ErrorKind};
use std::pin::Pin;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_rustls::TlsStream;

use crate::credentials::Credentials;
use crate::error::explain;
use crate::handshake;
use crate::peer::{Certified, Peer};

const YES: u8 = 0x59;

/// A socket, once both ends have shown who they are.
pub type Opening = Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send>>;

/// Takes a socket that was accepted. What its other end shows is known when it is open.
pub fn accept(socket: UnixStream, credentials: &Credentials) -> (Opening, Peer) {
    let certified = Certified::default();
    let peer = Peer::Certified(certified.clone());
    let credentials = credentials.clone();
    let opening = async move {
        let opened = shake_hands(socket, &credentials, &certified).await;
        opened.inspect_err(|e| tracing::info!("a connection of this host is refused: {e}"))
    };
    (Box::pin(opening), peer)
}

async fn shake_hands(
    socket: UnixStream,
    credentials: &Credentials,
    certified: &Certified,
) -> io::Result<UnixStream> {
    let mut stream = handshake::accept(socket, credentials, certified).await?;
    stream.write_all(&[YES]).await?;
    stream.flush().await?;
    expect_yes(&mut stream).await?;
    let mut socket = below(stream);
    socket.write_all(&[YES]).await?;
    Ok(socket)
}

/// Shows who this is over a socket that was dialled. The other end has to be `expected`, if that is known.
///
/// # Errors
/// If it is not, or one end does not accept the other.
pub async fn dial(
    socket: UnixStream,
    credentials: &Credentials,
    expected: Option<&str>,
) -> io::Result<UnixStream> {
    let mut stream = handshake::dial(socket, credentials, expected, true).await?;
    expect_yes(&mut stream).await?;
    stream.write_all(&[YES]).await?;
    stream.flush().await?;
    let mut socket = below(stream);
    match socket.read_u8().await? {
        YES => Ok(socket),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

async fn expect_yes(stream: &mut TlsStream<UnixStream>) -> io::Result<()> {
    match stream.read_u8().await.map_err(explain)? {
        YES => Ok(()),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

/// The socket without the stream over it.
fn below(stream: TlsStream<UnixStream>) -> UnixStream {
    match stream {
        TlsStream::Client(stream) => stream.into_inner().0,
        TlsStream::Server(stream) => stream.into_inner().0,
    }
}
