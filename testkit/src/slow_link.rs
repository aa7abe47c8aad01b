//! A slower link: something between two processes that hands bytes on after a while, in order and as they came.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::time::{ClockId, clock_gettime};

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
    /// Processor time of its threads, in nanoseconds.
    processor: AtomicU64,
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
            processor: AtomicU64::new(0),
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

    /// Processor time that handing them on took.
    pub fn processor(&self) -> Duration {
        Duration::from_nanos(self.state.processor.load(Ordering::Relaxed))
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        // Wakes who accepts.
        let _ = TcpStream::connect(self.address);
    }
}

/// What a thread has told of its processor time.
struct Meter<'a> {
    state: &'a State,
    told: Duration,
}

impl<'a> Meter<'a> {
    fn new(state: &'a State) -> Self {
        let told = Duration::ZERO;
        Self { state, told }
    }

    /// Counts what this thread used since it told last.
    fn tell(&mut self) {
        let used =
            clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(self.told, Duration::from);
        let more = used.saturating_sub(self.told).as_nanos() as u64;
        self.state.processor.fetch_add(more, Ordering::Relaxed);
        self.told = used;
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

/// One direction: a thread that reads, and writes what is due.
fn carry<R, W>(from: R, mut to: W, end: fn(&W) -> io::Result<()>, state: &Arc<State>)
where
    R: Read + AsFd + Send + 'static,
    W: Write + Send + 'static,
{
    let its = Arc::clone(state);
    thread::spawn(move || {
        let _ = hand_on_bytes(from, &mut to, &its);
        let _ = end(&to);
    });
}

fn hand_on_bytes<R: Read + AsFd>(
    mut from: R,
    to: &mut impl Write,
    state: &State,
) -> io::Result<()> {
    // Waits are to be as long as they are meant.
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut meter = Meter::new(state);
    let mut piece = vec![0; PIECE];
    let mut taken: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut ended = false;
    while !(ended && taken.is_empty()) {
        let due = taken.front().map(|(due, _)| *due);
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        match left {
            Some(Duration::ZERO) => {
                if let Some((_, piece)) = taken.pop_front() {
                    to.write_all(&piece)?;
                    let bytes = piece.len() as u64;
                    state.bytes.fetch_add(bytes, Ordering::Relaxed);
                    meter.tell();
                }
            }
            Some(left) if ended => thread::sleep(left),
            left => {
                let mut asked = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
                match ppoll(&mut asked, left.map(Into::into), None) {
                    Ok(1..) => {}
                    Ok(_) | Err(Errno::EINTR) => continue,
                    Err(e) => return Err(e.into()),
                }
                let length = from.read(&mut piece)?;
                ended = length == 0 || state.ended.load(Ordering::Relaxed);
                if let Some(piece) = piece.get(..length).filter(|p| !p.is_empty()) {
                    taken.push_back((Instant::now() + state.delay, piece.to_vec()));
                }
                meter.tell();
            }
        }
    }
    Ok(())
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
        assert!(link.processor() > Duration::ZERO);
        echo.join().unwrap();
    }
}
