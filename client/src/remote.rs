//! A live event manager, asked over gRPC.
//!
//! Guarantees: every call ends by its deadline; the connection is made when first needed, and made
//! anew when it is lost or the event manager was restarted elsewhere; every error names the address.

use std::error::Error as _;
use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dosmos_proto::access::Access;
use dosmos_proto::transport::{self, Address, Channel};
use dosmos_proto::wire::catalog_request::Detail;
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::{AddressBook, MAX_MESSAGE_BYTES, Malformed, VarId, wire};
use dosmos_trace::query::table::{RankQuery, Ranking, VariableTable};
use dosmos_trace::query::{
    Breakdown, Catalog, Completeness, Filter, Histogram, HistogramQuery, History, HistoryQuery,
    MetaObjects, MetaQuery, QueryError, Records, Status, TraceSource,
};
use dosmos_trace::selection::Selection;
use dosmos_trace::wire as convert;
use prost::Message;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tonic::{Code, Response};

/// How long a call may take, unless told otherwise.
const DEADLINE: Duration = Duration::from_secs(3);

type Client = EventManagerClient<Channel>;

/// A live event manager.
#[derive(Debug)]
pub struct RemoteSource {
    place: Place,
    deadline: Duration,
    /// What it calls itself, once it has said so.
    called: OnceLock<String>,
    /// The connection, if there is one, and where it leads.
    connection: Mutex<Option<(Address, Client)>>,
    /// Bytes of its answers.
    received: AtomicU64,
}

/// Where it is.
#[derive(Debug)]
enum Place {
    Fixed(Address, Access),
    /// Looked up at every connection: it may have been restarted elsewhere.
    Named(String, AddressBook),
}

impl RemoteSource {
    /// The event manager at `address`, to which `access` is shown. Connects when first asked.
    pub fn connect(address: Address, access: impl Into<Access>) -> Self {
        Self::at(Place::Fixed(address, access.into()), OnceLock::new())
    }

    /// The event manager that `book` knows as `name`. Connects when first asked.
    pub fn named(name: impl Into<String>, book: AddressBook) -> Self {
        let name = name.into();
        let called = OnceLock::from(name.clone());
        Self::at(Place::Named(name, book), called)
    }

    fn at(place: Place, called: OnceLock<String>) -> Self {
        Self {
            place,
            deadline: DEADLINE,
            called,
            connection: Mutex::new(None),
            received: AtomicU64::new(0),
        }
    }

    /// The same, with another deadline for each call.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    async fn catalog_in(&self, detail: Detail) -> Result<Catalog, QueryError> {
        let request = wire::CatalogRequest {
            detail: detail.into(),
        };
        let ask = |mut c: Client| async move { c.get_catalog(request).await };
        let answer = self.get(ask).await?;
        if !answer.event_manager.is_empty() {
            // Set before: it has not changed its name.
            let _ = self.called.set(answer.event_manager.clone());
        }
        Catalog::try_from(answer).map_err(|m| self.malformed(&m))
    }

    fn unavailable(&self, why: impl Into<String>) -> QueryError {
        QueryError::Unavailable {
            source_name: self.name(),
            why: why.into(),
        }
    }

    /// The connection there is, or a new one.
    async fn client(&self) -> Result<Client, QueryError> {
        let (address, access) = match &self.place {
            Place::Fixed(address, access) => (address.clone(), access.clone()),
            Place::Named(name, book) => {
                let address = book.resolve(name);
                let unknown = || self.unavailable("has not published its address");
                (address.ok_or_else(unknown)?, book.access().expecting(name))
            }
        };
        let mut connection = self.connection.lock().await;
        if let Some((to, client)) = connection.as_ref()
            && *to == address
        {
            return Ok(client.clone());
        }
        let channel = transport::connect(&address, access, self.deadline)
            .await
            .map_err(|e| self.unavailable(format!("cannot connect: {}", e.reason())))?;
        let client = EventManagerClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        *connection = Some((address, client.clone()));
        Ok(client)
    }

    /// Calls, within the deadline; over a new connection if the one there was turns out dead.
    async fn call<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T, QueryError>
    where
        F: Future<Output = Result<Response<T>, tonic::Status>>,
    {
        let attempt = async {
            let had_connection = self.connection.lock().await.is_some();
            let result = call(self.client().await?).await;
            match result {
                Err(s) if connection_lost(&s) => {
                    *self.connection.lock().await = None;
                    if had_connection {
                        call(self.client().await?)
                            .await
                            .map_err(|s| self.explain(&s))
                    } else {
                        Err(self.explain(&s))
                    }
                }
                other => other.map_err(|s| self.explain(&s)),
            }
        };
        match timeout(self.deadline, attempt).await {
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => Err(self.too_late().await),
        }
    }

    /// Calls for an answer in one message, and counts its bytes.
    async fn get<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T, QueryError>
    where
        T: Message,
        F: Future<Output = Result<Response<T>, tonic::Status>>,
    {
        let answer = self.call(call).await?;
        self.count(answer.encoded_len());
        Ok(answer)
    }

    fn count(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A peer that does not answer in time may never: the next call connects anew.
    async fn too_late(&self) -> QueryError {
        if let Ok(mut connection) = self.connection.try_lock() {
            *connection = None;
        }
        self.unavailable(format!("no answer within {:?}", self.deadline))
    }

    fn explain(&self, status: &tonic::Status) -> QueryError {
        match status.code() {
            Code::InvalidArgument => QueryError::BadQuery(status.message().to_owned()),
            _ if connection_lost(status) => self.unavailable(transport::innermost(status)),
            // A process that is none says nothing else.
            Code::Unimplemented => self.unavailable("is no event manager, or of another version"),
            _ => self.unavailable(status.message()),
        }
    }

    fn malformed(&self, malformed: &Malformed) -> QueryError {
        self.unavailable(format!("sent something {malformed}"))
    }
}

/// Whether it was the connection that failed, not the event manager that refused.
fn connection_lost(status: &tonic::Status) -> bool {
    status.code() == Code::Unavailable || status.source().is_some()
}

#[async_trait]
impl TraceSource for RemoteSource {
    fn name(&self) -> String {
        match (self.called.get(), &self.place) {
            (Some(name), Place::Fixed(address, _)) => format!("{name} at {address}"),
            (None, Place::Fixed(address, _)) => address.to_string(),
            (_, Place::Named(name, book)) => match book.resolve(name) {
                Some(address) => format!("{name} at {address}"),
                None => name.clone(),
            },
        }
    }

    async fn catalog(&self) -> Result<Catalog, QueryError> {
        self.catalog_in(Detail::All).await
    }

    async fn outline(&self, topology: bool) -> Result<Catalog, QueryError> {
        self.catalog_in(match topology {
            true => Detail::NoVariables,
            false => Detail::Growing,
        })
        .await
    }

    async fn rank(&self, query: &RankQuery) -> Result<Ranking, QueryError> {
        let request = wire::RankRequest::from(query.clone());
        let ask = |mut c: Client| {
            let request = request.clone();
            async move { c.rank_variables(request).await }
        };
        Ok(self.get(ask).await?.into())
    }

    async fn describe(&self, variables: &[VarId]) -> Result<VariableTable, QueryError> {
        let request = wire::DescribeRequest {
            variables: variables.iter().map(|v| v.0).collect(),
        };
        let ask = |mut c: Client| {
            let request = request.clone();
            async move { c.describe_variables(request).await }
        };
        let answer = self.get(ask).await?;
        VariableTable::try_from(answer).map_err(|m| self.malformed(&m))
    }

    async fn select(&self, selection: &Selection) -> Result<u32, QueryError> {
        let request = wire::SelectionRequest {
            selection: Some(selection.clone().into()),
        };
        let ask = |mut c: Client| {
            let request = request.clone();
            async move { c.set_selection(request).await }
        };
        Ok(self.get(ask).await?.told)
    }

    fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    async fn meta_objects(&self, query: &MetaQuery) -> Result<MetaObjects, QueryError> {
        let request = wire::MetaRequest::from(query.clone());
        let ask = |mut c: Client| {
            let request = request.clone();
            async move { c.get_meta_objects(request).await }
        };
        Ok(self.get(ask).await?.into())
    }

    async fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError> {
        let request = wire::HistogramRequest::from(query.clone());
        let ask = |mut c: Client| {
            let request = request.clone();
            async move { c.get_histogram(request).await }
        };
        let answer = self.get(ask).await?;
        Histogram::try_from(answer).map_err(|m| self.malformed(&m))
    }

    async fn history(&self, query: &HistoryQuery) -> Result<History, QueryError> {
        let request = wire::HistoryRequest::from(query.clone());
        let ask = |mut c: Client| {
            let request = request.clone();
            async move { c.get_history(request).await }
        };
        let answer = self.get(ask).await?;
        History::try_from(answer).map_err(|m| self.malformed(&m))
    }

    async fn records(&self, filter: &Filter, limit: u64) -> Result<Records, QueryError> {
        let request = wire::RecordsRequest {
            filter: Some(filter.clone().into()),
            limit,
        };
        let ask = |mut c: Client| {
            let request = request.clone();
            async move { c.get_records(request).await }
        };
        let mut stream = self.call(ask).await?;
        let mut answer = Records::default();
        // The deadline holds for each batch: there may be many.
        loop {
            match timeout(self.deadline, stream.message()).await {
                Err(_) => return Err(self.too_late().await),
                Ok(Err(status)) => return Err(self.explain(&status)),
                Ok(Ok(None)) => return Ok(answer),
                Ok(Ok(Some(part))) => {
                    self.count(part.encoded_len());
                    if let Some(columns) = part.records {
                        let batch = convert::decode(&columns).map_err(|m| self.malformed(&m))?;
                        answer.records.extend(batch);
                    }
                    if let Some(lacking) = part.completeness {
                        answer.completeness.merge(&lacking.into());
                    }
                }
            }
        }
    }

    async fn breakdown(&self) -> Result<Breakdown, QueryError> {
        let ask = |mut c: Client| async move { c.get_breakdown(wire::BreakdownRequest {}).await };
        Ok(self.get(ask).await?.into())
    }

    async fn status(&self) -> Result<Status, QueryError> {
        let ask = |mut c: Client| async move { c.get_status(wire::StatusRequest {}).await };
        let answer = self.get(ask).await?;
        Ok(Status {
            event_managers: vec![answer.into()],
            completeness: Completeness::default(),
        })
    }
}
