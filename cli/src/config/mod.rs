//! The cluster file: which processes there are, how they group, what is recorded.
//!
//! [`Cluster::read`] gives a cluster that is consistent, or every error found in the file, each with its place and
//! the cure. [`apply_patch`] changes the text of one as a finding advises.

mod bind;
mod build;
mod cluster;
mod file;
mod launch;
mod names;
mod patch;
mod read;
#[cfg(test)]
mod tests;
mod tls;

pub use bind::Bind;
pub use cluster::{Cluster, Listen, Metrics};
pub use launch::{Launch, Post, Role, Seat};
pub use patch::{PatchError, apply_patch};
pub use read::ConfigErrors;
pub use tls::{NODE, OPERATOR, Protection};
