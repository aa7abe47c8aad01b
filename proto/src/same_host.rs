//! Unix sockets in place of TCP between two processes of one host.
//!
//! A process that listens at a TCP address may also listen at an abstract Unix socket that is named after it. Such names belong to
//! a network namespace, as addresses do: who finds the name is where the address is. Only processes of the same user are talked
//! to; the kernel says whose the other end is. A process that takes certificates has another name than one that does not, so
//! nobody meets the other kind and is told over TCP what is missing.

use std::io;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};

use tokio::net::{UnixListener, UnixStream};

/// The name of the socket in place of `address`; the zero says that it is none of the file system.
fn name(address: &str, secured: bool) -> String {
    let certificates = if secured { "certified/" } else { "" };
    format!("\0dosmos/{certificates}{address}")
}

/// Listens in place of `address`, which this process has bound.
pub(crate) fn listen(address: &str, secured: bool) -> io::Result<UnixListener> {
    UnixListener::bind(name(address, secured))
}

/// The next connection of a process of this user; others are closed.
pub(crate) fn poll_accept(
    listener: &UnixListener,
    cx: &mut Context<'_>,
) -> Poll<io::Result<UnixStream>> {
    loop {
        let (socket, _) = ready!(listener.poll_accept(cx))?;
        if is_of_same_user(&socket) {
            return Poll::Ready(Ok(socket));
        }
    }
}

/// A connection in place of one to `address`, if there is anybody.
pub(crate) async fn dial(address: &str, secured: bool) -> Option<UnixStream> {
    let socket = UnixStream::connect(name(address, secured)).await.ok()?;
    is_of_same_user(&socket).then_some(socket)
}

fn is_of_same_user(socket: &UnixStream) -> bool {
    let theirs = socket.peer_cred().ok().map(|c| c.uid());
    theirs.is_some() && theirs == own_user()
}

/// Who this process is, as others see it: the user at the other end of a socket of its own.
fn own_user() -> Option<u32> {
    static OWN: OnceLock<Option<u32>> = OnceLock::new();
    *OWN.get_or_init(|| {
        let (one, _other) = UnixStream::pair().ok()?;
        Some(one.peer_cred().ok()?.uid())
    })
}
