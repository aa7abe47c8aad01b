//! Which certificates may call what, method by method; what those are told that may not.

use std::pin::Pin;

use dosmos_authority::testing::Certificates;
use dosmos_proto::access::{Access, Credentials};
use dosmos_proto::transport::{self, Channel};
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::wire::{self, exchange_request, ingest_request};
use dosmos_proto::{PROTOCOL, Token};
use dosmos_secure::Role;
use tonic::{Code, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use crate::common::{DEADLINE, Emp, config, hello};

type Calling = Pin<Box<dyn Future<Output = Result<(), Status>>>>;

/// A method, who may call it, and a call that a good caller is not refused.
struct Method {
    name: &'static str,
    roles: &'static [Role],
    call: fn(Channel) -> Calling,
}

const LOOKING: &[Role] = &[Role::Observer, Role::Operator];

macro_rules! method {
    ($name:ident, $roles:expr, $request:expr) => {
        Method {
            name: stringify!($name),
            roles: $roles,
            call: |channel| {
                Box::pin(async move {
                    let mut client = EventManagerClient::new(channel);
                    client.$name($request).await.map(drop)
                })
            },
        }
    };
}

fn methods() -> Vec<Method> {
    let mut methods = vec![
        method!(get_catalog, LOOKING, wire::CatalogRequest::default()),
        method!(get_meta_objects, LOOKING, wire::MetaRequest::default()),
        method!(rank_variables, LOOKING, wire::RankRequest::default()),
        method!(
            describe_variables,
            LOOKING,
            wire::DescribeRequest::default()
        ),
        method!(get_histogram, LOOKING, wire::HistogramRequest::default()),
        method!(get_history, LOOKING, wire::HistoryRequest::default()),
        method!(get_status, LOOKING, wire::StatusRequest {}),
        method!(get_breakdown, LOOKING, wire::BreakdownRequest {}),
        method!(get_records, LOOKING, wire::RecordsRequest::default()),
        method!(flush, &[Role::Operator], wire::FlushRequest {}),
        method!(
            set_selection,
            &[Role::Operator],
            wire::SelectionRequest::default()
        ),
    ];
    methods.push(Method {
        name: "ingest",
        roles: &[Role::Memory],
        call: |channel| Box::pin(ingest_as(channel, "mp0")),
    });
    methods.push(Method {
        name: "exchange",
        roles: &[Role::EventManager],
        call: |channel| Box::pin(exchange_as(channel, "emp1")),
    });
    methods.push(Method {
        name: "health",
        roles: LOOKING,
        call: |channel| {
            Box::pin(async move {
                let request = tonic_health::pb::HealthCheckRequest::default();
                HealthClient::new(channel).check(request).await.map(drop)
            })
        },
    });
    methods.push(Method {
        name: "reflection",
        roles: LOOKING,
        call: |channel| {
            Box::pin(async move {
                let mut client = ServerReflectionClient::new(channel);
                let call = client.server_reflection_info(tokio_stream::empty());
                call.await.map(drop)
            })
        },
    });
    methods
}

async fn ingest_as(channel: Channel, name: &str) -> Result<(), Status> {
    let body = Some(ingest_request::Body::Hello(hello(name, 7)));
    let requests = tokio_stream::once(wire::IngestRequest { body });
    let mut client = EventManagerClient::new(channel);
    let mut replies = client.ingest(requests).await?.into_inner();
    replies.message().await.map(drop)
}

async fn exchange_as(channel: Channel, name: &str) -> Result<(), Status> {
    let body = Some(exchange_request::Body::Hello(wire::ExchangeHello {
        event_manager: name.into(),
        protocol: PROTOCOL,
    }));
    let requests = tokio_stream::once(wire::ExchangeRequest { body });
    let mut client = EventManagerClient::new(channel);
    let mut replies = client.exchange(requests).await?.into_inner();
    replies.message().await.map(drop)
}

/// Who a process or person with this role is here.
fn name_of(role: Role) -> &'static str {
    match role {
        Role::Application => "ap0",
        Role::Memory => "mp0",
        Role::EventManager => "emp1",
        Role::Observer => "alice",
        Role::Operator => "bob",
    }
}

struct Secured {
    certificates: Certificates,
    emp: Emp,
    _dir: tempfile::TempDir,
}

impl Secured {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let certificates = Certificates::new("test");
        let emp0 = certificates.of(Role::EventManager, "emp0");
        let config = config(0, dir.path().join("s"));
        let emp = Emp::start_as(dir.path(), config, Some(emp0)).await;
        Self {
            certificates,
            emp,
            _dir: dir,
        }
    }

    async fn channel(
        &self,
        token: Option<Token>,
        credentials: Option<Credentials>,
    ) -> Result<Channel, String> {
        let access = Access::new(token, credentials).expecting("emp0");
        let channel = transport::connect(&self.emp.address, access, DEADLINE).await;
        channel.map_err(|e| e.to_string())
    }

    async fn channel_as(&self, role: Role) -> Channel {
        let credentials = self.certificates.of(role, name_of(role));
        let token = Some(self.emp.token.clone());
        self.channel(token, Some(credentials)).await.unwrap()
    }
}

fn is_refused(result: &Result<(), Status>) -> bool {
    result.as_ref().is_err_and(|status| {
        matches!(
            status.code(),
            Code::PermissionDenied | Code::Unauthenticated
        )
    })
}

#[tokio::test]
async fn each_method_is_for_its_roles_alone() {
    let secured = Secured::start().await;
    for role in Role::ALL {
        let channel = secured.channel_as(role).await;
        for method in methods() {
            let result = (method.call)(channel.clone()).await;
            let may = method.roles.contains(&role);
            let name = method.name;
            assert_eq!(is_refused(&result), !may, "{role} calls {name}: {result:?}");
            if let (false, Err(status)) = (may, &result) {
                let said = status.message();
                assert!(
                    said.contains(&format!("{role} {} may not", name_of(role))),
                    "{said}"
                );
                assert!(said.contains("dosmos cert issue"), "{said}");
            }
        }
    }
}

#[tokio::test]
async fn each_method_asks_for_the_token_of_this_run_too() {
    let secured = Secured::start().await;
    let foreign = Token::generate().unwrap();
    for method in methods() {
        for role in method.roles {
            for token in [None, Some(foreign.clone())] {
                let credentials = secured.certificates.of(*role, name_of(*role));
                let channel = secured.channel(token, Some(credentials)).await.unwrap();
                let status = (method.call)(channel).await.unwrap_err();
                assert_eq!(
                    status.code(),
                    Code::Unauthenticated,
                    "{}: {status}",
                    method.name
                );
                assert!(status.message().contains("DOSMOS_TOKEN_FILE"), "{status}");
            }
        }
    }
}

#[tokio::test]
async fn no_method_is_reached_without_a_good_certificate() {
    let secured = Secured::start().await;
    let token = || Some(secured.emp.token.clone());
    for method in methods() {
        for role in method.roles {
            for (credentials, why) in secured.certificates.refused(*role, name_of(*role)) {
                let refused = secured.channel(token(), Some(credentials)).await;
                let refused = refused.unwrap_err();
                assert!(refused.contains(why), "{}: {refused}", method.name);
            }
        }
        // Without TLS: there or at the call it is said what is missing.
        let said = match secured.channel(token(), None).await {
            Ok(channel) => {
                let status = (method.call)(channel).await.unwrap_err();
                transport::innermost(&status)
            }
            Err(said) => said,
        };
        assert!(
            said.contains("this process takes TLS only"),
            "{}: {said}",
            method.name
        );
    }
}

#[tokio::test]
async fn nobody_reports_or_exchanges_under_the_name_of_another() {
    let secured = Secured::start().await;
    let memory = secured.channel_as(Role::Memory).await;
    let status = ingest_as(memory, "mp1").await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    let said = status.message();
    assert!(said.contains("memory mp0 may not speak as mp1"), "{said}");
    let emp1 = secured.channel_as(Role::EventManager).await;
    let status = exchange_as(emp1, "emp0").await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    let said = status.message();
    assert!(
        said.contains("event-manager emp1 may not speak as emp0"),
        "{said}"
    );
}
