//! `dosmos cert`: the private authority of a cluster file, and what it issues.

mod init;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dosmos_authority::{Folder, Request, Validity};
use dosmos_secure::Identity;

use crate::args::{AuthorityArgs, CertCommand, IssueArgs, RotateArgs};
use crate::config::{Cluster, Protection};
use crate::output;

/// How long an authority is valid, in days.
const AUTHORITY_DAYS: u32 = 3650;
/// Every name of a role.
const ANY: &str = "*";

pub(crate) fn run(command: CertCommand) -> anyhow::Result<()> {
    match command {
        CertCommand::Init(args) => init::run(&args),
        CertCommand::Issue(args) => issue(args),
        CertCommand::Rotate(args) => rotate(&args),
    }
}

/// Processes that listen without encryption are what certificates are made for.
fn read(args: &AuthorityArgs) -> anyhow::Result<Cluster> {
    Ok(Cluster::read_with(&args.cluster, Protection::Insecure)?)
}

/// Where the authority is.
fn folder(args: &AuthorityArgs) -> PathBuf {
    let beside = || args.cluster.parent().unwrap_or(Path::new("")).join("tls");
    args.folder.clone().unwrap_or_else(beside)
}

fn issue(args: IssueArgs) -> anyhow::Result<()> {
    let cluster = read(&args.authority)?;
    let name = if args.any_name {
        ANY
    } else {
        args.name.as_str()
    };
    let mut identities = Vec::new();
    for role in &args.role {
        identities.push(Identity::new(cluster.topology.name(), *role, name)?);
    }
    // It is a folder too.
    if let Some(first) = args.role.first() {
        Identity::new(cluster.topology.name(), *first, &args.name)?;
    }
    let request = Request {
        identities,
        hosts: args.host,
        validity: Validity::days(args.validity.days),
    };
    let authority = Folder::open(&folder(&args.authority), cluster.topology.name())?;
    let made = authority.issue(&args.name, &request)?;
    output::note(&format!(
        "issued {}, valid for {} days; copy this folder to where it is used, and set DOSMOS_TLS to it there",
        made.display(),
        args.validity.days
    ));
    Ok(())
}

fn rotate(args: &RotateArgs) -> anyhow::Result<()> {
    let cluster = read(&args.authority)?;
    let authority = Folder::open(&folder(&args.authority), cluster.topology.name())?;
    if args.forget_former {
        if authority.authorities()? < 2 {
            bail!("there is no former authority: ca.pem has one");
        }
        authority.forget_former()?;
        output::note("only the present authority is trusted now; copy each ca.pem to its host");
        return Ok(());
    }
    if args.authority_too {
        authority.renew_authority(Validity::days(AUTHORITY_DAYS))?;
        output::note(
            "made a new authority; the former one is trusted until `dosmos cert rotate --forget-former`",
        );
    }
    let renewed = authority
        .renew(&args.name, Validity::days(args.validity.days))
        .context("cannot renew")?;
    let names: Vec<&str> = renewed.iter().map(|r| r.name.as_str()).collect();
    output::note(&format!(
        "renewed {}, valid for {} days; processes that run use them for new connections",
        names.join(", "),
        args.validity.days
    ));
    Ok(())
}
