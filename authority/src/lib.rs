//! The private authority of a cluster.
//!
//! * [`Authority`]: signs certificates; no files.
//! * [`Folder`]: an authority and what it issued as PEM files: made, added to, renewed.
//!
//! Invariants: a key is in a file of mode 0600, or in memory; a file is replaced whole or not at all.

mod error;
mod folder;
mod sign;
#[cfg(feature = "testing")]
pub mod testing;

pub use error::Error;
pub use folder::{Folder, Renewed};
pub use sign::{Authority, Issued, Request, Validity};
