//! Processes of one host that use TCP addresses: they meet at a Unix socket where the one that listens takes that.

#![allow(clippy::unwrap_used)] // a test may

use std::time::Duration;

use dosmos_authority::testing::Certificates;
use dosmos_proto::Token;
use dosmos_proto::access::{Access, Credentials};
use dosmos_proto::direct::{APPLICATION, Direct, First, first};
use dosmos_proto::guard::Role;
use dosmos_proto::transport::{self, Address, Dialled, Listener};
use dosmos_proto::wire::{ApReply, ApRequest};
use tokio::io::AsyncWriteExt;
use tokio_stream::StreamExt;
use tonic::Status;

const DEADLINE: Duration = Duration::from_secs(20);

async fn listener() -> Listener {
    let any = Address::Tcp("127.0.0.1:0".to_owned());
    Listener::bind(&any).await.unwrap()
}

/// Dials `listener` for a call, with `access`. Whether it is reached on this host.
async fn is_met(listener: &mut Listener, access: impl Into<Access>) -> bool {
    let address = listener.address().clone();
    let dial = transport::dial(&address, access, DEADLINE, None);
    let accept = async {
        let mut accepted = listener.next().await.unwrap().unwrap();
        accepted.has_one_call().await.unwrap();
        // A dialled connection over TLS is there when something comes.
        let _ = accepted.write_all(b"hello").await;
        let _ = accepted.flush().await;
    };
    let (dialled, ()) = tokio::join!(dial, accept);
    dialled.unwrap().is_on_this_host()
}

const NOTHING: Option<Token> = None;

/// What a memory process has, and what an application process shows it.
fn certified() -> (Credentials, Access) {
    let certificates = Certificates::new("demo");
    let ap0 = certificates.of(Role::Application, "ap0");
    let access = Access::new(None, Some(ap0));
    (certificates.of(Role::Memory, "mp0"), access)
}

#[tokio::test]
async fn who_listens_over_tcp_alone_is_reached_over_tcp() {
    assert!(!is_met(&mut listener().await, NOTHING).await);
}

#[tokio::test]
async fn who_takes_it_is_reached_at_a_unix_socket() {
    let mut listener = listener().await;
    listener.open_to_same_host().unwrap();
    assert!(is_met(&mut listener, NOTHING).await);
}

#[tokio::test]
async fn with_certificates_too() {
    let (mp0, ap0) = certified();
    let mut listener = listener().await.secured(Some(mp0));
    assert!(!is_met(&mut listener, ap0.clone()).await);
    listener.open_to_same_host().unwrap();
    assert!(is_met(&mut listener, ap0).await);
}

#[tokio::test]
async fn who_has_no_certificate_meets_nobody_who_asks_for_one_and_nobody_else_who_has_one() {
    let (mp0, ap0) = certified();
    for (owned, access) in [(Some(mp0), NOTHING.into()), (None, ap0)] {
        let mut listener = listener().await.secured(owned);
        listener.open_to_same_host().unwrap();
        let address = listener.address().clone();
        let dialled = transport::dial(&address, access, DEADLINE, None);
        // Over TCP, where each is told what is missing.
        tokio::select! {
            accepted = listener.next() => {
                let accepted = format!("{:?}", accepted.unwrap().unwrap());
                assert!(accepted.contains("Tcp(") || accepted.contains("Tls("), "{accepted}");
            }
            dialled = dialled => assert!(!dialled.unwrap().is_on_this_host()),
        }
    }
}

#[tokio::test]
async fn the_name_is_free_again_when_its_process_has_ended() {
    let mut one = listener().await;
    one.open_to_same_host().unwrap();
    let address = one.address().clone();
    drop(one);
    let mut next = Listener::bind(&address).await.unwrap();
    next.open_to_same_host().unwrap();
    assert!(is_met(&mut next, NOTHING).await);
}

#[tokio::test]
async fn a_call_goes_over_it_and_connections_for_anything_do_not() {
    let mut listener = listener().await;
    listener.open_to_same_host().unwrap();
    let address = listener.address().clone();
    // A connection for anything, as questions have.
    let channel = tokio::spawn({
        let address = address.clone();
        async move { transport::connect(&address, NOTHING, DEADLINE).await }
    });
    let over_tcp = listener.next().await.unwrap().unwrap();
    assert!(format!("{over_tcp:?}").contains("Tcp"), "{over_tcp:?}");
    // A call.
    let dialled = transport::dial(&address, NOTHING, DEADLINE, None);
    let (dialled, accepted) = tokio::join!(dial_and_ask(dialled), listener.next());
    let accepted = accepted.unwrap().unwrap();
    let First::Call(call) = first(accepted, None).await.unwrap() else {
        panic!("it is a call");
    };
    assert_eq!(call.path(), APPLICATION);
    drop((dialled, channel));
}

type Asked = Direct<tokio_stream::Iter<std::vec::IntoIter<Result<ApRequest, Status>>>, ApReply>;

async fn dial_and_ask(
    dialled: impl Future<Output = Result<Dialled, transport::ConnectError>>,
) -> tokio::task::JoinHandle<Result<(), Status>> {
    let requests = tokio_stream::iter(vec![Ok(ApRequest::default())]);
    let mut call: Asked = dialled.await.unwrap().call(APPLICATION, requests);
    tokio::spawn(async move { call.opened().await })
}
