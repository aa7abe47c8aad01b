//! The sockets of connections, for a thread that waits beside the runtime that drives them.
//!
//! Nobody has to drive a runtime while its connections are quiet. A thread that waits for their sockets itself sees when there
//! is something to do, and holds nothing meanwhile that another thread would have to wait for.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use socket2::SockRef;

/// The sockets of the connections that are open.
#[derive(Debug, Default)]
pub struct Watched(Mutex<Vec<Arc<WatchedSocket>>>);

/// One of them.
#[derive(Debug)]
pub struct WatchedSocket {
    socket: OwnedFd,
    blocked: AtomicBool,
}

impl WatchedSocket {
    /// Whether something waits to be written to it, for which it had no room.
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }
}

impl AsFd for WatchedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Watched {
    /// The sockets, each from when its connection is made until that ends.
    pub fn sockets(&self) -> Vec<Arc<WatchedSocket>> {
        self.lock().clone()
    }

    /// Whether there is a connection.
    pub fn any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Whether something waits to be written to one of them.
    pub fn is_blocked(&self) -> bool {
        self.lock().iter().any(|s| s.is_blocked())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<WatchedSocket>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place among those that are watched.
#[derive(Debug)]
pub(crate) struct Watch {
    socket: Arc<WatchedSocket>,
    all: Arc<Watched>,
}

impl Watch {
    pub(crate) fn begin(socket: BorrowedFd<'_>, all: &Arc<Watched>) -> io::Result<Self> {
        let socket = Arc::new(WatchedSocket {
            socket: socket.try_clone_to_owned()?,
            blocked: AtomicBool::new(false),
        });
        all.lock().push(Arc::clone(&socket));
        let all = Arc::clone(all);
        Ok(Self { socket, all })
    }

    /// Notes whether a write found room.
    pub(crate) fn wrote<T>(&self, result: Poll<T>) -> Poll<T> {
        let blocked = result.is_pending();
        self.socket.blocked.store(blocked, Ordering::Relaxed);
        result
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.all.lock().retain(|s| !Arc::ptr_eq(s, &self.socket));
        // The other end sees it although somebody still has the socket, and so does who waits for it. It may have ended before.
        let _ = SockRef::from(&self.socket.socket).shutdown(Shutdown::Both);
    }
}
