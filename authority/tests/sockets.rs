//! Connections over TLS: who is let in, who is refused and told why, and what a renewal does to those that stand.

#![allow(clippy::unwrap_used)] // a test may

use std::io::IoSlice;
use std::time::Duration;

use dosmos_authority::testing::Certificates;
use dosmos_secure::{Credentials, Peer, Role, SecureSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(20);

/// Greets whoever is let in, then sends back what comes.
async fn serve(credentials: Credentials) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let (mut socket, peer) = SecureSocket::accept(socket, &credentials);
            tokio::spawn(async move {
                socket.write_all(b"hello").await?;
                socket.flush().await?;
                assert!(peer.has_one_of(&Role::ALL, "speak").is_ok());
                let mut buffer = [0; 1000];
                loop {
                    let n = socket.read(&mut buffer).await?;
                    if n == 0 {
                        return std::io::Result::Ok(());
                    }
                    socket.write_all(&buffer[..n]).await?;
                    socket.flush().await?;
                }
            });
        }
    });
    address
}

async fn dial(
    address: std::net::SocketAddr,
    credentials: &Credentials,
    expected: Option<&str>,
) -> std::io::Result<SecureSocket> {
    let socket = TcpStream::connect(address).await.unwrap();
    let dialled = SecureSocket::dial(socket, credentials, expected, false);
    timeout(DEADLINE, dialled).await.unwrap()
}

async fn said(socket: &mut SecureSocket, n: usize) -> Vec<u8> {
    let mut read = vec![0; n];
    timeout(DEADLINE, socket.read_exact(&mut read))
        .await
        .unwrap()
        .unwrap();
    read
}

async fn echoes(socket: &mut SecureSocket, text: &[u8]) {
    socket.write_all(text).await.unwrap();
    socket.flush().await.unwrap();
    assert_eq!(said(socket, text.len()).await, text);
}

#[tokio::test]
async fn members_of_a_cluster_talk() {
    let certificates = Certificates::new("demo");
    let address = serve(certificates.of(Role::Memory, "mp0")).await;
    let ap0 = certificates.of(Role::Application, "ap0");
    let mut socket = dial(address, &ap0, Some("mp0")).await.unwrap();
    assert_eq!(said(&mut socket, 5).await, b"hello");
    for length in [1, 1000, 40_000] {
        let text: Vec<u8> = (0..length).map(|i| (i / 3) as u8).collect();
        echoes(&mut socket, &text).await;
    }
}

/// Both ends of a connection, dialled and accepted.
async fn pair() -> (SecureSocket, SecureSocket) {
    let certificates = Certificates::new("demo");
    let mp0 = certificates.of(Role::Memory, "mp0");
    let ap0 = certificates.of(Role::Application, "ap0");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = async {
        let (socket, _) = listener.accept().await.unwrap();
        let (mut socket, _) = SecureSocket::accept(socket, &mp0);
        socket.write_all(b"hello").await.unwrap();
        socket.flush().await.unwrap();
        socket
    };
    let (dialled, accepted) = tokio::join!(dial(address, &ap0, Some("mp0")), accepted);
    let mut dialled = dialled.unwrap();
    assert_eq!(said(&mut dialled, 5).await, b"hello");
    (dialled, accepted)
}

#[tokio::test]
async fn what_the_socket_has_no_room_for_waits_and_arrives_whole_before_the_farewell() {
    let (mut dialled, mut accepted) = pair().await;
    let sent: Vec<u8> = (0..20_000_000_u32).map(|i| (i / 7) as u8).collect();
    let expected = sent.clone();
    let mut writing = tokio::spawn(async move {
        dialled.write_all(&sent).await.unwrap();
        dialled.shutdown().await.unwrap();
        dialled
    });
    let waits = timeout(Duration::from_millis(200), &mut writing).await;
    assert!(waits.is_err(), "nobody has read it");
    let mut read = Vec::new();
    let reading = timeout(DEADLINE, accepted.read_to_end(&mut read));
    reading.await.unwrap().unwrap();
    assert!(read == expected);
    // The other direction is still open.
    let mut dialled = writing.await.unwrap();
    accepted.write_all(b"got it").await.unwrap();
    accepted.flush().await.unwrap();
    assert_eq!(said(&mut dialled, 6).await, b"got it");
}

#[tokio::test]
async fn pieces_that_are_written_together_are_read_together() {
    let (mut dialled, mut accepted) = pair().await;
    let pieces = [&b"a frame's head"[..], b"", b" and its content"];
    let slices = pieces.map(IoSlice::new);
    let written = dialled.write_vectored(&slices).await;
    let whole = pieces.concat();
    assert_eq!(written.unwrap(), whole.len());
    dialled.flush().await.unwrap();
    let mut read = [0; 1000];
    let n = timeout(DEADLINE, accepted.read(&mut read));
    let n = n.await.unwrap().unwrap();
    assert_eq!(read[..n], whole);
}

#[tokio::test]
async fn what_is_read_in_smaller_parts_than_it_was_written_in_is_complete() {
    let (mut dialled, mut accepted) = pair().await;
    for record in [&b"one"[..], b"two", b"three"] {
        dialled.write_all(record).await.unwrap();
        dialled.flush().await.unwrap();
    }
    // Nobody tells of what was read from the socket already.
    for byte in b"onetwothree" {
        assert_eq!(said(&mut accepted, 1).await, [*byte]);
    }
}

#[tokio::test]
async fn an_end_that_goes_without_farewell_ends_the_connection() {
    let (dialled, mut accepted) = pair().await;
    drop(dialled);
    for _ in 0..2 {
        let mut byte = [0];
        let read = timeout(DEADLINE, accepted.read(&mut byte));
        assert_eq!(read.await.unwrap().unwrap(), 0);
    }
}

#[tokio::test]
async fn what_is_not_of_the_other_end_is_not_taken() {
    use std::io::Write;
    let (dialled, mut accepted) = pair().await;
    let below = dialled.descriptor().unwrap().try_clone_to_owned();
    let mut below = std::net::TcpStream::from(below.unwrap());
    // The head of a record of 32 bytes, and 32 bytes that nobody encrypted.
    below.write_all(&[0x17, 3, 3, 0, 32]).unwrap();
    below.write_all(&[7; 32]).unwrap();
    let mut byte = [0];
    let read = timeout(DEADLINE, accepted.read(&mut byte));
    let refused = read.await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidData);
    drop(dialled);
}

#[tokio::test]
async fn who_dials_with_a_wrong_certificate_is_told_so_at_once() {
    let certificates = Certificates::new("demo");
    let address = serve(certificates.of(Role::Memory, "mp0")).await;
    for (credentials, why) in certificates.refused(Role::Application, "ap0") {
        let error = dial(address, &credentials, None)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[tokio::test]
async fn who_answers_with_a_wrong_certificate_is_left() {
    let certificates = Certificates::new("demo");
    let ap0 = certificates.of(Role::Application, "ap0");
    let refused = |of: Credentials, expected: Option<&'static str>| {
        let ap0 = ap0.clone();
        async move {
            dial(serve(of).await, &ap0, expected)
                .await
                .unwrap_err()
                .to_string()
        }
    };
    let e = refused(certificates.expired(Role::Memory, "mp0"), None).await;
    assert!(
        e.contains("has expired; renew it with `dosmos cert rotate`"),
        "{e}"
    );
    let e = refused(certificates.foreign(Role::Memory, "mp0"), None).await;
    assert!(
        e.contains("another authority than those in our ca.pem"),
        "{e}"
    );
    let e = refused(certificates.of_other_cluster(Role::Memory, "mp0"), None).await;
    assert!(e.contains("it is for cluster other, this is demo"), "{e}");
    // An observer cannot pass for a process, nor one process for another.
    let e = refused(certificates.of(Role::Observer, "mp0"), None).await;
    assert!(
        e.contains("observer mp0, which accepts no connections"),
        "{e}"
    );
    let e = refused(certificates.of(Role::Memory, "mp1"), Some("mp0")).await;
    assert!(
        e.contains("this is not mp0: its certificate is of memory mp1"),
        "{e}"
    );
}

#[tokio::test]
async fn who_does_not_use_tls_is_told_to_in_its_own_protocol() {
    let certificates = Certificates::new("demo");
    let address = serve(certificates.of(Role::Memory, "mp0")).await;
    for (begin, answer) in [
        (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0, 0, 0, 4][..]),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
    ] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(begin).await.unwrap();
        let mut said = Vec::new();
        timeout(DEADLINE, socket.read_to_end(&mut said))
            .await
            .unwrap()
            .unwrap();
        assert!(said.starts_with(answer), "{said:?}");
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(
            said.contains("this process takes TLS only: set DOSMOS_TLS"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn one_that_is_slow_at_its_handshake_keeps_no_other_waiting() {
    let certificates = Certificates::new("demo");
    let address = serve(certificates.of(Role::Memory, "mp0")).await;
    let mut silent = Vec::new();
    for begin in [&b""[..], b"\x16\x03\x01"] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(begin).await.unwrap();
        silent.push(socket);
    }
    let ap0 = certificates.of(Role::Application, "ap0");
    let mut socket = dial(address, &ap0, None).await.unwrap();
    assert_eq!(said(&mut socket, 5).await, b"hello");
}

#[tokio::test]
async fn renewed_certificates_count_for_new_connections_and_old_ones_stay() {
    let certificates = Certificates::new("demo");
    let mp0 = certificates.of(Role::Memory, "mp0");
    let address = serve(mp0.clone()).await;
    let ap0 = certificates.of(Role::Application, "ap0");
    let mut before = dial(address, &ap0, Some("mp0")).await.unwrap();
    assert_eq!(said(&mut before, 5).await, b"hello");
    // As another process, so that it shows which certificate counts.
    certificates.renew(&mp0, Role::Memory, "mp9");
    let error = dial(address, &ap0, Some("mp0"))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("memory mp9"), "{error}");
    let mut after = dial(address, &ap0, Some("mp9")).await.unwrap();
    assert_eq!(said(&mut after, 5).await, b"hello");
    echoes(&mut before, b"still here").await;
    // Of who dials too.
    certificates.renew(&ap0, Role::Observer, "alice");
    assert!(ap0.own().is(Role::Observer, "alice"));
    dial(address, &ap0, Some("mp9")).await.unwrap();
}

#[tokio::test]
async fn files_that_do_not_fit_leave_the_former_in_force() {
    let certificates = Certificates::new("demo");
    let mp0 = certificates.of(Role::Memory, "mp0");
    let address = serve(mp0.clone()).await;
    let ap0 = certificates.of(Role::Application, "ap0");
    let other = certificates.of(Role::Memory, "mp9");
    // Half of a rotation: the key is new, the certificate is not.
    std::fs::copy(&other.files().key, &mp0.files().key).unwrap();
    dial(address, &ap0, Some("mp0")).await.unwrap();
    std::fs::write(&mp0.files().certificate, "nonsense").unwrap();
    dial(address, &ap0, Some("mp0")).await.unwrap();
    std::fs::copy(&other.files().certificate, &mp0.files().certificate).unwrap();
    dial(address, &ap0, Some("mp9")).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_used_is_named_with_the_cure() {
    use std::os::unix::fs::PermissionsExt;
    let certificates = Certificates::new("demo");
    let files = certificates.of(Role::Memory, "mp0").files().clone();
    let refused = || Credentials::read(files.clone()).unwrap_err().to_string();
    let key = std::fs::read(&files.key).unwrap();
    std::fs::set_permissions(&files.key, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(
        refused().contains("key.pem can be read by others: chmod 600"),
        "{}",
        refused()
    );
    std::fs::set_permissions(&files.key, PermissionsExt::from_mode(0o600)).unwrap();
    let other = certificates.of(Role::Memory, "mp1").files().key.clone();
    std::fs::copy(other, &files.key).unwrap();
    assert!(
        refused().contains("the key is not that of the certificate"),
        "{}",
        refused()
    );
    std::fs::write(&files.key, "").unwrap();
    assert!(
        refused().contains("key.pem has no private key"),
        "{}",
        refused()
    );
    std::fs::write(&files.key, key).unwrap();
    std::fs::copy(&files.ca, &files.certificate).unwrap();
    assert!(refused().contains("dosmos cert issue"), "{}", refused());
    std::fs::remove_file(&files.ca).unwrap();
    assert!(
        refused().contains("cannot read") && refused().contains("ca.pem"),
        "{}",
        refused()
    );
}

/// What is printed of a peer or of credentials has no key in it.
#[tokio::test]
async fn keys_are_not_printed() {
    let certificates = Certificates::new("demo");
    let mp0 = certificates.of(Role::Memory, "mp0");
    let key = std::fs::read_to_string(&mp0.files().key).unwrap();
    let line = key.lines().nth(1).unwrap();
    let printed = format!("{mp0:?} {:?}", Peer::Uncertified);
    assert!(
        !printed.contains(line) && !printed.contains("PRIVATE"),
        "{printed}"
    );
}
