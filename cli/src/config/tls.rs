//! Who may reach a cluster from other machines, and by which certificates.

use anyhow::Context;
use dosmos_proto::access::{Credentials, ENV_TLS, Files};
use dosmos_proto::transport::Listener;

use super::cluster::Cluster;
use super::file;

/// Whose certificate `dosmos up` shows: it asks event managers to write all they have.
pub const OPERATOR: &str = "operator";

/// Whose certificate a rank shows: which process it will be is not known when it is read.
pub const NODE: &str = "node";

/// What is said beside a cluster file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing: the file decides.
    None,
    /// The environment names certificates.
    Tls,
    /// Addresses may be reached without encryption.
    Insecure,
}

impl Protection {
    /// What the command line (`--insecure`) and the environment say.
    pub fn beside_the_file(insecure: bool) -> Self {
        match Files::from_env() {
            _ if insecure => Self::Insecure,
            Ok(None) => Self::None,
            // What is incomplete is named when it is read.
            Ok(Some(_)) | Err(_) => Self::Tls,
        }
    }
}

/// Refuses an address that others can reach without encryption.
pub(super) fn exposed(what: &str) -> String {
    format!(
        "{what}, reachable from other machines without encryption; make certificates with `dosmos cert init --cluster FILE` \
         and add the [tls] that it prints, or set insecure = true in [defaults] (or --insecure) if that network is private"
    )
}

impl file::Tls {
    pub(super) fn into_files(self) -> Files {
        Files {
            ca: self.ca,
            certificate: self.certificate,
            key: self.key,
        }
    }
}

impl Cluster {
    /// The PEM files of process or person `name`: those of the cluster file, otherwise those of the environment.
    ///
    /// # Errors
    /// If the environment names some of them only.
    pub fn files_of(&self, name: &str) -> anyhow::Result<Option<Files>> {
        Ok(match &self.tls {
            Some(files) => Some(files.of_process(name)),
            None => Files::from_env()?,
        })
    }

    /// The certificates of process or person `name`, if the cluster uses them.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn credentials_of(&self, name: &str) -> anyhow::Result<Option<Credentials>> {
        let Some(files) = self.files_of(name)? else {
            return Ok(None);
        };
        let read = Credentials::read(files);
        let read = read.with_context(|| format!("the certificate of {name} ([tls], {ENV_TLS})"));
        Ok(Some(read?))
    }

    /// Refuses a socket that other machines can reach without encryption, whatever the name was that it was bound by.
    ///
    /// # Errors
    /// If it is one, and neither the cluster file nor the command line allows it.
    pub fn check_exposure(&self, name: &str, listener: &Listener) -> anyhow::Result<()> {
        if listener.is_exposed() && !self.insecure {
            let what = format!("process {name} would listen at {}", listener.address());
            anyhow::bail!(exposed(&what));
        }
        Ok(())
    }
}
