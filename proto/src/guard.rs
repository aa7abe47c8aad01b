//! Who may call what: the token of the run first, then the role that the certificate of a caller says.
//!
//! A method that is not listed here is refused to whoever has a certificate.

pub use dosmos_secure::{Denied, Peer, Role};
use tonic::codegen::http::{Extensions, HeaderMap, Request as HttpRequest};
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::token::RequireToken;

const LOOKING: &[Role] = &[Role::Observer, Role::Operator];
/// Who looks, and the event managers, which give each other their parts of an answer.
const ANSWERING: &[Role] = &[Role::Observer, Role::Operator, Role::EventManager];

/// Which roles may call a method, by its path `/PACKAGE.SERVICE/METHOD`.
fn roles(path: &str) -> &'static [Role] {
    let Some((service, method)) = path.trim_start_matches('/').split_once('/') else {
        return &[];
    };
    match (service, method) {
        ("dosmos.v1.Memory", "Application") => &[Role::Application],
        ("dosmos.v1.Memory", "Peer") | ("dosmos.v1.EventManager", "Ingest") => &[Role::Memory],
        ("dosmos.v1.EventManager", "Exchange") => &[Role::EventManager],
        ("dosmos.v1.Rendezvous", "Attend") => {
            &[Role::Application, Role::Memory, Role::EventManager]
        }
        ("dosmos.v1.EventManager", "SetSelection" | "Flush") => &[Role::Operator],
        (
            "dosmos.v1.EventManager",
            "GetCatalog" | "GetMetaObjects" | "RankVariables" | "DescribeVariables"
            | "GetHistogram" | "GetHistory" | "GetStatus" | "GetBreakdown" | "GetRecords",
        ) => LOOKING,
        // The workers of a query in SQL: the service of the engine in `sql/`.
        ("worker.WorkerService", "ExecuteTask") => ANSWERING,
        ("worker.WorkerService", "CoordinatorChannel" | "GetWorkerInfo") => LOOKING,
        ("grpc.health.v1.Health" | "grpc.reflection.v1.ServerReflection", _) => LOOKING,
        _ => &[],
    }
}

/// The method that a request calls, where an interceptor can see it.
#[derive(Clone, Debug)]
struct Called(String);

/// Notes the method that a request calls.
pub(crate) fn note_method<B>(mut request: HttpRequest<B>) -> HttpRequest<B> {
    let called = Called(request.uri().path().to_owned());
    request.extensions_mut().insert(called);
    request
}

/// Refuses calls without the token of the run, and those that the caller's certificate does not allow.
#[derive(Clone, Debug)]
pub struct Guard(RequireToken);

impl Guard {
    pub(crate) fn new(token: RequireToken) -> Self {
        Self(token)
    }
}

impl Guard {
    /// As for every call, for one that no server of the library sees.
    ///
    /// # Errors
    /// What the caller is told, if it may not call.
    pub fn admit(&mut self, path: &str, headers: HeaderMap, peer: Peer) -> Result<(), Status> {
        let metadata = MetadataMap::from_headers(headers);
        let mut request = Request::from_parts(metadata, Extensions::default(), ());
        request.extensions_mut().insert(Called(path.to_owned()));
        request.extensions_mut().insert(peer);
        self.call(request).map(|_| ())
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let request = self.0.call(request)?;
        let path = request.extensions().get::<Called>();
        let path = path.map_or("", |called| called.0.as_str());
        let method = path.rsplit('/').next().unwrap_or_default();
        let peer = peer(request.extensions())?;
        let may = peer.has_one_of(roles(path), &format!("call {}", method.escape_debug()));
        may.map_err(|e| denied(&e))?;
        Ok(request)
    }
}

/// Whether `peer` may do `what`, which takes who looks.
///
/// # Errors
/// If it may not.
pub fn may_look(peer: &Peer, what: &str) -> Result<(), Denied> {
    peer.has_one_of(LOOKING, what)
}

/// Who called.
///
/// # Errors
/// If the connection does not say.
pub fn peer(extensions: &Extensions) -> Result<Peer, Status> {
    let peer = extensions.get::<Peer>().cloned();
    peer.ok_or_else(|| Status::unauthenticated("it is not known who is at the other end"))
}

/// What a caller is told that may not do this.
pub fn denied(denied: &Denied) -> Status {
    Status::permission_denied(denied.to_string())
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn only_who_looks_begins_a_query_and_only_event_managers_take_part_in_it() {
        let method = |method: &str| roles(&format!("/worker.WorkerService/{method}"));
        for begins in ["CoordinatorChannel", "GetWorkerInfo"] {
            assert_eq!(method(begins), [Role::Observer, Role::Operator], "{begins}");
        }
        for other in [Role::Application, Role::Memory] {
            assert!(!method("ExecuteTask").contains(&other), "{other}");
        }
        assert!(method("ExecuteTask").contains(&Role::EventManager));
    }

    #[test]
    fn every_method_of_the_contract_has_its_roles() {
        let set = FileDescriptorSet::decode(crate::FILE_DESCRIPTOR_SET).unwrap();
        let mut methods = 0;
        for file in set.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    assert!(!roles(&path).is_empty(), "nobody may call {path}");
                    methods += 1;
                }
            }
        }
        assert!(methods >= 13, "{methods}");
        let unknown = [
            "",
            "/",
            "/dosmos.v1.Memory/Other",
            "/other/Flush",
            "/worker.WorkerService/Other",
        ];
        for unknown in unknown {
            assert!(roles(unknown).is_empty(), "{unknown}");
        }
    }
}
