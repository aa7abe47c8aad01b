//! The grammar of certificates.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dosmos_secure::Role;

use super::help;

#[derive(Debug, Subcommand)]
pub(crate) enum CertCommand {
    /// Make an authority for a cluster file, and a certificate for each of its processes, for an operator and an observer
    #[command(after_help = help::CERT_INIT)]
    Init(InitArgs),
    /// Issue one more certificate: for a person, a tool or a host
    #[command(after_help = help::CERT_ISSUE)]
    Issue(IssueArgs),
    /// Renew certificates: new keys, the same names and roles; processes that run use them for new connections
    #[command(after_help = help::CERT_ROTATE)]
    Rotate(RotateArgs),
}

/// Which authority.
#[derive(Debug, Args)]
pub(crate) struct AuthorityArgs {
    /// Cluster file (TOML)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) cluster: PathBuf,
    /// Folder of the authority and its certificates [default: the folder tls beside the cluster file]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

/// For how long.
#[derive(Debug, Args)]
pub(crate) struct DaysArgs {
    /// Days for which the certificates are valid
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub(crate) days: u32,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
    #[command(flatten)]
    pub(crate) validity: DaysArgs,
}

#[derive(Debug, Args)]
pub(crate) struct IssueArgs {
    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
    /// Name of the person, process or host; a folder of this name is made
    pub(crate) name: String,
    /// What its holder may be: application, memory, event-manager, observer or operator; may be repeated for a host
    #[arg(long, value_name = "ROLE", required = true, value_delimiter = ',')]
    pub(crate) role: Vec<Role>,
    /// Valid under every name of these roles, for hosts on which a launcher decides what runs
    #[arg(long)]
    pub(crate) any_name: bool,
    /// Name or address of its host, for tools that compare it; may be repeated
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    #[command(flatten)]
    pub(crate) validity: DaysArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RotateArgs {
    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
    /// Names of the certificates to renew [default: all]
    pub(crate) name: Vec<String>,
    /// First make a new authority, which is trusted beside the former one
    #[arg(long, conflicts_with_all = ["name", "forget_former"])]
    pub(crate) authority_too: bool,
    /// Renew nothing; trust only the present authority, when every host has what it issued
    #[arg(long, conflicts_with = "name")]
    pub(crate) forget_former: bool,
    #[command(flatten)]
    pub(crate) validity: DaysArgs,
}
