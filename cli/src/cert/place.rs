//! Which authority is meant: that of a cluster file.

use std::path::{Path, PathBuf};

use crate::args::AuthorityArgs;
use crate::config::{Cluster, Protection};

/// How long an authority is valid, in days.
pub(super) const AUTHORITY_DAYS: u32 = 3650;

/// Processes that listen without encryption are what certificates are made for.
pub(super) fn read(args: &AuthorityArgs) -> anyhow::Result<Cluster> {
    Ok(Cluster::read_with(&args.cluster, Protection::Insecure)?)
}

/// Where the authority is.
pub(super) fn folder(args: &AuthorityArgs) -> PathBuf {
    let beside = || args.cluster.parent().unwrap_or(Path::new("")).join("tls");
    args.folder.clone().unwrap_or_else(beside)
}
