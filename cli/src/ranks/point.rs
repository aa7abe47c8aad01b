//! Where rank 0 waits for the others.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use dosmos_proto::transport::Address;

use super::environment::{ENV_RENDEZVOUS, Place};
use crate::config::Launch;

/// Name of the file in a shared run directory.
const FILE: &str = "rendezvous";

/// Where rank 0 waits for the others.
#[derive(Clone, Debug)]
pub(super) enum Point {
    /// It writes its address to this file, which all ranks can read.
    File(PathBuf),
    /// At this `host:port`.
    At(String),
}

impl Point {
    /// What the environment says; else the first host that the launcher lists, if the cluster file names a port; else the run
    /// directory.
    pub(super) fn new(place: &Place, launch: &Launch, run_dir: &Path) -> anyhow::Result<Self> {
        if let Some(text) = &place.rendezvous {
            let _: Address = text.parse().context(ENV_RENDEZVOUS)?;
            return Ok(Self::At(text.clone()));
        }
        Ok(match (launch.port(), place.hosts.first()) {
            (Some(port), Some(host)) => Self::At(format!("{host}:{port}")),
            _ => Self::File(run_dir.join(FILE)),
        })
    }

    /// What rank 0 binds, whose other addresses are at `own`.
    pub(super) fn bind(&self, own: IpAddr, alone: bool) -> Address {
        match self {
            Self::File(_) => Address::Tcp(std::net::SocketAddr::new(own, 0).to_string()),
            Self::At(text) => {
                let port = text.rsplit_once(':').map_or("0", |(_, port)| port);
                // Its name may lead to another network than that of the processes.
                match (alone || own.is_loopback(), own) {
                    (true, own) => Address::Tcp(format!("{own}:{port}")),
                    (false, IpAddr::V4(_)) => Address::Tcp(format!("0.0.0.0:{port}")),
                    (false, IpAddr::V6(_)) => Address::Tcp(format!("[::]:{port}")),
                }
            }
        }
    }

    /// Tells the others that rank 0 waits at `address`.
    pub(super) fn publish(&self, address: &Address) -> anyhow::Result<()> {
        let Self::File(path) = self else {
            return Ok(());
        };
        let temporary = path.with_extension(std::process::id().to_string());
        std::fs::write(&temporary, format!("{address}\n"))
            .and_then(|()| std::fs::rename(&temporary, path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Takes it back.
    pub(super) fn withdraw(&self) {
        if let Self::File(path) = self {
            // Whoever still reads it finds nobody there, which is as true.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Where rank 0 is, as far as is known now.
    pub(super) fn find(&self) -> Option<Address> {
        match self {
            Self::File(path) => std::fs::read_to_string(path).ok()?.trim().parse().ok(),
            Self::At(text) => text.parse().ok(),
        }
    }

    /// What keeps this rank from reaching rank 0, for people.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::File(path) => format!(
                "rank 0 writes its address to {}: if the hosts do not share that directory, set port in [launch], or \
                 {ENV_RENDEZVOUS}=HOST:PORT",
                path.display()
            ),
            Self::At(text) => format!("rank 0 is expected at {text}"),
        }
    }
}
