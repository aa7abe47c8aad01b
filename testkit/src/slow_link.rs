//! A slower link: something between two processes that hands bytes on after a while, in order and as they came.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes handed on at once.
const PIECE: usize = 256 << 10;

/// A port of this machine in front of a Unix socket: what is sent to the one arrives at the other later by a fixed time, in both
/// directions. Connections end when this is dropped.
#[derive(Debug)]
pub struct SlowLink {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    target: PathBuf,
    delay: Duration,
    ended: AtomicBool,
    bytes: AtomicU64,
}

impl SlowLink {
    /// In front of `target`, which need not be there yet.
    ///
    /// # Errors
    /// If no port is free.
    pub fn to(target: &Path, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            target: target.to_owned(),
            delay,
            ended: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
        });
        let its = Arc::clone(&state);
        thread::spawn(move || accept(&listener, &its));
        Ok(Self { address, state })
    }

    /// Where others reach the target.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes that were handed on.
    pub fn bytes(&self) -> u64 {
        self.state.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        // Wakes who accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, state: &Arc<State>) {
    for near in listener.incoming() {
        if state.ended.load(Ordering::Relaxed) {
            return;
        }
        // Who finds nobody behind it is told so by the end of the connection.
        if let (Ok(near), Ok(far)) = (near, UnixStream::connect(&state.target)) {
            let _ = hand_on(near, far, state);
        }
    }
}

fn hand_on(near: TcpStream, far: UnixStream, state: &Arc<State>) -> io::Result<()> {
    near.set_nodelay(true)?;
    carry(
        near.try_clone()?,
        far.try_clone()?,
        |far| far.shutdown(Shutdown::Write),
        state,
    );
    carry(far, near, |near| near.shutdown(Shutdown::Write), state);
    Ok(())
}

/// One direction: a thread that reads, and one that writes what is due.
fn carry<R, W>(mut from: R, to: W, end: fn(&W) -> io::Result<()>, state: &Arc<State>)
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    let (sender, receiver) = channel();
    let its = Arc::clone(state);
    thread::spawn(move || deliver(to, &receiver, end, &its));
    let its = Arc::clone(state);
    thread::spawn(move || take(&mut from, &sender, &its));
}

fn take(from: &mut impl Read, sender: &Sender<(Instant, Vec<u8>)>, state: &State) {
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let due = Instant::now() + state.delay;
        let taken = piece.get(..length).unwrap_or_default().to_vec();
        if sender.send((due, taken)).is_err() || state.ended.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn deliver<W: Write>(
    mut to: W,
    receiver: &Receiver<(Instant, Vec<u8>)>,
    end: fn(&W) -> io::Result<()>,
    state: &State,
) {
    // Sleeps are to be as long as they are meant.
    let _ = nix::sys::prctl::set_timerslack(1);
    for (due, piece) in receiver {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).is_err() {
            break;
        }
        state.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
    }
    let _ = end(&to);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_is_sent_arrives_later_in_order_and_both_ways() {
        let dir = dosmos_testseeds::scratch();
        let path = dir.path().join("socket");
        let target = UnixListener::bind(&path).unwrap();
        let delay = Duration::from_millis(20);
        let link = SlowLink::to(&path, delay).unwrap();
        let echo = thread::spawn(move || {
            let (mut stream, _) = target.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        });
        let mut near = TcpStream::connect(link.address()).unwrap();
        let sent: Vec<u8> = (0..3 * PIECE).map(|i| i as u8).collect();
        let begun = Instant::now();
        near.write_all(&sent).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        near.read_to_end(&mut back).unwrap();
        assert!(back == sent);
        assert!(begun.elapsed() >= 2 * delay);
        assert_eq!(link.bytes(), 2 * sent.len() as u64);
        echo.join().unwrap();
    }
}
