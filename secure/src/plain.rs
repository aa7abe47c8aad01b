//! What a process that takes TLS only says to whoever does not use it, in the protocol that this one speaks.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The first byte of a connection over TLS: a handshake.
const HANDSHAKE: u8 = 0x16;
const ADVICE: &str =
    "this process takes TLS only: set DOSMOS_TLS to the folder of a certificate of its cluster";
/// How long the other end may take to read it, and how much it may send meanwhile.
const LINGER: Duration = Duration::from_secs(2);
const MOST_UNREAD: usize = 1 << 20;

/// Frames of HTTP/2: empty settings, and a farewell for insufficient security with the advice.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const FAREWELL: u8 = 7;
const INADEQUATE_SECURITY: u8 = 0xc;

/// Whether TLS is what begins here.
pub(crate) async fn begins_with_tls(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    match socket.peek(&mut first).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(first[0] == HANDSHAKE),
    }
}

/// Tells the other end what it lacks, and waits until it has read it.
pub(crate) async fn turn_away(mut socket: TcpStream) -> io::Result<()> {
    let farewell = async {
        let mut first = [0; 3];
        let n = socket.peek(&mut first).await?;
        let answer = match &first[..n] {
            b"PRI" => http2(),
            _ => http1(),
        };
        socket.write_all(&answer).await?;
        socket.shutdown().await?;
        // What is not read would have the system drop the answer.
        let mut sink = [0; 4096];
        let mut read = 0;
        while read < MOST_UNREAD {
            match socket.read(&mut sink).await? {
                0 => break,
                n => read += n,
            }
        }
        Ok(())
    };
    timeout(LINGER, farewell).await.unwrap_or(Ok(()))
}

fn http2() -> Vec<u8> {
    let length = 8 + ADVICE.len() as u32;
    let mut frames = SETTINGS.to_vec();
    frames.extend(&length.to_be_bytes()[1..]);
    frames.extend([FAREWELL, 0, 0, 0, 0, 0]);
    frames.extend([0, 0, 0, 0, 0, 0, 0, INADEQUATE_SECURITY]);
    frames.extend(ADVICE.as_bytes());
    frames
}

fn http1() -> Vec<u8> {
    let length = ADVICE.len() + 1;
    let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close";
    format!("{head}\r\nContent-Length: {length}\r\n\r\n{ADVICE}\n").into_bytes()
}
