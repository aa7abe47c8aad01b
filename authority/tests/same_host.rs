//! Unix sockets between processes of one host: certificates are asked for as over TCP, and bytes go as they are.

#![allow(clippy::unwrap_used)] // a test may

use std::io;
use std::time::Duration;

use dosmos_authority::testing::Certificates;
use dosmos_secure::{Credentials, Peer, Role, same_host};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(20);

/// What both ends have of a connection between them, and who the one that accepted takes the other for.
async fn meet(
    dials: &Credentials,
    expected: Option<&str>,
    accepts: &Credentials,
) -> (io::Result<UnixStream>, io::Result<UnixStream>, Peer) {
    let (near, far) = UnixStream::pair().unwrap();
    let (opening, peer) = same_host::accept(far, accepts);
    let both = async { tokio::join!(same_host::dial(near, dials, expected), opening) };
    let (dialled, accepted) = timeout(DEADLINE, both).await.unwrap();
    (dialled, accepted, peer)
}

#[tokio::test]
async fn members_of_a_cluster_talk_without_encryption() {
    let certificates = Certificates::new("demo");
    let ap0 = certificates.of(Role::Application, "ap0");
    let mp0 = certificates.of(Role::Memory, "mp0");
    let (dialled, accepted, peer) = meet(&ap0, Some("mp0"), &mp0).await;
    let (mut dialled, mut accepted) = (dialled.unwrap(), accepted.unwrap());
    assert!(peer.is(Role::Application, "ap0").is_ok());
    assert!(peer.is(Role::Application, "ap1").is_err());
    assert!(peer.has_one_of(&[Role::Operator], "look").is_err());
    let text: Vec<u8> = (0..50_000).map(|i| (i / 3) as u8).collect();
    let mut there = vec![0; text.len()];
    let (sent, read) = tokio::join!(dialled.write_all(&text), accepted.read_exact(&mut there));
    sent.unwrap();
    read.unwrap();
    assert!(there == text);
    accepted.write_all(b"seen").await.unwrap();
    let mut back = [0; 4];
    dialled.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"seen");
}

#[tokio::test]
async fn nobody_is_let_in_whom_tcp_would_refuse() {
    let certificates = Certificates::new("demo");
    let mp0 = certificates.of(Role::Memory, "mp0");
    for (credentials, why) in certificates.refused(Role::Application, "ap0") {
        let (dialled, accepted, _) = meet(&credentials, None, &mp0).await;
        let error = dialled.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(accepted.is_err());
    }
}

#[tokio::test]
async fn nobody_is_talked_to_who_answers_with_a_wrong_certificate() {
    let certificates = Certificates::new("demo");
    let ap0 = certificates.of(Role::Application, "ap0");
    for (answers, why) in [
        (
            certificates.of(Role::Memory, "mp1"),
            "this is not mp0: its certificate is of memory mp1",
        ),
        (certificates.expired(Role::Memory, "mp0"), "has expired"),
        (
            certificates.foreign(Role::Memory, "mp0"),
            "another authority than those in our ca.pem",
        ),
    ] {
        let (dialled, accepted, _) = meet(&ap0, Some("mp0"), &answers).await;
        let error = dialled.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(accepted.is_err(), "{why}");
    }
}

#[tokio::test]
async fn who_shows_nothing_is_refused() {
    let certificates = Certificates::new("demo");
    let (mut near, far) = UnixStream::pair().unwrap();
    let (opening, peer) = same_host::accept(far, &certificates.of(Role::Memory, "mp0"));
    near.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    let opened = timeout(DEADLINE, opening).await.unwrap();
    assert!(opened.is_err());
    assert!(peer.has_one_of(&Role::ALL, "speak").is_err());
}

#[tokio::test]
async fn who_says_yes_without_a_handshake_is_left() {
    let certificates = Certificates::new("demo");
    let ap0 = certificates.of(Role::Application, "ap0");
    let (near, mut far) = UnixStream::pair().unwrap();
    let answers = async {
        let mut head = [0; 1];
        far.read_exact(&mut head).await.unwrap();
        far.write_all(b"YYYY").await.unwrap();
        drop(far);
    };
    let (dialled, ()) = tokio::join!(same_host::dial(near, &ap0, None), answers);
    assert!(dialled.is_err());
}
