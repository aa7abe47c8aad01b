//! Connections to workers: made as all connections of dosmos are, kept as long as they work.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{ChannelResolver, GetWorkerInfoRequest, WorkerChannel};
use dosmos_proto::AddressBook;
use dosmos_proto::transport::{self, Address};
use tokio::sync::Mutex;
use url::Url;

/// How long a worker may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(2);

/// Connections by where they lead.
#[derive(Clone)]
pub(crate) struct Channels {
    book: AddressBook,
    open: Arc<Mutex<HashMap<Url, BoxCloneSyncChannel>>>,
}

impl Channels {
    /// None yet. Every worker is shown what `book` has to show: the token of the run and, over TCP, a certificate if there is one.
    pub(crate) fn new(book: AddressBook) -> Self {
        Self {
            book,
            open: Arc::default(),
        }
    }

    async fn channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        if let Some(open) = self.open.lock().await.get(url) {
            return Ok(open.clone());
        }
        let address = address_of(url);
        let address = address.ok_or_else(|| exec_datafusion_err!("{url} is not an address"))?;
        let access = match url.fragment() {
            Some(event_manager) => self.book.access().expecting(event_manager),
            None => {
                return Err(exec_datafusion_err!(
                    "{url} does not say whose worker it is"
                ));
            }
        };
        let made = transport::connect(&address, access, CONNECT).await;
        let made = made.map_err(|e| exec_datafusion_err!("{e}"))?;
        let channel = BoxCloneSyncChannel::new(made);
        self.open.lock().await.insert(url.clone(), channel.clone());
        Ok(channel)
    }

    /// Whether a worker answers within `deadline`.
    pub(crate) async fn answers(&self, url: &Url, deadline: Duration) -> bool {
        let asked = async {
            let mut worker = create_worker_client(self.channel(url).await?);
            worker.get_worker_info(GetWorkerInfoRequest {}).await
        };
        let answered = matches!(tokio::time::timeout(deadline, asked).await, Ok(Ok(_)));
        if !answered {
            self.open.lock().await.remove(url);
        }
        answered
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        self.channel(url).await.map(create_worker_client)
    }
}

/// The worker beside an event manager as the engine names workers: its address, and whose certificate it has to have.
pub(crate) fn url_of(address: &Address, event_manager: &str) -> Option<Url> {
    let mut url = match address {
        Address::Tcp(text) => Url::parse(&format!("http://{text}")).ok(),
        Address::Unix(path) => Url::from_file_path(path).ok(),
    }?;
    url.set_fragment(Some(event_manager));
    Some(url)
}

fn address_of(url: &Url) -> Option<Address> {
    match url.scheme() {
        "file" => url.to_file_path().ok().map(Address::Unix),
        _ => Some(Address::Tcp(format!(
            "{}:{}",
            url.host_str()?,
            url.port_or_known_default()?
        ))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests may
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_after_it_was_a_url() {
        for text in [
            "127.0.0.1:80",
            "[::1]:7000",
            "host.example:443",
            "unix:/run dir/emp0.sock.sql",
        ] {
            let address: Address = text.parse().unwrap();
            let url = url_of(&address, "emp-0").unwrap();
            assert_eq!(address_of(&url), Some(address), "{text}");
            assert_eq!(url.fragment(), Some("emp-0"), "{text}");
        }
    }
}
