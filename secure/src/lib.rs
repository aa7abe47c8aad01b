//! Who is at the other end of a connection.
//!
//! * [`identity`]: what a certificate says: cluster, role and name, in a URI among its names.
//! * [`files`]: the three PEM files of a process, from a folder, the environment or a cluster file.
//! * [`credentials`]: those files, read again when they change.
//! * [`peer`]: what the other end has shown, and what it may do.
//! * [`socket`]: a connection over TLS, accepted or dialled.
//! * [`same_host`]: the same certificates over a Unix socket, without encryption.
//!
//! Invariants: both ends always show certificates of one cluster, signed by an authority that both trust; a private key is
//! never printed, logged or written. This crate knows no messages and no services.

pub mod credentials;
pub mod error;
pub mod files;
mod handshake;
pub mod identity;
pub mod peer;
mod plain;
pub mod same_host;
pub mod socket;
mod verify;

pub use credentials::Credentials;
pub use error::{CredentialsError, explain};
pub use files::Files;
pub use identity::{Identities, Identity, Role};
pub use peer::{Denied, Peer};
pub use socket::SecureSocket;
