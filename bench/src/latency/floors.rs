//! What operations are compared with, in the same run: the least that a message there and back takes (64 bytes over a plain
//! socket), the same over a bare stream of gRPC, and Redis, where it is installed. All of them wait in system calls, as
//! ordinary programs do; who serves is a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dosmos_cli::output;
use dosmos_proto::transport::Address;

use super::child::{Child, this_program};
use super::line::Line;
use crate::network::Link;

/// Bytes of a message that is sent back.
const ECHOED: usize = 64;
/// Bytes of a value in Redis, as of an element here.
const VALUE: &str = "12345678";

trait Socket: Read + Write {}
impl<T: Read + Write> Socket for T {}

/// The floors, `ops` measurements of each.
pub(super) async fn measure(unix: bool, ops: u64) -> anyhow::Result<Vec<Line>> {
    let scratch = tempfile::tempdir()?;
    let mut lines = vec![echo(scratch.path(), unix, ops)?];
    let address = match unix {
        true => Address::Unix(scratch.path().join("stream.sock")),
        false => Address::Tcp("127.0.0.1:0".to_owned()),
    };
    let mut link = Link::open(&address, None).await?;
    let messages = u32::try_from(ops).unwrap_or(u32::MAX);
    link.measure(ECHOED, messages.min(200)).await?;
    let times = link.measure(ECHOED, messages).await?.times;
    lines.push(line("stream_echo", times.iter().map(|t| t.0).collect()));
    match redis(scratch.path(), unix, ops) {
        Ok(found) => lines.extend(found),
        Err(e) => output::note(&format!("without Redis: {e:#}")),
    }
    Ok(lines)
}

/// Times of one operation.
fn line(op: &str, mut times: Vec<u64>) -> Line {
    times.sort_unstable();
    let at = |q: usize| times.get(times.len() * q / 100).copied().unwrap_or(0);
    Line {
        op: op.to_owned(),
        bytes: 8,
        count: times.len() as u64,
        median_ns: at(50),
        p99_ns: at(99),
        min_ns: times.first().copied().unwrap_or(0),
        max_ns: times.last().copied().unwrap_or(0),
    }
}

fn timed(op: &str, ops: u64, mut f: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Line> {
    for _ in 0..ops.min(200) {
        f()?;
    }
    let mut times = Vec::with_capacity(ops as usize);
    for _ in 0..ops {
        let begun = Instant::now();
        f()?;
        times.push(begun.elapsed().as_nanos() as u64);
    }
    Ok(line(op, times))
}

fn echo(scratch: &Path, unix: bool, ops: u64) -> anyhow::Result<Line> {
    let at = if unix {
        scratch.join("echo.sock").display().to_string()
    } else {
        "tcp".to_owned()
    };
    let mut server = Child::start(&[&this_program()?, "latency", "--echo", &at])?;
    let said = server.output().context("it has no output")?;
    let mut address = String::new();
    BufReader::new(said).read_line(&mut address)?;
    let mut socket = connect(address.trim())?;
    let mut message = [7; ECHOED];
    timed("socket_echo", ops, || {
        socket.write_all(&message)?;
        Ok(socket.read_exact(&mut message)?)
    })
}

/// A path, or an address of TCP.
fn connect(address: &str) -> std::io::Result<Box<dyn Socket>> {
    if address.starts_with('/') {
        return Ok(Box::new(UnixStream::connect(address)?));
    }
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

/// Sends everything back to one client, until that is gone.
pub(super) fn answer(at: &str) -> anyhow::Result<()> {
    let mut socket: Box<dyn Socket> = if at == "tcp" {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        output::text(&format!("{}\n", listener.local_addr()?));
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        Box::new(stream)
    } else {
        let listener = UnixListener::bind(at).with_context(|| format!("cannot listen at {at}"))?;
        output::text(&format!("{at}\n"));
        Box::new(listener.accept()?.0)
    };
    let mut message = [0; ECHOED];
    while socket.read_exact(&mut message).is_ok() {
        socket.write_all(&message)?;
    }
    Ok(())
}

fn redis(scratch: &Path, unix: bool, ops: u64) -> anyhow::Result<Vec<Line>> {
    let path = scratch.join("redis.sock");
    // Redis takes no port 0; this one was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let (port_text, path) = (port.to_string(), path.display().to_string());
    let mut command = vec!["redis-server", "--port", &port_text, "--unixsocket", &path];
    // Nothing is written to disk, nothing printed.
    command.extend(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.extend(["--loglevel", "warning"]);
    let mut server = Child::start(&command)?;
    let address = match unix {
        true => path,
        false => format!("127.0.0.1:{port}"),
    };
    let begun = Instant::now();
    let mut socket = loop {
        match connect(&address) {
            Ok(socket) => break socket,
            Err(e) if server.has_ended()? || begun.elapsed() > Duration::from_secs(5) => {
                return Err(e).context("redis-server does not listen");
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let value = format!("${}\r\n{VALUE}\r\n", VALUE.len());
    let mut call = |words: &[&str], expected: &str| {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        socket.write_all(request.as_bytes())?;
        let mut reply = vec![0; expected.len()];
        socket.read_exact(&mut reply)?;
        if reply != expected.as_bytes() {
            bail!(
                "redis answered {words:?} with {:?}",
                String::from_utf8_lossy(&reply)
            );
        }
        Ok(())
    };
    call(&["SET", "x", VALUE], "+OK\r\n")?;
    Ok(vec![
        timed("redis_get", ops, || call(&["GET", "x"], &value))?,
        timed("redis_set", ops, || call(&["SET", "x", VALUE], "+OK\r\n"))?,
        timed("redis_set_nx_del", ops, || {
            call(&["SET", "lock", VALUE, "NX"], "+OK\r\n")?;
            call(&["DEL", "lock"], ":1\r\n")
        })?,
    ])
}
