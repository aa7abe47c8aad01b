//! What can go wrong with an authority.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// An authority, or what it issues, cannot be made.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is an authority already.
    #[error("{} has an authority already; add certificates with `dosmos cert issue`, renew them with `dosmos cert rotate`, or use another folder", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// There is no authority.
    #[error("{} has no authority (ca.pem, ca-key.pem); make one with `dosmos cert init`", path.display())]
    NoAuthority {
        /// The folder.
        path: PathBuf,
    },
    /// A name is not one of those issued.
    #[error("{name} is not among the certificates in {}; issued are: {issued}", path.display())]
    Unknown {
        /// The folder.
        path: PathBuf,
        /// What was named.
        name: String,
        /// What there is.
        issued: String,
    },
    /// A certificate of this name is there.
    #[error("{} exists; renew it with `dosmos cert rotate`, or choose another name", path.display())]
    Issued {
        /// Its folder.
        path: PathBuf,
    },
    /// A file does not have what it should.
    #[error("{} is damaged: {why}; issue this certificate again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// What was made cannot be used: the key is not that of the authority.
    #[error("what was issued is not accepted: {0}")]
    Unusable(#[from] dosmos_secure::CredentialsError),
    /// A host is neither a name nor an address.
    #[error("{0:?} is neither the name of a host nor an IP address")]
    Host(String),
    /// The certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
