//! `dosmos cert`: the private authority of a cluster file, and what it issues.

mod init;
mod place;

use anyhow::{Context, bail};
use dosmos_authority::{Folder, Request, Validity};
use dosmos_secure::Identity;

use crate::args::{CertCommand, IssueArgs, RotateArgs};
use crate::output;
use place::{AUTHORITY_DAYS, folder, read};

/// Every name of a role.
const ANY: &str = "*";

pub(crate) fn run(command: CertCommand) -> anyhow::Result<()> {
    match command {
        CertCommand::Init(args) => init::run(&args),
        CertCommand::Issue(args) => issue(args),
        CertCommand::Rotate(args) => rotate(&args),
    }
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
    // It is the name of a folder too.
    if args.name == ANY {
        bail!("give the certificate a name of its own, and say --any-name");
    }
    for role in &args.role {
        Identity::new(cluster.topology.name(), *role, &args.name)?;
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
