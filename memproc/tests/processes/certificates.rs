//! Who may open a session and who may speak as a memory process, over TLS; what those are told that may not.

use std::collections::HashMap;
use std::time::Duration;

use dosmos_authority::testing::Certificates;
use dosmos_memproc::{Config, Recording, run};
use dosmos_proto::access::{Access, Credentials};
use dosmos_proto::transport::{self, Address, Channel, Listener};
use dosmos_proto::wire::memory_client::MemoryClient;
use dosmos_proto::wire::{self as w, ap_reply, ap_request, peer_message};
use dosmos_proto::{AddressBook, MpId, Nanos, PROTOCOL, Token};
use dosmos_secure::Role;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::{Code, Status};

use crate::topology::topology;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A memory process of a cluster of two, over TCP with TLS.
struct Secured {
    certificates: Certificates,
    topology: std::sync::Arc<dosmos_proto::Topology>,
    address: Address,
    token: Token,
    _dir: tempfile::TempDir,
}

impl Secured {
    async fn start() -> Self {
        Self::start_at(Address::Tcp("127.0.0.1:0".into())).await
    }

    async fn start_at(address: Address) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let topology = topology(&["/a"], 2, 2);
        let certificates = Certificates::new(topology.name());
        let listener = Listener::bind(&address).await.unwrap();
        let address = listener.address().clone();
        let mp0 = certificates.of(Role::Memory, &topology.mp_name(MpId(0)));
        let book = AddressBook::new(HashMap::new(), Some(dir.path())).secured(Some(mp0));
        let token = book.require_token().unwrap();
        let config = Config {
            topology: (*topology).clone(),
            me: MpId(0),
            recording: Recording::default(),
            overrides: Vec::new(),
            default_deadline: Nanos::ZERO,
            in_application: false,
            metrics: None,
        };
        tokio::spawn(run(config, listener, book, std::future::pending()));
        Self {
            certificates,
            topology,
            address,
            token,
            _dir: dir,
        }
    }

    async fn channel(&self, token: Token, shown: Option<Credentials>) -> Result<Channel, String> {
        let access = Access::new(Some(token), shown);
        let channel = transport::connect(&self.address, access, TIMEOUT).await;
        channel.map_err(|e| e.to_string())
    }

    async fn channel_as(&self, role: Role, name: &str) -> Channel {
        let shown = self.certificates.of(role, name);
        self.channel(self.token.clone(), Some(shown)).await.unwrap()
    }

    /// What a session of `name` gets as its first reply.
    async fn session(&self, channel: Channel, name: &str) -> Result<ap_reply::Body, Status> {
        let hello = w::ApHello {
            name: name.into(),
            protocol: PROTOCOL,
            ..w::ApHello::default()
        };
        let hello = w::ApRequest {
            id: 1,
            body: Some(ap_request::Body::Hello(hello)),
            ..w::ApRequest::default()
        };
        let requests = tokio_stream::once(hello).chain(tokio_stream::pending());
        let mut replies = MemoryClient::new(channel)
            .application(requests)
            .await?
            .into_inner();
        let reply = timeout(TIMEOUT, replies.message()).await.unwrap()?;
        Ok(reply.unwrap().body.unwrap())
    }

    /// What memory process `name` gets as the first message of a peer.
    async fn peer(&self, channel: Channel, name: &str) -> Result<peer_message::Body, Status> {
        let hello = w::PeerHello {
            name: name.into(),
            protocol: PROTOCOL,
            topology: self.topology.fingerprint(),
            inbox: String::new(),
        };
        let hello = w::PeerMessage {
            body: Some(peer_message::Body::Hello(hello)),
            ..w::PeerMessage::default()
        };
        let requests = tokio_stream::once(hello).chain(tokio_stream::pending());
        let mut replies = MemoryClient::new(channel)
            .peer(requests)
            .await?
            .into_inner();
        let reply = timeout(TIMEOUT, replies.message()).await.unwrap()?;
        Ok(reply.unwrap().body.unwrap())
    }

    fn mp(&self, i: u32) -> String {
        self.topology.mp_name(MpId(i))
    }
}

#[tokio::test]
async fn a_session_is_for_the_application_process_whose_certificate_it_is() {
    let c = Secured::start().await;
    let ap0 = c.channel_as(Role::Application, "ap0").await;
    let welcome = c.session(ap0, "ap0").await.unwrap();
    assert!(matches!(welcome, ap_reply::Body::Welcome(_)), "{welcome:?}");
    let ap1 = c.channel_as(Role::Application, "ap1").await;
    match c.session(ap1, "ap0").await.unwrap() {
        ap_reply::Body::Error(e) => {
            let said = "application ap1 may not speak as ap0";
            assert!(e.message.contains(said), "{e:?}");
        }
        other => panic!("{other:?}"),
    }
    for role in Role::ALL {
        if role != Role::Application {
            let channel = c.channel_as(role, "ap0").await;
            let status = c.session(channel, "ap0").await.unwrap_err();
            assert_eq!(status.code(), Code::PermissionDenied, "{role}: {status}");
        }
    }
}

#[tokio::test]
async fn a_peer_is_the_memory_process_whose_certificate_it_shows() {
    let c = Secured::start().await;
    let mp1 = c.channel_as(Role::Memory, &c.mp(1)).await;
    let hello = c.peer(mp1.clone(), &c.mp(1)).await.unwrap();
    assert!(matches!(hello, peer_message::Body::Hello(_)), "{hello:?}");
    let other = c.channel_as(Role::Memory, "mp9").await;
    match c.peer(other, &c.mp(1)).await.unwrap() {
        peer_message::Body::Error(e) => {
            assert!(e.message.contains("memory mp9 may not speak as"), "{e:?}");
        }
        other => panic!("{other:?}"),
    }
    for role in Role::ALL {
        if role != Role::Memory {
            let channel = c.channel_as(role, &c.mp(1)).await;
            let status = c.peer(channel, &c.mp(1)).await.unwrap_err();
            assert_eq!(status.code(), Code::PermissionDenied, "{role}: {status}");
        }
    }
}

#[tokio::test]
async fn neither_is_reached_with_a_bad_certificate_or_another_token() {
    let c = Secured::start().await;
    for (role, name) in [
        (Role::Application, "ap0".to_owned()),
        (Role::Memory, c.mp(1)),
    ] {
        for (shown, why) in c.certificates.refused(role, &name) {
            let refused = c.channel(c.token.clone(), Some(shown)).await.unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let shown = c.certificates.of(role, &name);
        let foreign = Token::generate().unwrap();
        let channel = c.channel(foreign, Some(shown)).await.unwrap();
        let status = match role {
            Role::Application => c.session(channel, &name).await.map(drop),
            _ => c.peer(channel, &name).await.map(drop),
        };
        let status = status.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{status}");
        let said = match c.channel(c.token.clone(), None).await {
            Ok(channel) => {
                let status = c.session(channel, &name).await.unwrap_err();
                transport::innermost(&status)
            }
            Err(said) => said,
        };
        assert!(said.contains("this process takes TLS only"), "{said}");
    }
}

/// Over a Unix socket, files have permissions: it takes no certificate, and the token as ever.
#[tokio::test]
async fn a_unix_socket_takes_no_certificate() {
    let scratch = tempfile::tempdir().unwrap();
    let c = Secured::start_at(Address::Unix(scratch.path().join("s"))).await;
    let channel = c.channel(c.token.clone(), None).await.unwrap();
    let welcome = c.session(channel, "ap0").await.unwrap();
    assert!(matches!(welcome, ap_reply::Body::Welcome(_)), "{welcome:?}");
    let foreign = Token::generate().unwrap();
    let channel = c.channel(foreign, None).await.unwrap();
    let status = c.session(channel, "ap0").await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated, "{status}");
}
