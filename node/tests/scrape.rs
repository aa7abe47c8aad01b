//! A real scrape over a socket, parsed; and clients that do not behave.

#![allow(clippy::unwrap_used)] // a test may

use std::collections::{BTreeMap, HashMap};

use dosmos_authority::testing::Certificates;
use dosmos_node::metrics::{AccessCounts, MetricsListener, Page, serve};
use dosmos_proto::access::Credentials;
use dosmos_proto::{AddressBook, ApId, MpId, Nanos, ObjectId};
use dosmos_secure::{Role, SecureSocket};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn record(op: Op, origin: Origin, wait: u64) -> Record {
    Record {
        start: Nanos(1),
        duration: Nanos(wait + 10),
        wait: Nanos(wait),
        service: Nanos(0),
        op,
        side: Side::Requester,
        origin,
        flags: Flags::default(),
        object: ObjectId::default(),
        ap: ApId(0),
        mp: MpId(0),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: 1,
        range: (0, 0),
    }
}

fn page() -> Page {
    let mut counts = AccessCounts::default();
    for _ in 0..3 {
        counts.count(&record(Op::Read, Origin::Inter, 0));
    }
    counts.count(&record(Op::Acquire, Origin::Local, 0));
    counts.count(&record(Op::Acquire, Origin::Local, 5_000_000));
    counts.count(&record(Op::Acquire, Origin::Intra, 900_000_000_000));
    counts.count(&Record {
        flags: Flags {
            failed: true,
            ..Flags::default()
        },
        ..record(Op::Read, Origin::Inter, 0)
    });
    let mut page = Page::new("dosmos_mp", r#"a "strange\name"#, "mp");
    page.counter("requests", "Requests", 1e15);
    page.gauge("copies", "Copies", 7.0);
    counts.add_to(&mut page);
    page
}

/// Asks, and returns the head and the body of the answer.
async fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Samples by name and labels, as in `name{a="b"} 1`.
fn samples(text: &str) -> HashMap<String, f64> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(sample).collect()
}

#[tokio::test]
async fn a_scrape_gives_every_figure_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let book = AddressBook::new(HashMap::new(), Some(dir.path()));
    let listener = MetricsListener::publish("mp0", "127.0.0.1:0", &book)
        .await
        .unwrap();
    let server = tokio::spawn(serve(listener, page));
    let address = book.resolve("mp0.metrics").unwrap().to_string();
    let get = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let (head, body) = ask(&address, get).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("application/openmetrics-text"), "{head}");
    assert!(body.ends_with("# EOF\n"));
    assert!(body.contains("# TYPE dosmos_mp_lock_wait_seconds histogram\n"));
    let samples = samples(&body);
    let common = r#"process="a \"strange\\name",role="mp""#;
    let of = |name: &str, labels: &str| {
        let key = format!("dosmos_mp_{name}{{{common}{labels}}}");
        *samples
            .get(&key)
            .unwrap_or_else(|| panic!("no {key} in {body}"))
    };
    assert_eq!(of("requests_total", ""), 1e15);
    assert_eq!(of("copies", ""), 7.0);
    let accesses = |origin, op| {
        of(
            "accesses_total",
            &format!(r#",origin="{origin}",op="{op}""#),
        )
    };
    assert_eq!(accesses("inter", "read"), 3.0);
    assert_eq!(accesses("local", "acquire"), 2.0);
    assert_eq!(accesses("local", "barrier"), 0.0);
    assert_eq!(of("lock_wait_seconds_count", ""), 3.0);
    assert!((of("lock_wait_seconds_sum", "") - 900.005).abs() < 1e-9);

    // Buckets are cumulative: what waited 5 ms is in those from 17 ms on, 15 minutes only in the last.
    let mut buckets = BTreeMap::new();
    for (key, value) in &samples {
        if let Some((_, edge)) = key.split_once("bucket{") {
            let edge = edge.replace("role=", "");
            let edge = edge.split("le=\"").nth(1).unwrap();
            let edge = edge.split('"').next().unwrap().replace("+Inf", "inf");
            buckets.insert((edge.parse::<f64>().unwrap() * 1e9) as u64, *value);
        }
    }
    let counts: Vec<f64> = buckets.values().copied().collect();
    let expected: Vec<f64> = (0..15)
        .map(|i| match i {
            0..=6 => 1.0,
            7..=13 => 2.0,
            _ => 3.0,
        })
        .collect();
    assert_eq!(counts, expected, "{buckets:?}");
    server.abort();
}

#[tokio::test]
async fn who_asks_for_anything_else_is_told_so_and_nobody_is_kept_from_asking() {
    let listener = MetricsListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.address().to_string();
    let server = tokio::spawn(serve(listener, page));
    // These say nothing, or nonsense; their places are not all there are.
    let mut silent = Vec::new();
    for i in 0..10 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        if i % 2 == 0 {
            stream.write_all(b"\x16\x03\x01 not http").await.unwrap();
        }
        silent.push(stream);
    }
    let with = |line: &str| format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (line, status) in [
        ("GET /", "404"),
        ("GET /metricsx", "404"),
        ("POST /metrics", "405"),
        ("GET /metrics", "200"),
        ("HEAD /metrics", "200"),
    ] {
        let (head, body) = ask(&address, &with(line)).await;
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}")),
            "{line}: {head}"
        );
        assert_eq!(body.is_empty(), line.starts_with("HEAD"), "{line}");
    }
    drop(silent);
    server.abort();
}

#[tokio::test]
async fn half_requests_do_not_block_the_page() {
    let listener = MetricsListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.address().to_string();
    let server = tokio::spawn(serve(listener, page));
    let mut half = Vec::new();
    for _ in 0..145 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET /metr").await.unwrap();
        half.push(stream);
    }
    let whole = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let (head, _) = ask(&address, whole).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // The page was answered because the oldest made room, not because they were waited for: the last of
    // them is still open.
    let last = half.last().unwrap();
    let mut byte = [0];
    let open = last.try_read(&mut byte).unwrap_err();
    assert_eq!(open.kind(), std::io::ErrorKind::WouldBlock);
    server.abort();
}

/// Asks over TLS; the status of the answer, or why there is none.
async fn ask_securely(address: &str, credentials: &Credentials) -> Result<String, String> {
    let stream = TcpStream::connect(address).await.unwrap();
    // Whoever serves HTTP/1 says nothing before it is asked, so this does not wait for it as `dial` does.
    let mut socket = SecureSocket::dial_silent(stream, credentials)
        .await
        .map_err(|e| e.to_string())?;
    let get = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let asked = socket.write_all(get.as_bytes()).await;
    asked.map_err(|e| e.to_string())?;
    socket.flush().await.map_err(|e| e.to_string())?;
    let mut answer = String::new();
    let read = socket.read_to_string(&mut answer).await;
    read.map_err(|e| e.to_string())?;
    Ok(answer)
}

#[tokio::test]
async fn over_tls_the_page_is_for_observers_and_operators() {
    let certificates = Certificates::new("demo");
    let mp0 = certificates.of(Role::Memory, "mp0");
    let listener = MetricsListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.address().to_string();
    let server = tokio::spawn(serve(listener.secured(Some(mp0)), page));
    for role in Role::ALL {
        let shown = certificates.of(role, "x");
        let answer = ask_securely(&address, &shown).await.unwrap();
        match role {
            Role::Observer | Role::Operator => {
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
            _ => {
                assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
                assert!(answer.contains("may not read metrics"), "{answer}");
                assert!(!answer.contains("dosmos_mp_requests"), "{answer}");
            }
        }
    }
    for (shown, why) in certificates.refused(Role::Observer, "alice") {
        let refused = ask_securely(&address, &shown).await.unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let whole = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let (head, body) = ask(&address, whole).await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    assert!(body.contains("takes TLS only"), "{body}");
    server.abort();
}
