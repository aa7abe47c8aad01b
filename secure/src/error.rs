//! What can be wrong with certificates and handshakes, in words that name the cure.

use std::io;
use std::path::PathBuf;

use rustls::{AlertDescription, CertificateError, Error};

use crate::identity::IdentityError;
use crate::verify::Foreign;

/// PEM files that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file has something else.
    #[error("{} has no {expected} in PEM format", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
        /// What it should have.
        expected: &'static str,
    },
    /// A key that others can read is none.
    #[error("{} can be read by others: chmod 600 it, and issue a new one if somebody may have", file.display())]
    ReadableByOthers {
        /// The file.
        file: PathBuf,
    },
    /// A certificate does not say whose it is.
    #[error("{}: {source}", file.display())]
    Identity {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        source: IdentityError,
    },
    /// Certificate, key and authority do not fit.
    #[error("{} cannot be used: {}", file.display(), reason(source))]
    Tls {
        /// The file of the certificate.
        file: PathBuf,
        /// What is wrong.
        source: Error,
    },
}

/// The same error in words that name the cure, if it is one of TLS.
pub fn explain(error: io::Error) -> io::Error {
    let known = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
    match known.map(reason) {
        Some(text) => io::Error::new(error.kind(), text),
        None => error,
    }
}

/// What an error of TLS means to whoever runs a cluster.
pub(crate) fn reason(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => refused(*alert),
        Error::InvalidCertificate(why) => format!("the other end {}", invalid(why)),
        Error::NoCertificatesPresented => {
            "the other end shows no certificate; set DOSMOS_TLS there to the folder of one".to_owned()
        }
        Error::InvalidMessage(_) => {
            "the other end does not use TLS; add [tls] to its cluster file, or leave it out everywhere".to_owned()
        }
        Error::InconsistentKeys(_) => "the key is not that of the certificate".to_owned(),
        other => format!("TLS failed: {other}"),
    }
}

fn invalid(why: &CertificateError) -> String {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "shows a certificate that has expired; renew it with `dosmos cert rotate`".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "shows a certificate that is not valid yet; compare the clocks of both hosts".to_owned()
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "shows a certificate of another authority than those in our ca.pem".to_owned()
        }
        CertificateError::Other(other) => match other.0.downcast_ref::<Foreign>() {
            Some(foreign) => format!("shows a certificate that is not accepted: {foreign}"),
            None => format!("shows a certificate that is not accepted: {why}"),
        },
        _ => format!("shows a certificate that is not accepted: {why}"),
    }
}

/// An alert of the other end: what it says of our certificate.
fn refused(alert: AlertDescription) -> String {
    use AlertDescription as A;
    let why = match alert {
        A::CertificateExpired => {
            "it has expired or is not valid yet; renew it with `dosmos cert rotate`, compare the clocks of both hosts"
        }
        A::UnknownCA | A::DecryptError => "it is of another authority than those in its ca.pem",
        A::CertificateUnknown => "it is not for its cluster",
        A::CertificateRequired => "there is none; set DOSMOS_TLS to the folder of one",
        _ => return format!("the other end refuses the connection: TLS alert {alert:?}"),
    };
    format!("the other end refuses our certificate: {why}")
}
